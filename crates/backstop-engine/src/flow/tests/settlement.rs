//! From the decision to the last byte: one count, and every place back.

use std::sync::Arc;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{ClientFault, CopyAction, Event, Step};
use crate::outcome::Outcome;
use crate::policy::{DependencyId, RouteId};

use super::support::{
    GET, OK, POST, REFUSED, START, Script, Upstream, at, begin, called, copy_read_at, counted, direct,
    engine_of, get, in_flight, public, route, says, status_of,
};

const BROKEN: Failure = Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe);

/// Calls begun, answered, failed and abandoned.
fn calls(engine: &Arc<Engine>) -> [u64; 4] {
    let calls = &engine.dependency(DependencyId(0)).tally;
    [calls.attempts(), calls.answers(), calls.failures().iter().sum(), calls.abandoned()]
}

#[test]
fn a_streamed_answer_is_counted_at_its_last_byte() {
    let engine = engine_of(route(direct()));
    let decision = get(&engine, &Script::new(OK), START);
    assert_eq!((counted(&engine), calls(&engine)), (vec![], [1, 0, 0, 0]));
    assert_eq!(in_flight(&engine), [1, 1, 0, 0], "process and route until the client has its last byte");
    decision.settlement.complete();
    assert_eq!((counted(&engine), calls(&engine)), (vec![("normal", "primary", "none", 1)], [1, 1, 0, 0]));
    assert_eq!(in_flight(&engine), [0; 4]);
}

#[test]
fn a_streamed_answer_that_breaks_off_is_the_dependencys_failure() {
    let engine = engine_of(route(direct()));
    get(&engine, &Script::new(OK), START).settlement.break_off(BROKEN);
    assert_eq!(
        (counted(&engine), calls(&engine)),
        (vec![("failed", "primary", "incomplete", 1)], [1, 0, 1, 0])
    );
    assert_eq!(in_flight(&engine), [0; 4]);
}

#[test]
fn a_client_that_leaves_a_streamed_answer_blames_nobody() {
    let engine = engine_of(route(direct()));
    drop(get(&engine, &Script::new(OK), START));
    assert_eq!(
        (counted(&engine), calls(&engine)),
        (vec![("abandoned", "primary", "client_left", 1)], [1, 0, 0, 1])
    );
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// The answer of a read for many whose asker left reaches nobody. Where somebody takes it, that one says how it ends.
#[test]
fn a_streamed_answer_that_nobody_takes_is_an_abandoned_call() {
    let engine = engine_of(route(direct()));
    let handed_over = || get(&engine, &Script::new(OK), START).settlement.hand_over();
    drop(handed_over());
    assert_eq!(calls(&engine), [1, 0, 0, 1]);
    assert!(handed_over().take().is_some());
    assert_eq!(calls(&engine), [2, 0, 0, 1]);
}

/// A collected answer was the dependency's success before the client took a byte of it.
#[test]
fn a_collected_answer_is_an_answer_whatever_the_client_does() {
    let engine = engine_of(route(public()));
    drop(get(&engine, &Script::new(OK), START));
    assert_eq!(
        (counted(&engine), calls(&engine)),
        (vec![("abandoned", "primary", "client_left", 1)], [1, 1, 0, 0])
    );
}

/// A 503 that streams through was counted as a failure at its head; its end adds nothing.
#[test]
fn a_passed_failure_is_counted_once_however_it_ends() {
    for end in 0..3 {
        let engine = engine_of(route(direct()));
        let settlement = get(&engine, &Script::new(says(503)), START).settlement;
        match end {
            0 => settlement.complete(),
            1 => settlement.break_off(BROKEN),
            _ => drop(settlement),
        }
        assert_eq!(calls(&engine), [1, 0, 1, 0], "end {end}");
        assert_eq!(counted(&engine).iter().map(|(.., count)| count).sum::<u64>(), 1);
    }
}

/// The age of a copy is observed when the copy has been served, not when it was decided on.
#[test]
fn an_age_is_counted_with_the_answer() {
    let engine = engine_of(route(public()));
    let served = || {
        let ages = engine.route(RouteId(0)).tally.ages().0;
        ages.iter().sum::<u64>()
    };
    let script = Script::new(Upstream::Fails(REFUSED)).with_copy(copy_read_at(START));
    let decision = get(&engine, &script, START);
    assert_eq!(served(), 0);
    decision.settlement.complete();
    assert_eq!(served(), 1);
    drop(get(&engine, &script, START));
    assert_eq!(served(), 1, "a client that left got no copy");
    assert_eq!(engine.route(RouteId(0)).tally.total(Outcome::Fallback), 1);
}

/// The answer is there and the place at the dependency is free, while the client still reads.
#[test]
fn a_slow_reader_holds_its_route_but_not_the_dependency() {
    let engine = engine_of(route(public()));
    let decision = get(&engine, &Script::new(OK), START);
    assert_eq!(in_flight(&engine), [1, 1, 0, 0]);
    drop(decision);
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// A call that was given up goes on occupying its dependency until the driver lets go of its place.
#[test]
fn an_abandoned_call_occupies_its_dependency_until_it_ends() {
    let engine = engine_of(route(public()));
    let (flow, call) = called(&engine, GET, START);
    drop(flow);
    assert_eq!(in_flight(&engine), [0, 0, 0, 1]);
    assert_eq!(
        (counted(&engine), calls(&engine)),
        (vec![("abandoned", "none", "client_left", 1)], [1, 0, 0, 1])
    );
    drop(call);
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// What is wrong with the client's own request is no fault of the dependency that was kept waiting for it. A part of a
/// write may have been acted on, so it withdraws; a write that had not begun does not.
#[test]
fn a_client_at_fault_blames_nobody_else() {
    for (fault, status, words) in [
        (ClientFault::Slow, 408, ("rejected", "none", "client_slow", 1)),
        (ClientFault::TooLarge, 413, ("rejected", "none", "client_too_large", 1)),
        (ClientFault::Broken, 400, ("abandoned", "none", "client_left", 1)),
    ] {
        let engine = engine_of(route(direct()));
        let (mut flow, call) = called(&engine, POST, START);
        flow.on(Event::ClientFault(fault), at(START));
        let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
        // Whoever left reads nothing any more; whoever sent a malformed chunk does.
        assert_eq!(status_of(&decision.reply, 0), status);
        assert_eq!(decision.copy, CopyAction::WithdrawUnsettled);
        decision.settlement.complete();
        drop(call);
        assert_eq!((counted(&engine), calls(&engine)), (vec![words], [1, 0, 0, 1]));
        assert_eq!(in_flight(&engine), [0; 4]);

        let engine = engine_of(route(direct()));
        let mut flow = begin(&engine, POST, START);
        flow.on(Event::ClientFault(fault), at(START));
        let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
        assert_eq!(decision.copy, CopyAction::Keep);
        assert_eq!(calls(&engine), [0; 4]);
    }
}
