//! What is late changes nothing newer.

use std::time::Duration;

use super::support::{MIDDLE, World, ms, seconds};
use crate::health::{BreakerRules, Phase, Ticket, WindowCount};

type End = fn(&World, Ticket);

const ENDS: [End; 4] = [
    |world, ticket| ticket.answered(world.now),
    |world, ticket| ticket.failed(world.now, MIDDLE),
    |world, ticket| ticket.neutral(world.now),
    |_, ticket| ticket.unused(),
];

fn untouched(world: &World, before: (Phase, u64, WindowCount)) {
    assert_eq!((world.phase(), world.health.generation(), world.health.counts(world.now)), before);
}

fn picture(world: &World) -> (Phase, u64, WindowCount) {
    (world.phase(), world.health.generation(), world.health.counts(world.now))
}

/// Twenty calls of before the trip, ending while it is tried: no success closes it, no failure opens it.
#[test]
fn calls_of_the_closed_time_decide_nothing_half_open() {
    for end in ENDS {
        let mut world = World::plain();
        let old: Vec<_> = (0..20).map(|_| world.admit()).collect();
        world.trip_and_wait();
        let probe = world.admit();
        let before = picture(&world);
        for ticket in old {
            end(&world, ticket);
        }
        untouched(&world, before);
        probe.answered(world.now);
    }
}

/// Probes of the first trial, ending in the second.
#[test]
fn probes_of_an_earlier_trial_decide_nothing_in_a_later_one() {
    for end in ENDS {
        let mut world = World::plain();
        world.trip_and_wait();
        let old = [world.admit(), world.admit()];
        world.fail();
        world.wait(seconds(10));
        let new = [world.admit(), world.admit()];
        world.answer();
        let before = picture(&world);
        for ticket in old {
            end(&world, ticket);
        }
        untouched(&world, before);
        let third = world.admit();
        assert!(world.try_admit().is_err(), "no slot came back that was not taken");
        drop((new, third));
    }
}

/// Calls of before the trip, ending after it closed again.
#[test]
fn calls_of_an_earlier_closed_time_count_nothing_in_a_later_one() {
    for end in ENDS {
        let mut world = World::plain();
        let old: Vec<_> = (0..40).map(|_| world.admit()).collect();
        world.trip_and_recover();
        assert_eq!(world.phase(), Phase::Closed);
        for _ in 0..9 {
            world.fail();
        }
        let before = picture(&world);
        for ticket in old {
            end(&world, ticket);
        }
        untouched(&world, before);
        world.fail();
        assert!(matches!(world.phase(), Phase::Open { .. }), "nor did they end the row");
    }
}

/// A probe that answers after its trial ended well counts nothing in the closed time.
#[test]
fn a_late_probe_counts_nothing_once_it_is_closed() {
    for end in ENDS {
        let mut world = World::plain();
        world.trip_and_wait();
        let late = world.admit();
        for _ in 0..3 {
            world.answer();
        }
        let before = picture(&world);
        assert_eq!(before.0, Phase::Closed);
        end(&world, late);
        untouched(&world, before);
    }
}

/// By hand: closed 0, open 1, half open 2, closed 3.
#[test]
fn every_change_is_a_generation() {
    let mut world = World::plain();
    assert_eq!(world.health.generation(), 0);
    world.trip();
    assert_eq!(world.health.generation(), 1);
    world.wait(seconds(5));
    let probe = world.admit();
    assert_eq!(world.health.generation(), 2);
    probe.answered(world.now);
    world.answer();
    world.answer();
    assert_eq!(world.health.generation(), 3);
    world.health.force_open(world.now);
    world.health.force_open(world.now);
    assert_eq!(world.health.generation(), 4, "what is so already is no change");
    world.health.release(world.now);
    world.health.release(world.now);
    assert_eq!(world.health.generation(), 5);
}

/// What was asked in one closed time and answered in the next is not how long answers take in good times.
#[test]
fn late_answers_are_not_usual() {
    let rules = BreakerRules { slow: seconds(20), ..BreakerRules::default() };
    let mut world = World::new(Some(rules), None);
    let old: Vec<_> = (0..20).map(|_| world.admit()).collect();
    world.trip_and_recover();
    for ticket in old {
        ticket.answered(world.now);
    }
    world.trip();
    assert_eq!(world.health.save(world.now).p95, Duration::ZERO);
}

/// By hand: 40 000 changes are more than half of the 65 536 generations that a count tells apart. The ramp, the window
/// and the row after them count as those before: six green ticks, and ten failures in a row.
#[test]
fn an_incident_of_many_generations_is_like_any_other() {
    let mut world = World::with_recovery();
    world.trip();
    for _ in 0..20_000 {
        world.now = world.health.known_up(world.now).unwrap();
        world.fail();
    }
    world.now = world.health.known_up(world.now).unwrap();
    assert!(world.health.generation() > 40_000);
    for _ in 0..3 {
        world.answer();
    }
    for _ in 0..6 {
        assert!(matches!(world.phase(), Phase::Ramp { .. }));
        for _ in 0..5 {
            world.wait(ms(100));
            world.answer();
        }
        world.wait(ms(500));
    }
    assert!(matches!(world.phase(), Phase::Watch { .. }));
    assert_eq!(world.health.counts(world.now), WindowCount::default());
    world.trip();
}
