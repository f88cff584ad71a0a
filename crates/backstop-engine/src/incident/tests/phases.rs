//! From phase to phase, by hand.

use crate::incident::{DependencyState, Phase, Sample};

use super::support::{World, mixed, normal, open, with};

const RAMP: DependencyState = DependencyState::Ramp { percent: 10 };

/// Tells each sample in turn and says the phase after it.
fn phases(world: &mut World, samples: &[Sample]) -> Vec<Option<Phase>> {
    let mut phases = Vec::new();
    for sample in samples {
        world.tick(sample);
        phases.push(world.phase());
    }
    phases
}

/// Second 1 to 3: failures, certain in the third. 4: the breaker opens. 5: half open. 6: ramp. 7: closed, but the last
/// three seconds hold 97 + 5 + 5 bad of 300. 8: 10 of 300. 9: 5 of 300. 10: none, and the minute begins here.
#[test]
fn an_outage_goes_through_its_phases() {
    use Phase::{Degraded, Observing, Recovering};
    let mut world = World::new();
    let samples = [
        mixed(50, 0, 0, 50),
        mixed(50, 0, 0, 50),
        mixed(50, 0, 0, 50),
        with(DependencyState::Open, mixed(0, 100, 0, 0)),
        with(DependencyState::HalfOpen, mixed(3, 97, 0, 0)),
        with(RAMP, mixed(95, 5, 0, 0)),
        mixed(95, 5, 0, 0),
        normal(100),
        normal(100),
        normal(100),
    ];
    let expected = [
        None,
        None,
        Some(Degraded),
        Some(Degraded),
        Some(Recovering),
        Some(Recovering),
        Some(Recovering),
        Some(Recovering),
        Some(Recovering),
        Some(Observing),
    ];
    assert_eq!(phases(&mut world, &samples), expected);
}

#[test]
fn one_dependency_that_is_cut_off_outweighs_one_that_returns() {
    for state in [DependencyState::Open, DependencyState::Forced] {
        let mut world = World::new();
        world.tick(&open());
        let mut sample = with(RAMP, normal(100));
        sample.dependencies[1].state = state;
        world.quiet(5, &sample);
        sample.dependencies[1].state = DependencyState::HalfOpen;
        world.tick(&sample);
        assert_eq!(world.phase(), Some(Phase::Recovering));
    }
}

#[test]
fn a_breaker_that_opens_again_leads_back() {
    use Phase::{Degraded, Recovering};
    let mut world = World::new();
    let samples = [
        open(),
        with(DependencyState::HalfOpen, normal(0)),
        open(),
        with(DependencyState::HalfOpen, normal(0)),
    ];
    let expected = [Some(Degraded), Some(Recovering), Some(Degraded), Some(Recovering)];
    assert_eq!(phases(&mut world, &samples), expected);
}

/// Even what is green at once goes by way of recovering: one step in a tick.
#[test]
fn no_phase_is_passed_over() {
    use Phase::{Degraded, Observing, Recovering};
    let expected = [Some(Degraded), Some(Recovering), Some(Observing)];
    assert_eq!(phases(&mut World::new(), &[open(), normal(100), normal(100)]), expected);
}

/// No breaker. The worst ten seconds are 40 % bad. By hand, ten seconds of which k are 10 % bad and the others 40 %:
/// (400 - 30 k) / 1000; at most 20 % from k = 7 on. Then k seconds of 35 % and the others 10 %: (100 + 25 k) / 1000;
/// above 30 % from k = 9 on.
#[test]
fn without_a_breaker_the_ratios_tell_whether_it_gets_better() {
    let mut world = World::new();
    let bad = mixed(60, 40, 0, 0);
    for _ in 0..20 {
        world.tick(&bad);
    }
    assert_eq!(world.phase(), Some(Phase::Degraded));
    let better = mixed(90, 10, 0, 0);
    world.quiet(6, &better);
    world.tick(&better);
    assert_eq!(world.phase(), Some(Phase::Recovering));
    world.quiet(10, &better);
    let worse = mixed(65, 35, 0, 0);
    world.quiet(8, &worse);
    world.tick(&worse);
    assert_eq!(world.phase(), Some(Phase::Degraded));
}

/// At most nineteen requests in ten seconds say nothing about a trend, however good they are.
#[test]
fn too_little_traffic_changes_no_trend() {
    let mut world = World::new();
    for _ in 0..20 {
        world.tick(&mixed(6, 4, 0, 0));
    }
    assert_eq!(world.phase(), Some(Phase::Degraded));
    world.quiet(10, &mixed(1, 1, 0, 0));
    world.quiet(30, &mixed(1, 0, 0, 0));
}
