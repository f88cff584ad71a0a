//! Any order of calls, results, waits, orders and signals, against the naive reference.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::reference::Reference;
use super::support::MIDDLE;
use super::told::{Admitted, Begun, Fate, Seen};
use crate::health::{
    Began, BreakerRules, Health, PerMille, Phase, ProbePlace, RecoveryRules, Signal, Ticket,
};
use crate::time::Mono;

const RATE: u64 = 40;
const START_MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    Wait(u64),
    Admit {
        safe: bool,
    },
    Look {
        safe: bool,
    },
    End(usize, Fate),
    /// What one takes up at its dependency is held on its own, and so is its place as a probe.
    Hold(usize),
    LetGo(usize),
    /// The answer of one begins, well or not, and goes on; maybe without end.
    Stream(usize, bool, bool),
    /// The answer of one that went on breaks off.
    BreakOff(usize),
    /// What went on of one has kept its reader waiting for so many milliseconds.
    Dawdle(usize, u64),
    /// What went on of one came to its end.
    Complete(usize),
    /// So many calls that end as they begin.
    Calls(u32, Fate),
    /// Once the breaker lets the next probe go: the probes.
    Recover,
    /// A second of calls, a tenth of a second apart.
    Tick {
        good: u32,
        bad: u32,
    },
    ForceOpen,
    ForceClosed,
    Release,
    Ask(u64),
    InUse(u64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Answered),
        Just(Fate::Failed),
        Just(Fate::Neutral),
        Just(Fate::Abandoned),
        Just(Fate::GivenUp),
        Just(Fate::Silent),
        Just(Fate::Unused)
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..300_u64).prop_map(Op::Wait),
        4 => (0..2_500_u64).prop_map(Op::Wait),
        2 => prop_oneof![Just(5_000_u64), Just(9_999), Just(10_000), Just(30_000), Just(60_000)].prop_map(Op::Wait),
        8 => any::<bool>().prop_map(|safe| Op::Admit { safe }),
        2 => any::<bool>().prop_map(|safe| Op::Look { safe }),
        8 => (any::<prop::sample::Index>(), fate()).prop_map(|(n, fate)| Op::End(n.index(1000), fate)),
        3 => any::<prop::sample::Index>().prop_map(|n| Op::Hold(n.index(1000))),
        3 => any::<prop::sample::Index>().prop_map(|n| Op::LetGo(n.index(1000))),
        4 => (any::<prop::sample::Index>(), any::<bool>(), any::<bool>())
            .prop_map(|(n, well, endless)| Op::Stream(n.index(1000), well, endless)),
        3 => any::<prop::sample::Index>().prop_map(|n| Op::BreakOff(n.index(1000))),
        4 => (any::<prop::sample::Index>(), prop_oneof![Just(1000_u64), Just(1001), 0..1500_u64])
            .prop_map(|(n, ms)| Op::Dawdle(n.index(1000), ms)),
        3 => any::<prop::sample::Index>().prop_map(|n| Op::Complete(n.index(1000))),
        5 => (1..12_u32, fate()).prop_map(|(n, fate)| Op::Calls(n, fate)),
        6 => Just(Op::Recover),
        8 => (0..7_u32).prop_map(|good| Op::Tick { good, bad: 0 }),
        3 => (0..7_u32, 0..3_u32).prop_map(|(good, bad)| Op::Tick { good, bad }),
        1 => Just(Op::ForceOpen),
        1 => Just(Op::ForceClosed),
        2 => Just(Op::Release),
        1 => (0..100_000_u64).prop_map(Op::Ask),
        1 => prop_oneof![Just(700_u64), Just(701), Just(901)].prop_map(Op::InUse),
    ]
}

struct World {
    health: Arc<Health>,
    reference: Reference,
    now: u64,
    calls: Vec<(Ticket, Admitted)>,
    held: Vec<(Option<ProbePlace>, Admitted)>,
    streams: Vec<(Began, Begun)>,
}

fn mono(ms: u64) -> Mono {
    Mono::from_ns(ms * 1_000_000)
}

fn seen(phase: Phase) -> Seen {
    let ms = |mono: Mono| mono.as_ns() / 1_000_000;
    match phase {
        Phase::Closed => Seen::Closed,
        Phase::Open { until } => Seen::Open { until: ms(until) },
        Phase::HalfOpen => Seen::HalfOpen,
        Phase::Ramp { share: PerMille(share) } => Seen::Ramp { share: u64::from(share) },
        Phase::Watch { until } => Seen::Watch { until: ms(until) },
        Phase::ForcedOpen => Seen::ForcedOpen,
        Phase::ForcedClosed => Seen::ForcedClosed,
    }
}

impl World {
    fn new(probes: u32, min_calls: u32, recovers: bool) -> Self {
        let rules = BreakerRules { probes, min_calls, ..BreakerRules::default() };
        let recovery = recovers.then(RecoveryRules::default);
        Self {
            health: Arc::new(Health::new(Some(rules), recovery, RATE)),
            reference: Reference::new(probes as usize, min_calls as usize, recovers, RATE * 1000),
            now: START_MS,
            calls: Vec::new(),
            held: Vec::new(),
            streams: Vec::new(),
        }
    }

    fn admit(&mut self, safe: bool) -> bool {
        let ticket = self.health.admit(mono(self.now), safe, MIDDLE).ok();
        let expected = self.reference.admit(self.now, safe);
        assert_eq!(ticket.as_ref().map(Ticket::is_probe), expected.map(|call| call.is_probe));
        let Some(call) = ticket.zip(expected) else { return false };
        self.calls.push(call);
        true
    }

    fn end(&mut self, index: usize, fate: Fate) {
        let (ticket, call) = self.calls.swap_remove(index);
        let now = mono(self.now);
        match fate {
            Fate::Answered => ticket.answered(now),
            Fate::Failed => ticket.failed(now, MIDDLE),
            Fate::Neutral => ticket.neutral(now),
            Fate::Abandoned => drop(ticket),
            Fate::GivenUp => ticket.given_up(now),
            Fate::Silent => ticket.says_nothing(),
            Fate::Unused => ticket.unused(),
        }
        self.reference.end(call, fate, self.now);
        self.take_over();
    }

    /// What is measured elsewhere is taken over.
    fn take_over(&mut self) {
        let saved = self.health.save(mono(self.now));
        self.reference.look(self.now);
        self.reference.p95_ns = saved.p95.as_nanos() as u64;
        self.reference.take_over_rate(if saved.rate_milli == 0 { RATE * 1000 } else { saved.rate_milli });
    }

    fn call(&mut self, fate: Fate) {
        if self.admit(true) {
            self.end(self.calls.len() - 1, fate);
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Wait(ms) => self.now += ms,
            Op::Admit { safe } => {
                self.admit(safe);
            }
            Op::Look { safe } => {
                let passes = self.health.refuses(mono(self.now), safe).is_none();
                assert_eq!(passes, self.reference.would_pass(self.now, safe));
                self.compare();
            }
            Op::End(_, _) if self.calls.is_empty() => {}
            Op::End(n, fate) => self.end(n % self.calls.len(), fate),
            Op::Hold(_) if self.calls.is_empty() => {}
            Op::Hold(n) => {
                let (ticket, call) = &self.calls[n % self.calls.len()];
                self.reference.hold(*call);
                self.held.push((ticket.probe_place(), *call));
            }
            Op::LetGo(_) if self.held.is_empty() => {}
            Op::LetGo(n) => {
                let (place, call) = self.held.swap_remove(n % self.held.len());
                drop(place);
                self.reference.let_go(call);
            }
            Op::Stream(..) if self.calls.is_empty() => {}
            Op::Stream(n, well, endless) => {
                let (ticket, call) = self.calls.swap_remove(n % self.calls.len());
                let now = mono(self.now);
                let stream = if endless || ticket.is_probe() {
                    (ticket.counts_now(now, well), self.reference.counts_now(call, well, self.now))
                } else {
                    (ticket.began(now, well), self.reference.began(call, well, self.now))
                };
                let slow_in_ns = self.health.slow_in(stream.0).map(|left| left.as_nanos() as u64);
                assert_eq!(slow_in_ns, Reference::slow_in_ns(stream.1));
                self.streams.push(stream);
                self.take_over();
            }
            Op::Dawdle(..) | Op::Complete(_) | Op::BreakOff(_) if self.streams.is_empty() => {}
            Op::Dawdle(n, ms) => {
                let n = n % self.streams.len();
                self.now += ms;
                let (began, begun) = &mut self.streams[n];
                self.health.waited(began, Duration::from_millis(ms), mono(self.now));
                self.reference.waited(begun, ms * 1_000_000, self.now);
                self.take_over();
            }
            Op::Complete(n) => {
                let (began, begun) = self.streams.swap_remove(n % self.streams.len());
                self.health.completed(began, self.health.latest());
                self.reference.completed(begun);
                self.take_over();
            }
            Op::BreakOff(n) => {
                let (began, begun) = self.streams.swap_remove(n % self.streams.len());
                self.health.broke_off(began, self.health.latest());
                self.reference.broke_off(begun);
                self.take_over();
            }
            Op::Calls(n, fate) => (0..n).for_each(|_| self.call(fate)),
            Op::Recover => {
                // Both look now: what is due is done at the moment of the look.
                self.compare();
                if let Some(up) = self.health.known_up(mono(self.now)) {
                    self.now = self.now.max(up.as_ns() / 1_000_000);
                    (0..self.reference.probes).for_each(|_| self.call(Fate::Answered));
                }
            }
            Op::Tick { good, bad } => {
                for n in 0..good + bad {
                    self.now += 100;
                    self.call(if n < good { Fate::Answered } else { Fate::Failed });
                }
                self.now += 1000 - 100 * u64::from(good + bad);
                self.compare();
            }
            Op::ForceOpen => {
                self.health.force_open(mono(self.now));
                self.reference.force(Seen::ForcedOpen, self.now);
            }
            Op::ForceClosed => {
                self.health.force_closed(mono(self.now));
                self.reference.force(Seen::ForcedClosed, self.now);
            }
            Op::Release => {
                self.health.release(mono(self.now));
                self.reference.force(Seen::Closed, self.now);
            }
            Op::Ask(ms) => {
                self.health.raise_open(mono(self.now), mono(self.now + ms));
                self.reference.ask(self.now, ms);
            }
            Op::InUse(share) => {
                self.health.signal(mono(self.now), Signal::InUse(PerMille(share as u32)));
                self.reference.signal(self.now, share);
            }
        }
    }

    fn compare(&mut self) {
        let now = mono(self.now);
        let phase = seen(self.health.phase(now));
        assert_eq!(phase, self.reference.look(self.now));
        self.take_over();
        assert_eq!(self.health.generation(), self.reference.generation);
        assert_eq!(self.health.totals().trips, self.reference.trips);
        let count = self.health.counts(now);
        let counted = (count.calls as usize, count.failures as usize, count.slow as usize);
        assert_eq!(counted, self.reference.counts(self.now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_agrees_with_the_naive_reference(
        ops in prop::collection::vec(op(), 1..250),
        probes in 1..4_u32,
        min_calls in 1..25_u32,
        recovers in prop::bool::weighted(0.8),
    ) {
        let mut world = World::new(probes, min_calls, recovers);
        for op in ops {
            world.apply(op);
            // A wait alone is noticed by nobody: what is due is done by whoever comes next.
            if !matches!(op, Op::Wait(_)) {
                world.compare();
            }
        }
        while !world.calls.is_empty() {
            world.end(0, Fate::Answered);
        }
        world.now += Duration::from_secs(3600).as_millis() as u64;
        world.compare();
    }
}
