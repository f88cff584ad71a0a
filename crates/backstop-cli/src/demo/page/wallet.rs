//! Payments as one client sees them: what it heard, what it knows now, and what it does about it.
//!
//! The client is naive and the same on both sides: where it hears nothing, or an error (5xx), it asks once more with the same key
//! ([`AGAIN_AFTER`]). If it was told where the payment can be looked up (`Location`), it looks there until that says what became
//! of it; a plain proxy tells no such place.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop_lab::client::{self, ClientError, Response};
use backstop_lab::clock::monotonic_ns;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::judge::{Asked, PATIENCE, judge};
use super::record::{Got, Kind, Record};

/// When the client asks again.
const AGAIN_AFTER: Duration = Duration::from_millis(300);
/// How often, and for how long, it looks a payment up.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
const LOOKS_FOR: Duration = Duration::from_secs(60);
/// Payments that are remembered.
const PAYMENTS_MAX: usize = 50;
/// What everybody here shows.
pub(super) const CREDENTIAL: (&str, &str) = ("Authorization", "Bearer demo");

/// What the client knows of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Standing {
    /// It waits for its first answer.
    Asked,
    Paid,
    /// It was told that its status is being asked for.
    InVerification,
    /// It was told that nothing was sent.
    NotSent,
    /// Nobody told it anything.
    Unknown,
}

impl Standing {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::Paid => "paid",
            Self::InVerification => "in verification",
            Self::NotSent => "not sent",
            Self::Unknown => "unknown",
        }
    }
}

/// One payment that a client wanted.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    pub(super) key: String,
    /// What it heard, in order: statuses, or that there was no answer.
    pub(super) heard: Vec<Option<u16>>,
    /// What it knew, in order.
    pub(super) states: Vec<Standing>,
}

impl Payment {
    /// Whether its first answer was lost: not paid, and not a plain refusal.
    pub(super) fn was_lost(&self) -> bool {
        match self.heard.first() {
            Some(Some(status)) => matches!(status, 502 | 504),
            Some(None) => true,
            None => false,
        }
    }
}

/// The payments of one side.
#[derive(Debug, Default)]
pub(super) struct Wallet(Mutex<Pockets>);

#[derive(Debug, Default)]
struct Pockets {
    wanted: u64,
    last: VecDeque<Payment>,
}

impl Wallet {
    pub(super) fn wanted(&self) -> u64 {
        self.lock().wanted
    }

    /// The last payment whose answer was lost.
    pub(super) fn last_lost(&self) -> Option<Payment> {
        self.lock().last.iter().rev().find(|payment| payment.was_lost()).cloned()
    }

    /// Pays once, as far as the client is concerned.
    pub(super) async fn pay(&self, server: SocketAddr, key: &str, record: &Record) {
        self.want(key);
        let first = send(server, key, record).await;
        let mut place = self.heard(key, &first);
        if needs_more(&first) {
            sleep(AGAIN_AFTER).await;
            let second = send(server, key, record).await;
            place = self.heard(key, &second).or(place);
        }
        if let Some(place) = place {
            self.follow(server, key, &place).await;
        }
    }

    /// Looks it up until it is known.
    async fn follow(&self, server: SocketAddr, key: &str, place: &str) {
        let begun = Instant::now();
        while self.state(key) == Some(Standing::InVerification) && begun.elapsed() < LOOKS_FOR {
            sleep(LOOKS_EVERY).await;
            let looked = timeout(PATIENCE, client::get(server, place, &[CREDENTIAL])).await;
            if let Ok(Ok(answer)) = looked {
                self.tells(key, &answer);
            }
        }
    }

    /// Notes an answer. Where the payment can be looked up, if it says so.
    fn heard(&self, key: &str, answer: &Heard) -> Option<String> {
        let status = answer.as_ref().map(Response::status);
        self.change(key, |payment| payment.heard.push(status));
        match answer {
            Some(answer) => self.tells(key, answer),
            None => self.knows(key, Standing::Unknown),
        }
        answer
            .as_ref()?
            .header("location")
            .filter(|place| place.starts_with("/.backstop/"))
            .map(str::to_owned)
    }

    fn want(&self, key: &str) {
        let mut pockets = self.lock();
        pockets.wanted += 1;
        let payment = Payment { key: key.to_owned(), heard: Vec::new(), states: vec![Standing::Asked] };
        pockets.last.push_back(payment);
        // One whose answer was lost is remembered longer than those that went well.
        while pockets.last.len() > PAYMENTS_MAX {
            let first_well = pockets.last.iter().position(|payment| !payment.was_lost()).unwrap_or(0);
            pockets.last.remove(first_well);
        }
    }

    /// What an answer tells of a payment. A refusal tells that this request went no further, and nothing of an earlier one.
    fn tells(&self, key: &str, answer: &Response) {
        if !is_refusal(answer) || self.state(key) == Some(Standing::Asked) {
            self.knows(key, standing(answer));
        }
    }

    fn knows(&self, key: &str, standing: Standing) {
        self.change(key, |payment| {
            if payment.states.last() != Some(&standing) {
                payment.states.push(standing);
            }
        });
    }

    fn state(&self, key: &str) -> Option<Standing> {
        let pockets = self.lock();
        pockets.last.iter().rev().find(|payment| payment.key == key)?.states.last().copied()
    }

    fn change(&self, key: &str, change: impl FnOnce(&mut Payment)) {
        if let Some(payment) = self.lock().last.iter_mut().rev().find(|payment| payment.key == key) {
            change(payment);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer, or none.
type Heard = Option<Response>;

async fn send(server: SocketAddr, key: &str, record: &Record) -> Heard {
    let fields = [CREDENTIAL, ("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let (begun, sent_ns) = (Instant::now(), monotonic_ns());
    let asked = client::request(server, "POST", "/payments", &fields, br#"{"amount":10}"#);
    let answer: Option<Result<Response, ClientError>> = timeout(PATIENCE, asked).await.ok();
    let took = begun.elapsed();
    let judged = judge(&Asked::Payment, answer.as_ref(), sent_ns, took);
    record.count(Kind::Payments, Got { at: Instant::now(), judged, took });
    answer.and_then(Result::ok).filter(Response::is_complete)
}

fn needs_more(answer: &Heard) -> bool {
    answer.as_ref().is_none_or(|answer| answer.status() >= 500)
}

/// What an answer tells about a payment, whoever gives it.
fn standing(answer: &Response) -> Standing {
    let said = answer.json().unwrap_or_default();
    let state = said["state"].as_str().unwrap_or_default();
    match (answer.status(), said["status"].as_str(), state) {
        (200..300, Some("succeeded"), _) | (_, _, "succeeded") => Standing::Paid,
        (_, _, "dispatching" | "in_verification" | "unknown" | "needs_attention") => Standing::InVerification,
        (_, _, "not_executed" | "failed") => Standing::NotSent,
        _ if is_refusal(answer) => Standing::NotSent,
        _ => Standing::Unknown,
    }
}

/// Whether a gateway says that it passed nothing on.
fn is_refusal(answer: &Response) -> bool {
    answer.status() == 503 && answer.mark().is_ok_and(|mark| mark.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_lab::origin::{Answer, Origin};

    async fn refusal() -> Response {
        let origin = Origin::start().await.unwrap();
        origin.default(Answer::new(503).header("Backstop", "outcome=rejected, reason=authorizer"));
        client::get(origin.addr(), "/", &[]).await.unwrap()
    }

    /// Login breaks while the status of a lost payment is asked for: whoever is refused to look knows as much as before.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_refusal_says_nothing_of_an_earlier_request() {
        let refusal = refusal().await;
        assert!(is_refusal(&refusal), "{refusal:?}");
        let wallet = Wallet::default();
        wallet.want("first");
        wallet.tells("first", &refusal);
        assert_eq!(wallet.state("first"), Some(Standing::NotSent));
        for known in [Standing::InVerification, Standing::Unknown] {
            wallet.want("later");
            wallet.knows("later", known);
            wallet.tells("later", &refusal);
            assert_eq!(wallet.state("later"), Some(known));
        }
    }
}
