//! One route: what is claimed of it, and when.
//!
//! Each has its own budget, breaker and connections, and its own place in the ledger's order: whatever one waits for, no other
//! does. Each is looked at once a second, and sooner when something is due or a query has ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backstop_engine::operation::{AbsenceRule, Claim, Draw, Report, Schedule};
use backstop_engine::policy::effect::{AbsenceVerdict, StatusQueryRules, VerificationRules};
use backstop_engine::time::{Mono, Now};
use backstop_store::ledger::{LedgerError, Recorded};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use super::Followed;
use super::again::Again;
use super::ask;
use super::breaker::Breaker;
use super::budget::Budget;
use super::calibration::{Calibration, Samples};
use super::counts::{RouteCounts, add};
use super::credentials::GoodCredentials;
use super::query::Way;
use super::turn::Shared;
use crate::edits::Edits;

/// How often every route is looked at.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// When a claim was not to be had although one was due: somebody else was faster.
const SOON: Duration = Duration::from_millis(100);
/// While there are more operations than places, one place of so many is a known success's: calibration does not end with a backlog.
const SAMPLED: u32 = 10;
/// The most operations without a status query that are taken at once.
const NOT_ASKABLE: usize = 64;

/// One route on the reconciler's thread.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) name: Box<str>,
    pub(super) schedule: Schedule,
    /// `None` where there is no status query.
    pub(super) asking: Option<Asking>,
    /// Its place among those of the policy, if it is one.
    index: Option<usize>,
    /// When it is looked at next.
    pub(super) next_look: Cell<Mono>,
    /// A query has ended: it is looked at in the next turn, whatever `next_look` is.
    pub(super) is_woken: Cell<bool>,
    claimed_at: Cell<Option<Mono>>,
    /// Since when its oldest query is due that nobody has claimed.
    pub(super) oldest_due: Cell<Option<Mono>>,
}

/// How a route's operations are asked for.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) rules: StatusQueryRules,
    pub(super) absence: Option<AbsenceRule>,
    pub(super) way: Way,
    host: HeaderValue,
    edits: std::sync::Arc<Edits>,
    pub(super) budget: RefCell<Budget>,
    pub(super) breaker: RefCell<Breaker>,
    pub(super) credentials: RefCell<GoodCredentials>,
    pub(super) samples: RefCell<Option<Samples>>,
    /// Places that operations got since a known success had one.
    since_sample: Cell<u32>,
    pub(super) again: RefCell<Again>,
    /// When the log was last told that the credentials are refused.
    pub(super) alarmed: Cell<Option<Mono>>,
}

impl Route {
    /// A route of the policy.
    pub(super) fn new(followed: Followed, index: usize, calibration: &Calibration, shared: &Shared) -> Self {
        let Followed { name, rules, addresses, connect, host, edits } = followed;
        let schedule = Schedule::from(&rules);
        let asking = rules.verification.map(|rules| {
            let absence = absence_rule(&rules, &name);
            let calibrated = rules.absence.as_ref().and_then(|absence| absence.verdict.calibration());
            let samples = calibrated.map(|rules| Samples::new(calibration.clone(), &name, rules));
            let (poll, remembered) = (rules.schedule.attention_poll, rules.upstream_retention);
            let query = rules.query;
            Asking {
                absence,
                way: Way::new(addresses, connect, query.concurrency, &shared.clock),
                host,
                edits,
                budget: RefCell::new(Budget::new(query.interval, query.concurrency)),
                breaker: RefCell::new(Breaker::new()),
                credentials: RefCell::default(),
                samples: RefCell::new(samples),
                since_sample: Cell::new(0),
                again: RefCell::new(Again::new(poll, remembered, shared.clock.mono())),
                alarmed: Cell::new(None),
                rules: query,
            }
        });
        Self { schedule, asking, index: Some(index), ..Self::gone(name) }
    }

    /// A route that the policy does not name any more: nobody can ask for its operations.
    pub(super) fn gone(name: Box<str>) -> Self {
        Self {
            name,
            schedule: Schedule::default(),
            asking: None,
            index: None,
            next_look: Cell::default(),
            is_woken: Cell::default(),
            claimed_at: Cell::new(None),
            oldest_due: Cell::new(None),
        }
    }

    pub(super) fn counts<'a>(&self, shared: &'a Shared) -> &'a RouteCounts {
        let counts = &shared.counts;
        self.index.and_then(|index| counts.routes.get(index)).unwrap_or(&counts.gone)
    }

    /// Before this moment no query begins.
    pub(super) fn earliest(&self) -> Mono {
        self.asking.as_ref().map_or_else(Mono::default, |asking| {
            let open_until = asking.breaker.borrow().open_until().unwrap_or_default();
            asking.budget.borrow().earliest().max(open_until)
        })
    }

    /// Claims what may be asked for now, and has it asked.
    ///
    /// # Errors
    /// If the ledger does not do its part.
    pub(super) async fn look(self: &Rc<Self>, shared: &Rc<Shared>) -> Result<(), LedgerError> {
        let Some(asking) = &self.asking else { return self.call_somebody(shared).await };
        let now = shared.clock.now();
        if let Some(samples) = asking.samples.borrow().as_ref() {
            self.counts(shared).samples_left_out.store(samples.left_out(), Ordering::Relaxed);
        }
        let mut sampled = asking.owes_a_sample() && self.ask_for_a_sample(asking, shared, now.mono);
        let room = asking.room(now.mono);
        let is_known = self.claimed_at.get().is_some_and(|at| now.mono < at.after(EVERY));
        if room == 0 && is_known {
            self.next_look.set(asking.next_room(now.mono).min(now.mono.after(EVERY)));
            return Ok(());
        }
        let most = usize::try_from(room).unwrap_or(usize::MAX);
        let claimed = shared.ledger().claim(&self.name, most, asking.rules.timeout, now).await?;
        self.claimed_at.set(Some(now.mono));
        self.oldest_due.set(claimed.oldest_due);
        let taken = claimed.claims.len();
        for claim in claimed.claims {
            self.have_asked(asking, claim, shared, now).await?;
        }
        if taken < most {
            sampled |= self.ask_for_a_sample(asking, shared, now.mono);
            self.look_again(asking, shared, now).await?;
        }
        let next = match claimed.oldest_due {
            _ if taken >= most => asking.next_room(now.mono),
            Some(due) if due > now.mono => due,
            Some(_) => now.mono.after(SOON),
            None => now.mono.after(EVERY),
        };
        let has_more = sampled || asking.again.borrow().is_waiting();
        let next = if has_more { next.min(asking.next_room(now.mono)) } else { next };
        self.next_look.set(next.min(now.mono.after(EVERY)));
        Ok(())
    }

    async fn have_asked(
        self: &Rc<Self>,
        asking: &Asking,
        claim: Claim,
        shared: &Rc<Shared>,
        now: Now,
    ) -> Result<(), LedgerError> {
        let id = claim.record().identity.upstream_id.as_deref();
        match id.and_then(|id| asking.request(id)) {
            Some(request) => {
                asking.budget.borrow_mut().claimed();
                asking.since_sample.set(asking.since_sample.get().saturating_add(1));
                let place = ask::Place::new(Rc::clone(self), Rc::clone(shared));
                tokio::task::spawn_local(ask::operation(place, claim, request));
                Ok(())
            }
            None => self.cannot_ask(claim, shared, now).await,
        }
    }

    /// Known successes come out of the same budget, one at a time: where operations leave room, and of the places that those take
    /// one of [`SAMPLED`].
    fn ask_for_a_sample(self: &Rc<Self>, asking: &Asking, shared: &Rc<Shared>, now: Mono) -> bool {
        if asking.room(now) == 0 {
            return false;
        }
        let sample = asking.samples.borrow_mut().as_mut().and_then(|samples| samples.next(now));
        let Some((sample, request)) =
            sample.and_then(|sample| asking.request(sample.upstream_id()).map(|request| (sample, request)))
        else {
            return false;
        };
        asking.budget.borrow_mut().claimed();
        asking.since_sample.set(0);
        let place = ask::Place::new(Rc::clone(self), Rc::clone(shared));
        tokio::task::spawn_local(ask::sample(place, sample, request));
        true
    }

    /// Has what was decided by absence asked about again, where claims leave room.
    async fn look_again(
        self: &Rc<Self>,
        asking: &Asking,
        shared: &Rc<Shared>,
        now: Now,
    ) -> Result<(), LedgerError> {
        let wanted = asking.again.borrow_mut().wanted(&now);
        if let Some(which) = wanted {
            let looks = shared.ledger().second_looks(&self.name, which).await?;
            asking.again.borrow_mut().found(&which, looks, now.mono);
        }
        if asking.room(now.mono) == 0 {
            return Ok(());
        }
        let Some(look) = asking.again.borrow_mut().next(&now) else { return Ok(()) };
        let id = look.record().identity.upstream_id.as_deref();
        let Some(request) = id.and_then(|id| asking.request(id)) else {
            asking.again.borrow_mut().ended();
            return Ok(());
        };
        asking.budget.borrow_mut().claimed();
        let place = ask::Place::of_second_look(Rc::clone(self), Rc::clone(shared));
        tokio::task::spawn_local(ask::second_look(place, look, request));
        Ok(())
    }

    /// Where nobody can ask, a person has to look, at once.
    async fn call_somebody(self: &Rc<Self>, shared: &Rc<Shared>) -> Result<(), LedgerError> {
        let now = shared.clock.now();
        let claimed = shared.ledger().claim(&self.name, NOT_ASKABLE, Duration::ZERO, now).await?;
        self.oldest_due.set(claimed.oldest_due);
        let is_all = claimed.claims.len() < NOT_ASKABLE;
        for claim in claimed.claims {
            self.cannot_ask(claim, shared, now).await?;
        }
        self.next_look.set(now.mono.after(if is_all { EVERY } else { SOON }));
        Ok(())
    }

    async fn cannot_ask(&self, claim: Claim, shared: &Shared, now: Now) -> Result<(), LedgerError> {
        add(&self.counts(shared).not_askable);
        self.record(claim.no_status_query(self.draw(shared)), shared, now).await
    }

    /// Draws the wait before the next query of an operation.
    pub(super) fn draw(&self, shared: &Shared) -> Draw {
        self.schedule.draw(shared.bits())
    }

    /// Has a report written. One that somebody was faster than is only counted.
    ///
    /// # Errors
    /// If the ledger does not take it. Then the claim's lease ends by itself, and the operation is asked for again.
    pub(super) async fn record(&self, report: Report, shared: &Shared, now: Now) -> Result<(), LedgerError> {
        let recorded = shared.ledger().record(report, now).await;
        if !matches!(recorded, Ok(Recorded::Changed { .. })) {
            add(&self.counts(shared).not_recorded);
        }
        recorded.map(|_| ())
    }
}

impl Asking {
    /// How many may be claimed now.
    fn room(&self, now: Mono) -> u32 {
        let budget = self.budget.borrow();
        let breaker = self.breaker.borrow().room(now);
        budget.room(now).min(breaker.saturating_sub(budget.waiting()))
    }

    /// Whether the next place is a known success's, if there is one to be asked for.
    fn owes_a_sample(&self) -> bool {
        self.since_sample.get() >= SAMPLED - 1
    }

    /// When there may be room again. The end of a query makes room too, and is told of.
    fn next_room(&self, now: Mono) -> Mono {
        let open_until = self.breaker.borrow().open_until();
        let next = self.budget.borrow().room_at(now).max(open_until.unwrap_or_default());
        if next > now { next } else { now.after(EVERY) }
    }

    /// The question about one operation; `None` if its id cannot be asked for.
    fn request(&self, upstream_id: &[u8]) -> Option<Request<Full<Bytes>>> {
        let mut path = self.rules.before_key.to_string();
        // A segment of dots alone would be a step to another resource (RFC 3986 section 5.2.4).
        let is_a_step = matches!(upstream_id, b"." | b"..");
        for byte in upstream_id {
            if is_a_step { path.push_str("%2E") } else { encode(*byte, &mut path) }
        }
        path.push_str(&self.rules.after_key);
        let mut request = Request::new(Full::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse::<Uri>().ok()?;
        request.headers_mut().insert(HOST, self.host.clone());
        self.edits.apply(request.headers_mut());
        Some(request)
    }
}

/// Percent-encodes what is not unreserved (RFC 3986 sections 2.1 and 2.3).
fn encode(byte: u8, path: &mut String) {
    use std::fmt::Write as _;
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(char::from(byte)),
        _ => {
            let _a_string_takes_everything = write!(path, "%{byte:02X}");
        }
    }
}

/// The rule by which absences decide, where the contract declares all of it.
fn absence_rule(rules: &VerificationRules, route: &str) -> Option<AbsenceRule> {
    let absence = rules.absence.as_ref()?;
    let AbsenceVerdict::NotExecuted(_) = absence.verdict else { return None };
    let rule =
        AbsenceRule::new(absence.settle, absence.confirmations, absence.spacing, rules.upstream_retention);
    if let Err(error) = &rule {
        tracing::warn!(
            target: "backstop::operations",
            route,
            %error,
            "the route's rule of absence can never hold: operations that its upstream does not know need a person"
        );
    }
    rule.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3986 section 2.3: these stay, and nothing else.
    #[test]
    fn an_operations_id_stays_one_segment() {
        let mut path = String::new();
        "aZ09-._~/?#%&=+ \u{e9}".bytes().for_each(|byte| encode(byte, &mut path));
        assert_eq!(path, "aZ09-._~%2F%3F%23%25%26%3D%2B%20%C3%A9");
    }
}
