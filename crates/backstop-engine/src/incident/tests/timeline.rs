//! The timeline: what it tells, and that it stays bounded.

use crate::incident::{DependencyState, FIRST_MAX, LAST_MAX, Phase, Sample, What};

use super::support::{SECOND, World, normal, open, with};

const HALF_OPEN: DependencyState = DependencyState::HalfOpen;

fn ramp(percent: u8) -> Sample {
    with(DependencyState::Ramp { percent }, normal(100))
}

fn whats(world: &World) -> Vec<What> {
    world.record().timeline.entries().map(|entry| entry.what.clone()).collect()
}

fn catalog(state: DependencyState) -> What {
    What::Dependency { name: "catalog".into(), state }
}

#[test]
fn it_tells_phases_breakers_and_one_line_for_a_ramp() {
    let mut world = World::new();
    world.tick(&open());
    world.tick(&with(HALF_OPEN, normal(3)));
    for percent in [10, 15, 15, 10, 15, 22] {
        world.tick(&ramp(percent));
    }
    world.tick(&normal(100));
    let expected = [
        What::Phase(Phase::Degraded),
        catalog(DependencyState::Open),
        catalog(HALF_OPEN),
        What::Phase(Phase::Recovering),
        What::Ramp { name: "catalog".into(), from: 10, to: 22, steps_back: 1 },
        catalog(DependencyState::Closed),
        What::Phase(Phase::Observing),
    ];
    assert_eq!(whats(&world), expected);
    let entries: Vec<_> = world.record().timeline.entries().collect();
    // 10, 15, 10, 15, 22: five steps, the unchanged second in between is none.
    assert_eq!((entries[4].times, entries[4].until.since(&entries[4].at)), (5, 5 * SECOND));
}

#[test]
fn a_ramp_after_a_relapse_is_another_line() {
    let mut world = World::new();
    for sample in [open(), ramp(10), ramp(15), open(), ramp(10)] {
        world.tick(&sample);
    }
    let ramps = whats(&world).into_iter().filter(|what| matches!(what, What::Ramp { .. })).count();
    assert_eq!(ramps, 2);
}

/// Each failed probe is two breaker lines and two phase lines. The first hundred are told one by one: the beginning, 24
/// times four and three. After that the last eight already hold all four, and only numbers grow.
#[test]
fn a_breaker_that_opens_anew_for_hours_pushes_nothing_out() {
    let mut world = World::new();
    world.tick(&open());
    for _ in 0..5000 {
        world.tick(&with(HALF_OPEN, normal(0)));
        world.tick(&open());
    }
    let timeline = &world.record().timeline;
    assert_eq!((timeline.first.len(), timeline.last.len(), timeline.dropped), (FIRST_MAX, 0, 0));
    // Two lines, and four for each of 5000 probes.
    assert_eq!(timeline.entries().map(|entry| entry.times).sum::<u64>(), 2 + 4 * 5000);
}

/// Lines that cannot be joined: gaps. The first hundred and the last hundred are kept, the rest is counted.
#[test]
fn the_middle_falls_out_and_is_counted() {
    let mut world = World::new();
    world.tick(&open());
    for seconds in 0..1000 {
        world.tick_after(SECOND * (10 + seconds), &open());
    }
    let timeline = &world.record().timeline;
    assert_eq!((timeline.first.len(), timeline.last.len()), (FIRST_MAX, LAST_MAX));
    // 2 lines of the beginning and 1000 gaps.
    assert_eq!(timeline.dropped, 1002 - 200);
    assert_eq!(timeline.first[0].what, What::Phase(Phase::Degraded));
    assert_eq!(timeline.first[99].what, What::Gap { missed: SECOND * (10 + 97) });
    assert_eq!(timeline.last[0].what, What::Gap { missed: SECOND * (10 + 900) });
    assert_eq!(timeline.last[99].what, What::Gap { missed: SECOND * (10 + 999) });
}
