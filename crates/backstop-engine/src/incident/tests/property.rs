//! Hours of random seconds, restarts and breaks against the naive reference.

use std::time::Duration;

use proptest::prelude::*;

use crate::incident::{
    Change, Counts, DependencySample, DependencyState, FIRST_MAX, Incidents, LAST_MAX, Latency, Phase, Sample,
};
use crate::time::Wall;

use super::reference::Reference;
use super::support::{World, counts};

/// Some seconds of the same kind.
#[derive(Clone, Debug)]
struct Stretch {
    seconds: u64,
    requests: u64,
    /// Of a thousand requests: alternatives, refusals, failures.
    bad: (u64, u64, u64),
    /// How the first dependency stands, and whether that changes from second to second.
    states: Vec<DependencyState>,
    latency: Latency,
    /// What passes before the first of them.
    step: Duration,
    restarts: bool,
    /// Steps of the date, in seconds.
    wall_step: i64,
    chance: u64,
}

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let state = prop_oneof![
        Just(DependencyState::Open),
        Just(DependencyState::HalfOpen),
        Just(DependencyState::Forced),
        Just(DependencyState::Closed),
        (10..=90_u8).prop_map(|percent| DependencyState::Ramp { percent }),
    ];
    let states = prop_oneof![
        6 => Just(vec![DependencyState::Closed]),
        1 => proptest::collection::vec(state, 1..4),
    ];
    let per_mille = || prop_oneof![6 => Just(0_u64), 1 => 0..8_u64, 1 => 0..400_u64];
    let step = prop_oneof![12 => Just(1000_u64), 2 => 1..5000_u64, 1 => 5000..400_000_u64];
    let seconds = prop_oneof![3 => 1..15_u64, 1 => 15..90_u64, 2 => 290..320_u64];
    let requests = prop_oneof![Just(0_u64), Just(1), Just(7), Just(30), Just(100), Just(1000)];
    let latency = prop_oneof![8 => Just(Latency::Green), 1 => Just(Latency::Amber), 1 => Just(Latency::Red)];
    let wall_step = prop_oneof![6 => Just(0_i64), 1 => -100_000..100_000_i64];
    let bad = (per_mille(), per_mille(), per_mille());
    let stretch = (seconds, requests, bad, states, latency, step, 0..20_u8, wall_step, any::<u64>())
        .prop_map(|(seconds, requests, bad, states, latency, step, restarts, wall_step, chance)| Stretch {
            seconds,
            requests,
            bad,
            states,
            latency,
            step: Duration::from_millis(step),
            restarts: restarts == 0,
            wall_step,
            chance,
        });
    proptest::collection::vec(stretch, 1..14)
}

impl Stretch {
    fn sample(&self, second: u64, chance: &mut u64) -> Sample {
        let mut of_thousand = || {
            *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*chance >> 33) % 1000
        };
        let mut all = Counts::default();
        for _ in 0..self.requests.min(100) {
            // Busy seconds are made of ten requests at a time.
            let weight = (self.requests / 100).max(1);
            let roll = of_thousand();
            let (fallback, rejected, failed) = self.bad;
            let one = if roll < fallback {
                counts(0, weight, 0, 0)
            } else if roll < fallback + rejected {
                counts(0, 0, weight, 0)
            } else if roll < fallback + rejected + failed {
                counts(0, 0, 0, weight)
            } else {
                counts(weight, 0, 0, 0)
            };
            all.merge(&one);
        }
        let state = self.states[second as usize % self.states.len()];
        let first = DependencySample { state, ..DependencySample::default() };
        let second = DependencySample { latency: self.latency, ..DependencySample::default() };
        let functions = vec![all, Counts::default()];
        Sample { counts: all, functions, dependencies: vec![first, second], ..Sample::default() }
    }
}

fn is_lawful(from: Phase, to: Phase) -> bool {
    use Phase::{Degraded, Ended, Observing, Recovering};
    matches!(
        (from, to),
        (Degraded, Recovering)
            | (Recovering, Degraded | Observing)
            | (Observing, Degraded | Recovering | Ended)
    )
}

fn play(stretches: &[Stretch]) {
    let mut world = World::new();
    let mut reference = Reference::default();
    let mut phase = None;
    for stretch in stretches {
        if stretch.restarts {
            world.incidents = Incidents::restore(world.incidents.save(), world.now);
            reference.interrupt(true);
        }
        world.now.wall = Wall::from_unix_ns(world.now.wall.as_unix_ns() + stretch.wall_step * 1_000_000_000);
        let mut chance = stretch.chance;
        for second in 0..stretch.seconds {
            let sample = stretch.sample(second, &mut chance);
            let step = if second == 0 { stretch.step } else { Duration::from_secs(1) };
            let change = world.tick_after(step, &sample);
            reference.tick(world.now.mono.as_ns(), &sample);
            compare(&world, &reference, phase, change.as_ref());
            phase = world.phase();
        }
    }
}

fn compare(world: &World, reference: &Reference, before: Option<Phase>, change: Option<&Change>) {
    let expected = reference.current.as_ref();
    assert_eq!(world.phase(), expected.map(|naive| naive.phase));
    assert_eq!(world.incidents.begun() as usize, reference.ended + usize::from(expected.is_some()));
    match change {
        None => assert_eq!(before, world.phase()),
        Some(Change::Began { .. }) => assert_eq!((before, world.phase()), (None, Some(Phase::Degraded))),
        Some(Change::PhaseChanged { from, to, .. }) => {
            assert_eq!((before, world.phase()), (Some(*from), Some(*to)));
            assert!(is_lawful(*from, *to), "{from:?} to {to:?}");
        }
        Some(Change::Ended { .. }) => assert_eq!((before, world.phase()), (Some(Phase::Observing), None)),
    }
    let (Some(record), Some(naive)) = (world.incidents.current(), expected) else { return };
    assert_eq!(record.began.mono.as_ns(), naive.began_ns);
    assert_eq!(record.counts, naive.counts);
    assert_eq!(record.functions[0].value, naive.counts);
    assert_eq!(record.first_green.map(|at| at.mono.as_ns()), naive.first_green_ns);
    assert_eq!(record.full.map(|at| at.mono.as_ns()), naive.full_ns);
    assert!(record.timeline.first.len() <= FIRST_MAX && record.timeline.last.len() <= LAST_MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_hours_go_as_the_naive_reference_says(stretches in stretches()) {
        play(&stretches);
    }
}
