//! The request's content on its way in: no larger and no slower than accepted, and whole, and behind it what may go on
//! ([`trailers`]).
//!
//! An HTTP/2 stream that its client resets without an error ends for hyper as one that is complete (what RFC 9113 section
//! 8.1 says of answers). A request without its end is none: it is complete only if its end has come.
//!
//! Time in which the client keeps us waiting is counted apart ([`UploadWatch`]), because it is not the dependency's; and
//! it has a limit of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstop::clock::{Clock, Sleep};
use backstop::upload::UploadWatch;
use backstop_engine::flow::ClientFault;
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::trailers;
use crate::upstream::ClientBody;

/// A request's content.
pub(crate) struct RequestContent {
    /// `None` for a request that is sent once more: it had none.
    incoming: Option<Incoming>,
    /// What was read beforehand, all of it.
    whole: Bytes,
    /// By which protocol it comes.
    version: Version,
    limit: Option<Limit>,
}

struct Limit {
    left_bytes: u64,
    time: Duration,
    /// What goes on behind it; `None` where nothing can follow.
    trailers: Option<trailers::Rules>,
    watch: Arc<UploadWatch>,
    clock: Clock,
    end: Option<Sleep>,
}

impl RequestContent {
    /// Content of at most `bytes`, for which the client may keep us waiting at most `time` in all. The watch is `None`
    /// where there is no content.
    pub(crate) fn new(
        incoming: Incoming,
        version: Version,
        bytes: u64,
        time: Duration,
        trailers: Option<trailers::Rules>,
        clock: &Clock,
    ) -> (Self, Option<Arc<UploadWatch>>) {
        if incoming.is_end_stream() {
            return (Self { incoming: Some(incoming), whole: Bytes::new(), version, limit: None }, None);
        }
        let watch = Arc::new(UploadWatch::default());
        let limit = Limit {
            left_bytes: bytes,
            time,
            trailers,
            watch: Arc::clone(&watch),
            clock: clock.clone(),
            end: None,
        };
        (Self { incoming: Some(incoming), whole: Bytes::new(), version, limit: Some(limit) }, Some(watch))
    }

    /// No content.
    pub(crate) const fn none() -> Self {
        Self::whole(Bytes::new())
    }

    /// Content that was read beforehand.
    pub(crate) const fn whole(whole: Bytes) -> Self {
        Self { incoming: None, whole, version: Version::HTTP_11, limit: None }
    }
}

impl Body for RequestContent {
    type Data = Bytes;
    type Error = ClientBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientBody>>> {
        let this = &mut *self;
        let Some(incoming) = &mut this.incoming else {
            let whole = std::mem::take(&mut this.whole);
            return Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))));
        };
        let frame = Pin::new(&mut *incoming).poll_frame(context);
        let Some(limit) = &mut this.limit else {
            return frame.map(|frame| frame.map(|frame| frame.map_err(|_| ClientBody(ClientFault::Broken))));
        };
        match frame {
            Poll::Ready(frame) => {
                limit.watch.arrive(limit.clock.mono());
                limit.end = None;
                let frame = match frame {
                    Some(frame) => Some(limit.accept(frame, this.version)),
                    None if this.version == Version::HTTP_2 && !incoming.is_end_stream() => {
                        Some(Err(ClientBody(ClientFault::Broken)))
                    }
                    None => None,
                };
                let is_last = match &frame {
                    Some(Ok(frame)) => frame.is_trailers() || incoming.is_end_stream(),
                    Some(Err(_)) => false,
                    None => true,
                };
                if is_last {
                    limit.watch.end();
                }
                Poll::Ready(frame)
            }
            Poll::Pending => {
                let now = limit.clock.mono();
                limit.watch.wait(now);
                let left = limit.time.saturating_sub(limit.watch.waited(now));
                let end = limit.end.get_or_insert_with(|| limit.clock.sleep_until(now.after(left)));
                match Pin::new(end).poll(context) {
                    Poll::Ready(()) => Poll::Ready(Some(Err(ClientBody(ClientFault::Slow)))),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().map_or(self.whole.is_empty(), Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let of_whole = || SizeHint::with_exact(self.whole.len() as u64);
        self.incoming.as_ref().map_or_else(of_whole, Incoming::size_hint)
    }
}

impl Limit {
    fn accept(
        &mut self,
        frame: Result<Frame<Bytes>, hyper::Error>,
        version: Version,
    ) -> Result<Frame<Bytes>, ClientBody> {
        let mut frame = frame.map_err(|_| ClientBody(ClientFault::Broken))?;
        // In HTTP/1.1 hyper takes a line feed where the last line end belongs for the beginning of trailers, and finds none.
        // In HTTP/2 a trailer section may be empty.
        if version < Version::HTTP_2 && frame.trailers_ref().is_some_and(http::HeaderMap::is_empty) {
            return Err(ClientBody(ClientFault::Broken));
        }
        if let Some(data) = frame.data_ref() {
            let bytes = data.len() as u64;
            self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or(ClientBody(ClientFault::TooLarge))?;
        }
        if let (Some(trailers), Some(rules)) = (frame.trailers_mut(), &self.trailers) {
            rules.apply(trailers);
        }
        Ok(frame)
    }
}
