//! How long it stays open.

use std::time::Duration;

use super::support::{MIDDLE, World, at, ms, seconds};
use crate::health::Phase;

fn fail_probe(world: &World) {
    let probe = world.admit();
    assert!(probe.is_probe());
    probe.failed(world.now, MIDDLE);
}

fn rest(world: &World) -> Duration {
    world.now.until(world.health.known_up(world.now).expect("open"))
}

/// By hand: 5, 10, 20, 30, 30, ... for 1100 trips in a row.
#[test]
fn open_times_double_and_are_capped_for_1100_trips() {
    let mut world = World::plain();
    world.trip();
    for trip in 1..=1100 {
        let expected = match trip {
            1 => 5,
            2 => 10,
            3 => 20,
            _ => 30,
        };
        assert_eq!(rest(&world), seconds(expected), "trip {trip}");
        world.wait(seconds(expected));
        fail_probe(&world);
    }
    assert_eq!(world.health.totals().trips, 1101);
}

/// By hand: 5 s between 4 and 6, by what the caller brought along.
#[test]
fn open_times_are_spread_by_the_callers_entropy() {
    for (entropy, expected) in [(0, 4_000_000_000), (MIDDLE, 5_000_000_000), (u64::MAX, 5_999_999_999)] {
        let world = World::plain();
        for _ in 0..10 {
            world.admit().failed(world.now, entropy);
        }
        let rest = u64::try_from(rest(&world).as_nanos()).unwrap();
        // Rounding twice loses at most two nanoseconds.
        assert!(rest <= expected && rest + 2 >= expected, "{entropy}: {rest}");
    }
}

/// What is announced is what holds, on both sides of the moment.
#[test]
fn the_announced_moment_is_the_moment() {
    let mut world = World::plain();
    world.trip();
    let up = world.health.known_up(world.now).unwrap();
    assert_eq!((up, world.phase()), (at(seconds(5)), Phase::Open { until: at(seconds(5)) }));
    world.now = up.before(Duration::from_nanos(1));
    assert!(world.try_admit().is_err());
    assert_eq!(world.health.known_up(world.now), Some(up));
    world.now = up;
    assert_eq!(world.health.refuses(world.now, true), None);
    assert_eq!(world.health.known_up(world.now), Some(up), "looking takes nothing");
    let probe = world.admit();
    assert_eq!((world.phase(), world.health.known_up(world.now)), (Phase::HalfOpen, None));
    drop(probe);
}

/// By hand: 59.999... s after it closed, the second trip opens for 10 s; after 60 s for 5.
#[test]
fn a_minute_in_order_forgets_earlier_trips() {
    for (closed_for, expected) in [(seconds(60) - Duration::from_nanos(1), 10), (seconds(60), 5)] {
        let mut world = World::plain();
        world.trip_and_recover();
        assert_eq!(world.phase(), Phase::Closed);
        world.wait(closed_for);
        world.trip();
        assert_eq!(rest(&world), seconds(expected), "{closed_for:?}");
    }
}

/// By hand: 2 failures of 40 are 5 %: not green, so the minute begins again at second 30; second 80 is within it.
#[test]
fn a_minute_with_errors_is_not_in_order() {
    let mut world = World::plain();
    world.trip_and_recover();
    world.wait(seconds(30));
    for _ in 0..38 {
        world.answer();
    }
    world.fail();
    world.fail();
    world.wait(seconds(50));
    world.trip();
    assert_eq!(rest(&world), seconds(10));
}

/// By hand: asked for 20 s from now while 5 are left: 20. Asked for less: nothing changes. Asked for an hour: a minute.
#[test]
fn what_the_dependency_asks_for_makes_it_longer_and_never_shorter() {
    let mut world = World::plain();
    world.trip();
    world.health.raise_open(world.now, world.now.after(seconds(20)));
    assert_eq!(rest(&world), seconds(20));
    world.health.raise_open(world.now, world.now.after(seconds(1)));
    assert_eq!(rest(&world), seconds(20));
    world.wait(ms(500));
    world.health.raise_open(world.now, world.now.after(seconds(3600)));
    assert_eq!(rest(&world), seconds(60));
    world.wait(seconds(60));
    fail_probe(&world);
    assert_eq!(rest(&world), seconds(10), "what was asked for earlier is over");
}

/// Asking alone opens nothing; it counts when the breaker opens before that moment.
#[test]
fn asking_alone_opens_nothing() {
    let mut world = World::plain();
    world.health.raise_open(world.now, world.now.after(seconds(8)));
    world.answer();
    assert_eq!(world.phase(), Phase::Closed);
    world.wait(seconds(2));
    world.trip();
    assert_eq!(rest(&world), seconds(6));
}

#[test]
fn nothing_is_retried_while_it_is_open_or_tried() {
    let mut world = World::plain();
    assert!(world.health.retries_allowed(world.now));
    world.trip_and_wait();
    assert!(!world.health.retries_allowed(world.now));
    let probe = world.admit();
    assert!(!world.health.retries_allowed(world.now));
    probe.answered(world.now);
    world.answer();
    world.answer();
    assert!(world.health.retries_allowed(world.now));
}
