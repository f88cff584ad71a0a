//! Replies that an HTTP/2 client does not take.
//!
//! In HTTP/2 each stream has a window of its own. A client that leaves it shut takes nothing although its connection lives
//! and every write succeeds, and the body is not asked for its next piece. So each reply tells when it last gave a piece
//! away; one that waited for its whole reply time ends the connection, and with it everything that its replies hold.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use backstop::clock::{Clock, Sleep};
use backstop_engine::time::Mono;
use http_body::{Body, Frame, SizeHint};

/// The replies of one connection.
pub(crate) struct Replies {
    slots: RefCell<Vec<Weak<Slot>>>,
    watcher: RefCell<Option<Waker>>,
    reply_time: Duration,
    clock: Clock,
}

#[derive(Debug)]
struct Slot {
    /// Since when the client could take the next piece; `None` while there is none to take.
    since: Cell<Option<Mono>>,
}

impl Replies {
    pub(crate) fn new(reply_time: Duration, clock: Clock) -> Self {
        Self { slots: RefCell::default(), watcher: RefCell::default(), reply_time, clock }
    }

    /// A reply that is watched.
    pub(crate) fn watch<B>(&self, body: B) -> Taken<B> {
        let slot = Rc::new(Slot { since: Cell::new(Some(self.clock.mono())) });
        let mut slots = self.slots.borrow_mut();
        slots.push(Rc::downgrade(&slot));
        if slots.len() == 1
            && let Some(watcher) = self.watcher.borrow_mut().take()
        {
            watcher.wake();
        }
        Taken { body, watch: Some((slot, self.clock.clone())) }
    }

    /// Ends when a reply was not taken in time. Costs next to nothing while there is none.
    pub(crate) async fn stuck(&self) {
        let mut sleep: Option<Sleep> = None;
        poll_fn(|context| {
            loop {
                if let Some(sleep) = &mut sleep {
                    ready!(Pin::new(sleep).poll(context));
                }
                let now = self.clock.mono();
                match self.next_end(now) {
                    None => {
                        sleep = None;
                        let mut watcher = self.watcher.borrow_mut();
                        if !watcher.as_ref().is_some_and(|watcher| watcher.will_wake(context.waker())) {
                            *watcher = Some(context.waker().clone());
                        }
                        return Poll::Pending;
                    }
                    Some(end) if end <= now => return Poll::Ready(()),
                    // None that begins meanwhile could end sooner.
                    Some(end) => sleep = Some(self.clock.sleep_until(end)),
                }
            }
        })
        .await;
    }

    /// When the first of the replies that wait to be taken has waited too long; `None` without any reply.
    fn next_end(&self, now: Mono) -> Option<Mono> {
        let mut slots = self.slots.borrow_mut();
        slots.retain(|slot| slot.strong_count() > 0);
        let ends = slots.iter().filter_map(Weak::upgrade);
        ends.map(|slot| slot.since.get().unwrap_or(now).after(self.reply_time)).min()
    }
}

/// A reply's body.
pub(crate) struct Taken<B> {
    body: B,
    watch: Option<(Rc<Slot>, Clock)>,
}

impl<B> Taken<B> {
    /// A reply that is watched elsewhere.
    pub(crate) fn unwatched(body: B) -> Self {
        Self { body, watch: None }
    }
}

impl<B: Body + Unpin> Body for Taken<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Some((slot, clock)) = &self.watch {
            slot.since.set(matches!(frame, Poll::Ready(Some(Ok(_)))).then(|| clock.mono()));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
