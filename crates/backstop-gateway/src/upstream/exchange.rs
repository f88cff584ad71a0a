//! One connection and the exchanges on it: the only module that knows which HTTP/1.1 implementation is in use.
//!
//! What it promises to the rest:
//! - A connection lives as long as its [`Link`]: whoever drops the link closes the socket, whatever was going on.
//! - A link is ready only if everything before it is over on both sides, nothing is left to be written, and the other
//!   side has neither closed nor sent a byte that nobody asked for.
//! - A request comes back ([`Broken::NotSent`]) only if certainly no byte of it was written.
//! - A failed write alone decides nothing. Whoever refuses a long request in its middle answers, closes, and resets the
//!   connection under the writer's hands; so the answer is read first, and the write is the failure only if none came.
//! - The framing of an answer is stricter than the parser's: one `Transfer-Encoding: chunked` and nothing else, or one
//!   `Content-Length` of digits, or neither; never both. A `101` is refused, because no upgrade is ever asked for.

mod wire;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use backstop::upstream::{BrokenOff, Framing};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::ClientFault;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use tokio::sync::oneshot;

use super::network::Stream;
use super::places::Place;
use super::settings::Settings;
use super::upload::{RequestBody, Upload, Watch};
use wire::{Gauge, Wire};

/// Told of every interim answer (1xx) but `100 Continue`, if a request carries it among its extensions.
///
/// It is called in the middle of reading, possibly on another thread, and must not block.
#[derive(Clone)]
pub struct Interim(pub Arc<Told>);

type Told = dyn Fn(StatusCode, &HeaderMap) + Send + Sync;

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interim")
    }
}

/// Why an exchange gave no answer.
pub(super) enum Broken<B> {
    /// No byte of the request was written; here it is again.
    NotSent(Box<Request<Upload<B>>>),
    /// The dependency failed.
    Failed(Failure),
    /// The client did.
    Client(ClientFault),
}

// === opening ===

/// How connections are to be handled.
#[derive(Debug)]
pub(super) struct Protocol(Builder);

impl Protocol {
    pub(super) fn new(settings: &Settings) -> Self {
        const SMALLEST_BUFFER: usize = 8 * 1024;
        const FIELDS_ON_THE_STACK: usize = 100;
        let mut builder = Builder::new();
        builder
            .writev(false)
            .max_buf_size(settings.buffer_bytes.max(SMALLEST_BUFFER))
            .max_header_size(settings.head_bytes)
            .allow_spaces_after_header_name_in_responses(true);
        if settings.fields != FIELDS_ON_THE_STACK {
            builder.max_headers(settings.fields);
        }
        Self(builder)
    }

    /// Makes a link of a stream, and the task that drives it. The place is given back when the socket is closed.
    pub(super) async fn open<B: RequestBody>(
        &self,
        stream: Stream,
        place: Place,
    ) -> Option<(Link<B>, impl Future<Output = ()> + 'static)> {
        let (wire, gauge) = Wire::new(stream);
        let (sender, connection) = self.0.handshake(wire).await.ok()?;
        let (life, ended) = oneshot::channel();
        let task = async move {
            // Its errors are told to the exchange that they belong to; without one it only closes.
            tokio::select! {
                biased;
                _ended = ended => {}
                _closed = connection => {}
            }
            drop(place);
        };
        Some((Link { sender, gauge, written_before: 0, _life: life }, task))
    }
}

// === exchanging ===

/// The sending end of a connection.
pub(super) struct Link<B> {
    sender: SendRequest<Upload<B>>,
    gauge: Arc<Gauge>,
    written_before: u64,
    _life: oneshot::Sender<Infallible>,
}

/// A request's answer to come.
pub(super) struct Answering<B>(Pin<Box<dyn Future<Output = Answered<B>>>>);

type Answered<B> = Result<Response<Incoming>, TrySendError<Request<Upload<B>>>>;

/// Makes a request ready for its way, with its body watched.
pub(super) fn prepare<B: Body>(request: Request<B>) -> (Request<Upload<B>>, Watch) {
    let (mut parts, body) = request.into_parts();
    let interim = parts.extensions.remove::<Interim>();
    // Whatever else was attached belongs to the client's side and must not live as long as this exchange.
    parts.extensions.clear();
    parts.version = Version::HTTP_11;
    let upload = Upload::new(body);
    let watch = upload.watch();
    let mut request = Request::from_parts(parts, upload);
    if let Some(Interim(told)) = interim {
        hyper::ext::on_informational(&mut request, move |answer| {
            if answer.status() != StatusCode::CONTINUE {
                told(answer.status(), answer.headers());
            }
        });
    }
    (request, watch)
}

impl<B> Link<B> {
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready() && !self.gauge.is_behind()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Ready with whether it may be used again, as soon as that is known.
    pub(super) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let ready = ready!(self.sender.poll_ready(context)).is_ok();
        Poll::Ready(ready && self.is_ready())
    }

    pub(super) fn send(&mut self, request: Request<Upload<B>>) -> Answering<B>
    where
        B: RequestBody,
    {
        self.written_before = self.gauge.written();
        Answering(Box::pin(self.sender.try_send_request(request)))
    }

    pub(super) fn poll_answer(
        &self,
        answering: &mut Answering<B>,
        watch: &Watch,
        context: &mut Context<'_>,
    ) -> Poll<Result<Response<Received>, Broken<B>>> {
        Poll::Ready(match ready!(answering.0.as_mut().poll(context)) {
            Ok(answer) => accept(answer).map_err(Broken::Failed),
            Err(error) => Err(self.broken(error, watch)),
        })
    }

    fn broken(&self, mut error: TrySendError<Request<Upload<B>>>, watch: &Watch) -> Broken<B> {
        if let Some(request) = error.take_message() {
            return Broken::NotSent(Box::new(request));
        }
        let error = error.into_error();
        if let Some(fault) = watch.fault() {
            return Broken::Client(fault);
        }
        if error.is_body_write_aborted() {
            // Its body is shorter than its own Content-Length.
            return Broken::Client(ClientFault::Broken);
        }
        let written = self.gauge.written() != self.written_before;
        let sent = if written { Sent::Maybe } else { Sent::No };
        let (kind, phase) = if error.is_parse() {
            (FailureKind::Protocol, Phase::Head)
        } else if self.gauge.has_failed() {
            (FailureKind::Write, Phase::Send)
        } else {
            (FailureKind::Reset, Phase::Head)
        };
        Broken::Failed(Failure::new(kind, phase, sent))
    }
}

/// Refuses an answer whose head leaves any doubt about where the answer ends.
fn accept(mut answer: Response<Incoming>) -> Result<Response<Received>, Failure> {
    let invalid = Failure::new(FailureKind::Protocol, Phase::Head, Sent::Maybe);
    let mut framing = framing(answer.headers()).ok_or(invalid)?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(invalid);
    }
    if answer.body().is_end_stream() {
        framing = Framing::Delimited;
    }
    answer.extensions_mut().insert(framing);
    // A connection that has spoken HTTP/1.0 would have the next request sent as one, and lose a body of unknown length.
    let reusable = framing == Framing::Delimited
        && answer.version() == Version::HTTP_11
        && !says_close(answer.headers());
    Ok(answer.map(|incoming| Received { incoming, reusable }))
}

fn framing(headers: &HeaderMap) -> Option<Framing> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let certain = match (codings.next(), lengths.next()) {
        (None, None) => return Some(Framing::UntilClose),
        (Some(coding), None) => {
            coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
        }
        (None, Some(length)) => {
            !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit) && lengths.next().is_none()
        }
        (Some(_), Some(_)) => false,
    };
    certain.then_some(Framing::Delimited)
}

fn says_close(headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    })
}

/// An answer's body as it comes in.
pub(super) struct Received {
    incoming: Incoming,
    reusable: bool,
}

impl Received {
    /// Whether the head allows another exchange on the connection once the body was read to its end.
    pub(super) fn is_reusable(&self) -> bool {
        self.reusable
    }

    pub(super) fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(&mut self.incoming).poll_frame(context).map_err(|error| {
            let kind =
                error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
            let kind = match kind {
                Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => FailureKind::Protocol,
                _ => FailureKind::Incomplete,
            };
            Failure::new(kind, Phase::Body, Sent::Maybe).into()
        })
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
