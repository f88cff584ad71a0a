//! When an incident ends, on both sides of every bound.

use std::time::Duration;

use crate::incident::{Change, DependencyState, Latency, Lookups, Phase, Sample, What};

use super::support::{SECOND, World, mixed, normal, open, to_phase, with};

fn amber() -> Sample {
    let mut sample = normal(100);
    sample.dependencies[0].latency = Latency::Amber;
    sample
}

/// Open at second 1, green from second 2 on: over at 302 and not at 301.
#[test]
fn it_ends_after_exactly_five_minutes_of_green() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(298, &normal(100));
    assert_eq!((world.second(), world.phase()), (301, Some(Phase::Observing)));
    let change = world.tick(&normal(100));
    let id = "20260301T000001Z-1".into();
    assert_eq!(change, Some(Change::Ended { id, lasted: Duration::from_secs(301) }));
    assert_eq!(world.phase(), None);
    let record = world.last_ended();
    assert_eq!(record.phase, Phase::Ended);
    assert_eq!(record.time_to_first_green(), Some(SECOND));
    assert_eq!(record.time_to_full(), Some(SECOND));
    assert_eq!(record.time_to_end(), Some(Duration::from_secs(301)));
    assert_eq!(record.counts.normal, 301 * 100);
}

#[test]
fn five_minutes_less_a_nanosecond_are_not_enough() {
    for (step, expected) in [(SECOND - Duration::from_nanos(1), None), (SECOND, Some(Phase::Ended))] {
        let mut world = World::new();
        world.open_and_close();
        world.quiet(298, &normal(100));
        assert_eq!(to_phase(world.tick_after(step, &normal(100))), expected);
    }
}

/// Amber is told first at second 10: for ten seconds at 20, for eleven at 21.
#[test]
fn ten_seconds_of_amber_stay_and_eleven_leave() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(6, &normal(100));
    world.quiet(11, &amber());
    assert_eq!(world.second(), 20);
    assert_eq!(to_phase(world.tick(&amber())), Some(Phase::Recovering));
    // Green again: observing at once, and five minutes from here.
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Observing));
    world.quiet(299, &normal(100));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
}

#[test]
fn a_short_amber_stays_in_observing_but_the_five_minutes_begin_anew() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(298, &normal(100));
    world.quiet(1, &amber());
    world.quiet(300, &normal(100));
    assert_eq!(world.phase(), Some(Phase::Observing));
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
    // Traffic was whole all along; only the latency was raised.
    assert_eq!(world.last_ended().time_to_full(), Some(SECOND));
    assert_eq!(world.last_ended().time_to_end(), Some(Duration::from_secs(602)));
}

/// Amber for ten seconds, one green, amber again: each is a new ten seconds.
#[test]
fn green_between_two_ambers_parts_them() {
    let mut world = World::new();
    world.open_and_close();
    for _ in 0..20 {
        world.quiet(11, &amber());
        world.quiet(1, &normal(100));
    }
    assert_eq!(world.phase(), Some(Phase::Observing));
}

#[test]
fn a_breaker_that_is_not_closed_leaves_observing_at_once() {
    let table = [
        (DependencyState::Open, Phase::Degraded),
        (DependencyState::Forced, Phase::Degraded),
        (DependencyState::HalfOpen, Phase::Recovering),
        (DependencyState::Ramp { percent: 50 }, Phase::Recovering),
    ];
    for (state, expected) in table {
        let mut world = World::new();
        world.open_and_close();
        world.quiet(100, &normal(100));
        assert_eq!(to_phase(world.tick(&with(state, normal(100)))), Some(expected));
        assert_eq!(world.record().full, None);
    }
}

/// 60 % of requests fail in observing: amber for eleven seconds, and worse than it ever was.
#[test]
fn ratios_out_of_bounds_lead_from_observing_back_to_degraded() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(60, &normal(100));
    world.quiet(11, &mixed(40, 0, 0, 60));
    assert_eq!(to_phase(world.tick(&mixed(40, 0, 0, 60))), Some(Phase::Degraded));
}

/// A second of failures in busy traffic shows for as long as it is among the last three, then it is over.
#[test]
fn one_bad_second_in_observing_costs_three_seconds_of_green() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(298, &normal(1000));
    world.quiet(1, &mixed(0, 0, 0, 1000));
    // Bad ones are among the last three for two seconds more; green from the third on.
    world.quiet(2, &normal(1000));
    world.quiet(300, &normal(1000));
    assert_eq!(to_phase(world.tick(&normal(1000))), Some(Phase::Ended));
}

/// A machine that slept for an hour has not been green for an hour.
#[test]
fn a_gap_is_not_evidence() {
    let table = [(Duration::from_secs(5), true), (Duration::from_nanos(5_000_000_001), false)];
    for (step, counts) in table {
        let mut world = World::new();
        world.open_and_close();
        world.quiet(295, &normal(100));
        let change = world.tick_after(step, &normal(100));
        assert_eq!(to_phase(change).is_some(), counts, "{step:?}");
        if !counts {
            let noted = &world.record().timeline.entries().next_back().unwrap().what;
            assert_eq!(*noted, What::Gap { missed: step });
            world.quiet(299, &normal(100));
            assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
        }
    }
}

#[test]
fn a_gap_does_not_make_ten_seconds_of_amber() {
    let mut world = World::new();
    world.open_and_close();
    world.quiet(1, &amber());
    assert_eq!(world.tick_after(Duration::from_secs(3600), &amber()), None);
    world.quiet(10, &amber());
    assert_eq!(to_phase(world.tick(&amber())), Some(Phase::Recovering));
}

/// The date may jump as it likes: only the boot clock counts within one boot.
#[test]
fn steps_of_the_date_neither_end_an_incident_nor_keep_it() {
    let mut world = World::new();
    world.open_and_close();
    for step in 0..298_i64 {
        let jump = if step % 2 == 0 { 7_200_000_000_000 } else { -10_000_000_000_000 };
        world.now.wall = crate::time::Wall::from_unix_ns(world.now.wall.as_unix_ns() + jump);
        world.quiet(1, &normal(100));
    }
    assert_eq!(to_phase(world.tick(&normal(100))), Some(Phase::Ended));
    assert_eq!(world.last_ended().time_to_end(), Some(Duration::from_secs(301)));
}

/// Nobody asks for anything any more: what was bad leaves with the minute, and five minutes later it is over.
#[test]
fn an_incident_ends_without_traffic_too() {
    let mut world = World::new();
    world.quiet(2, &mixed(0, 0, 0, 100));
    assert!(world.tick(&mixed(0, 0, 0, 100)).is_some());
    // Bad until second 62, the last moment at which second 3 is less than a minute ago.
    world.quiet(59, &normal(0));
    assert_eq!(to_phase(world.tick(&normal(0))), Some(Phase::Recovering));
    assert_eq!(to_phase(world.tick(&normal(0))), Some(Phase::Observing));
    world.quiet(298, &normal(0));
    assert_eq!(to_phase(world.tick(&normal(0))), Some(Phase::Ended));
    assert_eq!(world.second(), 363);
    let never = with(DependencyState::Open, normal(0));
    world.tick(&never);
    world.quiet(1000, &open());
}

fn hits(of_1000: u64) -> Sample {
    Sample { lookups: Some(Lookups { hits: of_1000, total: 1000 }), ..normal(1000) }
}

/// Nothing but hits is usual; after the outage nine of ten are, for good. Told first at second 124, they are usual five minutes
/// later: green from second 425 on, and over at 725.
#[test]
fn hits_that_stay_fewer_do_not_keep_an_incident_for_ever() {
    let mut world = World::new();
    world.quiet(120, &hits(1000));
    world.open_and_close();
    assert_eq!(world.second(), 123);
    world.quiet(11, &hits(900));
    assert_eq!(to_phase(world.tick(&hits(900))), Some(Phase::Recovering));
    world.quiet(289, &hits(900));
    assert_eq!(world.second(), 424);
    assert_eq!(to_phase(world.tick(&hits(900))), Some(Phase::Observing));
    world.quiet(299, &hits(900));
    assert_eq!(to_phase(world.tick(&hits(900))), Some(Phase::Ended));
    assert_eq!(world.second(), 725);
    // A minute later what was told since then is the new usual one.
    world.quiet(100, &hits(900));
    assert!((world.incidents.baseline().hit_ratio().unwrap() - 0.9).abs() < 1e-9);
}

/// Something else is wrong for a second, 299 s after the hits alone were: the five minutes begin anew after it.
#[test]
fn fewer_hits_are_usual_only_after_five_minutes_with_nothing_else() {
    let mut world = World::new();
    world.quiet(120, &hits(1000));
    world.open_and_close();
    world.quiet(11, &hits(900));
    assert_eq!(to_phase(world.tick(&hits(900))), Some(Phase::Recovering));
    world.quiet(287, &hits(900));
    let mut slow = hits(900);
    slow.dependencies[0].latency = Latency::Amber;
    world.quiet(1, &slow);
    // Alone again from second 424 to 724.
    world.quiet(301, &hits(900));
    assert_eq!(world.second(), 724);
    assert_eq!(to_phase(world.tick(&hits(900))), Some(Phase::Observing));
}
