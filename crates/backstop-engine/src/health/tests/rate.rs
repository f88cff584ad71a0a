//! What counts as usual.

use super::support::{World, ms, seconds};
use crate::health::Phase;

/// So many calls per second, for so many seconds.
fn traffic(world: &mut World, per_second: u32, for_seconds: u32) {
    for _ in 0..for_seconds {
        for _ in 0..per_second {
            world.answer();
        }
        world.wait(seconds(1));
    }
}

fn usual_milli(world: &World) -> u64 {
    world.health.save(world.now).rate_milli
}

/// By hand: the first second is only part of one. Ten whole ones are over when the eleventh's first call comes: the
/// failures that open it.
#[test]
fn ten_whole_seconds_say_what_is_usual() {
    let mut world = World::plain();
    traffic(&mut world, 40, 10);
    world.trip();
    assert_eq!(usual_milli(&world), 0, "nine whole seconds");

    let mut world = World::plain();
    traffic(&mut world, 40, 11);
    world.trip();
    assert_eq!(usual_milli(&world), 40_000);
}

/// By hand: 20 seconds of 30 and 20 without any are 15 per second.
#[test]
fn seconds_without_calls_count() {
    let mut world = World::plain();
    traffic(&mut world, 30, 21);
    world.wait(seconds(20));
    world.trip();
    assert_eq!(usual_milli(&world), 15_000);
}

/// By hand: after 60 s of 60 per second, each second without a call takes a sixtieth: 60 * (59/60)^2 = 58.01667.
#[test]
fn a_minute_is_remembered() {
    let mut world = World::plain();
    traffic(&mut world, 60, 61);
    world.wait(seconds(2));
    world.trip();
    assert_eq!(usual_milli(&world), 58_017);
}

/// By hand: 60 * (59/60)^600 is 0.0025 per second, and of 3 it is 0.0001: next to nothing, which is not the same as nothing
/// known.
#[test]
fn a_long_silence_is_bounded_work_and_forgets() {
    for (per_second, expected) in [(60, 2..=3), (3, 1..=1)] {
        let mut world = World::plain();
        traffic(&mut world, per_second, 61);
        world.wait(seconds(1_000_000));
        world.trip();
        assert!(expected.contains(&usual_milli(&world)), "{per_second}: {}", usual_milli(&world));
    }
}

/// Calls that were not made are not usual.
#[test]
fn calls_that_were_not_made_do_not_count() {
    let mut world = World::plain();
    for _ in 0..11 {
        for _ in 0..40 {
            world.admit().unused();
        }
        for _ in 0..7 {
            world.answer();
        }
        world.wait(seconds(1));
    }
    world.trip();
    assert_eq!(usual_milli(&world), 7_000);
}

/// By hand: 40 per second before; open, tried, ramp and watch count for nothing. The second incident finds the same 40,
/// although a hundred times as much came meanwhile.
#[test]
fn an_incident_does_not_change_what_is_usual() {
    let mut world = World::with_recovery();
    traffic(&mut world, 40, 11);
    world.trip_and_recover();
    assert_eq!(usual_milli(&world), 40_000);
    let mut calls = 0;
    while world.phase() != Phase::Closed {
        world.wait(ms(1));
        if let Ok(ticket) = world.try_admit() {
            ticket.answered(world.now);
            calls += 1;
        }
    }
    assert!(calls > 60_000, "{calls}");
    world.trip();
    assert_eq!(usual_milli(&world), 40_000);
}
