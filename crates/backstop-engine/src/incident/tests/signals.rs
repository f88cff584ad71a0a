//! Each signal alone keeps an incident from ending, on both sides of its bound.

use std::time::Duration;

use crate::incident::{CopyAges, DependencySample, Latency, Lookups, Sample, Signal};

use super::support::{World, mixed, normal};

/// An incident long past its failures; then this goes on for a minute, in which the signal must or must not be seen.
fn seen(signal: Signal, sample: &Sample) -> bool {
    let mut world = World::new();
    let mut usual = normal(1000);
    usual.lookups = Some(Lookups { hits: 1000, total: 1000 });
    // 0.4 % alternatives and nothing but hits are usual, so the bounds are 0.5 % and 95 %.
    usual.counts.normal = 996;
    usual.counts.fallback = 4;
    world.quiet(120, &usual);
    let mut failing = usual.clone();
    failing.counts.failed = 500;
    world.quiet(2, &failing);
    assert!(world.tick(&failing).is_some());
    for _ in 0..20 {
        world.tick(&usual);
    }
    let seconds = |world: &World| {
        let named = world.record().signals.iter().find(|named| *named.name == *signal.token());
        named.map_or(0, |named| named.value)
    };
    let before = seconds(&world);
    for _ in 0..60 {
        world.tick(sample);
    }
    let is_seen = seconds(&world) > before;
    assert_eq!(is_seen, world.record().phase.token() != "observing", "{signal:?}");
    is_seen
}

fn dependency(change: impl Fn(&mut DependencySample)) -> Sample {
    let mut sample = normal(1000);
    change(&mut sample.dependencies[1]);
    sample
}

fn lookups(hits: u64) -> Sample {
    Sample { lookups: Some(Lookups { hits, total: 1000 }), ..normal(1000) }
}

fn ages(p99: Duration) -> Sample {
    Sample { copy_ages: Some(CopyAges { p99, refresh: Duration::from_secs(30) }), ..normal(1000) }
}

#[test]
fn every_signal_has_its_bound() {
    let calls = |attempts| dependency(|calls| (calls.requests, calls.attempts) = (1000, attempts));
    let at = Duration::from_secs(30);
    let table = [
        (Signal::Quality, mixed(990, 4, 1, 5), mixed(989, 4, 1, 6)),
        (Signal::Fallback, mixed(995, 5, 0, 0), mixed(994, 6, 0, 0)),
        (Signal::Refusals, mixed(999, 0, 1, 0), mixed(998, 0, 2, 0)),
        (Signal::Errors, mixed(990, 0, 0, 10), mixed(989, 0, 0, 11)),
        (Signal::Attempts, calls(1020), calls(1021)),
        (Signal::HitRatio, lookups(950), lookups(949)),
        (Signal::CopyAges, ages(at), ages(at + Duration::from_nanos(1))),
        (Signal::Latency, dependency(|_| ()), dependency(|calls| calls.latency = Latency::Amber)),
        (Signal::Latency, dependency(|_| ()), dependency(|calls| calls.latency = Latency::Red)),
        (Signal::UntrackedEffects, normal(1000), Sample { untracked_effects: 1, ..normal(1000) }),
    ];
    for (signal, green, amber) in table {
        assert!(!seen(signal, &green), "{signal:?} on its bound");
        assert!(seen(signal, &amber), "{signal:?} beyond its bound");
    }
}

/// Effects that are followed up may outlive the incident.
#[test]
fn followed_up_effects_keep_nothing_from_ending() {
    assert!(!seen(Signal::UntrackedEffects, &Sample { tracked_effects: 7, ..normal(1000) }));
}

/// One refusal in each second of a hundred requests is 1 %, and never five in three seconds.
#[test]
fn what_is_thin_but_steady_is_seen_over_the_minute() {
    assert!(seen(Signal::Refusals, &mixed(99, 0, 1, 0)));
}

/// One of 300 requests in a minute fails: 0.3 % are within bounds, and one is nobody's signal in any case.
#[test]
fn a_single_bad_one_is_no_signal() {
    assert!(!seen(Signal::Refusals, &mixed(5, 0, 0, 0)));
    let mut world = World::new();
    world.open_and_close();
    for _ in 0..4 {
        world.quiet(1, &mixed(4, 0, 1, 0));
        world.quiet(59, &normal(5));
    }
    world.quiet(58, &normal(5));
    assert!(world.tick(&normal(5)).is_some());
}

/// Nothing is known of hits before twenty look-ups: a process that has just begun has no usual ratio.
#[test]
fn without_a_usual_hit_ratio_there_is_no_bound() {
    let mut world = World::new();
    world.open_and_close();
    let mut sample = normal(100);
    sample.lookups = Some(Lookups { hits: 0, total: 100 });
    world.quiet(298, &sample);
    assert!(world.tick(&sample).is_some());
}

/// A new policy has the dependencies in another order: calls are added up by name.
#[test]
fn calls_are_added_up_by_name_across_policies() {
    let mut world = World::new();
    world.open_and_close();
    // Twenty requests without a repeat, then one policy later two seconds with 3 + 3 repeats of 60 in all.
    let calls = |requests, attempts| DependencySample { requests, attempts, ..DependencySample::default() };
    let mut sample = normal(100);
    sample.dependencies = vec![calls(1000, 1000), calls(20, 23)];
    world.quiet(1, &sample);
    world.names = crate::incident::Names::new(&[], &["stock", "catalog"]);
    sample.dependencies = vec![calls(20, 23), calls(1000, 1000)];
    world.tick(&sample);
    let attempts = world.record().signals.iter().find(|named| &*named.name == "attempts");
    assert_eq!(attempts.map(|named| named.value), Some(1));
}
