//! The order of steps.

use std::time::Duration;

use crate::admission::{Excess, NoPlace, Permit, Turn};
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::fills::FillEnd;
use crate::outcome::{Reason, Scope};
use crate::policy::{DependencyId, Origin, RouteClass};
use crate::snapshot::{CopyFacts, CopyRefusal, CopyRules, judge};
use crate::time::{Mono, Now};

use super::{CopyUse, Decision, Event, Flow, Method, Note, Role, Settlement, State, Step, Trace, Why};

impl Flow {
    /// What to do next. Every step but [`Step::Done`] is followed by one [`Flow::on`].
    pub fn step(&mut self, now: Now) -> Step {
        self.seen = self.seen.max(now.mono);
        loop {
            match &self.state {
                State::Admit => self.state = self.admit(now.mono),
                State::Authorize => {
                    if let Some(step) = self.authorize(now.mono) {
                        return step;
                    }
                }
                State::Place => self.state = self.place(now.mono),
                State::Call { .. } => {
                    if let State::Call { permit } = std::mem::replace(&mut self.state, State::Done) {
                        // Dropped on every way but the call: nothing was sent.
                        match self.call(permit, now.mono) {
                            Ok(attempt) => return Step::Attempt(attempt),
                            Err(reason) => self.state = self.not_asked(reason),
                        }
                    }
                }
                &State::Pause { until } => {
                    // The driver lets go of the failed answer.
                    self.held = None;
                    return Step::Pause { until };
                }
                &State::Alternative { cause } => self.state = self.alternative(cause, now),
                State::AwaitKnown => return Step::Peek,
                State::Lookup => self.state = self.lookup(now.mono),
                &State::AwaitCached { until } => return Step::Lookup { until },
                State::AwaitFill => return self.join(),
                State::AwaitPlace { waiting, until } => {
                    return Step::Wait { dependency: self.asked, class: waiting.class(), until: *until };
                }
                &State::Collect { attempt, head } => self.state = State::AwaitBody { attempt, head },
                &State::AwaitBody { attempt, .. } => {
                    return Step::Collect {
                        attempt,
                        until: self.attempt_end(),
                        limit_bytes: self.buffer_bytes(),
                    };
                }
                State::AwaitParts(_) => return Step::Parts { until: self.deadline.alternative_end() },
                State::Consult { .. } => return Step::Consult { until: self.deadline.alternative_end() },
                &State::AwaitRecorded { came, .. } => {
                    return Step::Record { came, until: self.deadline.end() };
                }
                State::AwaitCopy { .. } => return Step::Load { until: self.deadline.alternative_end() },
                // An attempt is announced once; a driver that asks again without an event has lost it.
                State::AwaitAuthorized => {
                    debug_assert!(false, "step without an event while the caller is looked at");
                    self.authorizer_was_silent(None, now.mono);
                }
                State::AwaitHead { .. } => {
                    debug_assert!(false, "step without an event while an attempt is under way");
                    let failure = Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe);
                    self.state = self.failed(failure, None, now.mono);
                }
                &State::Answer(answer) => {
                    self.state = State::Done;
                    return Step::Done(self.finish(answer, now.mono));
                }
                State::Done => {
                    debug_assert!(false, "step after the end");
                    let reason = Reason::Unclassified;
                    self.state = State::Answer(self.refuse(reason, None, Origin::NONE));
                }
            }
        }
    }

    /// What came of the last step. An event that fits no step under way changes nothing; if it is about an attempt, it
    /// is counted as late.
    pub fn on(&mut self, event: Event, now: Now) {
        self.seen = self.seen.max(now.mono);
        match event {
            Event::Known(copy) => {
                if matches!(self.state, State::AwaitKnown) {
                    let usable = self.judge_copy(copy.as_ref(), now).is_ok();
                    self.state = self.known(usable, now.mono);
                }
            }
            Event::Released => self.try_place(false),
            Event::TimeUp(failure) => self.time_up(failure, now.mono),
            Event::Head { attempt, head } if self.expects_head_of(attempt) => {
                self.trace.note(now.mono, Origin::NONE, Note::Answered(head.status));
                self.state = self.head(attempt, head, now.mono);
            }
            Event::Again { attempt, known } if self.expects_head_of(attempt) => {
                self.state = self.again(known);
            }
            Event::Consulted(known) => self.consulted(known),
            Event::Recorded(recorded) => self.recorded(recorded),
            Event::Body { attempt, body } if self.is_current(attempt) => match self.state {
                State::AwaitBody { head, .. } => self.state = self.body(attempt, head, body, now.mono),
                _ => self.late(),
            },
            Event::Failed { attempt, failure } if self.is_current(attempt) => {
                self.state = self.failed(failure, None, now.mono)
            }
            Event::NotAsked { attempt, reason } if self.expects_head_of(attempt) => {
                self.state = self.not_begun(reason);
            }
            Event::Propagated { attempt } if self.is_current(attempt) => {
                self.state = State::Answer(self.propagate(attempt, now.mono));
            }
            Event::Head { .. }
            | Event::Body { .. }
            | Event::Failed { .. }
            | Event::NotAsked { .. }
            | Event::Again { .. }
            | Event::Propagated { .. } => self.late(),
            Event::Authorized(came) => self.authorized(came, now.mono),
            Event::Cached(cached) => self.cached(cached, now),
            Event::Filled(filled) => self.filled(filled, now),
            Event::Copy(copy) => {
                if let State::AwaitCopy { why } = self.state {
                    let verdict = match copy {
                        Ok(copy) => self.judge_copy(copy.as_ref(), now),
                        Err(()) => Err(CopyRefusal::Unreadable),
                    };
                    let rule = self.route().rules.origins.alternative;
                    self.trace.note(now.mono, rule, Note::Copy(verdict));
                    // A read in the lane was not looked up before: here it is seen whether it was covered.
                    if matches!(why, Why::Capacity(_)) {
                        self.route().coverage.record(now.mono, verdict.is_ok());
                    }
                    self.state = State::Answer(self.with_copy(why, verdict));
                }
            }
            Event::Part { number, facts } => self.part(number, facts),
            Event::ClientWaited(waited) => self.client_waited(waited),
            Event::ClientFault(_) if self.finished => {}
            Event::ClientFault(fault) => {
                let asked = matches!(
                    self.state,
                    State::AwaitHead { .. } | State::Collect { .. } | State::AwaitBody { .. }
                );
                if asked {
                    self.dependency().tally.abandon();
                }
                if let Some(ticket) = self.ticket.take() {
                    ticket.says_nothing();
                }
                self.state = State::Answer(self.client_fault(fault, asked));
            }
        }
    }

    fn late(&self) {
        // A composed route asks nobody itself.
        if self.asked != DependencyId::NONE {
            self.dependency().tally.late();
        }
    }

    fn admit(&mut self, now: Mono) -> State {
        // A part belongs to a request that was admitted.
        let process = if self.facts.part_until.is_some() {
            None
        } else {
            if self.engine.is_draining() {
                return State::Answer(self.refuse(Reason::Draining, None, Origin::NONE));
            }
            match self.engine.process().try_acquire_as(self.share(), Turn::Newcomer, Excess::Refuse) {
                Ok(process) => Some(process),
                Err(NoPlace::Full) => return self.over_limit(Scope::Process, None, now),
                Err(NoPlace::Kept) => return self.over_limit(Scope::ProcessShare, None, now),
            }
        };
        let Some(route) = self.route().in_flight.try_acquire(Turn::Newcomer, Excess::Refuse) else {
            return self.over_limit(Scope::Route, process, now);
        };
        self.places = [process, Some(route)];
        self.trace.note(now, Origin::NONE, Note::Admitted);
        self.admitted(now)
    }

    /// Whether a copy of one's own could answer.
    fn known(&mut self, usable: bool, now: Mono) -> State {
        if self.route().rules.class.cached().is_some() {
            // The cache may answer all the same.
            self.copy_known = usable;
            return State::Lookup;
        }
        self.route().coverage.record(now, usable);
        State::Place
    }

    /// A limit refused: the lane for alternatives, where the route has one, or no answer but a refusal.
    fn over_limit(&mut self, scope: Scope, process: Option<Permit>, now: Mono) -> State {
        let origins = self.route().rules.origins;
        let rule = self.rule_of(scope);
        self.trace.note(now, rule, Note::Refused(scope));
        let why = Why::Capacity(scope);
        if self.route().rules.fallback_in_flight > 0 && self.has_alternative() {
            let Some(lane) = self.route().fallback_lane.try_acquire(Turn::Newcomer, Excess::Refuse) else {
                let reason = Reason::Capacity(Scope::FallbackLane);
                return State::Answer(self.refuse(reason, None, self.rule_of(Scope::FallbackLane)));
            };
            self.places = [process, Some(lane)];
            self.trace.note(now, origins.fallback_in_flight, Note::FallbackLane);
            self.in_lane = Some(scope);
            return self.admitted(now);
        }
        State::Answer(self.refuse(why.reason(), None, rule))
    }

    /// The limit that refused.
    pub(super) fn rule_of(&self, scope: Scope) -> Origin {
        let origins = self.route().rules.origins;
        match scope {
            Scope::Process | Scope::ProcessShare => self.engine.process_origin(),
            Scope::Route => origins.in_flight,
            Scope::FallbackLane => origins.fallback_in_flight,
        }
    }

    /// Whether the request only reads the resource.
    pub(super) fn reads(&self) -> bool {
        matches!(self.facts.method, Method::Get | Method::Head)
    }

    pub(super) fn copy_may_answer(&self) -> bool {
        self.reads() && self.facts.copies != CopyUse::Never
    }

    /// Whether this request, on this route, may be answered with an alternative.
    pub(super) fn has_alternative(&self) -> bool {
        if self.role == Role::Fill {
            // Those who wait have one each.
            return false;
        }
        match &self.route().rules.class {
            RouteClass::Direct(_) | RouteClass::Composed(_) | RouteClass::Guarded | RouteClass::Effect(_) => {
                false
            }
            RouteClass::PublicRead(_) => self.copy_may_answer(),
            RouteClass::CachedRead(cached) => cached.local_copy && self.copy_may_answer(),
            RouteClass::Optional(_) => self.reads(),
        }
    }

    fn buffer_bytes(&self) -> u64 {
        self.route().rules.class.buffer_bytes()
    }

    fn judge_copy(&self, copy: Option<&CopyFacts>, now: Now) -> Result<Duration, CopyRefusal> {
        let class = &self.route().rules.class;
        let Some(read) = class.read().filter(|_| class.keeps_copies()) else {
            return Err(CopyRefusal::Missing);
        };
        let rules = CopyRules {
            max_age: read.max_age,
            after_restart: read.after_restart,
            override_origin: read.override_origin,
        };
        judge(copy, &rules, &now)
    }

    fn finish(&mut self, answer: super::Answer, now: Mono) -> Decision {
        let account = answer.account;
        self.trace.note(now, account.rule, Note::Decided(account.outcome, account.source, account.reason));
        self.finished = true;
        let route = match self.role {
            Role::Request => Some(self.route),
            Role::Fill => {
                self.fill_ended(FillEnd::of(account.outcome, answer.copy));
                None
            }
        };
        Decision {
            reply: answer.reply,
            copy: answer.copy,
            account,
            until: self.deadline.end(),
            trace: std::mem::replace(&mut self.trace, Trace::off()),
            settlement: Settlement::new(
                std::sync::Arc::clone(&self.engine),
                route,
                account,
                answer.streams,
                std::mem::take(&mut self.places),
            ),
        }
    }
}
