//! When an incident begins, on both sides of every bound.

use crate::incident::{Counts, DependencyState, Latency, Lookups, Phase, Sample, Signal};
use crate::outcome::Outcome;

use super::support::{SECOND, World, began_with, counts, mixed, normal, open, to_phase, with};

/// By hand, over a thousand requests: 1 % is 10, 0.5 % is 5, 0.1 % is 1. Each second is (normal, fallback, rejected,
/// failed).
#[test]
fn a_ratio_out_of_bounds_for_three_seconds_begins_one_and_the_bound_itself_never_does() {
    use Signal::{Errors, Fallback, Quality, Refusals};
    let table: [([u64; 4], &[Signal]); 8] = [
        ([990, 0, 0, 10], &[]),
        ([989, 0, 0, 11], &[Quality, Errors]),
        ([995, 5, 0, 0], &[]),
        ([994, 6, 0, 0], &[Fallback]),
        ([999, 0, 1, 0], &[]),
        ([998, 0, 2, 0], &[Refusals]),
        ([990, 5, 1, 4], &[]),
        ([989, 5, 1, 5], &[Quality]),
    ];
    for ([normal, fallback, rejected, failed], expected) in table {
        let mut world = World::new();
        let bad = mixed(normal, fallback, rejected, failed);
        if expected.is_empty() {
            world.quiet(200, &bad);
            continue;
        }
        world.quiet(2, &bad);
        assert_eq!(began_with(world.tick(&bad)).unwrap(), expected, "{bad:?}");
        let record = world.record();
        assert_eq!(record.phase, Phase::Degraded);
        assert_eq!(record.time_to_detect(), 2 * SECOND);
        assert_eq!(record.counts, counts(3 * normal, 3 * fallback, 3 * rejected, 3 * failed));
    }
}

/// By hand: 45 of 10 000 are usual, so the bound is 45 + 10 = 55. A second is in the baseline after 60.
#[test]
fn alternatives_are_held_against_what_is_usual() {
    for (fallback, begins) in [(55, false), (56, true)] {
        let mut world = World::new();
        world.quiet(120, &mixed(9955, 45, 0, 0));
        assert!((world.incidents.baseline().fallback_ratio() - 0.0045).abs() < 1e-12);
        let raised = mixed(10_000 - fallback, fallback, 0, 0);
        world.quiet(2, &raised);
        assert_eq!(began_with(world.tick(&raised)), begins.then(|| vec![Signal::Fallback]));
    }
}

/// What leads to an incident never becomes usual: at the third second all of it is still in the last minute.
#[test]
fn the_baseline_is_not_fed_by_the_incident() {
    let mut world = World::new();
    world.quiet(100, &normal(1000));
    let before = *world.incidents.baseline();
    world.quiet(2, &mixed(0, 1000, 0, 0));
    for _ in 0..200 {
        world.tick(&mixed(0, 1000, 0, 0));
    }
    assert_eq!(world.incidents.baseline().fallback_ratio(), 0.0);
    // Three seconds left the window between the two readings, all of them whole.
    assert!(world.incidents.baseline().requests <= before.requests + 3000.0);
}

/// Busy until then, so that 19 of a whole minute are within bounds: 19 / 57 019 = 0.03 %.
#[test]
fn three_seconds_need_twenty_requests_and_five_bad_ones() {
    let table = [([7, 6, 6], false), ([7, 7, 6], true)];
    for (requests, begins) in table {
        let mut world = World::new();
        world.quiet(60, &normal(1000));
        let changes = requests.map(|failed| world.tick(&mixed(0, 0, 0, failed)));
        assert_eq!(changes.iter().flatten().count(), usize::from(begins), "{requests:?}");
    }
    // 4 of 60, then 5 of 60: each second is out of bounds, and the minute is not.
    for (last, begins) in [(1, false), (2, true)] {
        let mut world = World::new();
        world.quiet(60, &normal(1000));
        world.quiet(1, &mixed(18, 0, 0, 2));
        world.quiet(1, &mixed(19, 0, 0, 1));
        assert_eq!(world.tick(&mixed(18, 0, 0, last)).is_some(), begins);
    }
}

#[test]
fn a_good_second_begins_the_three_anew_and_one_without_requests_does_not() {
    let mut world = World::new();
    world.quiet(60, &normal(100_000));
    let bad = mixed(0, 0, 0, 20);
    world.quiet(2, &bad);
    world.quiet(1, &normal(20));
    world.quiet(2, &bad);
    world.quiet(3, &normal(0));
    assert_eq!(began_with(world.tick(&bad)), Some(vec![Signal::Quality, Signal::Errors]));
    // The run began five seconds ago, after the good second.
    assert_eq!(world.record().time_to_detect(), 5 * SECOND);
    assert_eq!(world.record().counts.failed, 60);
}

/// Two seconds of nothing but failures are 3.3 % of the minute, but without them it is within bounds, even if there is
/// always a failure somewhere. With a third one, later, 1000 + 57 of 58 000 are left: 1.8 %.
#[test]
fn two_bad_seconds_in_busy_traffic_begin_none_and_three_in_a_minute_do() {
    let mut world = World::new();
    let usual = mixed(999, 0, 0, 1);
    world.quiet(58, &usual);
    world.quiet(2, &mixed(0, 0, 0, 1000));
    world.quiet(20, &usual);
    assert_eq!(began_with(world.tick(&mixed(0, 0, 0, 1000))), Some(vec![Signal::Quality, Signal::Errors]));
    // It began with the first of the three, not with the failure that is always somewhere.
    assert_eq!(world.record().time_to_detect(), 22 * SECOND);
}

/// One refusal in each second of a hundred requests: never five in three seconds, and five in five.
#[test]
fn what_is_thin_but_steady_begins_one() {
    let mut world = World::new();
    world.quiet(4, &mixed(99, 0, 1, 0));
    assert_eq!(began_with(world.tick(&mixed(99, 0, 1, 0))), Some(vec![Signal::Refusals]));
    // It goes on as it began: three seconds within bounds do not hide a minute that is not.
    for _ in 0..100 {
        world.tick(&mixed(99, 0, 1, 0));
        assert_ne!(world.phase(), Some(Phase::Observing));
    }
    assert_eq!(world.record().first_green, None);
}

/// One request every ten seconds: the fifth failure is certain, 40 s after the first. Every fifteen seconds there are
/// never more than four in sixty.
#[test]
fn in_low_traffic_five_bad_ones_in_a_minute_begin_one() {
    for (every, expected) in [(10, Some(41)), (15, None)] {
        let mut world = World::new();
        let mut began = None;
        for second in 0..300 {
            let failed = u64::from(second % every == 0);
            if began_with(world.tick(&mixed(0, 0, 0, failed))).is_some() {
                began = Some(world.second());
                break;
            }
        }
        assert_eq!(began, expected, "every {every} s");
    }
    // The minute is one by the clock, however seldom the ticks: every five seconds, and a failure at every third.
    let mut world = World::new();
    for tick in 0..60 {
        let failed = u64::from(tick % 3 == 0);
        assert_eq!(world.tick_after(5 * SECOND, &mixed(0, 0, 0, failed)), None);
    }
    // All at once are enough too: nothing else in the minute speaks against them.
    let mut world = World::new();
    world.quiet(100, &normal(0));
    world.quiet(1, &mixed(0, 0, 0, 4));
    assert!(world.tick(&mixed(0, 0, 0, 1)).is_some());
    assert_eq!(world.record().time_to_detect(), SECOND);
}

#[test]
fn a_breaker_that_is_not_closed_begins_one_at_once() {
    let table = [
        (DependencyState::Open, Signal::BreakerOpen),
        (DependencyState::HalfOpen, Signal::Returning),
        (DependencyState::Ramp { percent: 10 }, Signal::Returning),
        (DependencyState::Forced, Signal::Forced),
    ];
    for (state, signal) in table {
        let mut world = World::new();
        world.quiet(10, &normal(100));
        assert_eq!(began_with(world.tick(&with(state, normal(100)))), Some(vec![signal]));
        assert_eq!(world.record().time_to_detect(), SECOND - SECOND);
        assert_eq!(world.record().counts, counts(100, 0, 0, 0));
    }
}

/// The breaker opens in the second bad second, before the ratio has held for three: both seconds belong to it.
#[test]
fn what_was_lost_before_the_breaker_opened_is_counted() {
    let mut world = World::new();
    world.quiet(10, &normal(1000));
    world.quiet(1, &mixed(500, 0, 0, 500));
    let change = world.tick(&with(DependencyState::Open, mixed(0, 100, 0, 900)));
    assert_eq!(began_with(change), Some(vec![Signal::BreakerOpen]));
    assert_eq!(world.record().counts, counts(500, 100, 0, 1400));
    assert_eq!(&*world.record().id, "20260301T000011Z-1");
}

#[test]
fn signals_beside_breakers_and_ratios_begin_nothing() {
    let mut sample = normal(1000);
    sample.untracked_effects = 3;
    sample.lookups = Some(Lookups { hits: 0, total: 1000 });
    sample.dependencies[1].latency = Latency::Red;
    sample.dependencies[1].requests = 100;
    sample.dependencies[1].attempts = 300;
    World::new().quiet(400, &sample);
}

#[test]
fn what_clients_do_themselves_begins_nothing() {
    let mut own = Counts { normal: 20, ..Counts::default() };
    own.add(Outcome::Rejected, "client_slow", 500);
    own.add(Outcome::Rejected, "client_too_large", 500);
    own.add(Outcome::Abandoned, "client_left", 500);
    assert_eq!(own, Counts { normal: 20, abandoned: 1500, ..Counts::default() });
    World::new().quiet(100, &Sample { counts: own, ..Sample::default() });
}

/// The seconds of one incident are not taken for the next one's.
#[test]
fn the_next_incident_counts_its_own_seconds() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(298, &normal(100));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
    assert!(world.tick(&open()).is_some());
    assert_eq!(world.record().counts.requests(), 0);
    // 303 seconds after midnight.
    assert_eq!(&*world.record().id, "20260301T000503Z-2");
}
