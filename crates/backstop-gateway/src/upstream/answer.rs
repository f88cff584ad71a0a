//! An answer's body on its way in, and with it what the call occupies.
//!
//! Read to its end, the connection goes to rest and then the permit goes back, so that the next call finds the
//! connection. Broken off by the other side: the connection is closed and the permit goes back at once. Dropped before its
//! end, it is an abandoned call, and occupies the dependency for as long as one does.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use backstop::upstream::BrokenOff;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::abandon::{Hold, Occupied, Rest, UnderWay};
use super::counts::Closed;
use super::exchange::Received;
use super::upload::{RequestBody, Watch};

/// The body of an answer. It stays on its thread, and holds the permit and the connection until it has ended.
pub struct AnswerBody<B: RequestBody> {
    /// `None` only while it is dropped.
    received: Option<Received>,
    /// `None` once it has ended.
    tail: Option<Tail<B>>,
}

struct Tail<B> {
    occupied: Occupied<B>,
    watch: Watch,
    hold: Hold,
}

impl<B: RequestBody> AnswerBody<B> {
    pub(super) fn new(received: Received, occupied: Occupied<B>, watch: Watch, hold: Hold) -> Self {
        let mut body = Self { received: Some(received), tail: Some(Tail { occupied, watch, hold }) };
        if body.is_end() {
            body.finish();
        }
        body
    }

    fn is_end(&self) -> bool {
        self.received.as_ref().is_none_or(Received::is_end)
    }

    fn finish(&mut self) {
        if let Some(Tail { occupied, watch, .. }) = self.tail.take() {
            let reusable = self.received.as_ref().is_some_and(Received::is_reusable);
            occupied.lease.finish(reusable && watch.is_sent());
            drop(occupied.places);
        }
    }

    /// Whose doing it is: a request that broke off takes its answer with it.
    fn blamed(&self, broken: BrokenOff) -> BrokenOff {
        let fault = self.tail.as_ref().and_then(|tail| tail.watch.fault());
        fault.map_or(broken, BrokenOff::Client)
    }

    fn fail(&mut self) {
        if let Some(Tail { occupied, .. }) = self.tail.take() {
            occupied.lease.close(Closed::Failed);
            drop(occupied.places);
        }
    }
}

impl<B: RequestBody> Drop for AnswerBody<B> {
    fn drop(&mut self) {
        if let (Some(received), Some(Tail { occupied, watch, hold })) =
            (self.received.take(), self.tail.take())
        {
            UnderWay { rest: Rest::Body(received), watch, hold, occupied }.abandon();
        }
    }
}

impl<B: RequestBody> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        let Some(received) = &mut this.received else { return Poll::Ready(None) };
        let frame =
            ready!(received.poll_frame(context)).map(|frame| frame.map_err(|broken| this.blamed(broken)));
        match &frame {
            Some(Ok(frame)) if frame.is_trailers() || this.is_end() => this.finish(),
            Some(Ok(_)) => {}
            Some(Err(_)) => this.fail(),
            None => this.finish(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.received.as_ref().map_or_else(|| SizeHint::with_exact(0), Received::size_hint)
    }
}

impl<B: RequestBody> fmt::Debug for AnswerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody").field("ended", &self.tail.is_none()).finish_non_exhaustive()
    }
}
