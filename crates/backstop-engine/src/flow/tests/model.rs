//! Many requests in plain counters: what is in flight, what each is asked next, and what has been counted.
//!
//! One thread, no atomics, no permits: a place is taken by adding one and given back by subtracting one.

use std::collections::BTreeMap;

use crate::flow::{CopyUse, Method, RequestFacts};
use crate::policy::{Route, RouteClass};

use super::reference::{
    Case, Content, Copy, Expected, Happened, expected, held_back, may_be_replaced, reads, trouble, usable,
};
use super::support::SECOND;

type Words = (&'static str, &'static str, &'static str);

/// One dependency's numbers.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) places: u32,
    pub(super) queue_ns: u64,
    pub(super) in_flight: u32,
    pub(super) waiting: u32,
    pub(super) wake_ups: u32,
    pub(super) attempts: u64,
    pub(super) answers: u64,
    pub(super) abandoned: u64,
    pub(super) late: u64,
    pub(super) failures: BTreeMap<&'static str, u64>,
}

impl Calls {
    fn wake(&mut self) {
        self.wake_ups += u32::from(self.waiting > 0);
    }

    fn leave_queue(&mut self) {
        self.waiting -= 1;
        self.wake();
    }

    pub(super) fn give_back(&mut self) {
        self.in_flight -= 1;
        self.wake();
    }

    fn fail(&mut self, word: &'static str) {
        *self.failures.entry(word).or_default() += 1;
    }
}

/// One route's numbers.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) rules: Route,
    /// What is kept of the deadline for the reply, and before that for an alternative.
    pub(super) shares_ns: (u64, u64),
    pub(super) in_flight: u32,
    pub(super) lane: u32,
    pub(super) counted: BTreeMap<Words, u64>,
    pub(super) ages: u64,
    /// Every read: when, and whether a usable copy existed.
    pub(super) coverage: Vec<(u64, bool)>,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) places: u32,
    pub(super) in_flight: u32,
    pub(super) draining: bool,
    pub(super) routes: Vec<Reads>,
    pub(super) dependencies: Vec<Calls>,
}

/// One request's numbers.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) route: usize,
    facts: RequestFacts,
    begun: u64,
    waited: u64,
    calls: u32,
    holds_process: bool,
    holds_route: bool,
    holds_lane: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Arriving,
    Known,
    Placing,
    Queueing { until: u64 },
    Calling,
    Head,
    Body { status: u16, degraded_ns: Option<u128> },
    Loading { why: Option<Happened> },
    Answering(Answer),
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    expected: Expected,
    /// Its dependency is counted when the answer is through.
    streams: bool,
}

/// What a request is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Peek,
    Wait { until: u64 },
    Attempt { id: u32, until: u64, end: u64 },
    Collect { id: u32, until: u64 },
    Load { until: u64 },
    Done { expected: Expected, until: u64 },
}

/// How a decided request ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Complete,
    BreakOff,
    ClientLeaves,
}

impl Request {
    pub(super) const fn new(route: usize, facts: RequestFacts, begun: u64) -> Self {
        Self {
            route,
            facts,
            begun,
            waited: 0,
            calls: 0,
            holds_process: false,
            holds_route: false,
            holds_lane: false,
            phase: Phase::Arriving,
        }
    }

    pub(super) const fn call(&self) -> u32 {
        self.calls
    }

    /// The client was slow, and the deadline moves back by that.
    pub(super) fn waited(&mut self, sum_ns: u64) {
        self.waited = self.waited.max(sum_ns);
    }
}

impl Model {
    fn dependency(&mut self, request: &Request) -> &mut Calls {
        let id = self.routes[request.route].rules.dependency;
        &mut self.dependencies[usize::from(id.0)]
    }

    fn end(&self, request: &Request) -> u64 {
        let total = self.routes[request.route].rules.deadline.as_nanos() as u64;
        request.begun + request.waited + total
    }

    fn attempt_end(&self, request: &Request) -> u64 {
        let Reads { shares_ns: (reply, alternative), .. } = self.routes[request.route];
        self.end(request) - reply - alternative
    }

    fn case(&self, request: &Request, happened: Happened, copy: Copy) -> Case<'_> {
        Case { route: &self.routes[request.route].rules, facts: request.facts, happened, copy }
    }

    /// What the request is asked next.
    pub(super) fn step(&mut self, request: &mut Request, now: u64) -> Asked {
        loop {
            request.phase = match request.phase {
                Phase::Arriving => self.admit(request, now),
                Phase::Placing => self.place(request, now),
                Phase::Calling if now < self.attempt_end(request) => {
                    request.calls += 1;
                    request.phase = Phase::Head;
                    self.dependency(request).attempts += 1;
                    let (until, end) = (self.attempt_end(request), self.end(request));
                    return Asked::Attempt { id: request.calls, until, end };
                }
                Phase::Calling => {
                    self.dependency(request).give_back();
                    self.not_asked(request, "too_late")
                }
                Phase::Known => return Asked::Peek,
                Phase::Queueing { until } => return Asked::Wait { until },
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

    fn admit(&mut self, request: &mut Request, now: u64) -> Phase {
        if self.draining {
            return refused("draining", 503);
        }
        let process_is_full = self.in_flight == self.places;
        let places = self.routes[request.route].rules.in_flight;
        let route = &mut self.routes[request.route];
        if process_is_full || route.in_flight == places {
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

    fn place(&mut self, request: &Request, now: u64) -> Phase {
        let attempt_end = self.attempt_end(request);
        if now >= attempt_end {
            return self.not_asked(request, "too_late");
        }
        let calls = self.dependency(request);
        if calls.waiting == 0 && calls.in_flight < calls.places {
            calls.in_flight += 1;
            return Phase::Calling;
        }
        if calls.queue_ns == 0 {
            return self.not_asked(request, "dependency_full");
        }
        calls.waiting += 1;
        Phase::Queueing { until: attempt_end.min(now + calls.queue_ns) }
    }

    fn not_asked(&mut self, request: &Request, word: &'static str) -> Phase {
        self.stand_in(request, Happened::NotAsked { word })
    }

    /// The copy is asked for where it may answer; everything else is decided already.
    fn stand_in(&mut self, request: &Request, happened: Happened) -> Phase {
        let rules = &self.routes[request.route].rules;
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
        let calls = self.dependency(request);
        if calls.in_flight < calls.places {
            calls.in_flight += 1;
            calls.leave_queue();
            request.phase = Phase::Calling;
        } else if is_over {
            calls.leave_queue();
            request.phase = self.not_asked(request, "pool_timeout");
        }
    }

    pub(super) fn head(
        &mut self,
        request: &mut Request,
        status: u16,
        has_body: bool,
        degraded_ns: Option<u128>,
    ) {
        let content = if has_body { Content::TooLarge } else { Content::None };
        let happened = Happened::Answered { status, degraded_ns, content };
        let troubled = trouble(&self.case(request, happened, Copy::Missing));
        if let Some(troubled) = troubled {
            self.dependency(request).fail(troubled.word);
            request.phase = self.stand_in(request, happened);
        } else if held_back(&self.routes[request.route].rules, request.facts, status, content) {
            request.phase = Phase::Body { status, degraded_ns };
        } else {
            request.phase = answer(expected(&self.case(request, happened, Copy::Missing)), true);
        }
    }

    pub(super) fn body(&mut self, request: &mut Request, content: Content) {
        let Phase::Body { status, degraded_ns } = request.phase else { unreachable!("no body asked for") };
        let happened = Happened::Answered { status, degraded_ns, content };
        let troubled = trouble(&self.case(request, happened, Copy::Missing));
        if let Some(troubled) = troubled {
            self.dependency(request).fail(troubled.word);
            request.phase = self.stand_in(request, happened);
            return;
        }
        let streams = content == Content::TooLarge;
        self.dependency(request).answers += u64::from(!streams);
        request.phase = answer(expected(&self.case(request, happened, Copy::Missing)), streams);
    }

    pub(super) fn failed(&mut self, request: &mut Request, word: &'static str, reached: bool) {
        self.dependency(request).fail(word);
        request.phase = self.stand_in(request, Happened::Failed { word, reached });
    }

    pub(super) fn erred(&mut self, request: &mut Request) {
        self.dependency(request).answers += 1;
        request.phase = answer(expected(&self.case(request, Happened::Erred, Copy::Missing)), false);
    }

    pub(super) fn copy(&mut self, request: &mut Request, copy: Copy, now: u64) {
        let Phase::Loading { why } = request.phase else { unreachable!("no copy asked for") };
        if why.is_none() {
            let route = &mut self.routes[request.route];
            let is_usable = usable(copy, &route.rules).is_ok();
            route.coverage.push((now / SECOND, is_usable));
        }
        let rules = &self.routes[request.route].rules;
        request.phase = match (why, usable(copy, rules)) {
            (Some(happened), _) => answer(expected(&self.case(request, happened, copy)), false),
            (None, Ok(age_ns)) => {
                let served = Expected::new(("fallback", "snapshot", "capacity"), 200);
                answer(Expected { age_ns: Some(age_ns), ..served }, false)
            }
            (None, Err(_)) => refused("capacity", 503),
        };
    }

    /// The client did not send its request in time.
    pub(super) fn client_slow(&mut self, request: &mut Request) {
        let is_asked = matches!(request.phase, Phase::Head | Phase::Body { .. });
        self.leave(request);
        let mut slow = Expected::new(("rejected", "none", "client_slow"), 408);
        if is_asked && request.facts.method == Method::Unsafe {
            slow.copy = crate::flow::CopyAction::WithdrawUnsettled;
        }
        request.phase = answer(slow, false);
    }

    /// Whatever the request was waiting for goes on without it.
    fn leave(&mut self, request: &Request) {
        let calls = self.dependency(request);
        match request.phase {
            Phase::Queueing { .. } => calls.leave_queue(),
            Phase::Head | Phase::Body { .. } => calls.abandoned += 1,
            _ => {}
        }
    }

    /// The client left before there was a decision.
    pub(super) fn abandon(&mut self, request: &mut Request) {
        self.leave(request);
        self.count(request, ("abandoned", "none", "client_left"));
        self.give_back(request);
    }

    /// The answer is through, broke off, or nobody is left to read it.
    pub(super) fn settle(&mut self, request: &mut Request, end: End, failure: &'static str) {
        let Phase::Answering(Answer { expected, streams }) = request.phase else { unreachable!("undecided") };
        let (_, source, _) = expected.words;
        if streams {
            let calls = self.dependency(request);
            match end {
                End::Complete => calls.answers += 1,
                End::BreakOff => calls.fail(failure),
                End::ClientLeaves => calls.abandoned += 1,
            }
        }
        match end {
            End::Complete => {
                let served = expected.words.0 == "fallback" && expected.age_ns.is_some();
                self.routes[request.route].ages += u64::from(served);
                self.count(request, expected.words);
            }
            End::BreakOff => self.count(request, ("failed", source, failure)),
            End::ClientLeaves => self.count(request, ("abandoned", source, "client_left")),
        }
        self.give_back(request);
    }

    fn count(&mut self, request: &Request, words: Words) {
        *self.routes[request.route].counted.entry(words).or_default() += 1;
    }

    fn give_back(&mut self, request: &mut Request) {
        let route = &mut self.routes[request.route];
        route.in_flight -= u32::from(request.holds_route);
        route.lane -= u32::from(request.holds_lane);
        self.in_flight -= u32::from(request.holds_process);
        (request.holds_process, request.holds_route, request.holds_lane) = (false, false, false);
        request.phase = Phase::Over;
    }
}

const fn answer(expected: Expected, streams: bool) -> Phase {
    Phase::Answering(Answer { expected, streams })
}

const fn refused(word: &'static str, status: u16) -> Phase {
    answer(Expected::new(("rejected", "none", word), status), false)
}
