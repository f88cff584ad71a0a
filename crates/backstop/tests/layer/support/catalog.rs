//! The protected service: it does what the test says and remembers what it was asked.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use backstop::engine::failure::FailureKind;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use tower::Service;

use super::gate::Gate;

/// What a request carries.
pub(crate) type Content = Full<Bytes>;

/// What the catalog does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Answers(Response<Vec<Piece>>),
    /// Ends in an error; `None` is one that nobody classifies.
    Fails(Option<FailureKind>),
    Hangs,
    Panics,
    OnceOpen(Gate, Box<Does>),
}

/// A part of an answer's body.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Data(&'static str),
    Trailers(HeaderMap),
    OnceOpen(Gate),
    Breaks,
    Hangs,
    Panics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) Option<FailureKind>);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Fault {}

/// Clones are one catalog; each waits on its own, and none is `Sync`.
pub(crate) struct Catalog {
    state: Arc<Mutex<State>>,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Clone for Catalog {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), waits: None }
    }
}

#[derive(Debug)]
struct State {
    does: Does,
    ready: Option<Gate>,
    asked: Vec<Parts>,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        let state = State { does: Does::Hangs, ready: None, asked: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), waits: None }
    }

    /// From now on.
    pub(crate) fn does(&self, does: Does) {
        self.state.lock().unwrap().does = does;
    }

    /// It takes requests only once this is open.
    pub(crate) fn is_ready_once_open(&self, gate: &Gate) {
        self.state.lock().unwrap().ready = Some(gate.clone());
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().unwrap().asked.len()
    }

    /// A field of the last request that came, as it came; `None` if it was not there.
    pub(crate) fn last_asked_with(&self, name: &str) -> Option<String> {
        let state = self.state.lock().unwrap();
        let value = state.asked.last().unwrap().headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }
}

impl Service<Request<Content>> for Catalog {
    type Response = Response<ScriptedBody>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Fault>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let Some(gate) = self.state.lock().unwrap().ready.clone() else { return Poll::Ready(Ok(())) };
        let wait = self.waits.get_or_insert_with(|| Box::pin(async move { gate.passed().await }));
        ready!(wait.as_mut().poll(context));
        self.waits = None;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Content>) -> Self::Future {
        let mut state = self.state.lock().unwrap();
        state.asked.push(request.into_parts().0);
        Box::pin(perform(state.does.clone()))
    }
}

async fn perform(mut does: Does) -> Result<Response<ScriptedBody>, Fault> {
    loop {
        does = match does {
            Does::Answers(answer) => {
                return Ok(answer.map(|pieces| ScriptedBody { pieces: pieces.into(), waits: None }));
            }
            Does::Fails(kind) => return Err(Fault(kind)),
            Does::Hangs => pending().await,
            Does::Panics => panic_quietly(),
            Does::OnceOpen(gate, then) => {
                gate.passed().await;
                *then
            }
        }
    }
}

/// A panic that the panic hook does not print.
pub(crate) fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("scripted"))
}

pub(crate) struct ScriptedBody {
    pieces: VecDeque<Piece>,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        loop {
            if let Some(wait) = &mut this.waits {
                ready!(wait.as_mut().poll(context));
                this.waits = None;
            }
            return Poll::Ready(match this.pieces.pop_front() {
                None => None,
                Some(Piece::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))),
                Some(Piece::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Piece::Breaks) => Some(Err(Fault(None))),
                Some(Piece::Panics) => panic_quietly(),
                Some(Piece::OnceOpen(gate)) => {
                    this.waits = Some(Box::pin(async move { gate.passed().await }));
                    continue;
                }
                Some(Piece::Hangs) => {
                    this.waits = Some(Box::pin(pending()));
                    continue;
                }
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.waits.is_none()
    }
}
