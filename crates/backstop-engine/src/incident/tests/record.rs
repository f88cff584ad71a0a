//! What an incident's record holds.

use std::time::Duration;

use crate::failure::FailureKind;
use crate::incident::{
    Counts, DependencyRecord, DependencySample, DependencyState, ENDED_MAX, NAMES_MAX, Named, Names, OTHER,
    Sample, What,
};

use super::support::{SECOND, World, counts, mixed, normal, open, with};

fn named<T>(name: &str, value: T) -> Named<T> {
    Named { name: name.into(), value }
}

fn failures(kind: FailureKind, count: u64) -> [u64; FailureKind::TOKENS.len()] {
    let mut failures = [0; FailureKind::TOKENS.len()];
    failures[kind.index()] = count;
    failures
}

/// By hand: two seconds of 10 browsing and 2 buying each, the second one with an open breaker. The busy minute before
/// is within bounds and belongs to nothing.
#[test]
fn it_counts_by_function_outcome_dependency_and_reason() {
    let mut world = World::new();
    let mut sample = mixed(2, 8, 1, 1);
    sample.counts.abandoned = 1;
    sample.functions = vec![Counts { abandoned: 1, ..counts(2, 8, 0, 0) }, counts(0, 0, 1, 1)];
    sample.dependencies[1] = DependencySample {
        requests: 9,
        attempts: 10,
        failures: failures(FailureKind::ReadTimeout, 9),
        ..DependencySample::default()
    };
    sample.reasons = vec![("none", 2), ("read_timeout", 8), ("missing", 1), ("capacity", 1)];
    sample.tracked_effects = 3;
    sample.served.sources = vec![("snapshot", 8)];
    (sample.served.ages[3], sample.served.oldest) = (8, Duration::from_millis(29_500));
    let mut before = normal(1000);
    (before.dependencies[1].requests, before.dependencies[1].attempts) = (3, 3);
    world.quiet(60, &before);
    world.quiet(1, &sample);
    assert!(world.tick(&with(DependencyState::Open, sample)).is_some());

    let record = world.record();
    assert_eq!(record.counts, Counts { abandoned: 2, ..counts(4, 16, 2, 2) });
    assert_eq!(record.counts.requests(), 24);
    let browse = Counts { abandoned: 2, ..counts(4, 16, 0, 0) };
    let buy = counts(0, 0, 2, 2);
    assert_eq!((browse.completed(), browse.reduced(), browse.not_completed()), (4, 16, 0));
    assert_eq!((buy.completed(), buy.reduced(), buy.not_completed()), (0, 0, 4));
    assert_eq!(record.functions, [named("browse", browse), named("buy", buy)]);
    let catalog = DependencyRecord {
        state: DependencyState::Open,
        before_per_1000_s: Some(0),
        ..DependencyRecord::default()
    };
    let stock = DependencyRecord {
        requests: 18,
        attempts: 20,
        failures: vec![named("read_timeout", 18)],
        // Three calls in each second before it.
        before_per_1000_s: Some(3000),
        ..DependencyRecord::default()
    };
    assert_eq!(record.dependencies, [named("catalog", catalog), named("stock", stock)]);
    assert_eq!(record.reasons, [named("read_timeout", 16), named("missing", 2), named("capacity", 2)]);
    assert_eq!(record.sources, [named("snapshot", 16)]);
    assert_eq!((record.ages[3], record.ages.iter().sum::<u64>()), (16, 16));
    assert_eq!(record.oldest_copy, Duration::from_millis(29_500));
    let course: Vec<_> =
        record.course.stretches.iter().map(|one| (one.counts.requests(), one.attempts.clone())).collect();
    assert_eq!(course, [(12, vec![0, 10]), (12, vec![0, 10])]);
    assert_eq!(record.tracked_effects, 3);
    assert_eq!(record.time_to_detect(), SECOND);
    let signals: Vec<&str> = record.signals.iter().map(|named| &*named.name).collect();
    assert_eq!(signals, ["breaker_open", "quality", "fallback"]);
}

/// Seven, then nine, then eight not completed; nine completed less stays the worst, wherever it stands.
#[test]
fn the_worst_second_stands_once() {
    let mut world = World::new();
    world.tick(&with(DependencyState::Open, mixed(0, 5, 7, 0)));
    world.tick(&with(DependencyState::Open, mixed(0, 0, 0, 9)));
    world.tick(&with(DependencyState::Open, mixed(0, 50, 4, 4)));
    let record = world.record();
    assert_eq!(record.worst, Some(counts(0, 0, 0, 9)));
    let worst: Vec<_> =
        record.timeline.entries().filter(|entry| matches!(entry.what, What::Worst(_))).collect();
    assert_eq!(worst.len(), 1);
    assert_eq!(worst[0].what, What::Worst(counts(0, 0, 0, 9)));
    assert_eq!(worst[0].at.since(&record.began), SECOND);
}

#[test]
fn whole_traffic_counts_from_when_it_came_back_to_stay() {
    let mut world = World::new();
    world.open_and_close();
    assert_eq!(world.record().time_to_full(), Some(SECOND));
    world.tick(&open());
    assert_eq!(world.record().time_to_full(), None);
    world.tick(&normal(100));
    assert_eq!(world.record().time_to_full(), Some(4 * SECOND));
    // The first green stays the first.
    assert_eq!(world.record().time_to_first_green(), Some(SECOND));
}

#[test]
fn thirty_two_incidents_are_remembered() {
    let mut world = World::new();
    for _ in 0..ENDED_MAX + 3 {
        world.open_and_close();
        world.quiet(298, &normal(100));
        assert!(world.tick(&normal(100)).is_some());
    }
    assert_eq!(world.incidents.begun(), 35);
    assert_eq!(world.incidents.ended().len(), ENDED_MAX);
    let numbers: Vec<_> = world.incidents.ended().filter_map(|record| record.id.rsplit('-').next()).collect();
    assert_eq!((numbers[0], numbers[31]), ("4", "35"));
}

#[test]
fn names_are_bounded_and_nothing_is_lost() {
    let mut world = World::new();
    world.tick(&open());
    for round in 0..3 {
        let many: Vec<String> = (0..200).map(|place| format!("f{round}_{place}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        world.names = Names::new(&many, &many);
        let sample = Sample {
            functions: vec![counts(1, 0, 0, 0); 201],
            dependencies: vec![DependencySample { requests: 1, ..DependencySample::default() }; 201],
            ..normal(200)
        };
        world.tick(&sample);
    }
    let record = world.record();
    // The name that was missing came first among what is kept; 603 in all.
    assert_eq!(record.functions.len(), NAMES_MAX);
    assert_eq!(record.functions.iter().map(|named| named.value.normal).sum::<u64>(), 603);
    assert_eq!(record.dependencies.iter().map(|named| named.value.requests).sum::<u64>(), 603);
    assert!(record.functions.iter().any(|named| &*named.name == OTHER));
}
