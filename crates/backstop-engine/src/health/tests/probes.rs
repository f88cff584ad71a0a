//! How it is tried.

use std::time::Duration;

use super::support::{World, ms, seconds};
use crate::failure::NotAsked;
use crate::health::{BreakerRules, Phase, Totals};

fn tried() -> World {
    let mut world = World::plain();
    world.trip_and_wait();
    world
}

fn is_open(world: &World) -> bool {
    matches!(world.phase(), Phase::Open { .. })
}

/// 1000 arrivals: three are probes, 997 are refused, none waits.
#[test]
fn exactly_the_accepted_number_is_tried_at_once() {
    let world = tried();
    let arrivals: Vec<_> = (0..1000).map(|_| world.try_admit()).collect();
    let probes = arrivals.iter().filter(|arrival| arrival.as_ref().is_ok_and(|ticket| ticket.is_probe()));
    assert_eq!(probes.count(), 3);
    let refused = arrivals.iter().filter(|arrival| arrival.as_ref().err() == Some(&NotAsked::BreakerOpen));
    assert_eq!(refused.count(), 997);
    let expected = Totals { trips: 1, probes: 3, refused_open: 997, ..Totals::default() };
    assert_eq!(world.health.totals(), expected);
}

#[test]
fn unsafe_requests_are_never_probes() {
    let world = tried();
    assert_eq!(world.health.refuses(world.now, false), Some(NotAsked::BreakerOpen));
    assert_eq!(world.health.admit(world.now, false, 0).unwrap_err(), NotAsked::BreakerOpen);
    assert!(is_open(&world));
    let probe = world.admit();
    assert_eq!(world.health.admit(world.now, false, 0).unwrap_err(), NotAsked::BreakerOpen);
    assert_eq!(world.health.refuses(world.now, false), Some(NotAsked::BreakerOpen));
    drop(probe);
}

#[test]
fn as_many_successes_as_probes_close_it() {
    let world = tried();
    world.answer();
    world.answer();
    assert_eq!(world.phase(), Phase::HalfOpen);
    world.answer();
    assert_eq!(world.phase(), Phase::Closed);
}

#[test]
fn one_failed_probe_opens_it() {
    let world = tried();
    world.answer();
    world.answer();
    world.fail();
    assert!(is_open(&world));
}

#[test]
fn a_slow_probe_is_no_recovery() {
    for (lasted, opens) in [(seconds(1), false), (seconds(1) + Duration::from_nanos(1), true)] {
        let mut world = tried();
        world.answer_after(lasted);
        assert_eq!(is_open(&world), opens, "{lasted:?}");
    }
}

/// By hand: ten seconds, not a nanosecond less; then it is a failed probe, the open time is the second one (10 s), and
/// its answer afterwards is nobody's.
#[test]
fn a_probe_that_never_answers_is_a_failed_one() {
    let mut world = tried();
    let probe = world.admit();
    world.wait(seconds(10) - Duration::from_nanos(1));
    assert_eq!(world.phase(), Phase::HalfOpen);
    world.wait(Duration::from_nanos(1));
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(10)) });
    let generation = world.health.generation();
    probe.answered(world.now);
    assert!(is_open(&world));
    assert_eq!(world.health.generation(), generation);
    world.wait(seconds(10));
    for _ in 0..3 {
        world.answer();
    }
    assert_eq!(world.phase(), Phase::Closed);
}

/// By hand: slow is 6 s, twice that is 12.
#[test]
fn what_may_be_slow_is_waited_for_longer() {
    let rules = BreakerRules { slow: seconds(6), ..BreakerRules::default() };
    let mut world = World::new(Some(rules), None);
    world.trip_and_wait();
    let probe = world.admit();
    world.wait(seconds(12) - Duration::from_nanos(1));
    assert_eq!(world.phase(), Phase::HalfOpen);
    world.wait(Duration::from_nanos(1));
    assert!(is_open(&world));
    drop(probe);
}

/// Whoever looks first notices, be it only to ask whether it would be refused.
#[test]
fn a_lost_probe_is_noticed_by_whoever_comes_first() {
    for look in 0..3 {
        let mut world = tried();
        let probes: Vec<_> = (0..3).map(|_| world.admit()).collect();
        world.wait(seconds(10));
        match look {
            0 => assert_eq!(world.health.refuses(world.now, true), Some(NotAsked::BreakerOpen)),
            1 => assert_eq!(world.try_admit().unwrap_err(), NotAsked::BreakerOpen),
            _ => assert!(world.health.known_up(world.now).is_some()),
        }
        assert_eq!(world.health.totals().trips, 2, "{look}");
        drop(probes);
    }
}

/// A slot's next probe has its own ten seconds.
#[test]
fn a_slot_that_came_back_counts_from_its_next_probe() {
    let mut world = tried();
    world.admit().neutral(world.now);
    world.wait(seconds(9));
    let second = world.admit();
    world.wait(seconds(9));
    assert_eq!(world.phase(), Phase::HalfOpen);
    world.wait(seconds(1));
    assert!(is_open(&world));
    drop(second);
}

/// Neither closes nor hangs: the slot comes back once.
#[test]
fn a_probe_without_a_verdict_gives_its_slot_back() {
    type End = fn(&World, crate::health::Ticket);
    let ends: [End; 3] =
        [|_, probe| drop(probe), |_, probe| probe.unused(), |world, probe| probe.neutral(world.now)];
    for end in ends {
        let world = tried();
        for _ in 0..10 {
            let held = [world.admit(), world.admit()];
            end(&world, world.admit());
            let again = world.admit();
            assert!(world.try_admit().is_err(), "three slots, no more");
            end(&world, again);
            for probe in held {
                end(&world, probe);
            }
        }
        assert_eq!(world.phase(), Phase::HalfOpen, "no verdict decides nothing");
        for _ in 0..3 {
            world.answer();
        }
        assert_eq!(world.phase(), Phase::Closed);
    }
}

/// A counter that goes back looks like a restart to whoever reads it, so what was let through stays counted.
#[test]
fn a_probe_that_was_not_made_was_let_through_all_the_same() {
    let world = tried();
    world.admit().unused();
    drop(world.admit());
    assert_eq!(world.health.totals().probes, 2);
}

/// A client that waited longer than is accepted and left has seen a slow probe.
#[test]
fn a_probe_given_up_when_it_was_slow_is_a_slow_one() {
    let mut world = tried();
    let probe = world.admit();
    world.wait(ms(1001));
    assert_eq!(world.phase(), Phase::HalfOpen);
    drop(probe);
    assert!(is_open(&world));
}

/// By hand: 0 probes would never close and are taken as 1; more than 16 as 16.
#[test]
fn the_number_of_probes_has_bounds() {
    for (probes, expected) in [(0, 1), (1, 1), (16, 16), (17, 16), (u32::MAX, 16)] {
        let mut world = World::new(Some(BreakerRules { probes, ..BreakerRules::default() }), None);
        world.trip_and_wait();
        let admitted: Vec<_> = (0..100).filter_map(|_| world.try_admit().ok()).collect();
        assert_eq!(admitted.len(), expected);
        for probe in admitted {
            probe.answered(world.now);
        }
        assert_eq!(world.phase(), Phase::Closed);
    }
}

/// A trip that nobody brings entropy for uses what the last probe brought.
#[test]
fn a_lost_probe_is_spread_by_its_own_entropy() {
    let mut world = tried();
    let probe = world.health.admit(world.now, true, 0).unwrap();
    world.wait(seconds(10));
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(8)) });
    drop(probe);
}

/// A client that leaves tells the dependency nothing: it goes on working. Twenty clients that ask and leave at once are
/// three probes, until what one of them takes up at the dependency comes back.
#[test]
fn a_probe_whose_client_left_keeps_its_slot_while_the_dependency_works() {
    type End = fn(&World, crate::health::Ticket);
    let ends: [End; 3] =
        [|_, probe| drop(probe), |world, probe| probe.given_up(world.now), |_, probe| probe.says_nothing()];
    for end in ends {
        let mut world = tried();
        let mut at_work = Vec::new();
        for _ in 0..20 {
            if let Ok(probe) = world.try_admit() {
                at_work.push(probe.probe_place());
                end(&world, probe);
            }
            world.wait(ms(10));
        }
        assert_eq!(at_work.len(), 3);
        at_work.pop();
        assert_eq!(world.health.refuses(world.now, true), None);
        let next = world.admit();
        assert!(world.try_admit().is_err(), "one place, no more");
        assert_eq!(world.phase(), Phase::HalfOpen);
        drop(next);
    }
}

/// By hand: ten seconds after it began, though nobody waits for it since the first.
#[test]
fn a_probe_whose_client_left_and_that_never_ends_is_a_failed_one() {
    let mut world = tried();
    let probe = world.admit();
    let place = probe.probe_place();
    world.wait(ms(100));
    probe.given_up(world.now);
    world.wait(ms(9_900) - Duration::from_nanos(1));
    assert_eq!(world.phase(), Phase::HalfOpen);
    world.wait(Duration::from_nanos(1));
    assert!(is_open(&world));
    drop(place);
    assert!(is_open(&world));
}

/// An answer gives the slot back at once, however long the rest of it streams; and once: the next probe's slot is its own.
#[test]
fn an_answered_probe_gives_its_slot_back_once() {
    let world = tried();
    let first = world.admit();
    let rest = first.probe_place();
    first.neutral(world.now);
    let next: Vec<_> = (0..3).map(|_| world.admit()).collect();
    drop(rest);
    assert!(world.try_admit().is_err(), "three slots, no more");
    drop(next);
}
