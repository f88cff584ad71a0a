//! Many flows at once beside the same in plain counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::admission::{ClassShare, OnRelease};
use crate::engine::Engine;
use crate::failure::{NotAsked, Sent};
use crate::flow::{
    AttemptId, BodyFacts, ClientFault, CopyAction, Decision, Event, Flow, HeadFacts, Places,
    Reply as Answered, RequestFacts, State, Step, Trace,
};
use crate::health::tests::{Admitted, Seen};
use crate::policy::RouteId;
use crate::snapshot::{CopyFacts, OriginLimit};
use crate::time::{Mono, Now, Wall, WallTrust};

use super::reference::{Content, Copy, Expected, Trouble};
use super::request::{Asked, End, Failing, Model, Request, Said};
use super::requests::{CallEnd, FAILURES, Op, Reply, StoredCopy, is_of_a_moment};
use super::support::{GET, MAX_AGE, MS, TIMED_OUT, at, copy_read_at, status_of, words};

pub(super) struct WakeUps(pub(super) AtomicU32);

impl OnRelease for WakeUps {
    fn released(&self, _: ClassShare) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One request under way: the flow, and the same in plain numbers.
pub(super) struct Live {
    flow: Flow,
    request: Request,
    asked: Asked,
    status: u16,
    pub(super) decision: Option<Decision>,
}

pub(super) struct World {
    pub(super) engine: Arc<Engine>,
    pub(super) model: Model,
    pub(super) wake_ups: Vec<Arc<WakeUps>>,
    pub(super) now: u64,
    pub(super) begun: u64,
    pub(super) live: Vec<Live>,
    pub(super) calls: Vec<Call>,
}

/// A call whose work goes on at its dependency, whoever waits for it.
pub(super) struct Call {
    dependency: usize,
    /// It takes its part of what was verified.
    by_evidence: bool,
    ticket: Option<Admitted>,
    places: Places,
}

impl World {
    pub(super) fn moment(&self) -> Now {
        let trust = [WallTrust::Unsynchronised, WallTrust::Synchronised];
        let wall_trust = trust[usize::from(self.model.is_synchronised)];
        Now { wall: Wall::from_unix_ns(self.model.date_ns), wall_trust, ..at(self.now) }
    }

    pub(super) fn apply(&mut self, op: &Op) {
        let undecided = |live: &Live| live.decision.is_none();
        match op.clone() {
            Op::Begin { route, facts } => {
                self.begin(route, facts);
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
                    let now = self.moment();
                    let live = &mut self.live[slot];
                    live.request.waited(ns);
                    live.flow.on(Event::ClientWaited(Duration::from_nanos(ns)), now);
                }
            }
            Op::Slow { slot } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    let now = self.moment();
                    self.model.client_slow(&mut self.live[slot].request, self.now);
                    self.live[slot].flow.on(Event::ClientFault(ClientFault::Slow), now);
                    self.step(slot);
                }
            }
            Op::Leave { slot } => {
                if let Some(slot) = self.pick(slot, undecided) {
                    let mut live = self.live.swap_remove(slot);
                    live.flow.given_up(Mono::from_ns(self.now));
                    self.model.abandon(&mut live.request, self.now);
                }
            }
            Op::Settle { slot, end, failure } => {
                if let Some(slot) = self.pick(slot, |live| live.decision.is_some()) {
                    self.settle(slot, end, failure);
                }
            }
            Op::EndCall { slot } => {
                if !self.calls.is_empty() {
                    self.end_call(slot % self.calls.len());
                }
            }
            Op::Pass { ns } => self.now += ns,
            Op::Drain => {
                self.engine.drain();
                self.model.draining = true;
            }
            Op::Crowd { route, count, reply } => (0..count).for_each(|_| self.whole(route, &reply)),
            Op::Recover { dependency, route } => {
                self.compare();
                if let Some(up) =
                    self.engine.dependencies()[dependency].health.known_up(Mono::from_ns(self.now))
                {
                    self.now = self.now.max(up.as_ns().div_ceil(MS) * MS);
                    (0..2).for_each(|_| self.whole(route, &Reply::GOOD));
                }
            }
            Op::Order { dependency, kind } => self.order(dependency, kind),
            Op::Reconfigure { scope, which, places } => self.reconfigure(scope, which, places),
            Op::Date { ns, is_synchronised } => {
                (self.model.date_ns, self.model.is_synchronised) = (ns, is_synchronised);
            }
        }
        if !matches!(op, Op::Pass { .. }) {
            // A wait alone is noticed by nobody: what is due is done by whoever comes next.
            self.compare();
        }
        self.check();
    }

    fn begin(&mut self, route: usize, facts: RequestFacts) {
        let id = RouteId(route as u16);
        let flow =
            Flow::begin(&self.engine, id, facts, self.moment(), self.begun * 0x9e37_79b9, Trace::off());
        let date = (self.model.date_ns, self.model.is_synchronised);
        let request = Request::new(route, facts, self.now, date);
        self.begun += 1;
        self.live.push(Live { flow, request, asked: Asked::Peek, status: 0, decision: None });
        self.step(self.live.len() - 1);
    }

    /// One read from its beginning to its end, which nothing else comes between.
    fn whole(&mut self, route: usize, reply: &Reply) {
        let calls = self.calls.len();
        self.begin(route, GET);
        let slot = self.live.len() - 1;
        let over = Reply { is_over: true, ..reply.clone() };
        while self.live[slot].decision.is_none() {
            self.reply(slot, &over);
            self.step(slot);
        }
        self.settle(slot, End::Complete, 0);
        while self.calls.len() > calls {
            self.end_call(calls);
        }
    }

    pub(super) fn end_call(&mut self, index: usize) {
        let Call { dependency, by_evidence, ticket, places } = self.calls.swap_remove(index);
        drop(places);
        self.model.end_call(dependency, by_evidence, ticket);
    }

    fn order(&mut self, dependency: usize, kind: usize) {
        let health = &self.engine.dependencies()[dependency].health;
        let Some(reference) = &mut self.model.dependencies[dependency].health else { return };
        let now = Mono::from_ns(self.now);
        let to = match kind {
            0 => {
                health.force_open(now);
                Seen::ForcedOpen
            }
            1 => {
                health.force_closed(now);
                Seen::ForcedClosed
            }
            _ => {
                health.release(now);
                Seen::Closed
            }
        };
        reference.force(to, self.now / MS);
    }

    fn reconfigure(&mut self, scope: usize, which: usize, places: u32) {
        let (engine, model) = (&self.engine, &mut self.model);
        match scope {
            0 => {
                engine.process().reconfigure(places);
                model.places = places;
            }
            1 => {
                let which = which % model.routes.len();
                engine.routes()[which].in_flight.reconfigure(places);
                model.routes[which].places = places;
            }
            2 => {
                let which = which % model.dependencies.len();
                engine.dependencies()[which].in_flight.reconfigure(places);
                model.dependencies[which].places = places;
                model.dependencies[which].wake();
            }
            _ => {
                engine.resources()[0].reconfigure(Mono::from_ns(self.now), Some(places), None);
                model.resources[0].places = Some(places);
            }
        }
    }

    fn pick(&self, slot: usize, fits: impl Fn(&Live) -> bool) -> Option<usize> {
        let fitting: Vec<_> = (0..self.live.len()).filter(|&index| fits(&self.live[index])).collect();
        (!fitting.is_empty()).then(|| fitting[slot % fitting.len()])
    }

    /// Asks the flow and the model, and holds them to the same answer.
    fn step(&mut self, slot: usize) {
        let now = self.moment();
        let live = &mut self.live[slot];
        let expected = self.model.step(&mut live.request, self.now);
        let end = live.flow.deadline().end().as_ns();
        let asked = match live.flow.step(now) {
            Step::Peek => Asked::Peek,
            Step::Wait { until, class, dependency } => {
                assert_eq!(usize::from(dependency.0), live.request.asked());
                Asked::Wait { until: until.as_ns(), class }
            }
            Step::Pause { until } => Asked::Pause { until: until.as_ns() },
            Step::Attempt(call) => {
                assert!(self.now < live.flow.deadline().attempt_end().as_ns(), "begun after its share");
                let dependency = usize::from(call.dependency.0);
                let by_evidence = live.request.has_stood_in();
                let ticket = live.request.ticket;
                self.model.hold_probe(dependency, ticket);
                self.calls.push(Call { dependency, by_evidence, ticket, places: call.places });
                let (until, end) = (call.until.as_ns(), call.end.as_ns());
                Asked::Attempt { id: call.id.0, dependency, number: call.number, until, end }
            }
            Step::Collect { attempt, until, .. } => Asked::Collect { id: attempt.0, until: until.as_ns() },
            Step::Load { until } => Asked::Load { until: until.as_ns() },
            Step::Parts { .. } => unreachable!("no route of the model is composed"),
            Step::Lookup { .. } | Step::Join { .. } => unreachable!("no route of the model has a cache"),
            Step::Authorize { .. } => unreachable!("no route of the model has an authorizer"),
            Step::Consult { .. } | Step::Record { .. } => {
                unreachable!("no route of the model has operations")
            }
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
        if let Asked::Wait { until, .. } | Asked::Collect { until, .. } | Asked::Load { until } = asked {
            assert!(until <= end, "a step longer than the request");
        }
        live.asked = asked;
    }

    /// What was asked for comes.
    fn reply(&mut self, slot: usize, reply: &Reply) {
        let now = self.moment();
        let (stored, copy) = stored(reply.copy, self.now);
        let asked = self.live[slot].asked;
        match asked {
            Asked::Attempt { .. } | Asked::Collect { .. } => {
                return self.called(slot, reply, matches!(asked, Asked::Collect { .. }));
            }
            _ => {}
        }
        let live = &mut self.live[slot];
        let request = &mut live.request;
        let event = match asked {
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
            Asked::Pause { .. } => {
                self.model.resume(request, self.now);
                Event::TimeUp(None)
            }
            Asked::Load { .. } => {
                self.model.copy(request, copy, self.now);
                Event::Copy(stored)
            }
            Asked::Attempt { .. } | Asked::Collect { .. } | Asked::Done { .. } => unreachable!("{asked:?}"),
        };
        live.flow.on(event, now);
    }

    /// Something comes of a call, or of the collection of its answer.
    fn called(&mut self, slot: usize, reply: &Reply, is_collecting: bool) {
        let (now, ns) = (self.moment(), self.now);
        let live = &mut self.live[slot];
        let attempt = AttemptId(live.request.call());
        let status = reply.status;
        let has_body = reply.has_body && !matches!(status, 204 | 304);
        let degraded = reply.degraded_s.map(Duration::from_secs);
        let [retry_after, database_wait] =
            [reply.retry_after_ms, reply.database_wait_ms].map(|ms| ms.map(Duration::from_millis));
        let end = if is_collecting { reply.body } else { reply.call };
        let (failure, word) = FAILURES[reply.failure];
        let event = match end {
            CallEnd::Failure => Event::Failed { attempt, failure },
            CallEnd::TimeUp => Event::TimeUp(if reply.is_over { None } else { Some(TIMED_OUT) }),
            CallEnd::Error => Event::Propagated { attempt },
            CallEnd::NotBegun => Event::NotAsked { attempt, reason: NotAsked::PoolTimeout },
            CallEnd::Answer if is_collecting => {
                let body = match reply.content {
                    Content::Whole { correct, storable } => BodyFacts::Whole { correct, storable },
                    Content::Broken => BodyFacts::Broken,
                    Content::TooLarge | Content::None => BodyFacts::TooLarge,
                };
                Event::Body { attempt, body }
            }
            CallEnd::Answer => {
                live.status = status;
                let head = HeadFacts { status, has_body, degraded, retry_after, database_wait };
                Event::Head { attempt, head }
            }
        };
        live.flow.on(event, now);
        let paused = match live.flow.state {
            State::Pause { until } => Some(until.as_ns()),
            _ => None,
        };
        let request = &mut live.request;
        let failing = |word, reached, of_a_moment| Failing {
            trouble: Trouble::failed(word, reached),
            of_a_moment,
            is_late: word == "read_timeout",
            is_answer: false,
            retry_after_ns: None,
        };
        let model = &mut self.model;
        match end {
            CallEnd::Failure => {
                let failing = failing(word, failure.sent == Sent::Maybe, is_of_a_moment(reply.failure));
                model.failed(request, failing, paused, ns);
            }
            CallEnd::TimeUp => model.failed(request, failing("read_timeout", true, false), paused, ns),
            CallEnd::Error => model.erred(request, ns),
            CallEnd::NotBegun => model.not_begun(request, ns),
            CallEnd::Answer if is_collecting => model.body(request, reply.content, paused, ns),
            CallEnd::Answer => {
                let said = Said {
                    status,
                    has_body,
                    degraded_ns: degraded.map(|age| age.as_nanos()),
                    retry_after_ns: reply.retry_after_ms.map(|ms| ms * MS),
                    database_wait_ns: reply.database_wait_ms.map(|ms| ms * MS),
                };
                model.head(request, said, paused, ns);
            }
        }
    }

    fn late(&mut self, slot: usize, other: u32, kind: usize) {
        let now = self.moment();
        let live = &mut self.live[slot];
        let attempt = AttemptId(live.request.call() + other);
        let event = match kind {
            0 => Event::Head {
                attempt,
                head: HeadFacts { status: 200, has_body: true, degraded: None, ..HeadFacts::default() },
            },
            1 => Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } },
            2 => Event::Failed { attempt, failure: TIMED_OUT },
            3 => Event::NotAsked { attempt, reason: NotAsked::TooLate },
            _ => Event::Propagated { attempt },
        };
        let asked = live.request.asked();
        live.flow.on(event, now);
        self.model.dependencies[asked].late += 1;
    }

    pub(super) fn settle(&mut self, slot: usize, end: End, failure: usize) {
        if let End::Dawdles { ms } = end {
            return self.dawdle(slot, ms);
        }
        let mut live = self.live.swap_remove(slot);
        let Some(decision) = live.decision.take() else { return };
        let (failure, word) = FAILURES[failure];
        self.model.settle(&mut live.request, end, word);
        match end {
            End::Complete => decision.settlement.complete(),
            End::BreakOff => decision.settlement.break_off(failure),
            End::ClientLeaves => drop(decision),
            End::Dawdles { .. } => unreachable!("that is no end"),
        }
    }

    fn dawdle(&mut self, slot: usize, ms: u64) {
        self.now += ms * MS;
        let now = self.moment();
        let live = &mut self.live[slot];
        let Some(decision) = &mut live.decision else { return };
        let slow_in_ns = decision.settlement.slow_in().map(|left| left.as_nanos() as u64);
        assert_eq!(slow_in_ns, self.model.slow_in_ns(&live.request));
        decision.settlement.waited(Duration::from_millis(ms), now.mono);
        self.model.dawdle(&mut live.request, ms * MS, self.now);
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
