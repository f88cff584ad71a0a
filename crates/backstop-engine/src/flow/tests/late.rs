//! Results that arrive for another attempt, twice, or after the end.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::NotAsked;
use crate::flow::{AttemptId, BodyFacts, ClientFault, Event, Step};
use crate::policy::DependencyId;

use super::support::{
    GET, GOOD, START, TIMED_OUT, at, called, counted, engine_of, get, head, in_flight, public, route, words,
};

fn late_results(engine: &Arc<Engine>) -> u64 {
    engine.dependency(DependencyId(0)).tally.late_results()
}

/// Everything that can be said about an attempt.
fn results_of(attempt: AttemptId) -> [Event; 5] {
    [
        Event::Head { attempt, head: head(503) },
        Event::Body { attempt, body: BodyFacts::Whole { correct: false, storable: false } },
        Event::Failed { attempt, failure: TIMED_OUT },
        Event::NotAsked { attempt, reason: NotAsked::TooLate },
        Event::Propagated { attempt },
    ]
}

/// Another attempt's result is counted as late and changes nothing, before the head and after it.
#[test]
fn a_result_of_another_attempt_changes_only_the_late_counter() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    for stranger in [AttemptId(0), AttemptId(2)] {
        for event in results_of(stranger) {
            flow.on(event, at(START));
        }
    }
    assert_eq!(late_results(&engine), 10);
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    for event in results_of(AttemptId(2)) {
        flow.on(event, at(START));
    }
    assert_eq!(late_results(&engine), 15);
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Body { attempt: call.id, body: GOOD }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("normal", "primary", "none"));
    let calls = &engine.dependency(DependencyId(0)).tally;
    assert_eq!((calls.attempts(), calls.answers(), calls.failures().iter().sum::<u64>()), (1, 1, 0));
}

/// A second head of the same attempt fits no step: the first one stands.
#[test]
fn a_second_head_changes_nothing() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Head { attempt: call.id, head: head(503) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    assert_eq!(late_results(&engine), 1);
}

/// A body before its head fits no step either.
#[test]
fn a_body_before_its_head_changes_nothing() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Body { attempt: call.id, body: GOOD }, at(START));
    assert_eq!(late_results(&engine), 1);
    flow.on(Event::Head { attempt: call.id, head: head(404) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Done(_)));
}

/// The attempt timed out and the copy is being fetched: its own answer now comes too late.
#[test]
fn an_answer_after_the_time_is_up_changes_nothing() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::TimeUp(None), at(START));
    assert!(matches!(flow.step(at(START)), Step::Load { .. }));
    for event in results_of(call.id) {
        flow.on(event, at(START));
    }
    assert_eq!(late_results(&engine), 5);
    assert!(matches!(flow.step(at(START)), Step::Load { .. }));
    flow.on(Event::Copy(Ok(None)), at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("rejected", "none", "missing"));
}

/// After the decision nothing is decided or counted again, whatever still arrives.
#[test]
fn events_after_the_decision_change_nothing() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Head { attempt: call.id, head: head(404) }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    for event in results_of(call.id) {
        flow.on(event, at(START));
    }
    for event in [
        Event::Known(None),
        Event::Released,
        Event::TimeUp(Some(TIMED_OUT)),
        Event::Copy(Ok(None)),
        Event::ClientWaited(Duration::from_secs(9)),
        Event::ClientFault(ClientFault::Slow),
    ] {
        flow.on(event, at(START));
    }
    decision.settlement.complete();
    drop((flow, call));
    assert_eq!(counted(&engine), [("normal", "primary", "none", 1)]);
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// An event that fits another step is not taken for an answer to this one.
#[test]
fn an_event_of_another_step_is_no_answer() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Known(None), at(START));
    flow.on(Event::Copy(Ok(None)), at(START));
    flow.on(Event::Released, at(START));
    flow.on(Event::Head { attempt: call.id, head: head(404) }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("normal", "primary", "none"));
    let coverage = engine.routes()[0].coverage.count(at(START).mono);
    assert_eq!(coverage.total, 1, "one read, one count");
    drop((decision, call));
    drop(get(&engine, &super::support::Script::new(super::support::OK), START));
}
