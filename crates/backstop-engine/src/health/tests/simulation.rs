//! A backend that comes back cold, and what is let through to it.
//!
//! Eight workers with a queue before them, 20 ms of work per call on average: 400 calls per second. 220 come. From
//! second 30 to second 60 it refuses connections; then it is up, but for 30 s everything takes three times as long, so
//! that it can do 133 per second. Whoever waits longer than a second leaves, and its work is done all the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use super::support::{World, at, seconds};
use crate::health::{Phase, Ticket};
use crate::time::Mono;

const WORKERS: usize = 8;
const ARRIVALS_PER_S: u64 = 220;
/// What is in flight at most. A ramp needs it beside it: a share that is held while a queue grows has no other bound.
const CONNECTIONS: usize = 120;
const WORK_NS: u64 = 20_000_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive,
    Done(u64),
    Leave(u64),
}

struct Simulation {
    world: World,
    chance: u64,
    events: BinaryHeap<Reverse<(Mono, Event)>>,
    waiting: VecDeque<u64>,
    working: usize,
    calls: HashMap<u64, Ticket>,
    ids: u64,
    /// Calls that failed after the backend was up, refusals by the breaker aside.
    failed_while_up: u64,
    full_at: Option<Mono>,
}

impl Simulation {
    fn new(world: World, seed: u64) -> Self {
        let events = BinaryHeap::from([Reverse((world.now, Event::Arrive))]);
        Self {
            world,
            chance: seed,
            events,
            waiting: VecDeque::new(),
            working: 0,
            calls: HashMap::new(),
            ids: 0,
            failed_while_up: 0,
            full_at: None,
        }
    }

    /// Exponential with this mean, in sixteen steps: the same on every machine.
    fn random(&mut self, mean_ns: u64) -> Duration {
        const THOUSANDTHS: [u64; 16] =
            [32, 98, 170, 247, 330, 421, 521, 633, 758, 901, 1068, 1269, 1520, 1856, 2367, 3466];
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_nanos(mean_ns * THOUSANDTHS[(self.chance >> 60) as usize] / 1000)
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.events.push(Reverse((self.world.now.after(after), event)));
    }

    fn is_between(&self, from: u64, to: u64) -> bool {
        (at(seconds(from))..at(seconds(to))).contains(&self.world.now)
    }

    fn run(&mut self, until: u64) {
        let is_before = |next: &Reverse<(Mono, Event)>| next.0.0 < at(seconds(until));
        while self.events.peek().is_some_and(is_before)
            && let Some(Reverse((now, event))) = self.events.pop()
        {
            self.world.now = now;
            match event {
                Event::Arrive => self.arrive(),
                Event::Done(id) => {
                    self.working -= 1;
                    if let Some(ticket) = self.calls.remove(&id) {
                        ticket.answered(now);
                    }
                    self.work();
                }
                Event::Leave(id) => {
                    if let Some(ticket) = self.calls.remove(&id) {
                        self.fail(ticket);
                    }
                }
            }
            let is_full = matches!(self.world.phase(), Phase::Watch { .. } | Phase::Closed);
            if now < at(seconds(60)) || !is_full {
                self.full_at = None;
            } else {
                self.full_at.get_or_insert(now);
            }
        }
    }

    fn arrive(&mut self) {
        let next = self.random(1_000_000_000 / ARRIVALS_PER_S);
        self.schedule(next, Event::Arrive);
        if self.waiting.len() + self.working >= CONNECTIONS {
            return;
        }
        let Ok(ticket) = self.world.try_admit() else { return };
        if self.is_between(30, 60) {
            return self.fail(ticket);
        }
        self.ids += 1;
        self.calls.insert(self.ids, ticket);
        self.waiting.push_back(self.ids);
        self.schedule(seconds(1), Event::Leave(self.ids));
        self.work();
    }

    fn fail(&mut self, ticket: Ticket) {
        self.failed_while_up += u64::from(self.world.now >= at(seconds(60)));
        ticket.failed(self.world.now, self.chance);
    }

    fn work(&mut self) {
        while self.working < WORKERS
            && let Some(id) = self.waiting.pop_front()
        {
            self.working += 1;
            let cold = if self.is_between(60, 90) { 3 } else { 1 };
            let work = self.random(WORK_NS * cold);
            self.schedule(work, Event::Done(id));
        }
    }
}

/// How long after the backend full traffic was back for good, of this run.
fn full_after(simulation: &Simulation) -> Duration {
    at(seconds(60)).until(simulation.full_at.expect("full traffic came back"))
}

/// Of ten runs: none is opened again, hardly a call fails, and full traffic is back within 45 s of the backend.
#[test]
fn a_cold_backend_is_given_what_it_can_do() {
    let (mut steps_back, mut failed) = (0, 0);
    for seed in 1..=10 {
        let mut cold = Simulation::new(World::with_recovery(), seed);
        cold.run(60);
        let trips = cold.world.health.totals().trips;
        assert!(trips > 0, "run {seed}");
        cold.run(150);
        let totals = cold.world.health.totals();
        assert_eq!(totals.trips, trips, "run {seed} fell over");
        assert!(full_after(&cold) < seconds(45), "run {seed}: {:?}", full_after(&cold));
        steps_back += totals.step_backs;
        failed += cold.failed_while_up;
    }
    assert!(steps_back > 10, "{steps_back}");
    // Of 20 000 that come per run.
    assert!(failed < 250, "{failed}");
}

/// The same without a ramp: everything at once is more than it can do. Ten times as many calls fail, and most runs open
/// it again.
#[test]
fn without_a_ramp_the_same_backend_falls_over() {
    let (mut fell_over, mut failed) = (0, 0);
    for seed in 1..=10 {
        let mut cold = Simulation::new(World::plain(), seed);
        cold.run(60);
        let trips = cold.world.health.totals().trips;
        cold.run(150);
        fell_over += u32::from(cold.world.health.totals().trips > trips);
        failed += cold.failed_while_up;
    }
    assert!(fell_over > 5, "{fell_over}");
    assert!(failed > 1000, "{failed}");
}
