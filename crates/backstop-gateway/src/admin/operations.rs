//! `/operations`: what is known of operations that must happen once, and a person's decision.
//!
//! - `GET /operations?state=STATE&from=DATE&limit=N`: some of them, those that began first before the others, and where the
//!   next page begins.
//! - `GET /operations/ID`: one of them with its history.
//! - `POST /operations/ID/resolve`: what no machine can decide.
//!
//! ```json
//! { "outcome": "failed", "by": "ana", "reason": "the provider's dashboard has no such payment" }
//! ```
//! Whatever is refused is a problem document (RFC 9457).
//!
//! What a client sent is not shown, nor what was made of it: its key, the upstream's name for the operation (often that key),
//! digests, captured values. Of a kept answer its status and the names of its fields are shown, which tell what a client is
//! given; not its content, which is that client's own, and which no decision needs.

mod asked;
mod told;

use std::error::Error;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::operation::{NotAnOperationId, OperationId, Refused, State};
use backstop_store::ledger::{Completion, Filter, Ledger, LedgerError, Recorded};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use serde_json::{Value, json};

use self::asked::Asked;
use super::{HEAD_TIME, content, own};

/// Largest content of a decision, in bytes: the longest name and reason, with every character escaped.
const BODY_MAX: usize = 16 * 1024;
/// How long the ledger is waited for.
const LEDGER_TIME: Duration = Duration::from_secs(5);

/// What a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'p> {
    All,
    One(&'p str),
    Resolve(&'p str),
}

/// What a path is about, if it is one of these.
pub(super) fn place(path: &str) -> Option<Place<'_>> {
    let rest = path.strip_prefix("/operations")?;
    if rest.is_empty() {
        return Some(Place::All);
    }
    let id = rest.strip_prefix('/')?;
    match id.split_once('/') {
        None => Some(Place::One(id)),
        Some((id, "resolve")) => Some(Place::Resolve(id)),
        Some(_) => None,
    }
}

/// Whoever answers for a ledger.
pub(super) struct Desk<'a> {
    ledger: Option<&'a dyn Ledger>,
    clock: Clock,
    patience: Duration,
}

type Answer = Response<Full<Bytes>>;

impl<'a> Desk<'a> {
    pub(super) fn new(ledger: Option<&'a dyn Ledger>, clock: Clock) -> Self {
        Self { ledger, clock, patience: LEDGER_TIME }
    }

    pub(super) async fn answer<B>(&self, place: Place<'_>, request: Request<B>) -> Answer
    where
        B: Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let allowed = match place {
            Place::All | Place::One(_) => "GET, HEAD",
            Place::Resolve(_) => "POST",
        };
        if !allowed.split(", ").any(|method| method == request.method().as_str()) {
            let why = format!("{allowed} alone is answered here");
            let mut response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, why).answer();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            return response;
        }
        let done = match place {
            Place::All => self.list(request.uri().query().unwrap_or_default()).await,
            Place::One(id) => self.show(id).await,
            Place::Resolve(id) => self.resolve(id, request).await,
        };
        done.unwrap_or_else(Problem::answer)
    }

    async fn list(&self, query: &str) -> Result<Answer, Problem> {
        let Asked { filter, limit } = asked::query(query).map_err(bad)?;
        // One more than is shown says whether there is a next page.
        let filter = Filter { most: limit + 1, ..filter };
        let mut records = self.done(self.ledger()?.list(filter)).await?;
        let has_more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| has_more).map(|last| asked::next(filter.state, limit, last));
        let now = self.clock.now();
        let operations: Vec<Value> = records.iter().map(|record| told::brief(record, &now)).collect();
        Ok(super::json(StatusCode::OK, &json!({ "operations": operations, "next": next })))
    }

    async fn show(&self, id: &str) -> Result<Answer, Problem> {
        let ledger = self.ledger()?;
        let id = named(id)?;
        let shown = self.done(ledger.show(id)).await?.ok_or_else(|| unheard(id))?;
        Ok(super::json(StatusCode::OK, &told::whole(&shown, ledger.epoch(), &self.clock.now())))
    }

    async fn resolve<B>(&self, id: &str, request: Request<B>) -> Result<Answer, Problem>
    where
        B: Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        own::check(request.headers()).map_err(|(status, why)| Problem::new(status, why))?;
        let ledger = self.ledger()?;
        let id = named(id)?;
        let body = content::read(request.into_body(), BODY_MAX, HEAD_TIME).await;
        let body = body.map_err(|(status, why)| Problem::new(status, why))?;
        let (decision, by) = asked::decision(&body).map_err(bad)?;
        // Now, and not when the first byte of it came: what has happened meanwhile happened before.
        let resolved = ledger.resolve(id, decision, by.clone(), self.clock.now());
        let (record, from) = match self.done(resolved).await? {
            Recorded::Changed { record, from, .. } => (record, from),
            Recorded::Refused { why, record } => return Err(conflict(why, id, record.progress.state())),
            Recorded::Unheard => return Err(unheard(id)),
        };
        let to = record.progress.state();
        tracing::warn!(
            target: "backstop::operations",
            operation = %id,
            before = from.token(),
            after = to.token(),
            by = by.by(),
            reason = by.reason(),
            "an operator's decision"
        );
        let body = json!({
            "id": id.to_string(),
            "before": told::state(from),
            "after": told::state(to),
            "by": by.by(),
            "reason": by.reason(),
        });
        Ok(super::json(StatusCode::OK, &body))
    }

    fn ledger(&self) -> Result<&'a dyn Ledger, Problem> {
        let why = "this gateway has no ledger: no route of its policy is of class `effect`";
        self.ledger.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, why))
    }

    /// Waits for the ledger, within a bound.
    async fn done<T>(&self, completion: Completion<T>) -> Result<T, Problem> {
        let (word, detail) = match tokio::time::timeout(self.patience, completion).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => match error {
                LedgerError::QueueFull => ("queue_full", "nothing was changed; try again in a moment"),
                LedgerError::NoRoom => ("no_room", "nothing was changed; make room on its disk"),
                LedgerError::Closed => {
                    ("closed", "the gateway is stopping, or its disk failed; look again later")
                }
            },
            Err(_) => {
                ("timeout", "a decision may still be written: look at the operation before you decide again")
            }
        };
        let why = format!("the ledger did not do it ({word}): {detail}");
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why).with(json!({ "ledger": word })))
    }
}

fn named(id: &str) -> Result<OperationId, Problem> {
    id.parse().map_err(|error: NotAnOperationId| Problem::new(StatusCode::NOT_FOUND, error.to_string()))
}

fn unheard(id: OperationId) -> Problem {
    let why = "there is no such operation, or not any more";
    Problem::new(StatusCode::NOT_FOUND, why).with(json!({ "id": id.to_string() }))
}

fn bad(why: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, why)
}

/// Why a person's decision changes nothing, and what the operation is in.
fn conflict(why: Refused, id: OperationId, state: State) -> Problem {
    let detail = match (why, state) {
        (Refused::Decided, _) => "it is decided already, and only evidence changes that",
        (Refused::NotNow, State::Dispatching) => "its one forward may still be under way",
        (Refused::NotNow, _) => "its status is still asked for; a person decides what needs attention",
        (Refused::Stale | Refused::Leased, _) => "somebody else wrote it in this moment; look at it again",
    };
    let fields = json!({ "id": id.to_string(), "refused": why.token(), "state": told::state(state) });
    Problem::new(StatusCode::CONFLICT, detail).with(fields)
}

/// What is refused, and why (RFC 9457). It has no `type` of its own: the status says what kind it is (section 4.2.1).
struct Problem {
    status: StatusCode,
    detail: String,
    more: Value,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), more: json!({}) }
    }

    fn with(self, more: Value) -> Self {
        Self { more, ..self }
    }

    fn answer(self) -> Answer {
        let Self { status, detail, more } = self;
        let mut body = json!({
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "detail": detail,
        });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let mut response = super::json(status, &body);
        response.headers_mut().insert(CONTENT_TYPE, backstop::problem::MEDIA_TYPE);
        response
    }
}

#[cfg(test)]
mod tests;
