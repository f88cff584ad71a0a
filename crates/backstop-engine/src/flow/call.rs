//! From a place at a dependency to its call, and what follows if it fails.
//!
//! The order in which a call takes what it needs: a look at the breaker and the ramp (whoever may not go need not wait), a
//! place at the dependency, the breaker's ticket, the dependency's resources. All of them at once, or the place after a
//! bounded wait. What was taken comes back on every way on which the call is not made.
//!
//! A failed call is made once more if the route says that Backstop owns the retries and [`retry`](crate::retry) allows it.
//! After that another dependency may stand in, if the route names one and [`alternative`](crate::alternative) allows it;
//! then the class's own alternative. The request keeps the cause that the route's own dependency had.

use std::time::Duration;

use crate::admission::{Permit, Turn};
use crate::alternative::UsedResource;
use crate::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use crate::outcome::Reason;
use crate::policy::{Origin, RouteClass};
use crate::resource::{ClassShare, acquire_all};
use crate::retry::{Owner, RetryFacts, backoff, may_retry};
use crate::snapshot::CopyRefusal;
use crate::time::{Mono, Now};

use super::{Attempt, AttemptId, Flow, HeadFacts, Method, Note, Places, Role, State, Why};

/// An attempt with less time than this is not made a second time.
const MIN_USEFUL: Duration = Duration::from_millis(10);
/// The part of the time for attempts that one gets which another may follow, in tenths.
const FIRST_ATTEMPT_TENTHS: u32 = 6;

impl Flow {
    pub(super) fn place(&mut self, now: Mono) -> State {
        if now >= self.attempt_end() {
            return self.not_asked(NotAsked::TooLate);
        }
        if let Some(refused) = self.dependency().health.refuses(now, self.is_safe()) {
            return self.not_asked(refused);
        }
        let excess = self.excess();
        let dependency = self.dependency();
        if let Some(permit) = dependency.in_flight.try_acquire(Turn::Newcomer, excess) {
            return State::Call { permit };
        }
        let queue = dependency.rules.queue;
        if queue == Duration::ZERO {
            return self.not_asked(NotAsked::DependencyFull);
        }
        let until = now.after(queue).min(self.attempt_end());
        let waiting = dependency.in_flight.wait();
        self.trace.note(now, self.dependency().rules.connections_origin, Note::Waiting);
        // A place that came free between the refusal and the mark above would otherwise be missed.
        match waiting.try_at_once() {
            Some(permit) => State::Call { permit },
            None => State::AwaitPlace { waiting, until },
        }
    }

    pub(super) fn try_place(&mut self, last: bool) {
        if let State::AwaitPlace { waiting, .. } = &self.state {
            if let Some(permit) = waiting.try_acquire() {
                self.state = State::Call { permit };
            } else if last {
                self.state = self.not_asked(NotAsked::PoolTimeout);
            }
        }
    }

    /// Everything else that a call needs, and the call.
    pub(super) fn call(&mut self, permit: Permit, now: Mono) -> Result<Attempt, NotAsked> {
        if now >= self.attempt_end() {
            return Err(NotAsked::TooLate);
        }
        let entropy = self.draw();
        let (share, excess) = (self.share(), self.excess());
        let dependency = self.dependency();
        let ticket = dependency.health.admit(now, self.is_safe(), entropy)?;
        let fill = match self.take_fill(now, excess) {
            Ok(fill) => fill,
            Err(refused) => {
                ticket.unused();
                return Err(refused);
            }
        };
        let dependency = self.dependency();
        let resources = match acquire_all(&dependency.resources, now, share, excess) {
            Ok(resources) => resources,
            Err((position, _)) => {
                self.full_resource = dependency.rules.uses.get(position).copied();
                ticket.unused();
                return Err(NotAsked::ResourceFull);
            }
        };
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.trace.note(now, Origin::NONE, Note::Called(id));
        self.dependency().tally.attempt();
        self.generation = ticket.generation();
        self.ticket = Some(ticket);
        let is_own = self.asked == self.route().rules.dependency;
        self.tries += u32::from(is_own);
        self.cut = self.cut_for_another(now);
        self.state = State::AwaitHead { attempt: id };
        Ok(Attempt {
            id,
            dependency: self.asked,
            number: self.facts.attempt.saturating_add(if is_own { self.tries - 1 } else { 0 }),
            places: Places::new(permit, resources, self.stand_in.take(), fill),
            until: self.attempt_end(),
            end: self.deadline.end(),
            abandon_hold: self.route().rules.abandon_hold,
        })
    }

    /// While another attempt may follow, here or at another dependency, this one leaves it time.
    fn cut_for_another(&self, now: Mono) -> Option<Mono> {
        self.may_go_on().then(|| {
            let left = now.until(self.deadline.attempt_end());
            now.after(left / 10 * FIRST_ATTEMPT_TENTHS).before(self.client_waited)
        })
    }

    pub(super) fn time_up(&mut self, failure: Option<Failure>, now: Mono) {
        match self.state {
            State::AwaitPlace { .. } => self.try_place(true),
            State::Pause { .. } => self.state = State::Place,
            State::AwaitCached { .. } => self.cache_was_silent(now),
            State::AwaitFill => {
                let failure = Failure::new(FailureKind::ReadTimeout, Phase::Head, Sent::Maybe);
                self.state = self.without_another(Cause::Failed(failure));
            }
            State::AwaitHead { .. } | State::Collect { .. } | State::AwaitBody { .. } => {
                let phase =
                    if matches!(self.state, State::AwaitHead { .. }) { Phase::Head } else { Phase::Body };
                let failure = failure.unwrap_or(Failure::new(FailureKind::ReadTimeout, phase, Sent::Maybe));
                self.state = self.failed(failure, None, now);
            }
            _ => {}
        }
    }

    /// The attempt failed: counted against the dependency, made once more if that may help, and then the alternative.
    pub(super) fn failed(&mut self, failure: Failure, head: Option<HeadFacts>, now: Mono) -> State {
        let entropy = self.draw();
        let dependency = self.dependency();
        dependency.tally.failure(failure.kind);
        let retry_after = head.and_then(|head| head.retry_after);
        if let Some(after) = retry_after {
            dependency.health.raise_open(now, now.after(after));
        }
        if let Some(ticket) = self.ticket.take() {
            ticket.failed(now, entropy);
        }
        self.retry = None;
        self.cut = None;
        let cause = Cause::Failed(failure);
        if !self.stood_in {
            self.cause = Some(cause);
            if let Some(until) = self.once_more(failure, retry_after, now) {
                return State::Pause { until };
            }
        }
        State::Alternative { cause: self.cause.unwrap_or(cause) }
    }

    /// When the failed call is made again, if it is. Takes what that costs.
    fn once_more(&mut self, failure: Failure, retry_after: Option<Duration>, now: Mono) -> Option<Mono> {
        let rules = self.route().rules.retry?;
        if !self.facts.repeatable {
            return None;
        }
        let backoff = backoff(self.tries, self.draw());
        let dependency = self.dependency();
        let in_flight = dependency.in_flight.in_flight();
        let facts = RetryFacts {
            owner: rules.owner,
            inbound_attempt: self.facts.attempt,
            method: self.facts.method,
            attempts_allowed: rules.attempts,
            attempts_made: self.tries,
            failure,
            retry_after,
            suspended: !dependency.health.retries_allowed(now),
            resource_per_mille: dependency
                .resources
                .iter()
                .map(|used| used.in_use_per_mille())
                .max()
                .unwrap_or(0),
            retries_in_flight: dependency.retries.in_flight(),
            in_flight,
            backoff,
            left: now.until(self.deadline.attempt_end()),
            min_useful: MIN_USEFUL,
        };
        let made = may_retry(&facts)
            .and_then(|wait| dependency.retries.start(in_flight).map(|permit| (now.after(wait), permit)));
        let note = made.as_ref().map_or_else(|why| Note::NoRetry(*why), |(until, _)| Note::Retry(*until));
        self.trace.note(now, rules.origin, note);
        let (until, permit) = made.ok()?;
        self.retry = Some(permit);
        Some(until)
    }

    /// The call was allowed and then not begun: what was taken for it comes back, and nothing is counted against the
    /// dependency.
    pub(super) fn not_begun(&mut self, reason: NotAsked) -> State {
        if let Some(ticket) = self.ticket.take() {
            ticket.unused();
        }
        self.cut = None;
        self.not_asked(reason)
    }

    /// The dependency was not asked: if it had failed before, that stays the cause.
    pub(super) fn not_asked(&mut self, reason: NotAsked) -> State {
        self.retry = None;
        self.stand_in = None;
        let cause = *self.cause.get_or_insert(Cause::NotAsked(reason));
        State::Alternative { cause }
    }

    /// Another dependency, the class's own alternative, or none.
    pub(super) fn alternative(&mut self, cause: Cause, now: Now) -> State {
        self.trace.note(now.mono, Origin::NONE, Note::Cause(cause));
        if self.ask_another(now) {
            return State::Place;
        }
        self.without_another(cause)
    }

    /// The class's own alternative, or none.
    pub(super) fn without_another(&mut self, cause: Cause) -> State {
        if self.has_alternative() {
            return self.look_for_alternative(Why::Cause(cause));
        }
        let keeps_copies = self.role == Role::Request && self.route().rules.class.keeps_copies();
        // The class has an alternative, only this request cannot have it.
        let is_missing = keeps_copies && self.reads();
        let reason = if is_missing { Reason::Copy(CopyRefusal::Missing) } else { Reason::Cause(cause) };
        let rule = self.route().rules.origins.route;
        State::Answer(self.refuse(reason, Some(cause), rule))
    }

    /// Whether another dependency is asked from here on.
    fn ask_another(&mut self, now: Now) -> bool {
        let Some(rules) = self.route().rules.alternative else { return false };
        if self.stood_in || !self.may_repeat() || now.mono >= self.deadline.attempt_end() {
            return false;
        }
        let own = self.engine.dependency(self.route().rules.dependency);
        let other = self.engine.dependency(rules.dependency);
        let bands = other.rules.recovery.unwrap_or_default();
        let used = other.rules.uses.iter().zip(&other.watched).map(|(id, watched)| UsedResource {
            is_shared: own.rules.uses.contains(id),
            is_cause: self.full_resource == Some(*id),
            signal: watched.signal(now.mono, &bands.green, &bands.red),
        });
        let stands_in = other.stand_in.try_acquire(used, &crate::alternative::ANY_POLICY, &now);
        let note = stands_in.as_ref().map_or_else(|why| Note::NoAlternative(*why), |_| Note::Alternative);
        self.trace.note(now.mono, rules.origin, note);
        let Ok(permit) = stands_in else { return false };
        self.stood_in = true;
        self.stand_in = Some(permit);
        self.asked = rules.dependency;
        true
    }

    pub(super) fn look_for_alternative(&self, why: Why) -> State {
        match &self.route().rules.class {
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) => State::AwaitCopy { why },
            RouteClass::Optional(optional) => State::Answer(self.fixed(why, &optional.otherwise)),
            RouteClass::Direct(_) => {
                State::Answer(self.refuse(why.reason(), why.cause(), self.route().rules.origins.route))
            }
        }
    }

    /// Whether the request may be asked of somebody else, or once more.
    fn may_repeat(&self) -> bool {
        self.reads() && self.facts.repeatable
    }

    /// Whether a failure of the present attempt may be followed by another one.
    pub(super) fn may_go_on(&self) -> bool {
        let rules = &self.route().rules;
        let once_more =
            rules.retry.is_some_and(|retry| retry.owner == Owner::Backstop && self.tries < retry.attempts);
        self.may_repeat() && !self.stood_in && (once_more || rules.alternative.is_some())
    }

    fn is_safe(&self) -> bool {
        self.facts.method != Method::Unsafe
    }

    /// The class's share of resources.
    fn share(&self) -> ClassShare {
        match self.route().rules.class {
            RouteClass::Optional(_) => ClassShare::Optional,
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) => ClassShare::Read,
            RouteClass::Direct(_) if self.is_safe() => ClassShare::Read,
            RouteClass::Direct(_) => ClassShare::Effect,
        }
    }
}
