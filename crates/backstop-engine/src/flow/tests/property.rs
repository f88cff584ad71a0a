//! Many flows at once, in any order of events, against plain counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use crate::admission::OnRelease;
use crate::engine::Engine;
use crate::failure::{FailureKind, NotAsked};
use crate::flow::{
    AttemptId, BodyFacts, ClientFault, CopyAction, Decision, Event, Flow, HeadFacts, Places,
    Reply as Answered, State, Step, Trace,
};
use crate::policy::{
    DependencyId, Incorrect, PublicRead, Route, RouteClass, RouteId, StatusSet, UnavailableStatus,
};
use crate::snapshot::{CopyFacts, OriginLimit};
use crate::time::Mono;

use super::model::{Asked, Calls, End, Model, Reads, Request};
use super::reference::{Content, Copy, Expected};
use super::requests::{CallEnd, FAILURES, Op, Reply, StoredCopy, ops};
use super::support::{
    MAX_AGE, MS, SECOND, START, TIMED_OUT, at, copy_read_at, dependency, direct, engine, omitted, public,
    public_read, route, status_of, words,
};

struct WakeUps(AtomicU32);

impl OnRelease for WakeUps {
    fn released(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One request under way: the flow, and the same in plain numbers.
struct Live {
    flow: Flow,
    request: Request,
    asked: Asked,
    status: u16,
    decision: Option<Decision>,
}

struct World {
    engine: Arc<Engine>,
    model: Model,
    wake_ups: Vec<Arc<WakeUps>>,
    now: u64,
    begun: u64,
    live: Vec<Live>,
    /// Calls whose work goes on at their dependency, whoever waits for it.
    calls: Vec<(usize, Places)>,
}

/// Four routes at two dependencies, one with a queue; limits small enough to be met all the time.
fn rules() -> Vec<(Route, (u64, u64))> {
    let strict = PublicRead { incorrect: Incorrect::Fallback, ..public_read() };
    let dependency = DependencyId(1);
    let ms = Duration::from_millis;
    vec![
        (Route { in_flight: 3, fallback_in_flight: 1, ..route(public()) }, (3 * MS, 3 * MS)),
        (Route { deadline: ms(2000), ..route(direct()) }, (10 * MS, 0)),
        (
            Route { dependency, in_flight: 3, fallback_in_flight: 1, deadline: ms(80), ..route(omitted()) },
            (MS, MS),
        ),
        (
            Route {
                dependency,
                in_flight: 3,
                deadline: ms(40),
                declared: StatusSet::of(&[429, 500]),
                unavailable_status: UnavailableStatus::Cause,
                ..route(RouteClass::PublicRead(strict))
            },
            (MS, MS),
        ),
    ]
}

impl World {
    fn new() -> Self {
        let routes = rules();
        let dependencies = vec![dependency(2, 0), dependency(1, 20)];
        let engine = engine(6, routes.iter().map(|(rules, _)| rules.clone()).collect(), dependencies);
        let wake_ups = engine.dependencies().iter().map(|dependency| {
            let wake_ups = Arc::new(WakeUps(AtomicU32::new(0)));
            dependency.in_flight.notify_with(Arc::<WakeUps>::clone(&wake_ups));
            wake_ups
        });
        let wake_ups = wake_ups.collect();
        let routes = routes.into_iter().map(|(rules, shares_ns)| Reads {
            rules,
            shares_ns,
            in_flight: 0,
            lane: 0,
            counted: BTreeMap::new(),
            ages: 0,
            coverage: Vec::new(),
        });
        let calls = |places, queue_ns| Calls { places, queue_ns, ..Calls::default() };
        let model = Model {
            places: 6,
            in_flight: 0,
            draining: false,
            routes: routes.collect(),
            dependencies: vec![calls(2, 0), calls(1, 20 * MS)],
        };
        Self { engine, model, wake_ups, now: START, begun: 0, live: Vec::new(), calls: Vec::new() }
    }

    fn apply(&mut self, op: Op) {
        let undecided = |live: &Live| live.decision.is_none();
        match op {
            Op::Begin { route, facts } => {
                let id = RouteId(route as u16);
                let flow = Flow::begin(&self.engine, id, facts, at(self.now), self.begun, Trace::off());
                let request = Request::new(route, facts, self.now);
                self.begun += 1;
                self.live.push(Live { flow, request, asked: Asked::Peek, status: 0, decision: None });
                self.step(self.live.len() - 1);
            }
            Op::Reply { slot, reply } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    self.reply(slot, &reply);
                    self.step(slot);
                }
            }
            Op::Late { slot, other, kind } => {
                if let Some(slot) = self.pick(slot, |_| true) {
                    self.late(slot, other, kind);
                }
            }
            Op::Waited { slot, ns } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    let live = &mut self.live[slot];
                    live.request.waited(ns);
                    live.flow.on(Event::ClientWaited(Duration::from_nanos(ns)), at(self.now));
                }
            }
            Op::Slow { slot } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    self.model.client_slow(&mut self.live[slot].request);
                    self.live[slot].flow.on(Event::ClientFault(ClientFault::Slow), at(self.now));
                    self.step(slot);
                }
            }
            Op::Leave { slot } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    let mut live = self.live.swap_remove(slot);
                    self.model.abandon(&mut live.request);
                }
            }
            Op::Settle { slot, end, failure } => {
                if let Some(slot) = self.pick(slot, |live| live.decision.is_some()) {
                    self.settle(slot, end, failure);
                }
            }
            Op::EndCall { slot } => {
                if !self.calls.is_empty() {
                    let (dependency, permit) = self.calls.swap_remove(slot % self.calls.len());
                    drop(permit);
                    self.model.dependencies[dependency].give_back();
                }
            }
            Op::Pass { ns } => self.now += ns,
            Op::Drain => {
                self.engine.drain();
                self.model.draining = true;
            }
        }
        self.check();
    }

    fn pick(&self, slot: usize, fits: impl Fn(&Live) -> bool) -> Option<usize> {
        let fitting: Vec<_> = (0..self.live.len()).filter(|&index| fits(&self.live[index])).collect();
        (!fitting.is_empty()).then(|| fitting[slot % fitting.len()])
    }

    /// Asks the flow and the model, and holds them to the same answer.
    fn step(&mut self, slot: usize) {
        let live = &mut self.live[slot];
        let expected = self.model.step(&mut live.request, self.now);
        let end = live.flow.deadline().end().as_ns();
        let asked = match live.flow.step(at(self.now)) {
            Step::Peek => Asked::Peek,
            Step::Wait { until, .. } => Asked::Wait { until: until.as_ns() },
            Step::Pause { .. } => unreachable!("no route of the model retries"),
            Step::Parts { .. } => unreachable!("no route of the model is composed"),
            Step::Lookup { .. } | Step::Join { .. } => unreachable!("no route of the model has a cache"),
            Step::Attempt(call) => {
                assert!(self.now < live.flow.deadline().attempt_end().as_ns(), "begun after its share");
                self.calls.push((usize::from(call.dependency.0), call.places));
                Asked::Attempt { id: call.id.0, until: call.until.as_ns(), end: call.end.as_ns() }
            }
            Step::Collect { attempt, until, .. } => Asked::Collect { id: attempt.0, until: until.as_ns() },
            Step::Load { until } => Asked::Load { until: until.as_ns() },
            Step::Done(decision) => {
                let told = Expected {
                    words: words(&decision),
                    status: status_of(&decision.reply, live.status),
                    copy: decision.copy,
                    age_ns: decision.account.age.map(|age| age.as_nanos()),
                };
                if let Answered::Copy { age } = decision.reply {
                    assert!(age <= MAX_AGE, "{age:?} is too old");
                    assert_eq!(decision.copy, CopyAction::Keep, "serving renews nothing");
                }
                let until = decision.until.as_ns();
                live.decision = Some(decision);
                Asked::Done { expected: told, until }
            }
        };
        assert_eq!(asked, expected, "{:?}", live.request);
        if let Asked::Wait { until } | Asked::Collect { until, .. } | Asked::Load { until } = asked {
            assert!(until <= end, "a step longer than the request");
        }
        live.asked = asked;
    }

    /// What was asked for comes.
    fn reply(&mut self, slot: usize, reply: &Reply) {
        let now = at(self.now);
        let (stored, copy) = stored(reply.copy, self.now);
        let live = &mut self.live[slot];
        let request = &mut live.request;
        let attempt = AttemptId(request.call());
        let (failure, word) = FAILURES[reply.failure];
        let reached = failure.sent == crate::failure::Sent::Maybe;
        let event = match live.asked {
            Asked::Peek => {
                let known = stored.ok().flatten();
                let copy = if known.is_none() { Copy::Missing } else { copy };
                self.model.known(request, copy, self.now);
                Event::Known(known)
            }
            Asked::Wait { .. } => {
                self.model.wake(request, reply.is_over);
                if reply.is_over { Event::TimeUp(None) } else { Event::Released }
            }
            Asked::Load { .. } => {
                self.model.copy(request, copy, self.now);
                Event::Copy(stored)
            }
            Asked::Attempt { .. } | Asked::Collect { .. } => {
                let is_collecting = matches!(live.asked, Asked::Collect { .. });
                match if is_collecting { reply.body } else { reply.call } {
                    CallEnd::Failure => {
                        self.model.failed(request, word, reached);
                        Event::Failed { attempt, failure }
                    }
                    CallEnd::TimeUp => {
                        self.model.failed(request, "read_timeout", true);
                        Event::TimeUp(if reply.is_over { None } else { Some(TIMED_OUT) })
                    }
                    CallEnd::Error => {
                        self.model.erred(request);
                        Event::Propagated { attempt }
                    }
                    CallEnd::Answer if is_collecting => {
                        self.model.body(request, reply.content);
                        let body = match reply.content {
                            Content::Whole { correct, storable } => BodyFacts::Whole { correct, storable },
                            Content::Broken => BodyFacts::Broken,
                            Content::TooLarge | Content::None => BodyFacts::TooLarge,
                        };
                        Event::Body { attempt, body }
                    }
                    CallEnd::Answer => {
                        let status = reply.status;
                        let has_body = reply.has_body && !matches!(status, 204 | 304);
                        let degraded = reply.degraded_s.map(Duration::from_secs);
                        self.model.head(request, status, has_body, degraded.map(|age| age.as_nanos()));
                        live.status = status;
                        Event::Head {
                            attempt,
                            head: HeadFacts { status, has_body, degraded, ..HeadFacts::default() },
                        }
                    }
                }
            }
            Asked::Done { .. } => unreachable!("decided"),
        };
        live.flow.on(event, now);
    }

    fn late(&mut self, slot: usize, other: u32, kind: usize) {
        let live = &mut self.live[slot];
        let attempt = AttemptId(live.request.call() + other);
        let event = match kind {
            0 => Event::Head {
                attempt,
                head: HeadFacts { status: 200, has_body: true, degraded: None, ..HeadFacts::default() },
            },
            1 => Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } },
            2 => Event::Failed { attempt, failure: TIMED_OUT },
            _ => Event::Propagated { attempt },
        };
        live.flow.on(event, at(self.now));
        let dependency = self.model.routes[live.request.route].rules.dependency;
        self.model.dependencies[usize::from(dependency.0)].late += 1;
    }

    fn settle(&mut self, slot: usize, end: End, failure: usize) {
        let mut live = self.live.swap_remove(slot);
        let Some(decision) = live.decision.take() else { return };
        let (failure, word) = FAILURES[failure];
        self.model.settle(&mut live.request, end, word);
        match end {
            End::Complete => decision.settlement.complete(),
            End::BreakOff => decision.settlement.break_off(failure),
            End::ClientLeaves => drop(decision),
        }
    }

    /// Every number, after every event.
    fn check(&self) {
        assert_eq!(self.engine.process().in_flight(), self.model.in_flight);
        assert!(self.model.in_flight <= 6);
        for (route, expected) in self.engine.routes().iter().zip(&self.model.routes) {
            let in_flight = (route.in_flight.in_flight(), route.fallback_lane.in_flight());
            assert_eq!(in_flight, (expected.in_flight, expected.lane));
            assert!(in_flight.0 <= route.rules.in_flight && in_flight.1 <= route.rules.fallback_in_flight);
            let present = self.now / SECOND;
            let window: Vec<_> =
                expected.coverage.iter().filter(|(second, _)| present - second < 60).collect();
            let usable = window.iter().filter(|(_, usable)| *usable).count() as u64;
            let count = route.coverage.count(Mono::from_ns(self.now));
            assert_eq!((count.usable, count.total), (usable, window.len() as u64));
        }
        for ((dependency, expected), woken) in
            self.engine.dependencies().iter().zip(&self.model.dependencies).zip(&self.wake_ups)
        {
            let limit = &dependency.in_flight;
            assert_eq!((limit.in_flight(), limit.waiting()), (expected.in_flight, expected.waiting));
            assert!(expected.in_flight <= expected.places);
            assert_eq!(woken.0.load(Ordering::Relaxed), expected.wake_ups);
            let calls = &dependency.tally;
            assert_eq!(
                [calls.attempts(), calls.answers(), calls.abandoned(), calls.late_results()],
                [expected.attempts, expected.answers, expected.abandoned, expected.late]
            );
        }
    }

    /// Everybody leaves: nothing is in flight, and every request was counted exactly once.
    fn end(mut self) {
        while !self.live.is_empty() {
            if self.live[0].decision.is_some() {
                self.settle(0, End::ClientLeaves, 0);
            } else {
                self.apply(Op::Leave { slot: 0 });
            }
        }
        while !self.calls.is_empty() {
            self.apply(Op::EndCall { slot: 0 });
        }
        self.check();
        assert_eq!(self.engine.process().in_flight(), 0);
        let mut requests = 0;
        for (route, expected) in self.engine.routes().iter().zip(&self.model.routes) {
            assert_eq!((route.in_flight.in_flight(), route.fallback_lane.in_flight()), (0, 0));
            let counts = route.tally.requests();
            requests += counts.iter().map(|count| count.count).sum::<u64>();
            let counted: BTreeMap<_, _> =
                counts.iter().map(|c| ((c.outcome.token(), c.source.token(), c.reason), c.count)).collect();
            assert_eq!(counted, expected.counted);
            assert_eq!(route.tally.ages().0.iter().sum::<u64>(), expected.ages);
        }
        assert_eq!(requests, self.begun, "each request once");
        for (dependency, expected) in self.engine.dependencies().iter().zip(&self.model.dependencies) {
            assert_eq!((dependency.in_flight.in_flight(), dependency.in_flight.waiting()), (0, 0));
            let failures: BTreeMap<_, _> = FailureKind::TOKENS
                .into_iter()
                .zip(dependency.tally.failures())
                .filter(|(_, count)| *count > 0)
                .collect();
            assert_eq!(failures, expected.failures);
            let ends = expected.answers + expected.abandoned + failures.values().sum::<u64>();
            assert_eq!(dependency.tally.attempts(), ends, "each call once");
        }
    }
}

/// What the store says, and what the reference makes of it.
fn stored(copy: StoredCopy, now: u64) -> (Result<Option<CopyFacts>, ()>, Copy) {
    match copy {
        StoredCopy::Missing => (Ok(None), Copy::Missing),
        StoredCopy::Unreadable => (Err(()), Copy::Unreadable),
        StoredCopy::Aged { ns, forbidden } => {
            let origin_limit = if forbidden { OriginLimit::Never } else { OriginLimit::Unlimited };
            let read_at = now.checked_add_signed(-ns).unwrap();
            let facts = CopyFacts { origin_limit, ..copy_read_at(read_at) };
            (Ok(Some(facts)), Copy::Aged { ns: i128::from(ns), forbidden })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// At every step each number is the plain one, every step is the expected one, and at the end all is given back.
    #[test]
    fn any_order_of_events_keeps_every_count(ops in ops()) {
        let mut world = World::new();
        for op in ops {
            world.apply(op);
        }
        world.end();
    }

    /// A driver that says anything at any time gets no panic, no place beyond a limit, and one count per request.
    #[test]
    fn no_sequence_of_events_breaks_a_flow(
        route in 0..4_u16,
        events in proptest::collection::vec((0..12_usize, 0..3_u32, 0..400_u64), 0..40),
    ) {
        let World { engine, .. } = World::new();
        let facts = super::support::GET;
        let mut flow = Flow::begin(&engine, RouteId(route), facts, at(START), 0, Trace::on());
        let mut held = Vec::new();
        for (kind, attempt, ms) in events {
            let attempt = AttemptId(attempt);
            flow.on(anything(kind, attempt, ms), at(START + ms * MS));
            // Asking an attempt that is under way, or asking after the end, is the one thing that a driver may not do.
            if !matches!(flow.state, State::AwaitHead { .. } | State::Done) {
                held.push(flow.step(at(START + ms * MS)));
            }
            prop_assert!(engine.process().in_flight() <= 1);
            prop_assert!(engine.dependencies().iter().all(|dependency| dependency.in_flight.in_flight() <= 1));
        }
        drop((flow, held));
        prop_assert_eq!(engine.process().in_flight(), 0);
        prop_assert!(engine.dependencies().iter().all(|d| d.in_flight.in_flight() + d.in_flight.waiting() == 0));
        let counts = engine.route(RouteId(route)).tally.requests();
        prop_assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), 1);
    }
}

/// Any event at all.
fn anything(kind: usize, attempt: AttemptId, ms: u64) -> Event {
    let head = |status| HeadFacts { status, has_body: status == 200, degraded: None, ..HeadFacts::default() };
    match kind {
        0 => Event::Known(Some(copy_read_at(START))),
        1 => Event::Released,
        2 => Event::TimeUp(None),
        3 => Event::Head { attempt, head: head(200) },
        4 => Event::Head { attempt, head: head(503) },
        5 => Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } },
        6 => Event::Failed { attempt, failure: TIMED_OUT },
        7 => Event::Propagated { attempt },
        8 => Event::Copy(Ok(Some(copy_read_at(START)))),
        9 => Event::ClientWaited(Duration::from_millis(ms)),
        10 => Event::NotAsked { attempt, reason: NotAsked::PoolTimeout },
        _ => Event::ClientFault(ClientFault::Slow),
    }
}
