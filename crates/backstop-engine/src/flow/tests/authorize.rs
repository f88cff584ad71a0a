//! Whether the caller may: what leads on, what is counted where, and that everything comes back.
//!
//! The dependency 0 is the service, 1 is the authorizer: 4 places, waited for 100 ms; the deadline is 300 ms.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::ClassShare;
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, NotAsked, Phase as Failing, Sent};
use crate::flow::{
    Attempt, Authorization, CopyAction, CopyUse, Event, Flow, Method, Reply, RequestFacts, Step, Trace,
};
use crate::health::{BreakerRules, Phase, WindowCount};
use crate::policy::{
    AuthorizerRules, Dependency, DependencyId, Origin, Policy, PolicyError, Route, RouteClass, RouteId,
};
use crate::time::Mono;

use super::support::{
    GET, MS, OK, POST, SECOND, START, Script, TIMED_OUT, at, begin, copy_read_at, counted, dependency,
    direct, drive, in_flight, omitted, public, route, words,
};

const CALLER: Origin = Origin(9);
const REFUSED: Failure = Failure::new(FailureKind::Connect, Failing::Connect, Sent::No);

fn behind(class: RouteClass) -> Route {
    let authorizer = AuthorizerRules {
        dependency: Some(DependencyId(1)),
        timeout: Duration::from_millis(100),
        origin: CALLER,
    };
    Route { authorizer: Some(authorizer), in_flight: 8, ..route(class) }
}

fn policy(route: Route) -> Policy {
    let authorizer = Dependency {
        name: "sessions".into(),
        connections: 4,
        breaker: Some(BreakerRules::default()),
        ..Dependency::default()
    };
    Policy {
        in_flight: 16,
        dependencies: vec![dependency(8, 0), authorizer],
        routes: vec![route],
        ..Policy::default()
    }
}

fn engine(class: RouteClass) -> Arc<Engine> {
    Engine::new(policy(behind(class))).unwrap()
}

fn authorizer(engine: &Engine) -> &crate::engine::DependencyState {
    engine.dependency(DependencyId(1))
}

/// A request that has just called its authorizer, and the call.
fn asking(engine: &Arc<Engine>, facts: RequestFacts, ns: u64) -> (Flow, Attempt) {
    let mut flow = begin(engine, facts, ns);
    match flow.step(at(ns)) {
        Step::Authorize { attempt: Some(attempt), .. } => (flow, attempt),
        step => panic!("{step:?}"),
    }
}

/// Outcome, source and reason.
type Words = (&'static str, &'static str, &'static str);

/// Every end but the yes, what it is answered with, and what it is counted as at the authorizer: answers, failures, abandoned.
fn ends() -> Vec<(Authorization, Words, u16, [u64; 3])> {
    let refused = ("rejected", "none", "authorizer");
    let mut ends = vec![
        (Authorization::Denied, ("normal", "authorizer", "denied"), 403, [1, 0, 0]),
        (Authorization::Unclear, refused, 503, [1, 0, 0]),
    ];
    for failure in [
        REFUSED,
        TIMED_OUT,
        Failure::new(FailureKind::Unavailable { status: 504 }, Failing::Head, Sent::Maybe),
    ] {
        ends.push((Authorization::Failed(failure), refused, 503, [0, 1, 0]));
    }
    ends.push((Authorization::NotAsked(NotAsked::PoolTimeout), refused, 503, [0, 0, 0]));
    ends
}

/// On every class, with a good copy at hand: nothing is looked up, nobody is called, and every place comes back.
#[test]
fn nothing_but_a_yes_leads_on() {
    for class in [RouteClass::Guarded, direct(), public(), omitted()] {
        for facts in [GET, POST, RequestFacts { method: Method::Head, ..GET }] {
            for (came, expected, status, counts) in ends() {
                let engine = engine(class.clone());
                let script = Script { authorized: came, ..Script::new(OK) }.with_copy(copy_read_at(START));
                let decision = drive(&mut begin(&engine, facts, START), &script, at(START));
                assert_eq!(words(&decision), expected, "{came:?}");
                assert_eq!(decision.account.rule, CALLER);
                // Nothing has reached what the request would change.
                assert_eq!(decision.copy, CopyAction::Keep);
                match decision.reply {
                    Reply::Denied => assert_eq!(status, 403),
                    Reply::Refusal(refusal) => {
                        assert_eq!((refusal.status, refusal.retry_after_s), (status, None), "{came:?}");
                        assert_eq!(refusal.proxy_error, "destination_unavailable");
                    }
                    reply => panic!("{reply:?}"),
                }
                decision.settlement.complete();
                let tally = &authorizer(&engine).tally;
                let failures = tally.failures().iter().sum();
                assert_eq!([tally.answers(), failures, tally.abandoned()], counts, "{came:?}");
                assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 0, "{came:?}");
                assert_eq!((in_flight(&engine), authorizer(&engine).in_flight.in_flight()), ([0; 4], 0));
                let (outcome, source, reason) = expected;
                assert_eq!(counted(&engine), [(outcome, source, reason, 1)]);
            }
        }
    }
}

/// The way of a caller who may is that of a route without an authorizer.
#[test]
fn a_yes_leads_on() {
    for class in [RouteClass::Guarded, direct(), public(), omitted()] {
        let engine = engine(class);
        let decision = drive(&mut begin(&engine, GET, START), &Script::new(OK), at(START));
        assert_eq!(words(&decision), ("normal", "primary", "none"));
        assert_eq!(engine.route(RouteId(0)).authorizations.counts(), [1, 0, 0, 0, 0]);
        assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 1);
    }
}

/// A denial and an outage are never one number.
#[test]
fn each_end_is_counted_as_what_it_is() {
    let engine = engine(RouteClass::Guarded);
    let all = [
        (Authorization::Allowed, 5),
        (Authorization::Denied, 4),
        (Authorization::Unclear, 3),
        (Authorization::Failed(REFUSED), 2),
        (Authorization::NotAsked(NotAsked::TooLate), 1),
    ];
    for (came, times) in all {
        for _ in 0..times {
            let script = Script { authorized: came, ..Script::new(OK) };
            drive(&mut begin(&engine, POST, START), &script, at(START)).settlement.complete();
        }
    }
    assert_eq!(engine.route(RouteId(0)).authorizations.counts(), [5, 4, 3, 2, 1]);
}

/// By hand: of 20 calls 20 are neither yes nor no, and nothing opens; 10 in a row fail, and it is open.
#[test]
fn only_failures_open_its_breaker() {
    let engine = engine(RouteClass::Guarded);
    let ask = |came| {
        let script = Script { authorized: came, ..Script::new(OK) };
        drive(&mut begin(&engine, POST, START), &script, at(START))
    };
    for _ in 0..20 {
        ask(Authorization::Unclear);
        ask(Authorization::Denied);
    }
    let health = &authorizer(&engine).health;
    assert_eq!(health.counts(Mono::from_ns(START)), WindowCount { calls: 40, failures: 0, slow: 0 });
    for n in 1..=10 {
        assert_eq!(health.phase(Mono::from_ns(START)), Phase::Closed, "{n}");
        ask(Authorization::Failed(TIMED_OUT));
    }
    assert!(matches!(health.phase(Mono::from_ns(START)), Phase::Open { .. }));
    let attempts = authorizer(&engine).tally.attempts();
    let refused = ask(Authorization::Allowed);
    assert_eq!(refused.account.cause.map(|cause| cause.token()), Some("breaker_open"));
    assert_eq!(authorizer(&engine).tally.attempts(), attempts, "it is left alone");
}

/// Of four places guarded requests may have three, and one is kept for effects.
#[test]
fn its_places_are_its_own() {
    let engine = engine(RouteClass::Guarded);
    assert_eq!(ClassShare::Guarded.places(4), 3);
    let held: Vec<_> = (0..3).map(|_| asking(&engine, POST, START)).collect();
    let decision = drive(&mut begin(&engine, POST, START), &Script::new(OK), at(START));
    assert_eq!(words(&decision), ("rejected", "none", "authorizer"));
    assert_eq!(decision.account.cause.map(|cause| cause.token()), Some("dependency_full"));
    drop(decision);
    drop(held);
    assert_eq!((in_flight(&engine), authorizer(&engine).in_flight.in_flight()), ([0; 4], 0));
}

/// Waited for 100 ms, and no longer than the calls of the request may take: 300 ms less the reply's share.
#[test]
fn its_time_ends_with_its_own_limit_or_the_requests() {
    let engine = engine(RouteClass::Guarded);
    let (flow, attempt) = asking(&engine, POST, START);
    assert_eq!(attempt.until, Mono::from_ns(START + 100 * MS));
    let attempt_end = flow.deadline().attempt_end();
    assert_eq!(attempt.end, flow.deadline().end());
    let patient = AuthorizerRules {
        timeout: Duration::from_secs(5),
        ..behind(RouteClass::Guarded).authorizer.unwrap()
    };
    let route = Route { authorizer: Some(patient), ..behind(RouteClass::Guarded) };
    let engine = Engine::new(policy(route)).unwrap();
    let (_flow, attempt) = asking(&engine, POST, START);
    assert_eq!(attempt.until, attempt_end);
    // One that is asked for the first time only when that is over is not asked at all.
    let mut late = begin(&engine, POST, START);
    let Step::Done(decision) = late.step(at(attempt_end.as_ns())) else { panic!("it is over") };
    assert_eq!(decision.account.cause.map(|cause| cause.token()), Some("too_late"));
    let mut in_time = begin(&engine, POST, START);
    assert!(matches!(in_time.step(at(attempt_end.as_ns() - 1)), Step::Authorize { .. }));
}

/// Silence is a failure of it, in whatever phase that was.
#[test]
fn silence_is_its_failure() {
    let engine = engine(RouteClass::Guarded);
    for failure in [None, Some(REFUSED)] {
        let (mut flow, attempt) = asking(&engine, POST, START);
        flow.on(Event::TimeUp(failure), at(START + 100 * MS));
        drop(attempt);
        let Step::Done(decision) = flow.step(at(START + 100 * MS)) else { panic!("decided") };
        let cause = if failure.is_some() { "connect" } else { "read_timeout" };
        assert_eq!(decision.account.cause.map(|cause| cause.token()), Some(cause));
    }
    assert_eq!(authorizer(&engine).tally.failures().iter().sum::<u64>(), 2);
}

/// A client that leaves meanwhile has executed nothing. After `slow` that is a slow call of the authorizer's.
#[test]
fn a_client_that_leaves_is_nobodys_failure() {
    for (lasted, slow) in [(SECOND, 0), (SECOND + 1, 1)] {
        let engine = engine(RouteClass::Guarded);
        let (mut flow, attempt) = asking(&engine, POST, START);
        assert!(flow.is_calling());
        flow.given_up(Mono::from_ns(START + lasted));
        drop((flow, attempt));
        let tally = &authorizer(&engine).tally;
        assert_eq!((tally.attempts(), tally.answers(), tally.abandoned()), (1, 0, 1));
        let counts = authorizer(&engine).health.counts(Mono::from_ns(START + lasted));
        assert_eq!(counts, WindowCount { calls: slow, failures: 0, slow });
        assert_eq!(counted(&engine), [("abandoned", "none", "client_left", 1)]);
        assert_eq!((in_flight(&engine), authorizer(&engine).in_flight.in_flight()), ([0; 4], 0));
    }
}

/// The lane for alternatives serves copies and prepared answers: to callers who may, and to nobody else.
#[test]
fn the_lane_is_for_those_who_may() {
    for (class, source) in [(public(), "snapshot"), (omitted(), "omitted")] {
        let narrow = Route { in_flight: 1, fallback_in_flight: 1, ..behind(class) };
        let engine = Engine::new(policy(narrow)).unwrap();
        let (held, call) = asking(&engine, GET, START);
        for (came, expected) in [
            (Authorization::Allowed, ("fallback", source, "capacity")),
            (Authorization::Denied, ("normal", "authorizer", "denied")),
            (Authorization::Unclear, ("rejected", "none", "authorizer")),
            (Authorization::Failed(TIMED_OUT), ("rejected", "none", "authorizer")),
        ] {
            let script = Script { authorized: came, ..Script::new(OK) }.with_copy(copy_read_at(START));
            let decision = drive(&mut begin(&engine, GET, START), &script, at(START));
            assert_eq!(words(&decision), expected, "{came:?}");
        }
        assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 0);
        drop((held, call));
        assert_eq!((in_flight(&engine), authorizer(&engine).in_flight.in_flight()), ([0; 4], 0));
    }
}

/// What comes twice, or after it was decided, changes nothing.
#[test]
fn a_late_word_changes_nothing() {
    let engine = engine(RouteClass::Guarded);
    let (mut flow, attempt) = asking(&engine, POST, START);
    flow.on(Event::Authorized(Authorization::Unclear), at(START));
    flow.on(Event::Authorized(Authorization::Allowed), at(START));
    flow.on(Event::TimeUp(None), at(START));
    drop(attempt);
    let Step::Done(decision) = flow.step(at(START)) else { panic!("decided") };
    assert_eq!(words(&decision), ("rejected", "none", "authorizer"));
    assert_eq!(engine.route(RouteId(0)).authorizations.counts(), [0, 0, 1, 0, 0]);
}

/// What a browser asks before it asks.
#[test]
fn what_is_open_is_not_asked_about() {
    let engine = engine(RouteClass::Guarded);
    let options = RequestFacts { method: Method::OtherSafe, is_open: true, copies: CopyUse::Never, ..GET };
    let script = Script { authorized: Authorization::Denied, ..Script::new(OK) };
    let decision = drive(&mut begin(&engine, options, START), &script, at(START));
    assert_eq!(words(&decision), ("normal", "primary", "none"));
    assert_eq!(authorizer(&engine).tally.attempts(), 0);
}

/// A dependency whose breaker was open is tried out by reads. What is answered without its work, by anybody who likes, says
/// nothing of it; nor does it take the places that are kept for guarded operations.
#[test]
fn options_tries_nothing_out() {
    let route = Route { authorizer: None, ..behind(direct()) };
    let rules = Dependency { breaker: Some(BreakerRules::default()), ..dependency(8, 0) };
    let engine = Engine::new(Policy { dependencies: vec![rules], ..policy(route) }).unwrap();
    let own = engine.dependency(DependencyId(0));
    let now = at(START).mono;
    while own.health.known_up(now).is_none() {
        own.health.admit(now, true, 0).unwrap().failed(now, 0);
    }
    let later = own.health.known_up(now).unwrap().as_ns() + SECOND;
    let options = RequestFacts { method: Method::OtherSafe, copies: CopyUse::Never, ..GET };
    let decision = drive(&mut begin(&engine, options, later), &Script::new(OK), at(later));
    assert_eq!(words(&decision), ("rejected", "none", "breaker_open"));
    let decision = drive(&mut begin(&engine, GET, later), &Script::new(OK), at(later));
    assert_eq!(words(&decision), ("normal", "primary", "none"));

    let engine = self::engine(RouteClass::Guarded);
    let open = RequestFacts { is_open: true, ..options };
    assert_eq!(begin(&engine, open, START).share(), ClassShare::Read);
    assert_eq!(begin(&engine, POST, START).share(), ClassShare::Guarded);
}

/// Where the request proves it itself, nobody is called, and only the yes leads on all the same.
#[test]
fn a_request_may_prove_it_itself() {
    let local = AuthorizerRules { dependency: None, ..behind(RouteClass::Guarded).authorizer.unwrap() };
    let engine =
        Engine::new(policy(Route { authorizer: Some(local), ..behind(RouteClass::Guarded) })).unwrap();
    for (came, expected) in [
        (Authorization::Allowed, "primary"),
        (Authorization::Unclear, "none"),
        (Authorization::Denied, "authorizer"),
    ] {
        let mut flow = Flow::begin(&engine, RouteId(0), POST, at(START), 0, Trace::off());
        assert!(matches!(flow.step(at(START)), Step::Authorize { attempt: None, .. }));
        let mut flow = Flow::begin(&engine, RouteId(0), POST, at(START), 0, Trace::off());
        let script = Script { authorized: came, ..Script::new(OK) };
        assert_eq!(words(&drive(&mut flow, &script, at(START))).1, expected);
    }
    assert_eq!(authorizer(&engine).tally.attempts(), 0);
}

#[test]
fn a_guarded_route_has_an_authorizer() {
    let unguarded = policy(Route { authorizer: None, ..behind(RouteClass::Guarded) });
    assert_eq!(unguarded.validate(), Err(PolicyError::NoAuthorizer { route: "description".into() }));
    let unknown =
        AuthorizerRules { dependency: Some(DependencyId(2)), ..behind(direct()).authorizer.unwrap() };
    let unknown = policy(Route { authorizer: Some(unknown), ..behind(direct()) });
    assert_eq!(unknown.validate(), Err(PolicyError::UnknownDependency { route: "description".into() }));
    let hasty = AuthorizerRules { timeout: Duration::ZERO, ..behind(direct()).authorizer.unwrap() };
    let hasty = policy(Route { authorizer: Some(hasty), ..behind(direct()) });
    assert!(matches!(hasty.validate(), Err(PolicyError::Zero { field: "authorizer.timeout", .. })));
}
