//! What every test needs: a pool with a clock that is moved by hand, and calls on it.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop::upstream::{BrokenOff, CallError, Progress, Upstream};
use backstop_engine::admission::{Excess, Limit, Turn};
use backstop_engine::failure::Failure;
use backstop_engine::flow::{Attempt, AttemptId};
use backstop_engine::policy::DependencyId;
use backstop_engine::time::{Mono, Now};
use backstop_gateway::upstream::{Address, AnswerBody, Counts, Lane, Pool, Settings};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tokio::sync::mpsc;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Bytestream = UnsyncBoxBody<Bytes, BoxError>;
pub(crate) type Answer = Result<Response<AnswerBody<Bytestream>>, CallError<Infallible>>;

pub(crate) const START: Mono = Mono::from_ns(1_000_000_000_000);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Waits for an event. Only a failing test ever reaches the bound.
pub(crate) async fn soon<F: Future>(event: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), event).await.expect("it happens")
}

/// Runs a test on this thread as the gateway runs one of its threads.
pub(crate) fn on_a_thread<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, soon(test))
}

/// One dependency as all threads see it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) hand: ManualClock,
    pub(crate) limit: Arc<Limit>,
    pub(crate) pool: Pool<Bytestream>,
}

impl World {
    pub(crate) fn new(address: impl Into<Address>, connections: u32) -> Self {
        Self::with(Settings::new(vec![address.into()], connections, SECOND))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let (clock, hand) = Clock::manual(Now { mono: START, ..Now::default() });
        let limit = Arc::new(Limit::new(settings.connections));
        let pool = Pool::new(settings, clock.clone());
        Self { clock, hand, limit, pool }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.pool.counts()
    }

    /// An attempt with a place at the dependency and ten seconds.
    pub(crate) fn attempt(&self) -> Attempt {
        self.try_attempt().expect("a free place")
    }

    /// The same, if there is a place.
    pub(crate) fn try_attempt(&self) -> Option<Attempt> {
        let permit = self.limit.try_acquire(Turn::Newcomer, Excess::Refuse)?;
        let until = self.clock.mono().after(10 * SECOND);
        let (id, dependency) = (AttemptId(1), DependencyId(0));
        Some(Attempt {
            is_once: false,
            id,
            dependency,
            number: 1,
            places: permit.into(),
            until,
            end: until,
            abandon_hold: None,
        })
    }

    /// A call that is answered, read to its end.
    pub(crate) async fn fetch(
        &self,
        lane: &Lane<Bytestream>,
        request: Request<Bytestream>,
    ) -> Result<Whole, Failure> {
        let answer = lane.call(self.attempt(), request, &Progress::new()).await;
        match answer {
            Ok(answer) => whole(answer).await,
            other => Err(failure(other)),
        }
    }

    /// Waits until the pool's counts are so, while everything else goes on.
    pub(crate) async fn until(&self, mut condition: impl FnMut(&Counts) -> bool) {
        let counts = async {
            while !condition(&self.counts()) {
                tokio::task::yield_now().await;
            }
        };
        soon(counts).await;
    }
}

/// An answer read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Whole {
    pub(crate) fn ok() -> Self {
        Self { status: 200, body: "ok".to_owned() }
    }
}

pub(crate) async fn whole(answer: Response<AnswerBody<Bytestream>>) -> Result<Whole, Failure> {
    let (head, body) = answer.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(BrokenOff::Dependency(failure, _)) => return Err(failure),
        Err(BrokenOff::Client(fault)) => panic!("no client breaks off here: {fault:?}"),
    };
    Ok(Whole { status: head.status.as_u16(), body: String::from_utf8_lossy(&body).into_owned() })
}

/// The failure that a call ended in.
pub(crate) fn failure(answer: Answer) -> Failure {
    match answer {
        Err(CallError::Failed(failure)) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

pub(crate) fn request(method: Method, body: Bytestream) -> Request<Bytestream> {
    let request = Request::builder().method(method).uri("/").header("host", "origin.test");
    request.body(body).expect("a request")
}

pub(crate) fn get() -> Request<Bytestream> {
    request(Method::GET, empty())
}

pub(crate) fn post(body: &'static str) -> Request<Bytestream> {
    request(Method::POST, Full::from(body).map_err(|never| match never {}).boxed_unsync())
}

pub(crate) fn empty() -> Bytestream {
    Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body whose pieces are handed in one by one.
pub(crate) fn fed() -> (mpsc::UnboundedSender<Result<Bytes, BoxError>>, Bytestream) {
    let (feed, pieces) = mpsc::unbounded_channel();
    (feed, Fed(pieces).boxed_unsync())
}

struct Fed(mpsc::UnboundedReceiver<Result<Bytes, BoxError>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
