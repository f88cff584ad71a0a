//! A composed request from its admission to its count, and what its parts take.

use std::sync::Arc;

use crate::composed::{Composed, Part, PartContent, PartFacts};
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{AttemptId, Decision, Event, Flow, Reply, RequestFacts, Step, Trace};
use crate::policy::{DependencyId, Origin, Policy, PolicyError, Route, RouteClass, RouteId};
use crate::time::Mono;

use super::support::{
    GET, MS, OK, START, Script, at, begin, counted, dependency, direct, drive, engine, omitted, route, words,
};

const VALUE: PartFacts = PartFacts { status: 200, content: PartContent::OneValue, account: None, age: None };

fn part(route: u16, required: bool) -> Part {
    Part { route: RouteId(route), at: format!("/{route}").into(), required, origin: Origin(route.into()) }
}

/// Route 0 is composed of the routes 1 (required) and 2: 300 ms and two places each.
fn routes() -> Vec<Route> {
    let parts = vec![part(1, true), part(2, false)];
    let page = Route {
        dependency: DependencyId::NONE,
        class: RouteClass::Composed(Composed { parts }),
        ..route(direct())
    };
    vec![page, route(direct()), route(omitted())]
}

fn page(in_flight: u32) -> Arc<Engine> {
    engine(in_flight, routes(), vec![dependency(4, 0)])
}

fn places(engine: &Engine) -> [u32; 3] {
    let of = |id| engine.route(RouteId(id)).in_flight.in_flight();
    [engine.process().in_flight(), of(0), of(1) + of(2)]
}

fn decided(flow: &mut Flow, ns: u64) -> Decision {
    match flow.step(at(ns)) {
        Step::Done(decision) => decision,
        step => panic!("{step:?}"),
    }
}

/// 300 ms leave 3 ms for the reply (1 %), so parts are awaited for 297 ms.
#[test]
fn parts_are_awaited_until_the_share_of_the_reply() {
    let engine = page(8);
    let mut flow = begin(&engine, GET, START);
    let Step::Parts { until } = flow.step(at(START)) else { panic!("no parts asked for") };
    assert_eq!(until, Mono::from_ns(START + 297 * MS));
    assert_eq!(places(&engine), [1, 1, 0]);
    flow.on(Event::Part { number: 1, facts: VALUE }, at(START + MS));
    let Step::Parts { .. } = flow.step(at(START + MS)) else { panic!("one part is still missing") };
    flow.on(Event::Part { number: 0, facts: VALUE }, at(START + 2 * MS));
    let decision = decided(&mut flow, START + 2 * MS);
    assert_eq!(words(&decision), ("normal", "primary", "none"));
    assert!(
        matches!(decision.reply, Reply::Composed { placed, .. } if placed.contains(0) && placed.contains(1))
    );
    assert_eq!(places(&engine), [1, 1, 0], "held until the last byte");
    decision.settlement.complete();
    assert_eq!(places(&engine), [0, 0, 0]);
    assert_eq!(counted(&engine), [("normal", "primary", "none", 1)]);
}

#[test]
fn what_is_not_there_in_time_is_left_out_or_fails_the_whole() {
    let engine = page(8);
    let mut flow = begin(&engine, GET, START);
    let _parts = flow.step(at(START));
    flow.on(Event::Part { number: 0, facts: VALUE }, at(START));
    flow.on(Event::TimeUp(None), at(START + 297 * MS));
    let decision = decided(&mut flow, START + 297 * MS);
    assert_eq!(words(&decision), ("fallback", "omitted", "read_timeout"));
    decision.settlement.complete();

    let mut flow = begin(&engine, GET, START);
    let _parts = flow.step(at(START));
    flow.on(Event::Part { number: 1, facts: VALUE }, at(START));
    flow.on(Event::TimeUp(None), at(START + 297 * MS));
    let decision = decided(&mut flow, START + 297 * MS);
    assert_eq!(words(&decision), ("failed", "none", "read_timeout"));
    let Reply::Refusal(refusal) = decision.reply else { panic!("{:?}", decision.reply) };
    assert_eq!(refusal.status, 504);
}

/// Its own limits refuse at once, before any part is asked; a client that leaves is counted, and nothing stays taken.
#[test]
fn a_full_route_or_process_asks_for_no_part() {
    let engine = page(1);
    let mut held = begin(&engine, GET, START);
    let Step::Parts { .. } = held.step(at(START)) else { panic!("not admitted") };
    let refused = |flow: &mut Flow| {
        let decision = decided(flow, START);
        let words = words(&decision);
        decision.settlement.complete();
        words
    };
    assert_eq!(refused(&mut begin(&engine, GET, START)), ("rejected", "none", "capacity"));
    drop(held);
    assert_eq!(places(&engine), [0, 0, 0]);
    engine.drain();
    assert_eq!(refused(&mut begin(&engine, GET, START)), ("rejected", "none", "draining"));
    assert_eq!(engine.route(RouteId(0)).tally.total(crate::outcome::Outcome::Abandoned), 1);
}

fn part_of(until: u64) -> RequestFacts {
    RequestFacts { part_until: Some(Mono::from_ns(until)), ..GET }
}

fn begin_part(engine: &Arc<Engine>, id: u16, until: u64) -> Flow {
    Flow::begin(engine, RouteId(id), part_of(until), at(START), 0, Trace::off())
}

/// A part takes a place at its own route and none at the process, which may be full, and goes on while the process drains.
#[test]
fn a_part_is_admitted_by_its_own_route_alone() {
    let engine = page(1);
    let mut whole = begin(&engine, GET, START);
    let _parts = whole.step(at(START));
    engine.drain();
    let (mut one, mut two) =
        (begin_part(&engine, 1, START + 99 * MS), begin_part(&engine, 1, START + 99 * MS));
    let (first, second) = (one.step(at(START)), two.step(at(START)));
    assert!(matches!((&first, &second), (Step::Attempt(_), Step::Attempt(_))));
    assert_eq!(places(&engine), [1, 1, 2]);
    let mut third = begin_part(&engine, 1, START + 99 * MS);
    assert_eq!(words(&decided(&mut third, START)), ("rejected", "none", "capacity"));
    drop((one, two, first, second));
    assert_eq!(places(&engine), [1, 1, 0]);
}

/// The smaller of its own 300 ms and what is left of the whole: 100 ms leave 1 ms for the reply and, where there is an
/// alternative, 1 ms for that.
#[test]
fn a_part_has_what_is_left_of_the_whole_and_no_more_than_its_own() {
    let engine = page(8);
    let end = |id, until| begin_part(&engine, id, until).deadline();
    assert_eq!(end(1, START + 100 * MS).end(), Mono::from_ns(START + 100 * MS));
    assert_eq!(end(1, START + 100 * MS).attempt_end(), Mono::from_ns(START + 99 * MS));
    assert_eq!(end(2, START + 100 * MS).attempt_end(), Mono::from_ns(START + 98 * MS));
    assert_eq!(end(1, START + 900 * MS).end(), Mono::from_ns(START + 300 * MS));
    let mut late = begin_part(&engine, 2, START);
    assert_eq!(words(&decided(&mut late, START)), ("fallback", "omitted", "too_late"));
    let mut in_time = begin_part(&engine, 2, START + 100 * MS);
    let decision = drive(&mut in_time, &Script::new(OK), at(START));
    assert_eq!(words(&decision), ("normal", "primary", "none"));
}

/// Events that belong to other classes, or to nothing, change nothing.
#[test]
fn what_fits_no_step_changes_nothing() {
    let engine = page(8);
    let mut flow = begin(&engine, GET, START);
    let _parts = flow.step(at(START));
    let attempt = AttemptId(1);
    let failure = Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe);
    for event in
        [Event::Released, Event::Failed { attempt, failure }, Event::Copy(Ok(None)), Event::Known(None)]
    {
        flow.on(event, at(START));
        assert!(matches!(flow.step(at(START)), Step::Parts { .. }));
    }
    let mut plain = begin_part(&engine, 1, START + 100 * MS);
    plain.on(Event::Part { number: 0, facts: VALUE }, at(START));
    assert!(matches!(plain.step(at(START)), Step::Attempt(_)));
}

#[test]
fn parts_are_routes_that_are_not_composed() {
    let with = |parts: Vec<Part>| {
        let mut routes = routes();
        routes[0].class = RouteClass::Composed(Composed { parts });
        let policy =
            Policy { in_flight: 8, dependencies: vec![dependency(4, 0)], routes, ..Policy::default() };
        policy.validate()
    };
    assert_eq!(with(vec![part(1, true); 16]), Ok(()));
    let wrong = Err(PolicyError::Parts { route: "description".into() });
    for parts in [vec![], vec![part(0, true)], vec![part(3, true)], vec![part(1, true); 17]] {
        assert_eq!(with(parts), wrong);
    }
}
