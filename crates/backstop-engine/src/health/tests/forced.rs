//! Orders, and what outlives a restart.

use std::time::Duration;

use super::support::{World, at, seconds};
use crate::failure::NotAsked;
use crate::health::{BreakerRules, Forced, Health, Phase, Saved, SavedPhase, WindowCount};

#[test]
fn forced_open_lets_nothing_through_until_it_is_released() {
    let mut world = World::plain();
    world.health.force_open(world.now);
    world.wait(seconds(3600));
    assert_eq!(world.phase(), Phase::ForcedOpen);
    assert_eq!(world.try_admit().unwrap_err(), NotAsked::BreakerOpen);
    assert_eq!((world.health.known_up(world.now), world.health.retries_allowed(world.now)), (None, false));
    world.health.release(world.now);
    assert_eq!(world.phase(), Phase::Closed);
    world.answer();
}

#[test]
fn forced_closed_lets_everything_through_and_counts() {
    let world = World::plain();
    world.health.force_closed(world.now);
    for _ in 0..100 {
        world.fail();
    }
    assert_eq!(world.phase(), Phase::ForcedClosed);
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 100, failures: 100, slow: 0 });
    world.health.release(world.now);
    assert_eq!((world.phase(), world.health.counts(world.now)), (Phase::Closed, WindowCount::default()));
    world.trip();
}

/// An order ends whatever was there, and a release forgets the trips: the next one is the first.
#[test]
fn an_order_ends_any_phase_and_a_release_begins_anew() {
    let mut world = World::plain();
    world.trip_and_wait();
    world.fail();
    world.health.raise_open(world.now, world.now.after(seconds(60)));
    world.health.force_closed(world.now);
    world.health.force_open(world.now);
    assert_eq!(world.phase(), Phase::ForcedOpen);
    world.health.release(world.now);
    world.trip();
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(5)) });
}

#[test]
fn what_the_rules_force_holds_from_the_beginning_until_it_is_released() {
    let begun =
        |forced| World::new(Some(BreakerRules { forced: Some(forced), ..BreakerRules::default() }), None);
    let mut open = begun(Forced::Open);
    open.wait(seconds(3600));
    assert_eq!((open.phase(), open.try_admit().unwrap_err()), (Phase::ForcedOpen, NotAsked::BreakerOpen));
    let closed = begun(Forced::Closed);
    for _ in 0..100 {
        closed.fail();
    }
    assert_eq!(closed.phase(), Phase::ForcedClosed);
    closed.health.release(closed.now);
    closed.trip();
}

#[test]
fn a_release_of_nothing_changes_nothing() {
    let world = World::plain();
    world.trip();
    let before = (world.phase(), world.health.generation());
    world.health.release(world.now);
    assert_eq!((world.phase(), world.health.generation()), before);
}

fn restored(saved: Saved, elapsed: Duration) -> World {
    let world = World::with_recovery();
    world.health.restore(world.now, saved, elapsed);
    world
}

/// By hand: 10 s were left, 4 s passed: 6.
#[test]
fn open_stays_open_for_what_is_left() {
    let saved = Saved { phase: SavedPhase::Open, rest: seconds(10), trips: 2, ..Saved::default() };
    assert_eq!(restored(saved, seconds(4)).phase(), Phase::Open { until: at(seconds(6)) });
    let mut over = restored(saved, seconds(11));
    assert_eq!(over.phase(), Phase::Open { until: at(seconds(0)) });
    let probe = over.admit();
    assert!(probe.is_probe());
    probe.failed(over.now, super::support::MIDDLE);
    assert_eq!(over.phase(), Phase::Open { until: at(seconds(20)) }, "the third trip in a row");
    over.wait(seconds(20));
    drop(over.admit());
}

/// What was being tried is tried again, by the next safe call.
#[test]
fn a_trial_and_a_ramp_begin_again_with_a_probe() {
    for phase in [SavedPhase::HalfOpen, SavedPhase::Ramp] {
        let world = restored(Saved { phase, rest: seconds(5), ..Saved::default() }, Duration::ZERO);
        assert_eq!(world.phase(), Phase::Open { until: at(seconds(0)) });
        assert!(world.health.admit(world.now, false, 0).is_err(), "not by an unsafe one");
        assert!(world.admit().is_probe());
    }
}

#[test]
fn what_is_saved_is_what_is_restored() {
    let mut world = World::plain();
    world.trip();
    world.wait(seconds(1));
    let saved = world.health.save(world.now);
    assert_eq!((saved.phase, saved.rest, saved.trips), (SavedPhase::Open, seconds(4), 1));
    let next = restored(saved, seconds(0));
    assert_eq!(next.health.save(next.now), saved);
    assert_eq!(next.health.counts(next.now), WindowCount::default());
    for (force, phase) in [
        (Health::force_open as fn(&Health, crate::time::Mono), SavedPhase::ForcedOpen),
        (Health::force_closed, SavedPhase::ForcedClosed),
    ] {
        force(&world.health, world.now);
        let saved = world.health.save(world.now);
        assert_eq!(saved.phase, phase);
        let next = restored(saved, seconds(1000));
        assert_eq!(next.health.save(next.now).phase, phase);
    }
}

/// By hand: 40 s of the watch were left and 15 passed: 25, all of it beyond the ten seconds without retries.
#[test]
fn a_watch_goes_on_for_what_is_left() {
    let saved = Saved { phase: SavedPhase::Watch, rest: seconds(40), ..Saved::default() };
    let world = restored(saved, seconds(15));
    assert_eq!(world.phase(), Phase::Watch { until: at(seconds(25)) });
    assert!(world.health.retries_allowed(world.now));
    assert_eq!(restored(saved, seconds(40)).phase(), Phase::Closed);
}

/// By hand: 30 s spread to 36 at most, but a minute can be asked for: 60.
#[test]
fn damaged_numbers_open_for_no_longer_than_a_live_breaker() {
    let saved = Saved { phase: SavedPhase::Open, rest: Duration::MAX, trips: u32::MAX, ..Saved::default() };
    let mut world = restored(saved, Duration::ZERO);
    assert_eq!(world.phase(), Phase::Open { until: at(seconds(60)) });
    world.wait(seconds(60));
    world.fail();
    assert_eq!(world.phase(), Phase::Open { until: at(seconds(90)) });
}

/// Whoever has no breaker any more is not opened by an old one.
#[test]
fn without_rules_only_orders_are_restored() {
    for (phase, expected) in [(SavedPhase::Open, Phase::Closed), (SavedPhase::ForcedOpen, Phase::ForcedOpen)]
    {
        let world = World::new(None, None);
        let saved = Saved { phase, rest: seconds(10), ..Saved::default() };
        world.health.restore(world.now, saved, Duration::ZERO);
        assert_eq!(world.phase(), expected);
    }
}
