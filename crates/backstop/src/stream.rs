//! The rest of an answer, as it comes from the dependency.
//!
//! Only the dependency is measured here: time counts from when it had nothing to give to a reader who asked, until it had.
//! A reader who is slow to ask uses none of it up, nor does a client who is still sending what is answered. How long was
//! waited is told, at once where that makes a slow call of it; at the deadline the answer breaks off.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
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
use crate::upload::UploadWatch;
use crate::upstream::BrokenOff;

/// How long a dependency may keep a client waiting for the rest of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// In all. What is longer than `slow_in` is to be told at once, where anything is to be told of it.
    InAll { left: Duration, slow_in: Option<Duration> },
    /// Between any two pieces. The answer may go on without end.
    Idle(Duration),
}

const TICK: Duration = Duration::from_nanos(1);

impl Patience {
    /// How long may be waited until there is something to do.
    fn next(&self) -> Duration {
        match *self {
            // Exactly as long as accepted is not slow.
            Patience::InAll { left, slow_in: Some(slow_in) } => left.min(slow_in.saturating_add(TICK)),
            Patience::InAll { left, slow_in: None } | Patience::Idle(left) => left,
        }
    }

    /// This long was waited. Whether no more may be.
    fn use_up(&mut self, waited: Duration) -> bool {
        match self {
            Patience::InAll { left, slow_in } => {
                *left = left.saturating_sub(waited);
                *slow_in = slow_in.and_then(|slow_in| slow_in.checked_sub(waited));
                left.is_zero()
            }
            Patience::Idle(idle) => waited >= *idle,
        }
    }
}

pin_project! {
    /// What has been read of an answer already, and the rest of it.
    pub(crate) struct Stream<B> {
        prefix: VecDeque<Bytes>,
        held: Option<Held>,
        #[pin]
        body: B,
        clock: Clock,
        upload: Option<Arc<UploadWatch>>,
        patience: Patience,
        waiting: Option<Waiting>,
        untold: Option<Waited>,
    }
}

/// How long the dependency has kept the client waiting, and when that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) time: Duration,
    pub(crate) now: Mono,
}

struct Waiting {
    since: Mono,
    /// How long the client had kept us waiting for its own content by then.
    uploaded: Duration,
    next: Sleep,
}

impl Waiting {
    fn waited(&self, uploaded: Duration, now: Mono) -> Duration {
        self.since.until(now).saturating_sub(uploaded.saturating_sub(self.uploaded))
    }
}

impl<B> Stream<B> {
    pub(crate) fn new(prefix: Prefix, body: B, clock: Clock, patience: Patience) -> Self {
        let Prefix { pieces: prefix, held } = prefix;
        Self { prefix, held, body, clock, upload: None, patience, waiting: None, untold: None }
    }

    /// Of a request whose client may still be sending: a dependency that answers what it has not yet got waits for the client
    /// too.
    pub(crate) fn alongside(self, upload: Option<Arc<UploadWatch>>) -> Self {
        Self { upload, ..self }
    }

    /// How long was waited since this was last asked, if at all.
    pub(crate) fn waited(self: Pin<&mut Self>) -> Option<Waited> {
        self.project().untold.take()
    }

    /// Nobody waits for the dependency any more: a piece came, or whoever waited left.
    pub(crate) fn end_wait(self: Pin<&mut Self>) {
        let this = self.project();
        let Some(waiting) = this.waiting.take() else { return };
        let now = this.clock.mono();
        let time = waiting.waited(uploaded(this.upload.as_deref(), now), now);
        let _however_little_is_left = this.patience.use_up(time);
        *this.untold = Some(Waited { time, now });
    }
}

/// How long a client has kept us waiting for its content.
fn uploaded(upload: Option<&UploadWatch>, now: Mono) -> Duration {
    upload.map_or(Duration::ZERO, |upload| upload.waited(now))
}

impl<B: Body<Data = Bytes, Error = BrokenOff>> Stream<B> {
    pub(crate) fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.as_mut().project();
        if let Some(piece) = this.prefix.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        *this.held = None;
        if let Poll::Ready(frame) = this.body.poll_frame(context) {
            if matches!(frame, Some(Err(BrokenOff::Client(_)))) {
                // It was the client who did not go on.
                *this.waiting = None;
            } else {
                self.end_wait();
            }
            return Poll::Ready(frame);
        }
        let waiting = this.waiting.get_or_insert_with(|| {
            let since = this.clock.mono();
            let next = this.clock.sleep_until(since.after(this.patience.next()));
            Waiting { since, uploaded: uploaded(this.upload.as_deref(), since), next }
        });
        loop {
            ready!(Pin::new(&mut waiting.next).poll(context));
            let now = this.clock.mono();
            let uploaded = uploaded(this.upload.as_deref(), now);
            let time = waiting.waited(uploaded, now);
            let due = this.patience.next();
            if time < due {
                // The rest of that time it was the client.
                waiting.next.reset(now.after(due.saturating_sub(time)));
                continue;
            }
            let is_over = this.patience.use_up(time);
            *this.untold = Some(Waited { time, now });
            (waiting.since, waiting.uploaded) = (now, uploaded);
            if is_over {
                break;
            }
            waiting.next.reset(now.after(this.patience.next()));
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
