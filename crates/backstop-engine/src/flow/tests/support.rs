//! A small engine, moments, and a driver that answers every step from a script.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{
    Attempt, Authorization, BodyFacts, Cached, Decision, Event, Filled, Flow, HeadFacts, Method, Reply,
    RequestFacts, Step, Trace,
};
use crate::policy::{
    AfterRestart, Correct, Dependency, DependencyId, Direct, FixedAnswer, Incorrect, Mode, Optional, Origin,
    Otherwise, Policy, PublicRead, Route, RouteClass, RouteId, StatusSet, UnavailableStatus,
};
use crate::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use crate::time::{BootId, Mono, Now, Wall, WallTrust};

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;
/// Late enough after boot for copies to be older.
pub(super) const START: u64 = 1_000 * SECOND;
pub(super) const MAX_AGE: Duration = Duration::from_secs(60);
/// A stand-in's status that no dependency here ever gives.
pub(super) const FIXED_STATUS: u16 = 203;

pub(super) const GET: RequestFacts = RequestFacts::GET;
pub(super) const POST: RequestFacts = RequestFacts { method: Method::Unsafe, ..GET };

/// A moment. The date says nothing within one boot, so it stays where it is.
pub(super) const fn at(ns: u64) -> Now {
    Now {
        mono: Mono::from_ns(ns),
        wall: Wall::from_unix_ns(0),
        boot: BootId([1; 16]),
        wall_trust: WallTrust::Synchronised,
    }
}

pub(super) fn copy_read_at(ns: u64) -> CopyFacts {
    CopyFacts { observed_at: ObservedAt::new(at(ns), Duration::ZERO), origin_limit: OriginLimit::Unlimited }
}

pub(super) fn dependency(connections: u32, queue_ms: u64) -> Dependency {
    Dependency {
        name: "catalog".into(),
        connections,
        queue: Duration::from_millis(queue_ms),
        connections_origin: Origin(7),
        ..Dependency::default()
    }
}

pub(super) fn public_read() -> PublicRead {
    PublicRead {
        max_age: MAX_AGE,
        after_restart: AfterRestart::Verify,
        gone: StatusSet::of(&[404, 410]),
        incorrect: Incorrect::Propagate,
        override_origin: false,
        buffer_bytes: 4096,
        languages: Vec::new(),
        key: Vec::new(),
        correct: Correct::default(),
    }
}

pub(super) fn public() -> RouteClass {
    RouteClass::PublicRead(public_read())
}

pub(super) fn direct() -> RouteClass {
    RouteClass::Direct(Direct::default())
}

pub(super) fn omitted() -> RouteClass {
    RouteClass::Optional(Optional::new(Otherwise::Omit(fixed_answer())))
}

pub(super) fn prepared() -> RouteClass {
    RouteClass::Optional(Optional::new(Otherwise::Prepared(fixed_answer())))
}

fn fixed_answer() -> FixedAnswer {
    FixedAnswer { status: FIXED_STATUS, media_type: "application/json".into(), body: (*b"[]").into() }
}

/// Two places, 300 ms, no lane.
pub(super) fn route(class: RouteClass) -> Route {
    Route {
        name: "description".into(),
        function: None,
        dependency: DependencyId(0),
        deadline: Duration::from_millis(300),
        in_flight: 2,
        fallback_in_flight: 0,
        mode: Mode::Enforce,
        declared: StatusSet::EMPTY,
        abandon_hold: None,
        unavailable_status: UnavailableStatus::Contract,
        class,
        ..Route::default()
    }
}

pub(super) fn engine(in_flight: u32, routes: Vec<Route>, dependencies: Vec<Dependency>) -> Arc<Engine> {
    let policy =
        Policy { in_flight, in_flight_origin: Origin::NONE, dependencies, routes, ..Policy::default() };
    Engine::new(policy).unwrap()
}

/// One route at a dependency with room for four calls, in a process with room for eight requests.
pub(super) fn engine_of(route: Route) -> Arc<Engine> {
    engine(8, vec![route], vec![dependency(4, 0)])
}

pub(super) fn begin(engine: &Arc<Engine>, facts: RequestFacts, ns: u64) -> Flow {
    Flow::begin(engine, RouteId(0), facts, at(ns), 0, Trace::off())
}

pub(super) const fn failed(kind: FailureKind) -> Failure {
    Failure::new(kind, Phase::Head, Sent::Maybe)
}

pub(super) const REFUSED: Failure = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
pub(super) const TIMED_OUT: Failure = failed(FailureKind::ReadTimeout);
pub(super) const GOOD: BodyFacts = BodyFacts::Whole { correct: true, storable: true };

pub(super) const fn head(status: u16) -> HeadFacts {
    HeadFacts {
        status,
        has_body: !matches!(status, 204 | 304),
        degraded: None,
        retry_after: None,
        database_wait: None,
    }
}

/// What the dependency does when it is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Upstream {
    Fails(Failure),
    Answers(HeadFacts, Body),
    /// The call ends in an error that nobody classified.
    Errs,
}

/// What follows the head, if it is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Is(BodyFacts),
    Breaks(Failure),
}

pub(super) const OK: Upstream = Upstream::Answers(head(200), Body::Is(GOOD));

pub(super) fn says(status: u16) -> Upstream {
    Upstream::Answers(head(status), Body::Is(GOOD))
}

/// What the world answers to one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    pub(super) upstream: Upstream,
    pub(super) copy: Result<Option<CopyFacts>, ()>,
    pub(super) cached: Cached,
    pub(super) filled: Filled,
    pub(super) authorized: Authorization,
}

impl Script {
    pub(super) fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            copy: Ok(None),
            cached: Cached::Miss,
            filled: Filled::Apart,
            authorized: Authorization::Allowed,
        }
    }

    pub(super) fn with_copy(self, copy: CopyFacts) -> Self {
        Self { copy: Ok(Some(copy)), ..self }
    }
}

/// Drives a flow to its decision at one moment. A queue is waited out.
pub(super) fn drive(flow: &mut Flow, script: &Script, now: Now) -> Decision {
    let mut call: Option<Attempt> = None;
    loop {
        let event = match flow.step(now) {
            Step::Authorize { .. } => Event::Authorized(script.authorized),
            Step::Peek => Event::Known(script.copy.ok().flatten()),
            Step::Wait { .. } | Step::Pause { .. } | Step::Parts { .. } => Event::TimeUp(None),
            Step::Attempt(attempt) => {
                let id = attempt.id;
                call = Some(attempt);
                match script.upstream {
                    Upstream::Fails(failure) => Event::Failed { attempt: id, failure },
                    Upstream::Answers(head, _) => Event::Head { attempt: id, head },
                    Upstream::Errs => Event::Propagated { attempt: id },
                }
            }
            Step::Collect { attempt, .. } => match script.upstream {
                Upstream::Answers(_, Body::Is(body)) => Event::Body { attempt, body },
                Upstream::Answers(_, Body::Breaks(failure)) => Event::Failed { attempt, failure },
                _ => panic!("nothing to collect"),
            },
            Step::Load { .. } => Event::Copy(script.copy),
            Step::Lookup { .. } => Event::Cached(script.cached),
            Step::Join { .. } => Event::Filled(script.filled),
            Step::Consult { .. } | Step::Record { .. } => panic!("no route here has operations"),
            Step::Done(decision) => {
                drop(call);
                return decision;
            }
        };
        flow.on(event, now);
    }
}

/// One GET at this moment, from its beginning to its decision.
pub(super) fn get(engine: &Arc<Engine>, script: &Script, ns: u64) -> Decision {
    drive(&mut begin(engine, GET, ns), script, at(ns))
}

/// A flow that has just called its dependency, and the call.
pub(super) fn called(engine: &Arc<Engine>, facts: RequestFacts, ns: u64) -> (Flow, Attempt) {
    let mut flow = begin(engine, facts, ns);
    loop {
        match flow.step(at(ns)) {
            Step::Peek => flow.on(Event::Known(None), at(ns)),
            Step::Attempt(attempt) => return (flow, attempt),
            step => panic!("{step:?}"),
        }
    }
}

/// The status that the client sees; 0 for an error that is handed on as it is.
pub(super) fn status_of(reply: &Reply, upstream: u16) -> u16 {
    match reply {
        Reply::Collected(_) | Reply::Streamed(_) | Reply::Part { .. } => upstream,
        Reply::Copy { .. } | Reply::Cached { .. } | Reply::Shared { .. } | Reply::Composed { .. } => 200,
        Reply::Fixed => FIXED_STATUS,
        Reply::Denied => 403,
        Reply::Refusal(refusal) => refusal.status,
        Reply::Operation(reply) => reply.status,
        Reply::Propagated(_) => 0,
    }
}

/// Outcome, source and reason in words.
pub(super) fn words(decision: &Decision) -> (&'static str, &'static str, &'static str) {
    let account = decision.account;
    (account.outcome.token(), account.source.token(), account.reason.token())
}

/// The same three words for every request that the first route has counted.
pub(super) fn counted(engine: &Engine) -> Vec<(&'static str, &'static str, &'static str, u64)> {
    let counts = engine.route(RouteId(0)).tally.requests();
    counts.iter().map(|c| (c.outcome.token(), c.source.token(), c.reason, c.count)).collect()
}

/// In flight at the process, the first route, its lane and the first dependency.
pub(super) fn in_flight(engine: &Engine) -> [u32; 4] {
    let route = engine.route(RouteId(0));
    [
        engine.process().in_flight(),
        route.in_flight.in_flight(),
        route.fallback_lane.in_flight(),
        engine.dependency(DependencyId(0)).in_flight.in_flight(),
    ]
}
