//! What opens a breaker, and what does not.

use super::support::{World, at, ms, seconds};
use crate::health::{BreakerRules, PerMille, Phase, WindowCount};

fn is_open(world: &World) -> bool {
    matches!(world.phase(), Phase::Open { .. })
}

fn failures_until_open(world: &World) -> u32 {
    (1..=1000)
        .find(|_| {
            world.fail();
            is_open(world)
        })
        .expect("opens at last")
}

/// By hand: without anything before, the tenth failure in a row opens (20 calls would be needed for the share).
#[test]
fn ten_failures_in_a_row_open_it() {
    assert_eq!(failures_until_open(&World::plain()), 10);
}

/// By hand: one failure per 667 ms is 15 in ten seconds, fewer than 20, and 8 in five, fewer than ten.
#[test]
fn too_few_calls_decide_nothing() {
    let mut world = World::plain();
    for _ in 0..60 {
        world.fail();
        world.wait(ms(667));
        assert_eq!(world.phase(), Phase::Closed);
    }
}

/// By hand: after one success the tenth failure in a row comes before there are 20 calls. After 19 successes, with the
/// row broken twice by a further one, there are 21: half is reached by the 21st failure.
#[test]
fn the_share_counts_what_the_window_holds() {
    let world = World::plain();
    world.answer();
    assert_eq!(failures_until_open(&world), 10);

    let world = World::plain();
    for _ in 0..19 {
        world.answer();
    }
    for _ in 0..9 {
        world.fail();
    }
    world.answer();
    for _ in 0..9 {
        world.fail();
    }
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 38, failures: 18, slow: 0 });
    world.answer();
    world.fail();
    world.fail();
    assert!(!is_open(&world), "20 of 41");
    world.fail();
    assert!(is_open(&world));
}

/// By hand: a million successes that have left the window are not there: 10 successes between 9 failures and the rest
/// make the share decide: 10 of 20.
#[test]
fn a_million_old_successes_do_not_hide_what_fails_now() {
    let mut world = World::plain();
    for _ in 0..1000 {
        for _ in 0..1000 {
            world.answer();
        }
        world.wait(ms(20));
    }
    // 20 s later the last of them leave: the last were counted in second 19, which is in the window until second 28.
    world.wait_until(seconds(29));
    assert_eq!(world.health.counts(world.now), WindowCount::default());
    for _ in 0..10 {
        world.answer();
    }
    for n in 1..=9 {
        world.fail();
        assert!(!is_open(&world), "{n}");
    }
    world.fail();
    assert!(is_open(&world), "10 of 20");
}

/// By hand: a million successes in the window: the share is reached by a million failures, of which the row of ten is
/// broken every ninth time.
#[test]
fn a_million_successes_in_the_window_count_fully() {
    const MANY: u64 = 1_000_000;
    let rules = BreakerRules { failures: PerMille(1), ..BreakerRules::default() };
    let world = World::new(Some(rules), None);
    for _ in 0..MANY {
        world.answer();
    }
    // The n-th failure and the successes between: n of MANY + n + (n - 1) / 9 reach a thousandth at n = 1002:
    // 1002 * 1000 = 1 002 000 >= 1 000 000 + 1002 + 111 = 1 001 113; at 1001: 1 001 000 < 1 001 112.
    let mut failures = 0;
    while !is_open(&world) {
        world.fail();
        failures += 1;
        if failures % 9 == 0 && !is_open(&world) {
            world.answer();
        }
    }
    assert_eq!(failures, 1002);
}

/// Buckets do not grow with the calls: all there is has a fixed size.
#[test]
fn what_is_remembered_has_a_fixed_size() {
    assert!(std::mem::size_of::<crate::health::Health>() < 4096);
}

/// By hand: 8 of 20 are slow: 40 %; 12 of 20: 60 %.
#[test]
fn slow_calls_open_it_at_their_share() {
    let mut world = World::plain();
    let rules = BreakerRules { window: seconds(100), ..BreakerRules::default() };
    world.health = World::new(Some(rules), None).health;
    for _ in 0..8 {
        world.answer();
    }
    for n in 1..=12 {
        assert!(!is_open(&world), "{n}");
        world.answer_after(ms(1001));
    }
    assert!(is_open(&world));
}

/// Exactly the accepted time is not slow.
#[test]
fn a_call_is_slow_only_beyond_the_accepted_time() {
    let mut world = World::plain();
    world.answer_after(seconds(1));
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 1, failures: 0, slow: 0 });
    world.answer_after(seconds(1) + std::time::Duration::from_nanos(1));
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 2, failures: 0, slow: 1 });
}

/// By hand: ten in a row, the first at 0 s and the last at 5 s, are within 5 s; a nanosecond more, and they are not;
/// the next failure then sees the nine last of them and itself.
#[test]
fn a_row_counts_only_if_it_is_dense() {
    for (last, opens) in [(seconds(5), true), (seconds(5) + std::time::Duration::from_nanos(1), false)] {
        let mut world = World::plain();
        world.fail();
        world.wait(ms(100));
        for _ in 0..8 {
            world.fail();
        }
        world.wait_until(last);
        world.fail();
        assert_eq!(is_open(&world), opens, "{last:?}");
        if !opens {
            world.fail();
            assert!(is_open(&world));
        }
    }
}

#[test]
fn any_answer_ends_the_row() {
    for neutral in [false, true] {
        let world = World::plain();
        for _ in 0..9 {
            world.fail();
        }
        if neutral {
            world.admit().neutral(world.now)
        } else {
            world.answer()
        }
        for _ in 0..9 {
            world.fail();
        }
        assert!(!is_open(&world), "19 calls, at most nine in a row");
        world.fail();
        assert!(is_open(&world));
    }
}

/// Calls that hang are not counted before they end: 10 failures of 20 finished calls open it beside 1000 that hang.
#[test]
fn hanging_calls_do_not_dilute() {
    let world = World::plain();
    let hanging: Vec<_> = (0..1000).map(|_| world.admit()).collect();
    for _ in 0..10 {
        world.answer();
    }
    for _ in 0..10 {
        assert!(!is_open(&world));
        world.fail();
    }
    assert!(is_open(&world));
    drop(hanging);
}

/// By hand: 20 calls that their clients gave up after 1.5 s are 20 slow ones: all of them, so the 20th opens it.
#[test]
fn calls_given_up_when_they_were_slow_open_it() {
    let mut world = World::plain();
    let mut hanging: Vec<_> = (0..20).map(|_| world.admit()).collect();
    world.wait(ms(1500));
    let _tells_the_time = world.health.refuses(world.now, true);
    hanging.truncate(1);
    assert_eq!(world.health.counts(world.now), WindowCount { calls: 19, failures: 0, slow: 19 });
    assert!(!is_open(&world));
    drop(hanging);
    assert_eq!(world.phase(), Phase::Open { until: at(ms(6500)) });
}

/// A client that leaves early says nothing about the dependency.
#[test]
fn calls_given_up_early_are_nothing() {
    let mut world = World::plain();
    let given_up: Vec<_> = (0..100).map(|_| world.admit()).collect();
    world.wait(seconds(1));
    let _tells_the_time = world.health.refuses(world.now, true);
    drop(given_up);
    assert_eq!(world.health.counts(world.now), WindowCount::default());
    for _ in 0..9 {
        world.fail();
    }
    drop(world.admit());
    world.fail();
    assert!(is_open(&world), "a call given up does not end the row");
}
