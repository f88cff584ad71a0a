//! One exchange with the dependency, as the client and the shadow see it.
//!
//! It has one writer, whoever makes the call, and two readers. The client's decides how fast it goes; the shadow's takes what comes
//! at once. All of them run on one thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use backstop::upstream::BrokenOff;
use backstop_engine::failure::Phase;
use backstop_engine::flow::Places;
use backstop_engine::outcome::Outcome;
use backstop_engine::policy::RouteId;
use bytes::Bytes;
use http::response;
use http_body::Frame;

use super::{AHEAD_BYTES, Counts, Really, Unanswered};

/// What the call came to.
#[derive(Debug)]
pub(super) enum Came {
    /// An answer begins.
    Answer(Box<response::Parts>),
    /// There is none.
    Nothing(Unanswered),
}

/// One exchange under way.
#[derive(Debug)]
pub(super) struct Exchange {
    route: RouteId,
    read_ahead_bytes: u64,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    came: Option<Came>,
    /// What the client has still to take.
    for_client: VecDeque<Frame<Bytes>>,
    client_bytes: u64,
    /// What the shadow has still to take; `None` once it takes nothing more.
    for_shadow: Option<VecDeque<Bytes>>,
    shadow_bytes: u64,
    /// The shadow may still hold the answer back.
    may_hold_back: bool,
    /// The shadow cannot follow any more.
    is_lost: bool,
    end: Option<Result<(), BrokenOff>>,
    /// The client has all of it, or is gone.
    is_over: bool,
    has_left: bool,
    /// What the call takes up, in the shadow's eyes.
    places: Option<Places>,
    /// What came, and what would have come.
    really: Option<Really>,
    would: Option<Outcome>,
    caller: Option<Waker>,
    client: Option<Waker>,
    shadow: Option<Waker>,
}

/// The client's place at an exchange. Dropped before the end, the client has left.
#[derive(Debug)]
pub(super) struct Leaving(Rc<Exchange>);

impl Leaving {
    /// The client has its last byte.
    pub(super) fn is_over(&self) {
        self.0.change(|state| state.is_over = true);
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.change(|state| {
            if !state.is_over {
                (state.has_left, state.is_over) = (true, true);
                state.really = Some(Really::Left);
            }
        });
    }
}

impl Exchange {
    pub(super) fn begin(route: RouteId, read_ahead_bytes: u64) -> Rc<Self> {
        let state = State {
            phase: Phase::Queue,
            came: None,
            for_client: VecDeque::new(),
            client_bytes: 0,
            for_shadow: Some(VecDeque::new()),
            shadow_bytes: 0,
            may_hold_back: true,
            is_lost: false,
            end: None,
            is_over: false,
            has_left: false,
            places: None,
            really: None,
            would: None,
            caller: None,
            client: None,
            shadow: None,
        };
        Rc::new(Self { route, read_ahead_bytes, state: RefCell::new(state) })
    }

    pub(super) fn leaving(self: &Rc<Self>) -> Leaving {
        Leaving(Rc::clone(self))
    }

    /// Changes something, and wakes whoever may wait for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let changed = change(&mut state);
        if state.is_over && (state.end.is_some() || state.has_left) {
            // The dependency's work has ended.
            state.places = None;
        }
        let wakers = [state.caller.take(), state.client.take(), state.shadow.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        changed
    }

    // === Whoever makes the call ===

    /// The call has come so far.
    pub(super) fn reached(&self, phase: Phase) {
        if self.state.borrow().phase != phase {
            self.change(|state| state.phase = phase);
        }
    }

    pub(super) fn came(&self, came: Came) {
        self.change(|state| {
            state.really = Some(match &came {
                Came::Answer(head) => Really::of(head.status),
                Came::Nothing(_) => Really::Nothing,
            });
            if matches!(came, Came::Nothing(_)) {
                state.places = None;
            }
            state.came = Some(came);
        });
    }

    pub(super) fn piece(&self, frame: Frame<Bytes>) {
        self.change(|state| {
            if let (Some(bytes), Some(pieces)) = (frame.data_ref(), &mut state.for_shadow) {
                pieces.push_back(bytes.clone());
                state.shadow_bytes += bytes.len() as u64;
                // It still waits for a place, say, and its client waits for nothing.
                if state.shadow_bytes > self.read_ahead_bytes.saturating_mul(2) {
                    (state.for_shadow, state.is_lost) = (None, true);
                }
            }
            state.client_bytes += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
            state.for_client.push_back(frame);
        });
    }

    pub(super) fn broke_off(&self, broken: BrokenOff) {
        self.change(|state| {
            state.really = Some(Really::Cut);
            state.end = Some(Err(broken));
            state.places = None;
        });
    }

    pub(super) fn ended(&self) {
        self.change(|state| {
            state.end = Some(Ok(()));
            state.places = None;
        });
    }

    /// Only while the shadow may hold the answer back, because it counts what it holds.
    fn has_room_now(&self, state: &State) -> bool {
        let bytes = if state.may_hold_back { self.read_ahead_bytes } else { AHEAD_BYTES };
        state.client_bytes < bytes
    }

    /// Waits until more may be read. `false` once the client has left.
    pub(super) async fn has_room(&self) -> bool {
        poll_fn(|context| {
            if self.poll_left(context) {
                return Poll::Ready(false);
            }
            let has_room = self.has_room_now(&self.state.borrow());
            if has_room { Poll::Ready(true) } else { Poll::Pending }
        })
        .await
    }

    /// Whether the client has left. Wakes the caller when anything changes.
    pub(super) fn poll_left(&self, context: &Context<'_>) -> bool {
        let mut state = self.state.borrow_mut();
        state.caller = Some(context.waker().clone());
        state.has_left
    }

    // === The client ===

    pub(super) fn poll_client(&self, context: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut state = self.state.borrow_mut();
        if let Some(frame) = state.for_client.pop_front() {
            state.client_bytes -= frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
            let caller = state.caller.take();
            drop(state);
            caller.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(Ok(frame)));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(broken)) => Poll::Ready(Some(Err(broken.clone()))),
            None => {
                state.client = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether nothing more comes after what the client has taken.
    pub(super) fn client_has_all(&self) -> bool {
        let state = self.state.borrow();
        state.for_client.is_empty() && matches!(state.end, Some(Ok(())))
    }

    // === The shadow ===

    /// What the call takes up.
    pub(super) fn hold(&self, places: Places) {
        let mut state = self.state.borrow_mut();
        if state.end.is_none() && !state.has_left && !matches!(state.came, Some(Came::Nothing(_))) {
            state.places = Some(places);
        }
    }

    /// An abandoned call gives them back after a while.
    pub(super) fn let_go(&self) {
        self.state.borrow_mut().places = None;
    }

    /// Whether the call takes up nothing any more.
    pub(super) fn poll_let_go(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        state.shadow = Some(context.waker().clone());
        if state.places.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// How far the call has come, and what came of it.
    pub(super) fn poll_came(&self, context: &Context<'_>) -> (Phase, Poll<Came>) {
        let mut state = self.state.borrow_mut();
        let came = state.came.take();
        state.shadow = Some(context.waker().clone());
        (state.phase, came.map_or(Poll::Pending, Poll::Ready))
    }

    pub(super) fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut state = self.state.borrow_mut();
        if let Some(piece) = state.for_shadow.as_mut().and_then(VecDeque::pop_front) {
            state.shadow_bytes -= piece.len() as u64;
            return Poll::Ready(Some(Ok(piece)));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(broken)) => Poll::Ready(Some(Err(broken.clone()))),
            None => {
                state.shadow = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The shadow has decided: what it wanted to hold back it has.
    pub(super) fn is_decided(&self) {
        self.state.borrow_mut().may_hold_back = false;
    }

    /// The shadow wants nothing more of the answer.
    pub(super) fn shadow_has_enough(&self) {
        let mut state = self.state.borrow_mut();
        (state.for_shadow, state.may_hold_back) = (None, false);
    }

    /// The shadow cannot follow the answer: what it would have come to is not known.
    pub(super) fn lose(&self) {
        self.change(|state| (state.for_shadow, state.is_lost) = (None, true));
    }

    /// Whether the shadow cannot follow any more.
    pub(super) fn poll_lost(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        state.shadow = Some(context.waker().clone());
        if state.is_lost { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether the client has left (`Err`), or has all it gets (`Ok`).
    pub(super) fn poll_over(&self, context: &Context<'_>) -> Poll<Result<(), ()>> {
        let mut state = self.state.borrow_mut();
        state.shadow = Some(context.waker().clone());
        match (state.has_left, state.is_over) {
            (true, _) => Poll::Ready(Err(())),
            (false, true) => Poll::Ready(Ok(())),
            (false, false) => Poll::Pending,
        }
    }

    /// Whether something of the answer is there to be read by the shadow, or is waited for by the client.
    pub(super) fn poll_wanted(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        let has_piece = state.for_shadow.as_ref().is_some_and(|pieces| !pieces.is_empty());
        let is_waited_for = self.has_room_now(&state);
        if has_piece || is_waited_for || state.end.is_some() {
            return Poll::Ready(());
        }
        state.shadow = Some(context.waker().clone());
        Poll::Pending
    }

    /// What would have come of it.
    pub(super) fn would(&self, outcome: Outcome) {
        self.state.borrow_mut().would = Some(outcome);
    }

    /// Counts the request, once both are known and the exchange is over.
    pub(super) fn count(&self, counts: &Counts) {
        let state = self.state.borrow();
        if let (Some(would), Some(really)) = (state.would, state.really) {
            counts.record(self.route, would, really);
        }
    }
}
