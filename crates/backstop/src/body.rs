//! The body that goes to the client: it holds the permits until the last byte and tells how it ended.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Settlement;
use backstop_engine::time::Mono;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::clock::{Clock, Sleep};
use crate::upstream::BrokenOff;

pin_project! {
    /// The body of an answer.
    pub struct ReplyBody<B> {
        #[pin]
        content: Content<B>,
        settlement: Option<Settlement>,
    }

    impl<B> PinnedDrop for ReplyBody<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Whoever sends the body need not ask once more after its last frame.
            if this.content.is_over()
                && let Some(settlement) = this.settlement.take()
            {
                settlement.complete();
            }
        }
    }
}

pin_project! {
    #[project = ContentProjection]
    enum Content<B> {
        Whole { body: Option<Bytes>, trailers: Option<HeaderMap> },
        Streamed { #[pin] stream: Stream<B>, ended: bool },
    }
}

impl<B> Content<B> {
    fn is_over(&self) -> bool {
        match self {
            Content::Whole { body, trailers } => body.is_none() && trailers.is_none(),
            Content::Streamed { ended, .. } => *ended,
        }
    }
}

impl<B> ReplyBody<B> {
    /// A body that is complete.
    pub(crate) fn whole(body: Bytes, trailers: Option<HeaderMap>, settlement: Settlement) -> Self {
        let body = Some(body).filter(|body| !body.is_empty());
        Self { content: Content::Whole { body, trailers }, settlement: Some(settlement) }
    }

    /// A body that is still coming.
    pub(crate) fn streamed(stream: Stream<B>, settlement: Settlement) -> Self
    where
        B: Body<Data = Bytes, Error = BrokenOff>,
    {
        let ended = stream.is_end_stream();
        Self { content: Content::Streamed { stream, ended }, settlement: Some(settlement) }
    }
}

impl<B: Body<Data = Bytes, Error = BrokenOff>> Body for ReplyBody<B> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.project();
        let frame = match this.content.project() {
            ContentProjection::Whole { body, trailers } => {
                body.take().map(Frame::data).or_else(|| trailers.take().map(Frame::trailers)).map(Ok)
            }
            ContentProjection::Streamed { ended: true, .. } => None,
            ContentProjection::Streamed { mut stream, ended } => {
                let frame = ready!(stream.as_mut().poll_frame(context));
                *ended = match &frame {
                    None => true,
                    Some(Ok(_)) => stream.is_end_stream(),
                    Some(Err(_)) => false,
                };
                frame
            }
        };
        match &frame {
            None => {
                if let Some(settlement) = this.settlement.take() {
                    settlement.complete();
                }
            }
            Some(Err(BrokenOff(failure))) => {
                if let Some(settlement) = this.settlement.take() {
                    settlement.break_off(*failure);
                }
            }
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole { body, .. } => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Content::Streamed { stream, .. } => stream.size_hint(),
        }
    }
}

impl<B> std::fmt::Debug for ReplyBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyBody").field("settlement", &self.settlement).finish_non_exhaustive()
    }
}

/// How long a dependency may keep a client waiting for the rest of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// In all. A client that is slow to read does not use it up: only waiting for the dependency does.
    InAll(Duration),
    /// Between any two pieces; the answer may go on without end.
    Idle(Duration),
}

pin_project! {
    /// What has been read of an answer already, and the rest of it.
    pub(crate) struct Stream<B> {
        prefix: VecDeque<Bytes>,
        #[pin]
        body: B,
        clock: Clock,
        patience: Patience,
        left: Duration,
        waiting: Option<Waiting>,
    }
}

struct Waiting {
    since: Mono,
    end: Sleep,
}

impl<B> Stream<B> {
    pub(crate) fn new(prefix: VecDeque<Bytes>, body: B, clock: Clock, patience: Patience) -> Self {
        let (Patience::InAll(left) | Patience::Idle(left)) = patience;
        Self { prefix, body, clock, patience, left, waiting: None }
    }
}

impl<B: Body<Data = Bytes, Error = BrokenOff>> Stream<B> {
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.project();
        if let Some(piece) = this.prefix.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Poll::Ready(frame) = this.body.poll_frame(context) {
            if let Some(waiting) = this.waiting.take() {
                let waited = this.clock.mono().since(waiting.since).unwrap_or_default();
                *this.left = match *this.patience {
                    Patience::InAll(_) => this.left.saturating_sub(waited),
                    Patience::Idle(idle) => idle,
                };
            }
            return Poll::Ready(frame);
        }
        let waiting = this.waiting.get_or_insert_with(|| {
            let since = this.clock.mono();
            Waiting { since, end: this.clock.sleep_until(since.after(*this.left)) }
        });
        ready!(Pin::new(&mut waiting.end).poll(context));
        Poll::Ready(Some(Err(BrokenOff(Failure::new(FailureKind::ReadTimeout, Phase::Body, Sent::Maybe)))))
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
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

/// An answer that was read as far as the limit allows.
pub(crate) enum Collected<B> {
    /// It is complete.
    Whole {
        /// Its content.
        body: Bytes,
        /// What followed it.
        trailers: Option<HeaderMap>,
    },
    /// It is larger.
    TooLarge {
        /// What was read.
        prefix: VecDeque<Bytes>,
        /// The rest.
        rest: B,
    },
}

/// Reads an answer to its end, or until it is larger than the limit.
pub(crate) async fn collect<B>(body: B, limit_bytes: u64) -> Result<Collected<B>, BrokenOff>
where
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let mut body = body;
    let mut pieces: VecDeque<Bytes> = VecDeque::new();
    let mut read_bytes: u64 = 0;
    let mut trailers = None;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame?.into_data() {
            Ok(piece) if piece.is_empty() => {}
            Ok(piece) => {
                read_bytes += piece.len() as u64;
                pieces.push_back(piece);
                if read_bytes > limit_bytes {
                    return Ok(Collected::TooLarge { prefix: pieces, rest: body });
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    // One piece, the common case, is passed on without copying it.
    let body = match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.pop_front().unwrap_or_default(),
        _ => {
            let mut whole = Vec::with_capacity(usize::try_from(read_bytes).unwrap_or(0));
            pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
            Bytes::from(whole)
        }
    };
    Ok(Collected::Whole { body, trailers })
}
