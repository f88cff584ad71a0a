//! When "there is no such operation" decides something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::operation::{Attention, NotExecuted, State};
use backstop_engine::policy::effect::{AbsenceRules, AbsenceVerdict, CalibrationRules, VerificationRules};

use super::upstream::{Reply, Upstream, answer};
use super::world::{World, count, eventually, query, route, verification};

const CALIBRATION: CalibrationRules =
    CalibrationRules { sample: PerMille(1000), must_see_within: Duration::from_secs(10) };

/// After a minute, twice, ten seconds apart.
fn rules(verdict: AbsenceVerdict) -> VerificationRules {
    let absence = AbsenceRules {
        settle: Duration::from_secs(60),
        confirmations: 2,
        spacing: Duration::from_secs(10),
        not_after: None,
        verdict,
    };
    VerificationRules { absence: Some(absence), ..verification(query()) }
}

/// Knows the operation `k2` and one that it told of itself, and no other.
fn knows_one(line: &str) -> Reply {
    match line {
        line if line.contains("key=k2&") => answer(200, r#"{"key":"k2","status":"processing"}"#),
        line if line.contains("key=known&") => answer(200, r#"{"key":"known","status":"paid"}"#),
        _ => answer(404, r#"{"code":"no_such_payment"}"#),
    }
}

/// Moves time by seconds until the operation is decided or needs a person; how many it took, or `None` if it did not.
fn seconds_until_it_is_over(
    world: &World,
    id: backstop_engine::operation::OperationId,
    most: u64,
) -> Option<u64> {
    for second in 0..most {
        if !matches!(world.state(id), State::Unknown(_)) {
            return Some(second);
        }
        let asked = world.record(id).progress.parts().asked;
        world.pass(Duration::from_secs(1));
        // Waits are up to a second, so each second brings one answer.
        eventually(|| {
            let record = world.record(id);
            !matches!(record.progress.state(), State::Unknown(_)) || record.progress.parts().asked > asked
        });
    }
    None
}

/// The lease of the forward ends 1 s and 5 s of grace after its beginning. 60 s later the first absence counts, 10 s later the
/// second. A question is asked at most a second, and is recorded at most another, after it might be.
#[test]
fn under_the_full_rule_an_absence_decides_after_it_has_settled() {
    let upstream = Upstream::start(knows_one);
    let mut world =
        World::new(vec![route("pay", &upstream, Some(rules(AbsenceVerdict::NotExecuted(CALIBRATION))))]);
    let id = world.unknown("pay", 1);
    world.unknown("pay", 2);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    world.start();
    let second = seconds_until_it_is_over(&world, id, 100).unwrap();
    assert_eq!(world.state(id), State::NotExecuted(NotExecuted::Absent));
    assert!((76..=80).contains(&second), "{second}");
}

#[test]
fn without_another_operation_that_the_upstream_knows_no_absence_counts() {
    let upstream = Upstream::start(knows_one);
    let mut world =
        World::new(vec![route("pay", &upstream, Some(rules(AbsenceVerdict::NotExecuted(CALIBRATION))))]);
    let id = world.unknown("pay", 1);
    world.start();
    assert_eq!(seconds_until_it_is_over(&world, id, 90), None);
    assert!(count(&world.counts().routes[0].absences_suspended) > 50);
}

#[test]
fn without_the_rule_an_absence_calls_a_person_when_the_time_is_over() {
    let upstream = Upstream::start(knows_one);
    let mut short = rules(AbsenceVerdict::Attention(None));
    short.schedule.deadline = Duration::from_secs(3600);
    let mut world = World::new(vec![route("pay", &upstream, Some(short))]);
    let id = world.unknown("pay", 1);
    world.unknown("pay", 2);
    world.start();
    assert_eq!(seconds_until_it_is_over(&world, id, 90), None);
    world.hand.advance(Duration::from_secs(3600));
    eventually(|| matches!(world.state(id), State::Attention(_)));
    assert_eq!(world.state(id), State::Attention(Attention::Absent));
}

/// All but one thing: whether the status query shows what has just happened nobody has seen since the start.
#[test]
fn without_a_success_that_was_seen_in_this_life_no_absence_counts() {
    let upstream = Upstream::start(knows_one);
    let mut world =
        World::new(vec![route("pay", &upstream, Some(rules(AbsenceVerdict::NotExecuted(CALIBRATION))))]);
    let id = world.unknown("pay", 1);
    world.unknown("pay", 2);
    world.start();
    assert_eq!(seconds_until_it_is_over(&world, id, 90), None);
    let counts = &world.counts().routes[0];
    assert!(count(&counts.absences_suspended) > 50);
    assert_eq!(count(&counts.calibration_is_failing), 0);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    let second = seconds_until_it_is_over(&world, id, 30).unwrap();
    assert_eq!(world.state(id), State::NotExecuted(NotExecuted::Absent));
    assert!((10..=15).contains(&second), "two that count, ten seconds apart: {second}");
}

/// A success that the upstream itself told of and does not show in ten seconds.
#[test]
fn while_the_upstream_does_not_show_its_own_successes_no_absence_counts() {
    let shows = Arc::new(AtomicBool::new(false));
    let is_shown = Arc::clone(&shows);
    let upstream = Upstream::start(move |line| match line.contains("key=known&") {
        true if !is_shown.load(Ordering::SeqCst) => answer(404, r#"{"code":"no_such_payment"}"#),
        _ => knows_one(line),
    });
    let mut world =
        World::new(vec![route("pay", &upstream, Some(rules(AbsenceVerdict::NotExecuted(CALIBRATION))))]);
    let id = world.unknown("pay", 1);
    world.unknown("pay", 2);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    world.start();
    assert_eq!(seconds_until_it_is_over(&world, id, 90), None);
    let counts = &world.counts().routes[0];
    assert_eq!((count(&counts.samples_not_seen), count(&counts.calibration_is_failing)), (1, 1));
    shows.store(true, Ordering::SeqCst);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    let second = seconds_until_it_is_over(&world, id, 30).unwrap();
    assert_eq!(world.state(id), State::NotExecuted(NotExecuted::Absent));
    assert!((10..=15).contains(&second), "two that count, ten seconds apart: {second}");
    let counts = &world.counts().routes[0];
    assert_eq!((count(&counts.samples_seen), count(&counts.calibration_is_failing)), (1, 0));
}
