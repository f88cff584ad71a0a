//! Fetching an issuer's keys: one task, one fetch after the other.
//!
//! - Every `refresh`; once more soon after one that failed, with growing pauses; and when a token names a key that is not
//!   known, but then no sooner than ten seconds after the last one was begun.
//! - Only a 200 that is a JWK Set to its end brings keys. A redirect is not followed, an error page and half an answer are none.
//! - Each takes a place at the dependency of the authorizer's name, and is counted there.

use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop::fields::degraded;
use backstop::upstream::{CallError, Progress, Upstream};
use backstop_engine::admission::{Excess, Turn};
use backstop_engine::engine::{DependencyState, Engine};
use backstop_engine::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use backstop_engine::flow::{Attempt, AttemptId, Places};
use backstop_engine::policy::DependencyId;
use backstop_engine::resource::{ClassShare, acquire_all};
use backstop_engine::time::Mono;
use http::header::{ACCEPT, AGE, CACHE_CONTROL, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use jsonwebtoken::Algorithm;

use crate::authorizer::asked::whole;
use crate::client_body::RequestContent;
use crate::upstream::Lane;

use super::key_set::KeySet;
use super::keys::{FORCED_PAUSE, Keys, Trouble};

/// How the keys of one issuer are fetched.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub(super) id: DependencyId,
    pub(super) name: Box<str>,
    pub(super) path: Uri,
    pub(super) host: HeaderValue,
    pub(super) refresh: Duration,
    pub(super) timeout: Duration,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: Arc<Keys>,
}

/// After the first fetch that failed. Each further one doubles it, up to [`FORCED_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Some hundred keys. A longer answer is none.
const ANSWER_BYTES: usize = 256 * 1024;

/// Fetches keys for as long as the thread lives.
pub(crate) async fn run(fetch: Fetch, engine: Arc<Engine>, lane: Lane<RequestContent>, clock: Clock) {
    let mut failed_in_a_row = 0_u32;
    loop {
        let begun = clock.mono();
        fetch.keys.begin(begun);
        let brought = once(&fetch, engine.dependency(fetch.id), &lane, &clock, begun).await;
        // Read before anybody hears of it: whoever does may move on at once.
        let ended = clock.mono();
        let why = match brought {
            Ok((set, received_age)) => {
                // The issuer's word that no token is valid holds at once. It is asked again soon, as after a failure.
                let why = set.is_empty().then(|| "no key of the set verifies tokens here".to_owned());
                fetch.keys.fetched(set, begun, received_age);
                why
            }
            Err((trouble, why)) => {
                fetch.keys.failed(trouble);
                Some(why)
            }
        };
        fetch.tell(failed_in_a_row, why.as_deref());
        failed_in_a_row = if why.is_some() { failed_in_a_row.saturating_add(1) } else { 0 };
        // Keys grow old from the moment they were asked for, so the next fetch is due from there.
        let from = if why.is_some() { ended } else { begun };
        let next = from.after(fetch.pause(failed_in_a_row));
        tokio::select! {
            () = clock.sleep_until(next) => {}
            () = wanted(&fetch.keys, &clock, begun) => {}
        }
    }
}

/// Ends when somebody wants newer keys and it is time for that.
async fn wanted(keys: &Keys, clock: &Clock, begun: Mono) {
    keys.wanted.notified().await;
    clock.sleep_until(begun.after(FORCED_PAUSE)).await;
}

impl Fetch {
    /// The dependency that has the keys.
    pub(crate) fn dependency(&self) -> usize {
        usize::from(self.id.0)
    }

    /// The first failure of a row, and its end.
    fn tell(&self, failed_in_a_row: u32, why: Option<&str>) {
        match (failed_in_a_row, why) {
            (0, Some(why)) => tracing::warn!(
                target: "backstop::gateway",
                authorizer = &*self.name,
                why,
                "the issuer's keys cannot be fetched; trying again, and 503 once those at hand are too old"
            ),
            (1.., None) => tracing::info!(
                target: "backstop::gateway",
                authorizer = &*self.name,
                "the issuer's keys are there again"
            ),
            _ => {}
        }
    }

    fn pause(&self, failed_in_a_row: u32) -> Duration {
        match failed_in_a_row.checked_sub(1) {
            None => self.refresh,
            Some(doubled) => {
                FIRST_PAUSE.saturating_mul(1 << doubled.min(4)).min(FORCED_PAUSE).min(self.refresh)
            }
        }
    }

    fn request(&self) -> Request<RequestContent> {
        let mut request = Request::new(RequestContent::none());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        // What a cache between has kept may hold a key that was withdrawn (RFC 9111 section 5.2.1.4).
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        request
    }
}

type Brought = Result<(KeySet, Duration), (Trouble, String)>;

async fn once(
    fetch: &Fetch,
    dependency: &DependencyState,
    lane: &Lane<RequestContent>,
    clock: &Clock,
    now: Mono,
) -> Brought {
    let permit = dependency.in_flight.try_acquire(Turn::Newcomer, Excess::Refuse);
    let permit = permit.ok_or_else(|| not_asked(NotAsked::DependencyFull))?;
    let resources = acquire_all(&dependency.resources, now, ClassShare::Read, Excess::Refuse)
        .map_err(|_| not_asked(NotAsked::ResourceFull))?;
    // It has no breaker, but operators may hold it back.
    let ticket = dependency.health.admit(now, true, now.as_ns()).map_err(not_asked)?;
    let until = now.after(fetch.timeout);
    let attempt = Attempt {
        is_once: false,
        id: AttemptId(1),
        dependency: fetch.id,
        number: 1,
        places: Places::of_a_probe(permit, resources),
        until,
        end: until,
        // One that is given up is closed: nobody will read its answer.
        abandon_hold: Some(Duration::ZERO),
    };
    dependency.tally.attempt();
    let progress = Progress::new();
    let brought = tokio::select! {
        biased;
        brought = asked(fetch, lane, attempt, &progress) => brought,
        () = clock.sleep_until(until) => Err(match progress.time_up() {
            Cause::Failed(failure) => failed(failure),
            Cause::NotAsked(reason) => not_asked(reason),
        }),
    };
    let now = clock.mono();
    match &brought {
        Ok(_) => {
            dependency.tally.answer();
            ticket.answered(now);
        }
        Err((Trouble::Unusable, _)) => {
            dependency.tally.answer();
            ticket.neutral(now);
        }
        Err((Trouble::Failed(failure), _)) => {
            dependency.tally.failure(failure.kind);
            ticket.failed(now, now.as_ns());
        }
        Err((Trouble::NotAsked(_), _)) => ticket.unused(),
    }
    brought
}

fn failed(failure: Failure) -> (Trouble, String) {
    (Trouble::Failed(failure), Cause::Failed(failure).token().to_owned())
}

fn not_asked(reason: NotAsked) -> (Trouble, String) {
    (Trouble::NotAsked(reason), Cause::NotAsked(reason).token().to_owned())
}

fn unusable(why: impl Into<String>) -> (Trouble, String) {
    (Trouble::Unusable, why.into())
}

async fn asked(fetch: &Fetch, lane: &Lane<RequestContent>, attempt: Attempt, progress: &Progress) -> Brought {
    let answer = match lane.call(attempt, fetch.request(), progress).await {
        Ok(answer) => answer,
        Err(CallError::Failed(failure)) => return Err(failed(failure)),
        Err(CallError::NotAsked(reason)) => return Err(not_asked(reason)),
        Err(CallError::Client(_) | CallError::Unclassified(_)) => return Err(unusable("it was not sent")),
    };
    let (head, body) = answer.into_parts();
    let status = head.status.as_u16();
    if matches!(status, 502..=504) {
        return Err(failed(Failure::new(FailureKind::Unavailable { status }, Phase::Head, Sent::Maybe)));
    }
    if head.status != StatusCode::OK {
        return Err(unusable(format!("the issuer answered with {status}")));
    }
    // Another gateway's old answer: how old it is, in whole seconds, nobody has to guess where there is a newer one.
    if degraded(&head.headers).is_some() {
        return Err(unusable("another gateway answered in the issuer's place"));
    }
    let content = whole(body, ANSWER_BYTES).await.map_err(failed)?;
    let content = content.ok_or_else(|| unusable("the answer is longer than 256 KiB"))?;
    let set = KeySet::read(&content, &fetch.algorithms).map_err(|why| unusable(why.to_string()))?;
    let received_age = received_age(&head.headers);
    if !fetch.keys.believes(received_age) {
        return Err(unusable("a cache between answered, with keys that are too old"));
    }
    Ok((set, received_age))
}

/// The greatest `Age` (RFC 9111 section 5.1). One that is no number says that the answer is not new, and not how old.
fn received_age(headers: &HeaderMap) -> Duration {
    let seconds = |value: &HeaderValue| value.to_str().ok()?.trim().parse::<u64>().ok();
    let ages = headers.get_all(AGE).iter();
    ages.map(|value| seconds(value).map_or(Duration::MAX, Duration::from_secs)).max().unwrap_or_default()
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
