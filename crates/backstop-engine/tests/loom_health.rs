//! Every interleaving of two or three threads at one dependency's health, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p backstop-engine --release --test loom_health`; without that flag this
//! file is empty. The window has two parts instead of ten then, and the times to answer are not told apart.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::health::{BreakerRules, Health, PerMille, Phase, RecoveryRules, Ticket, WindowCount};
use backstop_engine::time::Mono;
use loom::thread;

const START: Mono = Mono::from_ns(1_000_000_000_000);
/// The middle of the spread.
const MIDDLE: u64 = 1 << 63;

/// Two failures of two calls open it.
fn rules(probes: u32) -> BreakerRules {
    BreakerRules { min_calls: 2, failures: PerMille(1000), probes, ..BreakerRules::default() }
}

fn health(probes: u32, recovery: Option<RecoveryRules>) -> Arc<Health> {
    Arc::new(Health::new(Some(rules(probes)), recovery, 1000))
}

fn admit(health: &Arc<Health>, now: Mono) -> Option<Ticket> {
    health.admit(now, true, MIDDLE).ok()
}

/// Open, and the first probe may go: since the returned moment.
fn opened(health: &Arc<Health>) -> Mono {
    for _ in 0..2 {
        admit(health, START).unwrap().failed(START, MIDDLE);
    }
    health.known_up(START).unwrap()
}

/// Explores with few switches: the faults that are looked for need no more, and all would be too many.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(2);
    bounded.max_branches = 10_000;
    bounded.check(model);
}

/// Two failures at once: the last of them sees both, so it opens; and only once.
#[test]
fn two_failures_at_once_are_one_trip() {
    explore(|| {
        let health = health(1, None);
        let (mine, other) = (admit(&health, START).unwrap(), admit(&health, START).unwrap());
        let failing = thread::spawn(move || other.failed(START, MIDDLE));
        mine.failed(START, MIDDLE);
        failing.join().unwrap();
        assert_eq!(health.phase(START), Phase::Open { until: START.after(Duration::from_secs(5)) });
        assert_eq!((health.totals().trips, health.generation()), (1, 1));
    });
}

/// Two arrivals at the moment of the first probe, one slot: one passes.
#[test]
fn one_slot_is_taken_once() {
    explore(|| {
        let health = health(1, None);
        let up = opened(&health);
        let other = {
            let health = Arc::clone(&health);
            thread::spawn(move || admit(&health, up))
        };
        let mine = admit(&health, up);
        let other = other.join().unwrap();
        assert_eq!(u32::from(mine.is_some()) + u32::from(other.is_some()), 1);
        assert_eq!(health.generation(), 2);
        drop((mine, other));
        assert!(admit(&health, up).is_some(), "the slot came back");
    });
}

/// Two successes end a trial of two: exactly one of them moves the state on, by one generation.
#[test]
fn two_successes_close_it_once() {
    explore(|| {
        let health = health(2, None);
        let up = opened(&health);
        let (mine, other) = (admit(&health, up).unwrap(), admit(&health, up).unwrap());
        let answering = thread::spawn(move || other.answered(up));
        mine.answered(up);
        answering.join().unwrap();
        assert_eq!((health.phase(up), health.generation()), (Phase::Closed, 3));
    });
}

/// A success and a failure at once: whichever is first, the failure is the end of it; one generation, one trip more.
#[test]
fn a_failed_probe_wins_over_a_success_that_is_not_the_last() {
    explore(|| {
        let health = health(2, None);
        let up = opened(&health);
        let (mine, other) = (admit(&health, up).unwrap(), admit(&health, up).unwrap());
        let answering = thread::spawn(move || other.answered(up));
        mine.failed(up, MIDDLE);
        answering.join().unwrap();
        assert_eq!(health.phase(up), Phase::Open { until: up.after(Duration::from_secs(10)) });
        assert_eq!((health.totals().trips, health.generation()), (2, 3));
    });
}

/// The last success and a failure at once: either order, but one of them, whole.
#[test]
fn the_last_success_and_a_failure_do_not_mix() {
    explore(|| {
        let health = health(2, Some(RecoveryRules::default()));
        let up = opened(&health);
        admit(&health, up).unwrap().answered(up);
        let (mine, other) = (admit(&health, up).unwrap(), admit(&health, up).unwrap());
        let answering = thread::spawn(move || other.answered(up));
        mine.failed(up, MIDDLE);
        answering.join().unwrap();
        let expected = match health.totals().trips {
            1 => Phase::Ramp { share: PerMille(100) },
            _ => Phase::Open { until: up.after(Duration::from_secs(10)) },
        };
        assert_eq!((health.phase(up), health.generation()), (expected, 3));
    });
}

/// An order beside a trip: nothing but the order is left, and whoever looked saw one phase or the other.
#[test]
fn an_order_is_carried_out_whoever_is_moving() {
    explore(|| {
        let health = health(1, None);
        admit(&health, START).unwrap().failed(START, MIDDLE);
        let last = admit(&health, START).unwrap();
        let ordering = {
            let health = Arc::clone(&health);
            thread::spawn(move || {
                health.force_open(START);
                assert!(admit(&health, START).is_none(), "an order holds at once");
            })
        };
        last.failed(START, MIDDLE);
        ordering.join().unwrap();
        assert_eq!(health.phase(START), Phase::ForcedOpen);
        health.release(START);
        assert_eq!(health.phase(START), Phase::Closed);
    });
}

/// A late result beside a change of generation: it counts in its own or nowhere, and takes nothing away.
#[test]
fn a_result_never_counts_in_a_later_generation() {
    explore(|| {
        let health = health(1, None);
        let late = admit(&health, START).unwrap();
        let forcing = {
            let health = Arc::clone(&health);
            thread::spawn(move || {
                health.force_closed(START);
                admit(&health, START).unwrap().answered(START);
            })
        };
        late.failed(START, MIDDLE);
        forcing.join().unwrap();
        assert_eq!(health.counts(START), WindowCount { calls: 1, failures: 0, slow: 0 });
    });
}

/// Whoever counts while a call is being counted never finds a failure without its call.
#[test]
fn a_failure_is_never_seen_without_its_call() {
    explore(|| {
        let health = health(1, None);
        let ticket = admit(&health, START).unwrap();
        let counting = {
            let health = Arc::clone(&health);
            thread::spawn(move || health.counts(START))
        };
        ticket.failed(START, MIDDLE);
        let count = counting.join().unwrap();
        assert!(count.failures <= count.calls, "{count:?}");
    });
}

/// One success more than needed, at the same moment: still one move.
#[test]
fn one_success_too_many_moves_nothing() {
    explore(|| {
        let health = health(2, None);
        let up = opened(&health);
        admit(&health, up).unwrap().answered(up);
        let (mine, other) = (admit(&health, up).unwrap(), admit(&health, up).unwrap());
        let answering = thread::spawn(move || other.answered(up));
        mine.answered(up);
        answering.join().unwrap();
        assert_eq!((health.phase(up), health.generation()), (Phase::Closed, 3));
    });
}

/// The results that end a tick, at the same moment: it is judged once.
#[test]
fn a_tick_is_judged_once() {
    explore(|| {
        let health = health(1, Some(RecoveryRules::default()));
        let up = opened(&health);
        admit(&health, up).unwrap().answered(up);
        let mut tickets: Vec<_> = (0..6).map(|_| admit(&health, up).unwrap()).collect();
        let (mine, other) = (tickets.pop().unwrap(), tickets.pop().unwrap());
        for ticket in tickets {
            ticket.answered(up);
        }
        let later = up.after(Duration::from_secs(1));
        let answering = thread::spawn(move || other.answered(later));
        mine.answered(later);
        answering.join().unwrap();
        assert_eq!(health.phase(later), Phase::Ramp { share: PerMille(150) });
        assert_eq!(health.totals().step_ups, 1);
    });
}

/// Whoever looks while an order is being carried out sees what was or what is, with its own moment.
#[test]
fn an_order_does_not_show_through_what_it_ends() {
    explore(|| {
        let health = health(1, None);
        let up = opened(&health);
        let ordering = {
            let health = Arc::clone(&health);
            thread::spawn(move || health.force_open(START))
        };
        let seen = health.phase(START);
        assert!(seen == Phase::Open { until: up } || seen == Phase::ForcedOpen, "{seen:?}");
        ordering.join().unwrap();
    });
}

/// A phase is never one of a generation with a fact of another: open always has its own moment.
#[test]
fn a_phase_has_its_own_facts() {
    explore(|| {
        let health = health(1, None);
        let up = opened(&health);
        let probe = admit(&health, up).unwrap();
        let looking = {
            let health = Arc::clone(&health);
            thread::spawn(move || health.phase(up))
        };
        probe.failed(up, MIDDLE);
        let second = Phase::Open { until: up.after(Duration::from_secs(10)) };
        let seen = looking.join().unwrap();
        assert!(seen == Phase::HalfOpen || seen == second, "{seen:?}");
        assert_eq!(health.phase(up), second);
    });
}

/// The client leaves while what its call takes up at the dependency comes back: the slot is free once both are gone.
#[test]
fn a_probes_place_comes_back_with_the_last_of_its_holders() {
    explore(|| {
        let health = health(1, None);
        let up = opened(&health);
        let ticket = admit(&health, up).unwrap();
        let place = ticket.probe_place();
        let leaving = thread::spawn(move || ticket.given_up(up));
        drop(place);
        leaving.join().unwrap();
        assert!(admit(&health, up).is_some(), "the slot came back");
    });
}

/// The answer gives the slot back, and what the call takes up comes back in the same moment: whoever has the slot next
/// keeps it.
#[test]
fn a_probes_place_comes_back_once() {
    explore(|| {
        let health = health(1, None);
        let up = opened(&health);
        let ticket = admit(&health, up).unwrap();
        let place = ticket.probe_place();
        let returning = thread::spawn(move || drop(place));
        ticket.neutral(up);
        let next = admit(&health, up);
        returning.join().unwrap();
        assert!(next.is_some());
        assert!(admit(&health, up).is_none(), "it was given back once");
    });
}
