//! Whether the caller may, before anybody else is asked and before any copy is looked at.
//!
//! ```text
//! Authorize --- yes ------------------------------> on: copy, cache, place
//!     |  \----- no -------------------------------> Done: the authorizer's own answer
//!     v  neither, failed, too late, not asked
//! Done: refused, 503
//! ```
//!
//! - Only an explicit yes leads on, and only an explicit no is told as one. Everything else is an outage of the authorizer:
//!   neither access nor "forbidden", and no copy stands in for it.
//! - It is asked while the request holds its places at the process and its route, so that they bound how many ask. Its own
//!   places, its breaker and its time are apart from the dependency's, and its time is part of the one deadline.
//! - So are those that a limit refused and that the lane for alternatives takes: what it serves is as little for everybody.
//! - It is asked once. A retry would double the load on what everybody needs.
//! - An answer that is neither yes nor no may be the client's doing (a token that it cannot read). It refuses this request
//!   and says nothing of the authorizer's health: else one client could shut out all.

use crate::admission::{Excess, Turn};
use crate::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use crate::health::Ticket;
use crate::outcome::{Outcome, Reason, Source};
use crate::policy::{AuthorizerRules, DependencyId, RouteClass};
use crate::resource::acquire_all;
use crate::time::Mono;

use super::{Account, Answer, Attempt, AttemptId, CopyAction, Flow, Note, Places, Reply, State, Step, Why};

/// What came of asking whether a caller may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// An explicit yes.
    Allowed,
    /// An explicit no: its answer is there to be passed on.
    Denied,
    /// A whole answer that is neither.
    Unclear,
    /// It failed.
    Failed(Failure),
    /// It was not asked after all: nothing was begun.
    NotAsked(NotAsked),
}

/// Of a request whose caller is being looked at.
#[derive(Debug)]
pub(super) struct Asking {
    /// The dependency that is asked.
    pub(super) dependency: DependencyId,
    pub(super) ticket: Option<Ticket>,
}

impl Flow {
    /// The way on for a request that was admitted, to the route or to its lane.
    pub(super) fn admitted(&mut self, now: Mono) -> State {
        if self.route().rules.authorizer.is_some() && !self.facts.is_open {
            return State::Authorize;
        }
        self.allowed(now)
    }

    /// The way on for a caller who may.
    fn allowed(&mut self, now: Mono) -> State {
        if let Some(scope) = self.in_lane {
            return self.look_for_alternative(Why::Capacity(scope));
        }
        if self.facts.looks {
            return State::Consult { cause: None };
        }
        let class = &self.route().rules.class;
        if matches!(class, RouteClass::Composed(_)) {
            return State::AwaitParts(crate::composed::Gathered::default());
        }
        if class.read().is_none() || !self.reads() {
            return State::Place;
        }
        if !self.copy_may_answer() {
            self.route().coverage.record(now, false);
            return State::Place;
        }
        if class.keeps_copies() { State::AwaitKnown } else { State::Lookup }
    }

    /// Has the caller looked at, or refuses.
    pub(super) fn authorize(&mut self, now: Mono) -> Option<Step> {
        let rules = self.route().rules.authorizer?;
        let until = now.after(rules.timeout).min(self.attempt_end());
        if now >= until {
            self.unauthorized(&rules, NotAsked::TooLate, now);
            return None;
        }
        let asked =
            rules.dependency.map(|dependency| self.ask_authorizer(dependency, until, now)).transpose();
        match asked {
            Ok(attempt) => {
                self.state = State::AwaitAuthorized;
                Some(Step::Authorize { until, attempt })
            }
            Err(reason) => {
                self.unauthorized(&rules, reason, now);
                None
            }
        }
    }

    fn ask_authorizer(&mut self, id: DependencyId, until: Mono, now: Mono) -> Result<Attempt, NotAsked> {
        let entropy = self.draw();
        let share = self.share();
        let authorizer = self.engine.dependency(id);
        let place = authorizer.in_flight.try_acquire_as(share, Turn::Newcomer, Excess::Refuse);
        let place = place.map_err(|_| NotAsked::DependencyFull)?;
        // It reads and changes nothing, and has no content: it may try out what was open.
        let ticket = authorizer.health.admit(now, true, entropy)?;
        let resources = match acquire_all(&authorizer.resources, now, share, Excess::Refuse) {
            Ok(resources) => resources,
            Err(_) => {
                ticket.unused();
                return Err(NotAsked::ResourceFull);
            }
        };
        self.attempts += 1;
        let attempt = AttemptId(self.attempts);
        authorizer.tally.attempt();
        let probe = ticket.probe_place();
        self.trace.note(now, authorizer.rules.connections_origin, Note::Called(attempt));
        self.asking = Some(Asking { dependency: id, ticket: Some(ticket) });
        Ok(Attempt {
            id: attempt,
            dependency: id,
            number: 1,
            places: Places::new(place, resources, None, None, probe),
            until,
            end: self.deadline.end(),
            // Who asks waits no longer than this. Held for the whole deadline, the places of a few questions that are never
            // answered would shut everybody out long after.
            abandon_hold: self.route().rules.authorizer.map(|rules| rules.timeout),
            is_once: false,
        })
    }

    /// What came of it.
    pub(super) fn authorized(&mut self, came: Authorization, now: Mono) {
        let (State::AwaitAuthorized, Some(rules)) = (&self.state, self.route().rules.authorizer) else {
            return;
        };
        let asking = self.asking.take();
        self.trace.note(now, rules.origin, Note::Authorization(came));
        let entropy = self.draw();
        if let Some(Asking { dependency, ticket }) = asking {
            let tally = &self.engine.dependency(dependency).tally;
            match came {
                Authorization::Allowed | Authorization::Denied | Authorization::Unclear => tally.answer(),
                Authorization::Failed(failure) => tally.failure(failure.kind),
                Authorization::NotAsked(_) => {}
            }
            if let Some(ticket) = ticket {
                match came {
                    Authorization::Allowed | Authorization::Denied => ticket.answered(now),
                    Authorization::Unclear => ticket.neutral(now),
                    Authorization::Failed(_) => ticket.failed(now, entropy),
                    Authorization::NotAsked(_) => ticket.unused(),
                }
            }
        }
        self.route().authorizations.count(came);
        match came {
            Authorization::Allowed => self.state = self.allowed(now),
            Authorization::Denied => self.state = State::Answer(denied(&rules)),
            Authorization::Unclear => self.refuse_unauthorized(&rules, None),
            Authorization::Failed(failure) => self.refuse_unauthorized(&rules, Some(Cause::Failed(failure))),
            Authorization::NotAsked(reason) => {
                self.refuse_unauthorized(&rules, Some(Cause::NotAsked(reason)))
            }
        }
    }

    /// It gave no answer in its time.
    pub(super) fn authorizer_was_silent(&mut self, failure: Option<Failure>, now: Mono) {
        let silent = Failure::new(FailureKind::ReadTimeout, Phase::Head, Sent::Maybe);
        self.authorized(Authorization::Failed(failure.unwrap_or(silent)), now);
    }

    /// It was not asked.
    fn unauthorized(&mut self, rules: &AuthorizerRules, reason: NotAsked, now: Mono) {
        let came = Authorization::NotAsked(reason);
        self.trace.note(now, rules.origin, Note::Authorization(came));
        self.route().authorizations.count(came);
        self.refuse_unauthorized(rules, Some(Cause::NotAsked(reason)));
    }

    fn refuse_unauthorized(&mut self, rules: &AuthorizerRules, cause: Option<Cause>) {
        let mut answer = self.refuse(Reason::Authorizer, cause, rules.origin);
        // Nothing of this request has reached what it would change.
        answer.copy = CopyAction::Keep;
        self.state = State::Answer(answer);
    }
}

/// The authorizer's own answer: a whole one, about this caller.
fn denied(rules: &AuthorizerRules) -> Answer {
    let account = Account {
        outcome: Outcome::Normal,
        source: Source::Authorizer,
        reason: Reason::Denied,
        cause: None,
        age: None,
        rule: rules.origin,
    };
    Answer { reply: Reply::Denied, copy: CopyAction::Keep, account, streams: None }
}
