//! Failures paid for retries, and retries that were not made were paid for.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Excess, Turn};
use crate::engine::Engine;
use crate::flow::{BodyFacts, Event, Flow, Step};
use crate::policy::Route;

use super::super::support::{
    Body, GET, GOOD, OK, SECOND, START, Upstream, at, called, direct, head, public, route, says, words,
};
use super::{BROKEN, World, dependency, engine, first, mono, open, retrying};

fn new(route: Route) -> Arc<Engine> {
    engine(
        vec![retrying(Route { deadline: Duration::from_secs(60), ..route })],
        vec![dependency("catalog", &[])],
        vec![],
    )
}

fn level(engine: &Engine) -> u64 {
    first(engine).retries.level_thousandths()
}

/// By hand: 3000 thousandths at the beginning, and a tenth of a retry for what was answered well or about the request.
#[test]
fn only_answers_pay_for_retries() {
    let incorrect =
        Upstream::Answers(head(200), Body::Is(BodyFacts::Whole { correct: false, storable: false }));
    let cases = [
        (says(200), 3_100),
        (says(304), 3_100),
        (says(404), 3_100),
        (says(422), 3_100),
        (says(429), 3_000),
        (says(500), 3_000),
        (says(501), 3_000),
        (says(504), 3_000),
        (Upstream::Errs, 3_000),
    ];
    for class in [direct(), public()] {
        for (upstream, expected) in cases {
            let engine = new(route(class.clone()));
            World::of(upstream, OK).ask(&engine, 0, GET, START).settlement.complete();
            assert_eq!(level(&engine), expected, "{upstream:?}");
        }
    }
    let engine = new(route(public()));
    World::of(incorrect, OK).ask(&engine, 0, GET, START).settlement.complete();
    assert_eq!(level(&engine), 3_000, "incorrect");
}

/// A stream pays when it is complete; not if it breaks, and not if nobody knows.
#[test]
fn a_stream_pays_when_it_is_complete() {
    let engine = new(route(direct()));
    let stream = || World::of(says(200), OK).ask(&engine, 0, GET, START).settlement;
    let complete = stream();
    assert_eq!(level(&engine), 3_000);
    complete.complete();
    assert_eq!(level(&engine), 3_100);
    stream().break_off(BROKEN);
    drop(stream());
    assert_eq!(level(&engine), 3_100);
}

/// A flow in the pause before its retry, which is paid for.
fn pausing(engine: &Arc<Engine>) -> Flow {
    let (mut flow, call) = called(engine, GET, START);
    flow.on(Event::Head { attempt: call.id, head: head(503) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Pause { .. }));
    assert_eq!((level(engine), first(engine).retries.spent()), (2_000, 1));
    flow
}

fn nothing_is_paid(engine: &Engine, why: &str) {
    let retries = &first(engine).retries;
    assert_eq!((level(engine), retries.spent(), retries.in_flight()), (3_000, 0, 0), "{why}");
    assert_eq!(first(engine).tally.attempts(), 1, "{why}");
}

/// The breaker opened during the pause and may be tried by now: that is for probes, not for a retry.
#[test]
fn a_retry_that_is_suspended_meanwhile_is_not_made_and_not_paid() {
    let engine = new(route(direct()));
    let mut flow = pausing(&engine);
    open_beside(&engine);
    let later = at(START + 5 * SECOND);
    flow.on(Event::TimeUp(None), later);
    let Step::Done(decision) = flow.step(later) else { panic!("not done") };
    assert_eq!(words(&decision), ("failed", "none", "unavailable"), "the first attempt's cause");
    nothing_is_paid(&engine, "suspended");
}

/// Others open it; the first attempt was its first failure.
fn open_beside(engine: &Engine) {
    let health = &first(engine).health;
    for _ in 0..9 {
        health.admit(mono(START), true, super::MIDDLE).unwrap().failed(mono(START), super::MIDDLE);
    }
    assert_eq!(health.known_up(mono(START)), Some(mono(START + 5 * SECOND)));
}

#[test]
fn a_retry_that_finds_no_place_is_not_paid() {
    let engine = new(route(direct()));
    let mut flow = pausing(&engine);
    let take = || first(&engine).in_flight.try_acquire(Turn::Newcomer, Excess::Refuse);
    let all: Vec<_> = std::iter::from_fn(take).collect();
    flow.on(Event::TimeUp(None), at(START));
    assert!(matches!(flow.step(at(START)), Step::Done(_)));
    nothing_is_paid(&engine, "full");
    drop(all);
}

#[test]
fn a_retry_whose_client_leaves_in_the_pause_is_not_paid() {
    let engine = new(route(direct()));
    drop(pausing(&engine));
    nothing_is_paid(&engine, "left");
}

#[test]
fn a_retry_that_is_made_is_paid() {
    let engine = new(route(public()));
    let mut flow = pausing(&engine);
    flow.on(Event::TimeUp(None), at(START));
    let Step::Attempt(call) = flow.step(at(START)) else { panic!("not made") };
    assert_eq!(first(&engine).retries.in_flight(), 1);
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Body { attempt: call.id, body: GOOD }, at(START));
    let retries = &first(&engine).retries;
    assert_eq!((level(&engine), retries.spent(), retries.in_flight()), (2_100, 1, 0));
    open(first(&new(route(direct()))), START);
}
