//! What a stand-in answers was told, and counted, as if the route's own dependency had said it.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::flow::{BodyFacts, Reply};
use crate::health::WindowCount;
use crate::policy::{Route, RouteClass, StatusSet};

use super::super::support::{
    Body, GET, OK, REFUSED, SECOND, START, Upstream, copy_read_at, direct, head, public, route, says, words,
};
use super::{World, dependency, engine, mono, second, standing_in};

const DOWN: Upstream = Upstream::Fails(REFUSED);

fn two(class: RouteClass) -> Arc<Engine> {
    let route = Route { declared: StatusSet::of(&[429]), ..standing_in(route(class)) };
    engine(vec![route], vec![dependency("catalog", &[]), dependency("replica", &[])], vec![])
}

fn failures(engine: &Engine) -> u64 {
    second(engine).tally.failures().iter().sum()
}

/// The copy follows, under the cause of the route's own dependency; without one it is a refusal.
#[test]
fn a_stand_ins_incorrect_answer_does_not_hide_the_copy() {
    let incorrect = BodyFacts::Whole { correct: false, storable: false };
    let world = World::of(DOWN, Upstream::Answers(head(200), Body::Is(incorrect)));
    let engine = two(public());
    let with_copy = World { copy: Some(copy_read_at(START - 30 * SECOND)), ..world };
    let decision = with_copy.ask(&engine, 0, GET, START);
    assert_eq!(words(&decision), ("fallback", "snapshot", "connect"));
    assert_eq!(decision.account.age, Some(Duration::from_secs(30)));
    assert_eq!(words(&world.ask(&engine, 0, GET, START)), ("rejected", "none", "missing"));
    assert_eq!((failures(&engine), second(&engine).tally.answers()), (0, 2), "no failures of anybody's");
}

/// What one route does not pass on is an answer to those who ask the stand-in for its own sake, and a 500 that nobody
/// declared is no failure of the closed list. Forty of each opened its breaker, and closed the way for everybody.
#[test]
fn a_stand_ins_unfit_answers_open_no_breaker_of_its_own() {
    let incorrect = Body::Is(BodyFacts::Whole { correct: false, storable: false });
    for unfit in [Upstream::Answers(head(200), incorrect), says(500)] {
        let engine = two(public());
        for n in 0..40 {
            let decision = World::of(DOWN, unfit).ask(&engine, 0, GET, START + n * SECOND / 10);
            assert_eq!(words(&decision), ("rejected", "none", "missing"), "{n}");
        }
        let counts = second(&engine).health.counts(mono(START + 4 * SECOND));
        assert_eq!(counts.failures, 0);
        assert_eq!(second(&engine).health.known_up(mono(START + 4 * SECOND)), None);
    }
}

/// An error of the stand-in that nobody classified is the stand-in's.
#[test]
fn a_stand_ins_error_is_told_as_its_own() {
    let decision = World::of(DOWN, Upstream::Errs).ask(&two(direct()), 0, GET, START);
    assert_eq!(words(&decision), ("failed", "alternative", "unclassified"));
    assert!(matches!(decision.reply, Reply::Propagated(_)));
}

/// What streams from a stand-in was counted as its failure, because the route's own dependency had failed.
#[test]
fn a_stand_ins_good_answer_is_no_failure() {
    for status in [200, 404] {
        let engine = two(direct());
        let decision = World::of(DOWN, says(status)).ask(&engine, 0, GET, START);
        assert_eq!(words(&decision), ("fallback", "alternative", "connect"));
        decision.settlement.complete();
        assert_eq!((failures(&engine), second(&engine).tally.answers()), (0, 1), "{status}");
        let counts = second(&engine).health.counts(mono(START));
        assert_eq!(counts, WindowCount { calls: 1, failures: 0, slow: 0 }, "{status}");
    }
}

/// Whatever it fails with, it is no answer.
#[test]
fn a_stand_ins_failure_is_never_passed_on() {
    for status in [429, 500, 502, 503] {
        let engine = two(direct());
        let decision = World::of(DOWN, says(status)).ask(&engine, 0, GET, START);
        assert_eq!(words(&decision), ("failed", "none", "connect"), "{status}");
        assert_eq!(failures(&engine), u64::from(status != 500), "{status}");
    }
    assert_eq!(words(&World::of(OK, OK).ask(&two(direct()), 0, GET, START)), ("normal", "primary", "none"));
}
