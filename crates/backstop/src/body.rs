//! The body that goes to the client: it holds the permits until the last byte and tells how it ended.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use backstop_engine::flow::Settlement;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::budget::{Budget, Held};
use crate::stream::Stream;
use crate::unsettled::UnsettledWrite;
use crate::upstream::BrokenOff;

pin_project! {
    /// The body of an answer.
    pub struct ReplyBody<B> {
        #[pin]
        content: Content<B>,
        settlement: Option<Settlement>,
        // Of a write whose answer streams.
        write: Option<UnsettledWrite>,
    }

    impl<B> PinnedDrop for ReplyBody<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Whoever sends the body need not ask once more after its last frame.
            if this.content.is_over() {
                return complete(this.settlement, this.write);
            }
            if let ContentProjection::Streamed { mut stream, .. } = this.content.project() {
                stream.as_mut().end_wait();
                tell_wait(stream, this.settlement);
            }
        }
    }
}

pin_project! {
    #[project = ContentProjection]
    enum Content<B> {
        Whole { body: Option<Bytes>, trailers: Option<HeaderMap>, held: Option<Held> },
        Streamed { #[pin] stream: Stream<B>, ended: bool },
    }
}

impl<B> Content<B> {
    fn is_over(&self) -> bool {
        match self {
            Content::Whole { body, trailers, .. } => body.is_none() && trailers.is_none(),
            Content::Streamed { ended, .. } => *ended,
        }
    }
}

impl<B> ReplyBody<B> {
    /// A body that is complete.
    pub(crate) fn whole(body: Bytes, settlement: Settlement) -> Self {
        Self::collected(body, None, None, settlement)
    }

    /// A body that was held back until it was complete.
    pub(crate) fn collected(
        body: Bytes,
        trailers: Option<HeaderMap>,
        held: Option<Held>,
        settlement: Settlement,
    ) -> Self {
        let body = Some(body).filter(|body| !body.is_empty());
        Self { content: Content::Whole { body, trailers, held }, settlement: Some(settlement), write: None }
    }

    /// A body that is still coming.
    pub(crate) fn streamed(stream: Stream<B>, settlement: Settlement, write: Option<UnsettledWrite>) -> Self
    where
        B: Body<Data = Bytes, Error = BrokenOff>,
    {
        let ended = stream.is_end_stream();
        Self { content: Content::Streamed { stream, ended }, settlement: Some(settlement), write }
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
            ContentProjection::Whole { body, trailers, .. } => {
                next_piece(body).map(Frame::data).or_else(|| trailers.take().map(Frame::trailers)).map(Ok)
            }
            ContentProjection::Streamed { ended: true, .. } => None,
            ContentProjection::Streamed { mut stream, ended } => {
                let polled = stream.as_mut().poll_frame(context);
                tell_wait(stream.as_mut(), this.settlement);
                let frame = ready!(polled);
                *ended = match &frame {
                    None => true,
                    Some(Ok(_)) => stream.is_end_stream(),
                    Some(Err(_)) => false,
                };
                frame
            }
        };
        match &frame {
            None => complete(this.settlement, this.write),
            // Whoever broke off the request left: nobody's failure.
            Some(Err(BrokenOff::Client(_))) => {
                drop(this.settlement.take());
                drop(this.write.take());
            }
            Some(Err(BrokenOff::Dependency(failure, _))) => {
                if let Some(settlement) = this.settlement.take() {
                    settlement.break_off(*failure);
                }
                drop(this.write.take());
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

/// What the dependency took is its call's time.
fn tell_wait<B>(stream: Pin<&mut Stream<B>>, settlement: &mut Option<Settlement>) {
    if let (Some(waited), Some(settlement)) = (stream.waited(), settlement.as_mut()) {
        settlement.waited(waited.time, waited.now);
    }
}

/// The last byte is through.
fn complete(settlement: &mut Option<Settlement>, write: &mut Option<UnsettledWrite>) {
    if let Some(settlement) = settlement.take() {
        settlement.complete();
    }
    if let Some(write) = write.take() {
        write.settle();
    }
}

/// The next piece of a body that is there as a whole. Whoever sends it asks for the next one only when it has room, so a
/// client that does not read keeps the permits as long as it does so.
fn next_piece(body: &mut Option<Bytes>) -> Option<Bytes> {
    let mut rest = body.take()?;
    if rest.len() > PIECE_BYTES {
        let piece = rest.split_to(PIECE_BYTES);
        *body = Some(rest);
        return Some(piece);
    }
    Some(rest)
}

/// The most that is given away at once.
const PIECE_BYTES: usize = 64 * 1024;

impl<B> std::fmt::Debug for ReplyBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyBody").field("settlement", &self.settlement).finish_non_exhaustive()
    }
}

/// What was read of an answer before it was known that it streams.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    pub(crate) pieces: VecDeque<Bytes>,
    pub(crate) held: Option<Held>,
}

impl Prefix {
    /// How much that is.
    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// An answer that was read as far as the limits allow.
pub(crate) enum Collected<B> {
    /// It is complete.
    Whole {
        /// Its content.
        body: Bytes,
        /// What followed it.
        trailers: Option<HeaderMap>,
        /// Its share of what may be held back.
        held: Held,
    },
    /// It is larger, or there is no room for it.
    TooLarge {
        /// What was read.
        prefix: Prefix,
        /// The rest.
        rest: B,
    },
}

/// Reads an answer to its end, or until it is larger than its limit or than the room that is left for all.
pub(crate) async fn collect<B>(body: B, limit_bytes: u64, budget: &Budget) -> Result<Collected<B>, BrokenOff>
where
    B: Body<Data = Bytes, Error = BrokenOff> + Unpin,
{
    let mut body = body;
    let mut pieces: VecDeque<Bytes> = VecDeque::new();
    let mut held = budget.hold();
    let mut small = BytesMut::new();
    let mut read_bytes: u64 = 0;
    let mut trailers = None;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame?.into_data() {
            Ok(piece) if piece.is_empty() => {}
            Ok(piece) => {
                let bytes = piece.len() as u64;
                read_bytes += bytes;
                join_small(&mut pieces, &mut small, piece);
                if read_bytes > limit_bytes || !held.grow(bytes) {
                    flush_small(&mut pieces, &mut small);
                    let prefix = Prefix { pieces, held: Some(held) };
                    return Ok(Collected::TooLarge { prefix, rest: body });
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    flush_small(&mut pieces, &mut small);
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
    Ok(Collected::Whole { body, trailers, held })
}

/// A piece below this is joined with its neighbours: each piece has a cost beside its bytes, and nothing bounds their
/// number but the bytes.
const SMALL_BYTES: usize = 4096;

fn join_small(pieces: &mut VecDeque<Bytes>, small: &mut BytesMut, piece: Bytes) {
    // The first one stays as it is: mostly it is the only one.
    if piece.len() < SMALL_BYTES && !(pieces.is_empty() && small.is_empty()) {
        small.extend_from_slice(&piece);
    } else {
        flush_small(pieces, small);
        pieces.push_back(piece);
    }
}

fn flush_small(pieces: &mut VecDeque<Bytes>, small: &mut BytesMut) {
    if !small.is_empty() {
        pieces.push_back(std::mem::take(small).freeze());
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
