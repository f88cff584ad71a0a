//! One exchange on a connection of its own, opened for it and closed after it.
//!
//! The connections are none of the requests': what floods those takes none away here, and what hangs here keeps nobody there.
//! How one is opened, what framing is accepted and what counts as a failure is as for requests ([`upstream`](crate::upstream)).
//! Nothing is sent twice, no redirect is followed, and nothing of a client is in it.

use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop::operation::member::Json;
use backstop::upstream::{BrokenOff, CallError, Framing, Progress, Upstream};
use backstop_engine::admission::{Excess, Limit, Turn};
use backstop_engine::failure::{Cause, FailureKind};
use backstop_engine::flow::{Attempt, AttemptId};
use backstop_engine::policy::DependencyId;
use backstop_engine::time::Mono;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};

use super::answer::Why;
use crate::upstream::{Address, AnswerBody, Lane, Pool, Settings};

/// More than any status of an operation needs; of a larger answer nothing is believed.
const ANSWER_BYTES: usize = 1 << 20;

/// A way to one dependency, for the present thread.
#[derive(Debug)]
pub(crate) struct Way {
    lane: Lane<Full<Bytes>>,
    places: Arc<Limit>,
    clock: Clock,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) content: Vec<u8>,
    /// It says of itself that it was made for an earlier question.
    pub(super) is_earlier: bool,
}

impl Way {
    /// To these addresses, for `concurrency` exchanges at once.
    pub(crate) fn new(addresses: Vec<Address>, connect: Duration, concurrency: u32, clock: &Clock) -> Self {
        // How many there are is decided before; one that was given up may be closing still.
        let settings = Settings { excess: Excess::Count, ..Settings::new(addresses, concurrency, connect) };
        let places = Arc::new(Limit::new(concurrency));
        Self { lane: Pool::new(settings, clock.clone()).lane(), places, clock: clock.clone() }
    }

    /// Sends a request, and reads all of its answer, until `until`.
    ///
    /// # Errors
    /// Why there is no whole answer.
    pub(super) async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        until: Mono,
    ) -> Result<Whole, Why> {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        // What something between remembers is no answer to this question (RFC 9111 section 5.2.1.4).
        request.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let Some(permit) = self.places.try_acquire(Turn::Newcomer, Excess::Count) else {
            return Err(Why::NotAsked);
        };
        let attempt = Attempt {
            is_once: false,
            id: AttemptId(1),
            dependency: DependencyId(0),
            number: 1,
            places: permit.into(),
            until,
            end: until,
            // Whoever gives up a question closes its connection at once: there is nothing to wait for.
            abandon_hold: Some(Duration::ZERO),
        };
        let progress = Progress::new();
        tokio::select! {
            biased;
            ended = self.whole(attempt, request, &progress) => ended,
            () = self.clock.sleep_until(until) => Err(match progress.time_up() {
                Cause::Failed(failure) => Why::Failed(failure.kind),
                Cause::NotAsked(_) => Why::NotAsked,
            }),
        }
    }

    /// Sends a request to whoever only has to take it. Whether it was taken, with any 2xx, until `until`.
    #[cfg(feature = "otlp")]
    pub(crate) async fn give(&self, request: Request<Full<Bytes>>, until: Mono) -> bool {
        self.exchange(request, until).await.is_ok_and(|answer| (200..300).contains(&answer.status))
    }

    async fn whole(
        &self,
        attempt: Attempt,
        request: Request<Full<Bytes>>,
        progress: &Progress,
    ) -> Result<Whole, Why> {
        let answer = self.lane.call(attempt, request, progress).await.map_err(|error| match error {
            CallError::Failed(failure) => Why::Failed(failure.kind),
            CallError::NotAsked(_) | CallError::Client(_) => Why::NotAsked,
        })?;
        let (head, body) = answer.into_parts();
        let content = read(body).await?;
        // Where a connection's end is an answer's end, only its content says whether it is whole (RFC 9112 section 8).
        let is_certain = head.extensions.get() == Some(&Framing::Delimited);
        if !is_certain && !says_its_end(&content) {
            return Err(Why::Failed(FailureKind::Incomplete));
        }
        let is_earlier = backstop::fields::is_earlier(&head.headers);
        Ok(Whole { status: head.status.as_u16(), content, is_earlier })
    }
}

async fn read(mut body: AnswerBody<Full<Bytes>>) -> Result<Vec<u8>, Why> {
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| match broken {
            BrokenOff::Dependency(failure, _) => Why::Failed(failure.kind),
            BrokenOff::Client(_) => Why::NotAsked,
        })?;
        let Some(data) = frame.data_ref() else { continue };
        if content.len() + data.len() > ANSWER_BYTES {
            return Err(Why::TooLarge);
        }
        content.extend_from_slice(data);
    }
    Ok(content)
}

/// A JSON object or array has an end of its own.
fn says_its_end(content: &[u8]) -> bool {
    Json::of(content).is_some_and(|json| json.text().trim_start().starts_with(['{', '[']))
}
