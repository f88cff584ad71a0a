//! The rest of an answer, as it comes from the dependency.
//!
//! Only the dependency is measured here: time counts from when it had nothing to give to a reader who asked, until it had.
//! A reader who is slow to ask uses none of it up. Once what was accepted of a call is over, that is told; once the
//! deadline is, the answer breaks off.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::time::Mono;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::body::Prefix;
use crate::budget::Held;
use crate::clock::{Clock, Sleep};
use crate::upstream::BrokenOff;

/// How long a dependency may keep a client waiting for the rest of an answer. A client that is slow to read uses none of
/// it up: only waiting for the dependency does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// In all. Beyond `slow_in` it was slow, where that is to be told.
    InAll { left: Duration, slow_in: Option<Duration> },
    /// Between any two pieces. The answer may go on without end, and is never slow.
    Idle(Duration),
}

impl Patience {
    /// How long may be waited until there is something to do: first to tell that it is slow.
    fn next(&self) -> Duration {
        match *self {
            // Exactly as long as accepted is not slow.
            Patience::InAll { left, slow_in: Some(slow_in) } => left.min(slow_in.saturating_add(TICK)),
            Patience::InAll { left, slow_in: None } | Patience::Idle(left) => left,
        }
    }

    /// This long was waited so far, since anything was used up. Whether that made it slow.
    fn is_slow_after(&mut self, waited: Duration) -> bool {
        let Patience::InAll { slow_in, .. } = self else { return false };
        slow_in.take_if(|slow_in| waited > *slow_in).is_some()
    }

    /// This long was waited for a piece that came.
    fn use_up(&mut self, waited: Duration) {
        if let Patience::InAll { left, slow_in } = self {
            *left = left.saturating_sub(waited);
            *slow_in = slow_in.map(|slow_in| slow_in.saturating_sub(waited));
        }
    }
}

const TICK: Duration = Duration::from_nanos(1);

pin_project! {
    /// What has been read of an answer already, and the rest of it.
    pub(crate) struct Stream<B> {
        prefix: VecDeque<Bytes>,
        held: Option<Held>,
        #[pin]
        body: B,
        clock: Clock,
        patience: Patience,
        waiting: Option<Waiting>,
        turned_slow: Option<Mono>,
    }
}

struct Waiting {
    since: Mono,
    next: Sleep,
}

impl<B> Stream<B> {
    pub(crate) fn new(prefix: Prefix, body: B, clock: Clock, patience: Patience) -> Self {
        let Prefix { pieces: prefix, held } = prefix;
        Self { prefix, held, body, clock, patience, waiting: None, turned_slow: None }
    }

    /// When it turned out that the dependency keeps the client waiting for too long. Told once.
    pub(crate) fn turned_slow(self: Pin<&mut Self>) -> Option<Mono> {
        self.project().turned_slow.take()
    }

    /// Nobody waits for the dependency any more: a piece came, or whoever waited left.
    pub(crate) fn end_wait(self: Pin<&mut Self>) {
        let this = self.project();
        let Some(waiting) = this.waiting.take() else { return };
        let now = this.clock.mono();
        let waited = waiting.since.until(now);
        if this.patience.is_slow_after(waited) {
            *this.turned_slow = Some(now);
        }
        this.patience.use_up(waited);
    }
}

impl<B: Body<Data = Bytes, Error = BrokenOff>> Stream<B> {
    pub(crate) fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut this = self.as_mut().project();
        if let Some(piece) = this.prefix.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        *this.held = None;
        if let Poll::Ready(frame) = this.body.as_mut().poll_frame(context) {
            self.end_wait();
            return Poll::Ready(frame);
        }
        let waiting = this.waiting.get_or_insert_with(|| {
            let since = this.clock.mono();
            Waiting { since, next: this.clock.sleep_until(since.after(this.patience.next())) }
        });
        loop {
            ready!(Pin::new(&mut waiting.next).poll(context));
            let now = this.clock.mono();
            if !this.patience.is_slow_after(waiting.since.until(now)) {
                break;
            }
            *this.turned_slow = Some(now);
            waiting.next.reset(waiting.since.after(this.patience.next()));
        }
        let failure = Failure::new(FailureKind::ReadTimeout, Phase::Body, Sent::Maybe);
        Poll::Ready(Some(Err(failure.into())))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.body.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        let read: u64 = self.prefix.iter().map(|piece| piece.len() as u64).sum();
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(read)) {
            hint.set_upper(upper);
        }
        hint
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
