//! The three decisions whose cost is promised, from the first step to the last byte.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::engine::Engine;
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{BodyFacts, Decision, Event, Flow, HeadFacts, RequestFacts, Step, Trace};
use backstop_engine::outcome::Outcome;
use backstop_engine::policy::{
    AfterRestart, Correct, Dependency, DependencyId, Incorrect, Mode, Origin, Policy, PublicRead, Route,
    RouteClass, RouteId, StatusSet, UnavailableStatus,
};
use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::{BootId, Mono, Now, Wall, WallTrust};

const NOW: Now = Now {
    mono: Mono::from_ns(1_000_000_000_000),
    wall: Wall::from_unix_ns(0),
    boot: BootId([1; 16]),
    wall_trust: WallTrust::Synchronised,
};
const COPY: CopyFacts = CopyFacts {
    observed_at: ObservedAt::new(NOW, Duration::from_secs(30)),
    origin_limit: OriginLimit::Unlimited,
};
const GET: RequestFacts = RequestFacts::GET;

/// One public read with a copy of at most a minute.
pub(crate) fn policy() -> Arc<Engine> {
    let read = PublicRead {
        max_age: Duration::from_secs(60),
        after_restart: AfterRestart::Verify,
        gone: StatusSet::of(&[404, 410]),
        incorrect: Incorrect::Propagate,
        override_origin: false,
        buffer_bytes: 1 << 20,
        languages: Vec::new(),
        key: Vec::new(),
        correct: Correct::default(),
    };
    let route = Route {
        name: "description".into(),
        function: None,
        dependency: DependencyId(0),
        deadline: Duration::from_millis(300),
        in_flight: 1,
        fallback_in_flight: 0,
        mode: Mode::Enforce,
        declared: StatusSet::EMPTY,
        abandon_hold: None,
        unavailable_status: UnavailableStatus::Contract,
        class: RouteClass::PublicRead(read),
        ..Route::default()
    };
    let dependency = Dependency {
        name: "catalog".into(),
        connections: 64,
        queue: Duration::ZERO,
        ..Dependency::default()
    };
    let policy = Policy {
        in_flight: 2000,
        in_flight_origin: Origin::NONE,
        dependencies: vec![dependency],
        routes: vec![route],
        ..Policy::default()
    };
    Engine::new(policy).expect("the policy is valid")
}

fn begin(engine: &Arc<Engine>) -> Flow {
    Flow::begin(engine, RouteId(0), GET, NOW, 0, Trace::off())
}

fn decided(flow: &mut Flow, outcome: Outcome) -> Decision {
    match flow.step(NOW) {
        Step::Done(decision) if decision.account.outcome == outcome => decision,
        step => panic!("{step:?}"),
    }
}

/// Admitted, looked up, called, answered with a whole correct 200, through.
pub(crate) fn normal(engine: &Arc<Engine>) {
    let mut flow = begin(engine);
    let Step::Peek = flow.step(NOW) else { panic!("not asked for the copy") };
    flow.on(Event::Known(Some(COPY)), NOW);
    let Step::Attempt(call) = flow.step(NOW) else { panic!("not called") };
    flow.on(
        Event::Head {
            attempt: call.id,
            head: HeadFacts { status: 200, has_body: true, degraded: None, ..HeadFacts::default() },
        },
        NOW,
    );
    let Step::Collect { attempt, .. } = flow.step(NOW) else { panic!("not collected") };
    flow.on(Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } }, NOW);
    decided(&mut flow, Outcome::Normal).settlement.complete();
}

/// The same, with a refused connection and the copy in place of the answer.
pub(crate) fn fallback_from_a_copy(engine: &Arc<Engine>) {
    let mut flow = begin(engine);
    let Step::Peek = flow.step(NOW) else { panic!("not asked for the copy") };
    flow.on(Event::Known(Some(COPY)), NOW);
    let Step::Attempt(call) = flow.step(NOW) else { panic!("not called") };
    let failure = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
    flow.on(Event::Failed { attempt: call.id, failure }, NOW);
    let Step::Load { .. } = flow.step(NOW) else { panic!("no copy asked for") };
    flow.on(Event::Copy(Ok(Some(COPY))), NOW);
    decided(&mut flow, Outcome::Fallback).settlement.complete();
}

/// A request that takes the route's only place, for as long as it is kept.
pub(crate) fn full_route(engine: &Arc<Engine>) -> Flow {
    let mut flow = begin(engine);
    let Step::Peek = flow.step(NOW) else { panic!("not asked for the copy") };
    flow
}

/// Refused at once, nobody asked.
pub(crate) fn refused_at_the_route(engine: &Arc<Engine>) {
    decided(&mut begin(engine), Outcome::Rejected).settlement.complete();
}
