//! From a place at a dependency to its call, and what follows if it fails.
//!
//! The order in which a call takes what it needs: a look at the breaker and the ramp (whoever may not go need not wait), a
//! place of its class's share at the dependency, the breaker's ticket, the route's budget of reads behind a cache, the
//! dependency's resources. All of them at once, or the place after a bounded wait. What was taken comes back on every way on
//! which the call is not made; of a rate only if nobody else has taken since, and not once the driver has it.
//!
//! A failed call is made once more if the route says that Backstop owns the retries and [`retry`](crate::retry) allows it.
//! After that another dependency may stand in, if the route names one and [`alternative`](crate::alternative) allows it;
//! then the class's own alternative. The request keeps the cause that the route's own dependency had.
//!
//! Where the request has no alternative of its class, the failed answer is still better than none: it is held until the
//! retry's pause begins or somebody is really asked, and passed on if neither comes about.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{ClassShare, Excess, Permit, Turn};
use crate::alternative::{ANY_POLICY, Signal, UsedResource};
use crate::failure::{Cause, Failure, FailureKind, NotAsked, Phase, Sent};
use crate::health::Band;
use crate::outcome::Reason;
use crate::policy::{Origin, RouteClass};
use crate::resource::{Resource, acquire_all};
use crate::retry::{
    MAX_ATTEMPTS, NoRetry, Owner, RESOURCE_PER_MILLE, RetryFacts, backoff, may_retry, places,
};
use crate::snapshot::CopyRefusal;
use crate::time::{Mono, Now};

use super::{Attempt, AttemptId, Consulted, Flow, HeadFacts, Method, Note, Places, Retry, Role, State, Why};

/// An attempt with less time than this is not made a second time.
const MIN_USEFUL: Duration = Duration::from_millis(10);
/// The part of the time for attempts that one gets which another may follow, in tenths.
const FIRST_ATTEMPT_TENTHS: u32 = 6;

impl Flow {
    pub(super) fn place(&mut self, now: Mono) -> State {
        if now >= self.attempt_end() {
            return self.not_asked(NotAsked::TooLate);
        }
        if let Some(refused) = self.dependency().health.refuses(now, self.may_probe()) {
            return self.not_asked(refused);
        }
        let share = self.share();
        let dependency = self.dependency();
        let (queue, rule) = (dependency.rules.queue, dependency.rules.connections_origin);
        let no_place = match dependency.in_flight.try_acquire_as(share, Turn::Newcomer, Excess::Refuse) {
            Ok(permit) => return State::Call { permit },
            Err(no_place) => no_place,
        };
        let may_wait = queue > Duration::ZERO;
        let Some(waiting) = may_wait.then(|| dependency.in_flight.wait_as(share)).flatten() else {
            self.trace.note(now, rule, Note::NoPlace(no_place));
            return self.not_asked(NotAsked::DependencyFull);
        };
        let until = now.after(queue).min(self.attempt_end());
        self.trace.note(now, rule, Note::Waiting);
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
        let share = self.share();
        let dependency = self.dependency();
        let ticket = dependency.health.admit(now, self.may_probe(), entropy)?;
        let fill = match self.take_fill(now) {
            Ok(fill) => fill,
            Err(refused) => {
                ticket.unused();
                return Err(refused);
            }
        };
        let dependency = self.dependency();
        let resources = match acquire_all(&dependency.resources, now, share, Excess::Refuse) {
            Ok(resources) => resources,
            Err((position, _)) => {
                self.full_resource = dependency.rules.uses.get(position).copied();
                self.put_back_fill(fill, now);
                ticket.unused();
                return Err(NotAsked::ResourceFull);
            }
        };
        self.attempts += 1;
        self.called = now;
        let id = AttemptId(self.attempts);
        self.trace.note(now, Origin::NONE, Note::Called(id));
        self.dependency().tally.attempt();
        let probe = ticket.probe_place();
        self.ticket = Some(ticket);
        self.waited_before = self.client_waited;
        self.held = None;
        if let Some(retry) = &mut self.retry {
            retry.is_made = true;
        }
        let is_own = self.asked == self.route().rules.dependency;
        self.tries += u32::from(is_own);
        self.cut = self.cut_for_another(now);
        self.state = State::AwaitHead { attempt: id };
        Ok(Attempt {
            id,
            dependency: self.asked,
            number: self.facts.attempt.saturating_add(if is_own { self.tries - 1 } else { 0 }),
            places: Places::new(permit, resources, self.stand_in.take(), fill, probe),
            until: self.attempt_end(),
            end: self.deadline.end(),
            abandon_hold: self.route().rules.abandon_hold,
            is_once: self.is_operation(),
        })
    }

    /// While another attempt may follow, here or at another dependency, this one leaves it time.
    fn cut_for_another(&self, now: Mono) -> Option<Mono> {
        self.may_go_on(now).then(|| {
            let left = now.until(self.deadline.attempt_end());
            now.after(left / 10 * FIRST_ATTEMPT_TENTHS).before(self.client_waited)
        })
    }

    pub(super) fn time_up(&mut self, failure: Option<Failure>, now: Mono) {
        match self.state {
            State::AwaitPlace { .. } => self.try_place(true),
            State::Pause { .. } => self.state = self.after_the_pause(now),
            State::AwaitParts(_) => self.parts_time_up(),
            State::AwaitAuthorized => self.authorizer_was_silent(failure, now),
            State::AwaitCached { .. } => self.cache_was_silent(now),
            State::Consult { .. } => self.consulted(Consulted::Unreadable),
            State::AwaitFill => {
                // The read itself still waits for its turn: nobody was asked, and nobody failed.
                let cause = failure.map_or(Cause::NotAsked(NotAsked::PoolTimeout), Cause::Failed);
                self.state = self.without_another(cause);
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
        self.count_failure(failure, head, now);
        self.cut = None;
        let cause = Cause::Failed(failure);
        if !self.stood_in {
            self.cause = Some(cause);
            if let Some(until) = self.once_more(failure, head, now) {
                return State::Pause { until };
            }
        }
        State::Alternative { cause: self.cause.unwrap_or(cause) }
    }

    /// Counts the failure against the dependency that was asked, and hears when it wants to be called again.
    pub(super) fn count_failure(&mut self, failure: Failure, head: Option<HeadFacts>, now: Mono) {
        let entropy = self.draw();
        let dependency = self.dependency();
        dependency.tally.failure(failure.kind);
        dependency.was_late(failure, self.called);
        if let Some(after) = head.and_then(|head| head.retry_after) {
            dependency.health.raise_open(now, now.after(after));
        }
        if let Some(ticket) = self.ticket.take() {
            ticket.failed(now, entropy);
        }
        self.end_retry();
    }

    /// A retry has ended, or is not made after all: then its payment goes back.
    pub(super) fn end_retry(&mut self) {
        if let Some(retry) = self.retry.take() {
            let retries = &self.own_dependency().retries;
            if retry.is_made { retries.was_made() } else { retries.give_back() }
        }
    }

    /// The moment for the retry has come. While it was waited for, the dependency may have got worse.
    fn after_the_pause(&mut self, now: Mono) -> State {
        if self.own_dependency().health.retries_allowed(now) {
            return State::Place;
        }
        let rule = self.route().rules.retry.map_or(Origin::NONE, |retry| retry.origin);
        self.trace.note(now, rule, Note::NoRetry(NoRetry::Suspended));
        // The cause stays what the first attempt failed with.
        self.not_asked(NotAsked::BreakerOpen)
    }

    /// When the failed call is made again, if it is. Takes what that costs.
    fn once_more(&mut self, failure: Failure, head: Option<HeadFacts>, now: Mono) -> Option<Mono> {
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
            retry_after: head.and_then(|head| head.retry_after),
            suspended: !dependency.health.retries_allowed(now),
            // A failed answer holds its own places until it is let go.
            resource_per_mille: busiest(&dependency.resources, u32::from(head.is_some())),
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
        self.retry = Some(Retry { _place: permit, is_made: false });
        Some(until)
    }

    /// The call was allowed and then not begun: what was taken for it comes back, and nothing is counted against the
    /// dependency.
    pub(super) fn not_begun(&mut self, reason: NotAsked) -> State {
        if let Some(ticket) = self.ticket.take() {
            ticket.unused();
        }
        if let Some(retry) = &mut self.retry {
            retry.is_made = false;
        }
        self.cut = None;
        self.not_asked(reason)
    }

    /// Whoever should have stood in is not called after all.
    pub(super) fn put_back_stand_in(&mut self) {
        if let Some(permit) = self.stand_in.take() {
            self.dependency().stand_in.put_back(permit);
        }
    }

    /// The dependency was not asked: if it had failed before, that stays the cause.
    pub(super) fn not_asked(&mut self, reason: NotAsked) -> State {
        self.end_retry();
        self.put_back_stand_in();
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
        if self.is_operation() {
            return self.operation_without_answer(cause);
        }
        if self.has_alternative() {
            return self.look_for_alternative(Why::Cause(cause));
        }
        // The request has none: the failed answer itself, if it is still there.
        if let Some((attempt, head)) = self.held.take() {
            return State::Answer(self.as_it_is(attempt, head, None));
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
        if self.stood_in
            || !self.may_repeat()
            || !self.facts.elsewhere
            || now.mono >= self.deadline.attempt_end()
        {
            return false;
        }
        let own = self.engine.dependency(self.route().rules.dependency);
        let other = self.engine.dependency(rules.dependency);
        let bands = other.rules.recovery.unwrap_or_default();
        let resources = other.watched.iter().zip(&other.resources);
        let used = other.rules.uses.iter().zip(resources).map(|(id, (watched, resource))| UsedResource {
            is_shared: own.rules.uses.contains(id),
            is_cause: self.full_resource == Some(*id),
            signal: watched.signal(now.mono, &bands.green, &bands.red).or_worse(use_of(
                resource,
                &bands.green,
                &bands.red,
            )),
        });
        let stands_in = other.stand_in.try_acquire(rules.verified.as_ref(), used, &ANY_POLICY, &now);
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
            RouteClass::Direct(_) | RouteClass::Composed(_) | RouteClass::Guarded | RouteClass::Effect(_) => {
                State::Answer(self.refuse(why.reason(), why.cause(), self.route().rules.origins.route))
            }
        }
    }

    /// Whether the request may be asked of somebody else, or once more.
    fn may_repeat(&self) -> bool {
        self.reads() && self.facts.repeatable
    }

    /// Whether a failure of the present attempt may be followed by another one.
    pub(super) fn may_go_on(&self, now: Mono) -> bool {
        self.may_repeat() && !self.stood_in && (self.another_may_be_asked() || self.may_be_retried(now))
    }

    /// Whether there is evidence by which another dependency may be asked. Where there is none, the route is one without an
    /// alternative: the call has the whole time, and its answer is the answer.
    fn another_may_be_asked(&self) -> bool {
        self.route().rules.alternative.filter(|_| self.facts.elsewhere).is_some_and(|rules| {
            let stand_in = &self.engine.dependency(rules.dependency).stand_in;
            stand_in.counts(rules.verified.as_ref(), &ANY_POLICY, &self.begun).is_ok()
        })
    }

    /// Whether a retry of the present attempt would be allowed as things stand, whatever it fails with.
    fn may_be_retried(&self, now: Mono) -> bool {
        let Some(rules) = self.route().rules.retry else { return false };
        let is_ours = rules.owner == Owner::Backstop && self.facts.attempt <= 1;
        if !is_ours || self.tries >= rules.attempts.min(MAX_ATTEMPTS) {
            return false;
        }
        let own = self.own_dependency();
        let retries = &own.retries;
        retries.can_pay()
            && retries.in_flight() < places(own.in_flight.in_flight())
            && busiest(&own.resources, 1) < RESOURCE_PER_MILLE
            && own.health.retries_allowed(now)
    }

    /// Whether its call may try a dependency that was open: a read may. One with content may not: it ends when its client
    /// likes, and a few that never end would keep a dependency shut that is well. Nor may OPTIONS, which is answered without
    /// what the dependency's work needs.
    fn may_probe(&self) -> bool {
        self.reads() && !self.facts.has_content
    }

    fn is_safe(&self) -> bool {
        self.facts.method != Method::Unsafe
    }

    /// The class's share of the process, of the dependency's places and of resources. A `direct` route says nothing about
    /// what its requests are worth, so their method decides: what only reads leaves the last places to what may change
    /// something.
    pub(super) fn share(&self) -> ClassShare {
        match self.route().rules.class {
            RouteClass::Optional(_) => ClassShare::Optional,
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) | RouteClass::Composed(_) => {
                ClassShare::Read
            }
            // What nobody was asked about is no guarded operation.
            RouteClass::Guarded if self.facts.is_open => ClassShare::Read,
            RouteClass::Guarded => ClassShare::Guarded,
            RouteClass::Effect(_) if self.facts.is_open || self.facts.looks => ClassShare::Read,
            RouteClass::Direct(_) if self.is_safe() => ClassShare::Read,
            RouteClass::Direct(_) | RouteClass::Effect(_) => ClassShare::Effect,
        }
    }
}

/// Use of the fullest of these resources in thousandths, without so many places of one's own in each.
fn busiest(resources: &[Arc<Resource>], own: u32) -> u32 {
    resources.iter().map(|used| used.in_use_per_mille_besides(own)).max().unwrap_or(0)
}

/// What the use of a resource's places says about it.
fn use_of(resource: &Resource, green: &Band, red: &Band) -> Signal {
    let in_use = resource.in_use_per_mille();
    Signal::of(in_use > green.in_use.0, in_use > red.in_use.0)
}
