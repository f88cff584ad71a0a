//! A shared cache first, then one read for everybody who asks for the same.
//!
//! ```text
//! Lookup --- hit, young enough -----------------------------------> Done: normal, from the cache
//!   |  miss, too old, failed, breaker open
//!   v
//! Join  ---- an answer that may be shared ------------------------> Done: as the read came out
//!   |  \---- no answer: the cause, and then a copy of one's own
//!   |  \---- as many wait as may: refused as a full resource, and then a copy of one's own
//!   v  an answer that is somebody else's
//! Place: a call of one's own
//! ```
//!
//! - The cache has its own time, its own breaker and its own failures. None of them is the dependency's, and none leads
//!   to more than the route's fill budget allows.
//! - An answer from the cache is judged by its own date, never by what the cache says: a value that a cache kept too
//!   long, or got back from a backup, is no answer.
//! - Only a GET that may be kept joins. HEAD, and what is somebody's own, makes a call of its own within the same budget.
//! - Whoever waits keeps its own deadline, and its places at the process and the route. The read holds places at the
//!   dependency, its resources and the budget, and none of the others.

use std::time::Duration;

use crate::admission::Excess;
use crate::failure::NotAsked;
use crate::fills::FillEnd;
use crate::health::Signal;
use crate::outcome::{Outcome, Reason, Source};
use crate::resource::{ClassShare, ResourcePermit};
use crate::snapshot::{CopyFacts, CopyRefusal, CopyRules, judge};
use crate::time::{Mono, Now};

use super::{
    Account, Answer, AttemptId, Cached, CopyAction, CopyUse, Filled, Flow, Method, Note, Reply, Role, State,
    Step,
};

/// The answer of a read that another flow made has no number in this one.
const NO_ATTEMPT: AttemptId = AttemptId(0);

impl Flow {
    /// Whether the cache is asked, and until when.
    pub(super) fn lookup(&mut self, now: Mono) -> State {
        let entropy = self.draw();
        let Some(rules) = self.route().rules.class.cached() else { return State::Place };
        let until = now.after(rules.timeout).min(self.attempt_end());
        if now >= until {
            self.route().coverage.record(now, self.copy_known);
            return self.not_asked(NotAsked::TooLate);
        }
        match self.engine.cache(rules.cache).health.admit(now, true, entropy) {
            Ok(ticket) => {
                self.cache = Some(ticket);
                State::AwaitCached { until }
            }
            Err(refused) => {
                self.trace.note(now, self.route().rules.origins.route, Note::CacheNotAsked(refused));
                self.without_cached(now)
            }
        }
    }

    /// What the cache has.
    pub(super) fn cached(&mut self, cached: Cached, now: Now) {
        if !matches!(self.state, State::AwaitCached { .. }) {
            return;
        }
        let ticket = self.cache.take();
        let entropy = self.draw();
        if let Some(ticket) = ticket {
            match cached {
                Cached::Hit(_) | Cached::Miss => ticket.answered(now.mono),
                Cached::Failed => ticket.failed(now.mono, entropy),
                Cached::NotAsked => ticket.unused(),
            }
        }
        let verdict = match cached {
            Cached::Hit(facts) => self.judge_unasked(&facts, self.ttl(), now),
            Cached::Miss | Cached::Failed | Cached::NotAsked => Err(CopyRefusal::Missing),
        };
        self.trace.note(now.mono, self.route().rules.origins.route, Note::Cached(verdict));
        self.state = match verdict {
            Ok(age) => {
                self.route().coverage.record(now.mono, true);
                State::Answer(self.as_cached(age))
            }
            Err(_) => self.without_cached(now.mono),
        };
    }

    /// The cache gave no answer in its time.
    pub(super) fn cache_was_silent(&mut self, now: Mono) {
        let entropy = self.draw();
        if let Some(ticket) = self.cache.take() {
            ticket.failed(now, entropy);
        }
        self.state = self.without_cached(now);
    }

    fn without_cached(&mut self, now: Mono) -> State {
        self.route().coverage.record(now, self.copy_known);
        if self.facts.method == Method::Get && self.facts.copies == CopyUse::Full {
            self.trace.note(now, self.route().rules.origins.route, Note::Joined);
            return State::AwaitFill;
        }
        State::Place
    }

    /// The step for one who joins.
    pub(super) fn join(&self) -> Step {
        let waiters = self.route().rules.class.cached().map_or(0, |cached| cached.fill.waiters);
        Step::Join { until: self.attempt_end(), waiters }
    }

    /// What came of the read that was joined.
    pub(super) fn filled(&mut self, filled: Filled, now: Now) {
        if !matches!(self.state, State::AwaitFill) {
            return;
        }
        self.state = match filled {
            // Its age is what the read took. Not even a short `ttl` sends everybody who waited for it to call for itself.
            Filled::Shared(account, facts) => match self.judge_unasked(&facts, self.read_time(), now) {
                Ok(age) => State::Answer(shared(account, age)),
                Err(_) => State::Place,
            },
            Filled::Whole(account) => State::Answer(led(Reply::Collected(NO_ATTEMPT), account)),
            Filled::Streamed(account, from) => {
                let answer = led(Reply::Streamed(NO_ATTEMPT), account);
                State::Answer(Answer { streams: from, ..answer })
            }
            Filled::Failed(cause) => {
                self.cause = Some(cause);
                self.without_another(cause)
            }
            Filled::Apart => State::Place,
            Filled::Full => {
                let cause = super::Cause::NotAsked(NotAsked::ResourceFull);
                self.cause = Some(cause);
                self.without_another(cause)
            }
        };
    }

    fn ttl(&self) -> Duration {
        self.route().rules.class.cached().map_or(Duration::ZERO, |cached| cached.ttl)
    }

    /// The oldest that a read for many may be when it comes.
    fn read_time(&self) -> Duration {
        self.route()
            .rules
            .class
            .cached()
            .map_or(Duration::ZERO, |cached| cached.ttl.max(cached.fill.deadline))
    }

    /// Whether an answer may be given now without the dependency being asked by this very request: no older than that,
    /// and as long as the origin lets it be used without being asked.
    fn judge_unasked(&self, facts: &CopyFacts, max_age: Duration, now: Now) -> Result<Duration, CopyRefusal> {
        let read = self.route().rules.class.read().ok_or(CopyRefusal::Missing)?;
        let (after_restart, override_origin) = (read.after_restart, read.override_origin);
        judge(Some(facts), &CopyRules { max_age, after_restart, override_origin }, &now)
    }

    fn as_cached(&self, age: Duration) -> Answer {
        let account = Account {
            outcome: Outcome::Normal,
            source: Source::Cache,
            reason: Reason::None,
            cause: None,
            age: Some(age),
            rule: self.route().rules.origins.route,
        };
        Answer { reply: Reply::Cached { age }, copy: CopyAction::Keep, account, streams: None }
    }

    /// A place in the route's fill budget, for a read of the dependency on a route with a cache.
    pub(super) fn take_fill(&self, now: Mono) -> Result<Option<ResourcePermit>, NotAsked> {
        let Some(fills) = self.route().fills.as_ref().filter(|_| self.reads()) else { return Ok(None) };
        // The whole budget is for these reads.
        let permit = fills
            .budget
            .try_acquire(now, ClassShare::Effect, Excess::Refuse)
            .map_err(|_| NotAsked::ResourceFull)?;
        if let Some(backlog) = fills.backlog() {
            self.dependency().health.signal(now, Signal::Backlog(backlog));
        }
        Ok(Some(permit))
    }

    /// The read is not made after all.
    pub(super) fn put_back_fill(&self, fill: Option<ResourcePermit>, now: Mono) {
        if let (Some(fills), Some(fill)) = (&self.route().fills, fill) {
            fills.budget.put_back(fill, now);
        }
    }

    pub(super) fn fill_ended(&self, end: FillEnd) {
        debug_assert_eq!(self.role, Role::Fill);
        if let Some(fills) = &self.route().fills {
            fills.ended(end);
        }
    }
}

/// An answer that everybody may have. Whoever made the read has seen to the copy.
fn shared(account: Account, age: Duration) -> Answer {
    // What another gateway calls an alternative says its own age.
    let age = account.age.map_or(age, |said| said.max(age));
    led(Reply::Shared { age }, account)
}

fn led(reply: Reply, account: Account) -> Answer {
    Answer { reply, copy: CopyAction::Keep, account, streams: None }
}
