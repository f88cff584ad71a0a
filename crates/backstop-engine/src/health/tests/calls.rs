//! What counts as a call.

use super::support::{World, ms, seconds};
use crate::failure::NotAsked;
use crate::health::{Phase, Totals, WindowCount};

/// 404 and the like are calls that did not fail.
#[test]
fn an_answer_about_the_request_is_a_call_without_failure() {
    let world = World::plain();
    for _ in 0..100 {
        world.admit().neutral(world.now);
    }
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 100, failures: 0, slow: 0 });
    assert_eq!(world.phase(), Phase::Closed);
}

#[test]
fn a_call_that_was_not_made_is_nothing() {
    let world = World::plain();
    for _ in 0..100 {
        world.admit().unused();
    }
    assert_eq!(world.health.counts(world.now), WindowCount::default());
}

/// A call that failed after longer than accepted is both.
#[test]
fn a_failure_may_be_slow_too() {
    let mut world = World::plain();
    let ticket = world.admit();
    world.wait(ms(1001));
    ticket.failed(world.now, 0);
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 1, failures: 1, slow: 1 });
}

/// Own refusals are counted, but never as calls.
#[test]
fn own_refusals_are_no_calls() {
    let mut world = World::plain();
    world.trip();
    for _ in 0..50 {
        assert_eq!(world.try_admit().unwrap_err(), NotAsked::BreakerOpen);
        assert_eq!(world.health.refuses(world.now, true), Some(NotAsked::BreakerOpen));
    }
    assert_eq!(world.health.counts(world.now), WindowCount::default());
    assert_eq!(world.health.totals(), Totals { trips: 1, refused_open: 100, ..Totals::default() });
    world.wait(seconds(5));
    for _ in 0..3 {
        world.answer();
    }
    assert_eq!(world.phase(), Phase::Closed);
    assert_eq!(world.health.counts(world.now), WindowCount::default(), "and it begins with nothing");
}

/// Without rules it never opens, and counts all the same.
#[test]
fn without_rules_it_stays_closed_and_counts() {
    let world = World::new(None, None);
    for _ in 0..100 {
        world.fail();
    }
    assert_eq!(world.phase(), Phase::Closed);
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 100, failures: 100, slow: 0 });
    assert_eq!(world.health.totals(), Totals::default());
    world.health.force_open(world.now);
    assert_eq!(world.phase(), Phase::ForcedOpen);
}

/// Time that runs back between threads breaks nothing.
#[test]
fn a_result_from_before_its_beginning_lasted_no_time() {
    let mut world = World::plain();
    world.wait(seconds(100));
    let ticket = world.admit();
    ticket.answered(crate::time::Mono::from_ns(0));
    assert_eq!(world.health.counts(world.now).slow, 0);
    assert_eq!(world.phase(), Phase::Closed);
}
