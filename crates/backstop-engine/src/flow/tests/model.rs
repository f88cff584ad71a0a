//! Many requests in plain counters: what each is asked next.
//!
//! One thread, no atomics, no permits: a place is taken by adding one and given back by subtracting one. What comes of what
//! was asked is in `ends`.

use crate::admission::ClassShare;
use crate::flow::CopyUse;
use crate::health::tests::Fate;
use crate::policy::{Route, RouteClass};
use crate::retry::Owner;

use super::naive::{Calls, Heard, share_of};
use super::reference::{Case, Copy, Happened, Trouble, expected, may_be_replaced, reads, usable};
use super::request::{Asked, Model, Phase, Reads, Request, answer, refused};
use super::support::{MS, SECOND};

impl Model {
    pub(super) fn rules(&self, request: &Request) -> &Route {
        &self.routes[request.route].rules
    }

    pub(super) fn dependency(&mut self, request: &Request) -> &mut Calls {
        &mut self.dependencies[request.asked]
    }

    pub(super) fn own(&self, request: &Request) -> usize {
        usize::from(self.rules(request).dependency.0)
    }

    pub(super) fn class(&self, request: &Request) -> ClassShare {
        match self.rules(request).class {
            RouteClass::Optional(_) => ClassShare::Optional,
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) | RouteClass::Composed(_) => {
                ClassShare::Read
            }
            RouteClass::Guarded => ClassShare::Guarded,
            RouteClass::Direct(_) if request.is_safe() => ClassShare::Read,
            RouteClass::Direct(_) | RouteClass::Effect(_) => ClassShare::Effect,
        }
    }

    pub(super) fn end(&self, request: &Request) -> u64 {
        request.begun + request.waited + self.rules(request).deadline.as_nanos() as u64
    }

    /// When all calls must be over.
    pub(super) fn calls_end(&self, request: &Request) -> u64 {
        let Reads { shares_ns: (reply, alternative), .. } = self.routes[request.route];
        self.end(request) - reply - alternative
    }

    /// When the present one must be.
    pub(super) fn attempt_end(&self, request: &Request) -> u64 {
        let end = self.calls_end(request);
        request.cut.map_or(end, |cut| end.min(cut + request.waited))
    }

    pub(super) fn case(&self, request: &Request, happened: Happened, copy: Copy) -> Case<'_> {
        let cause = request.cause.filter(|_| request.has_stood_in);
        let stood_in_for = cause.map(|cause| cause.word);
        Case { route: self.rules(request), facts: request.facts, happened, copy, stood_in_for }
    }

    /// Whether, as things stand, another call may really follow the present one: at another dependency of which evidence
    /// counted when the request began, or here, whatever the present one fails with.
    pub(super) fn may_go_on(&mut self, request: &Request, now: u64) -> bool {
        request.may_repeat()
            && !request.has_stood_in
            && (self.has_evidence(request) || self.may_be_retried(request, now))
    }

    fn has_evidence(&self, request: &Request) -> bool {
        self.rules(request).alternative.filter(|_| request.facts.elsewhere).is_some_and(|rules| {
            let evidence = &self.dependencies[usize::from(rules.dependency.0)].evidence;
            evidence.as_ref().is_some_and(|evidence| evidence.counts(request.begun_date))
        })
    }

    fn may_be_retried(&mut self, request: &Request, now: u64) -> bool {
        let own = self.own(request);
        let is_ours = self.has_retry_left(request);
        let fullest = self.fullest(own, 1);
        let calls = &mut self.dependencies[own];
        is_ours && calls.may_retry() && fullest < 700 && calls.is_well(now)
    }

    /// Whether the policy would have Backstop make one more call.
    pub(super) fn has_retry_left(&self, request: &Request) -> bool {
        self.rules(request).retry.is_some_and(|rules| {
            rules.owner == Owner::Backstop
                && request.facts.attempt == 1
                && request.own_calls < rules.attempts.min(2)
        })
    }

    /// Use of the fullest resource of a dependency in thousandths, without so many places of one's own in each.
    pub(super) fn fullest(&self, dependency: usize, own: u32) -> u64 {
        let uses = &self.dependencies[dependency].uses;
        uses.iter().map(|&used| self.resources[used].per_mille_besides(own)).max().unwrap_or(0)
    }

    /// What the request is asked next.
    pub(super) fn step(&mut self, request: &mut Request, now: u64) -> Asked {
        loop {
            request.phase = match request.phase {
                Phase::Arriving => self.admit(request, now),
                Phase::Placing => self.place(request, now),
                Phase::Calling => match self.begin_call(request, now) {
                    Ok(asked) => return asked,
                    Err(word) => {
                        self.dependency(request).give_back();
                        Phase::Elsewhere { cause: Trouble::not_asked(word) }
                    }
                },
                Phase::Elsewhere { cause } => self.elsewhere(request, cause, now),
                Phase::Known => return Asked::Peek,
                Phase::Queueing { until } => return Asked::Wait { until, class: self.class(request) },
                Phase::Paused { until } => return Asked::Pause { until },
                Phase::Body { .. } => {
                    return Asked::Collect { id: request.calls, until: self.attempt_end(request) };
                }
                Phase::Loading { .. } => {
                    let (reply, _) = self.routes[request.route].shares_ns;
                    return Asked::Load { until: self.end(request) - reply };
                }
                Phase::Answering(answer) => {
                    return Asked::Done { expected: answer.expected, until: self.end(request) };
                }
                Phase::Head | Phase::Over => unreachable!("asked without having been told"),
            };
        }
    }

    pub(super) fn admit(&mut self, request: &mut Request, now: u64) -> Phase {
        request.asked = self.own(request);
        if self.draining {
            return refused("draining", 503);
        }
        let process_is_full = self.in_flight >= share_of(self.class(request), self.places);
        let route = &mut self.routes[request.route];
        if process_is_full || route.in_flight >= route.places {
            let lane = route.rules.fallback_in_flight;
            if lane == 0 || !may_be_replaced(&route.rules, request.facts) || route.lane == lane {
                return refused("capacity", 503);
            }
            route.lane += 1;
            request.holds_lane = true;
            request.holds_process = !process_is_full;
            self.in_flight += u32::from(!process_is_full);
            return match self.routes[request.route].rules.class {
                RouteClass::PublicRead(_) => Phase::Loading { why: None },
                _ => {
                    let happened = Happened::NotAsked { word: "capacity" };
                    answer(expected(&self.case(request, happened, Copy::Missing)), false)
                }
            };
        }
        route.in_flight += 1;
        self.in_flight += 1;
        (request.holds_process, request.holds_route) = (true, true);
        let is_read = matches!(route.rules.class, RouteClass::PublicRead(_)) && reads(request.facts);
        match request.facts.copies {
            CopyUse::Never if is_read => route.coverage.push((now / SECOND, false)),
            _ if is_read => return Phase::Known,
            _ => {}
        }
        Phase::Placing
    }

    pub(super) fn place(&mut self, request: &Request, now: u64) -> Phase {
        let attempt_end = self.attempt_end(request);
        let class = self.class(request);
        if now >= attempt_end {
            return Phase::Elsewhere { cause: Trouble::not_asked("too_late") };
        }
        let calls = &mut self.dependencies[request.asked];
        if !calls.would_pass(now, request.reads()) {
            return Phase::Elsewhere { cause: Trouble::not_asked(calls.held_off()) };
        }
        if calls.is_free_for(class) {
            calls.in_flight += 1;
            return Phase::Calling;
        }
        if calls.queue_ns == 0 {
            return Phase::Elsewhere { cause: Trouble::not_asked("dependency_full") };
        }
        calls.waiting[class as usize] += 1;
        Phase::Queueing { until: attempt_end.min(now + calls.queue_ns) }
    }

    /// The call itself, and all that it takes beside its place.
    pub(super) fn begin_call(&mut self, request: &mut Request, now: u64) -> Result<Asked, &'static str> {
        if now >= self.attempt_end(request) {
            return Err("too_late");
        }
        let class = self.class(request);
        let is_own = request.asked == self.own(request);
        let calls = &mut self.dependencies[request.asked];
        if let Some(health) = &mut calls.health {
            request.ticket = health.admit(now / MS, request.reads());
            if request.ticket.is_none() {
                return Err(calls.held_off());
            }
        }
        if let Some(full) = calls.uses.iter().copied().find(|&used| !self.resources[used].may(class, now)) {
            request.full = Some(full);
            calls.end(request.ticket.take(), Fate::Unused, now);
            return Err("resource_full");
        }
        calls.uses.iter().for_each(|&used| self.resources[used].take(now));
        calls.attempts += 1;
        request.calls += 1;
        request.own_calls += u32::from(is_own);
        (request.called, request.waited_before) = (now, request.waited);
        request.retry_is_made = request.holds_retry;
        // Somebody was asked after it: the answer that failed is not passed on any more.
        request.cause = request.cause.map(Trouble::kept_back);
        // Its part of what was verified goes on with the call.
        request.holds_evidence = false;
        let left = self.calls_end(request) - now;
        request.cut = self.may_go_on(request, now).then(|| now + left / 10 * 6 - request.waited);
        let inbound = request.facts.attempt;
        let number = inbound + if is_own { request.own_calls - 1 } else { 0 };
        let (until, end) = (self.attempt_end(request), self.end(request));
        let most = 1 + request.retries + u32::from(request.has_stood_in);
        assert!(request.calls <= most && most <= 3, "{request:?}");
        request.phase = Phase::Head;
        Ok(Asked::Attempt { id: request.calls, dependency: request.asked, number, until, end })
    }

    /// Another dependency, if it may be asked; else the class's own alternative. What the own dependency came to first
    /// stays the cause.
    pub(super) fn elsewhere(&mut self, request: &mut Request, cause: Trouble, now: u64) -> Phase {
        self.release_retry(request);
        self.release_evidence(request);
        let cause = *request.cause.get_or_insert(cause);
        if let Some(other) = self.other(request, now) {
            let Some(evidence) = &mut self.dependencies[other].evidence else { unreachable!("no evidence") };
            evidence.in_flight += 1;
            request.evidence_taken = evidence.pace.take(now);
            (request.holds_evidence, request.has_stood_in, request.asked) = (true, true, other);
            return Phase::Placing;
        }
        self.stand_in(request, Happened::Ended(cause))
    }

    /// Who may be asked instead.
    pub(super) fn other(&self, request: &Request, now: u64) -> Option<usize> {
        let named = self.rules(request).alternative.filter(|_| request.facts.elsewhere)?;
        let other = usize::from(named.dependency.0);
        let own = &self.dependencies[self.own(request)].uses;
        let is_clear = self.dependencies[other].uses.iter().all(|used| {
            let heard = self.resources[*used].trouble(now);
            let is_unknown = own.contains(used) && heard == Heard::Nothing;
            request.full != Some(*used) && heard != Heard::Trouble && !is_unknown
        });
        let evidence = self.dependencies[other].evidence.as_ref()?;
        let is_valid = evidence.counts((self.date_ns, self.is_synchronised));
        let has_room = evidence.in_flight < evidence.concurrency && evidence.pace.may(now);
        let may = request.may_repeat() && !request.has_stood_in && now < self.calls_end(request);
        (may && is_clear && is_valid && has_room).then_some(other)
    }

    /// The copy is asked for where it may answer; everything else is decided already.
    pub(super) fn stand_in(&mut self, request: &Request, happened: Happened) -> Phase {
        let rules = self.rules(request);
        if matches!(rules.class, RouteClass::PublicRead(_)) && may_be_replaced(rules, request.facts) {
            return Phase::Loading { why: Some(happened) };
        }
        answer(expected(&self.case(request, happened, Copy::Missing)), false)
    }

    pub(super) fn known(&mut self, request: &mut Request, copy: Copy, now: u64) {
        let route = &mut self.routes[request.route];
        let is_usable = usable(copy, &route.rules).is_ok();
        route.coverage.push((now / SECOND, is_usable));
        request.phase = Phase::Placing;
    }

    /// A place may be free; if not, and the wait is over, there is none in time.
    pub(super) fn wake(&mut self, request: &mut Request, is_over: bool) {
        let class = self.class(request);
        let calls = self.dependency(request);
        if calls.has_place(class) {
            calls.in_flight += 1;
            calls.leave_queue(class);
            request.phase = Phase::Calling;
        } else if is_over {
            calls.leave_queue(class);
            request.phase = Phase::Elsewhere { cause: Trouble::not_asked("pool_timeout") };
        }
    }

    /// The wait before another call is over. While it lasted, the dependency may have got worse.
    pub(super) fn resume(&mut self, request: &mut Request, now: u64) {
        request.phase = if self.dependency(request).is_well(now) {
            Phase::Placing
        } else {
            Phase::Elsewhere { cause: Trouble::not_asked("breaker_open") }
        };
    }
}
