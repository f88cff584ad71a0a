//! Whose evidence counts for whom, and what an alternative that cannot be asked changes: nothing.

use std::sync::Arc;

use crate::alternative::{ANY_POLICY, Verified};
use crate::engine::Engine;
use crate::flow::{CopyUse, Event, Flow, Reply, RequestFacts, Step, Trace};
use crate::policy::{AlternativeRules, DependencyId, Origin, Route, RouteId};
use crate::time::{Now, Wall, WallTrust};

use super::support::{
    GET, MS, REFUSED, START, Script, at, dependency, drive, engine, public, route, says, words,
};

const OTHER: DependencyId = DependencyId(1);
/// The date of [`at`] lies in the middle.
const VERIFIED: Verified = Verified {
    rate_per_second: 1000,
    concurrency: 3,
    valid_from: Wall::from_unix_ns(-5),
    valid_until: Wall::from_unix_ns(5),
    policy: ANY_POLICY,
};

fn with(verified: Option<Verified>) -> Route {
    let alternative = AlternativeRules { dependency: OTHER, verified, origin: Origin::NONE };
    Route { alternative: Some(alternative), in_flight: 100, ..route(public()) }
}

fn engine_of(routes: &[Option<Verified>]) -> Arc<Engine> {
    let routes = routes.iter().map(|verified| with(*verified)).collect();
    engine(100, routes, vec![dependency(100, 0), dependency(100, 0)])
}

/// Who is called on this route if the first call is refused: the second call, still under way, and whom it asks.
fn second_call(engine: &Arc<Engine>, route: u16, now: Now) -> (Flow, Option<Step>) {
    let mut flow = Flow::begin(engine, RouteId(route), GET, now, 0, Trace::off());
    let mut calls = 0;
    loop {
        let event = match flow.step(now) {
            Step::Peek => Event::Known(None),
            Step::Load { .. } => Event::Copy(Ok(None)),
            Step::Attempt(first) if calls == 0 => {
                assert_eq!(first.dependency, DependencyId(0));
                calls = 1;
                Event::Failed { attempt: first.id, failure: REFUSED }
            }
            Step::Attempt(second) => {
                assert_eq!(second.dependency, OTHER);
                return (flow, Some(Step::Attempt(second)));
            }
            _ => return (flow, None),
        };
        flow.on(event, now);
    }
}

fn is_asked(engine: &Arc<Engine>, route: u16) -> bool {
    second_call(engine, route, at(START)).1.is_some()
}

/// The evidence of one route says nothing for another one, whose operator named none or one that does not count.
#[test]
fn a_route_without_evidence_borrows_nobody_elses() {
    for (own, other) in [(0, 1), (1, 0)] {
        let mut routes = [Some(VERIFIED); 2];
        routes[own] = None;
        let engine = engine_of(&routes);
        let (own, other) = (u16::try_from(own).unwrap(), u16::try_from(other).unwrap());
        assert!(!is_asked(&engine, own), "not one call without evidence");
        assert!(is_asked(&engine, other));
        assert_eq!(engine.dependency(OTHER).tally.attempts(), 1);
    }
}

/// One dependency has one capacity: of two measurements the lower of each figure and the shorter time hold, whichever
/// route comes first.
#[test]
fn of_two_measurements_of_one_dependency_the_narrower_holds() {
    let fewer = Verified { concurrency: 2, ..VERIFIED };
    let slower = Verified { rate_per_second: 20, ..VERIFIED };
    for routes in [[fewer, slower], [slower, fewer]] {
        let engine = engine_of(&routes.map(Some));
        let verified = engine.dependency(OTHER).stand_in.verified().copied().unwrap();
        assert_eq!((verified.rate_per_second, verified.concurrency), (20, 2));
        // 20 a second are one every 50 ms; two are under way, and the third has no place.
        let later = |ms: u64| at(START + ms * MS);
        let held: Vec<_> = [0, 50].map(|ms| second_call(&engine, 0, later(ms))).into();
        assert!(held.iter().all(|(_, call)| call.is_some()));
        for route in [0, 1] {
            assert!(second_call(&engine, route, later(500)).1.is_none(), "a third at once");
        }
    }
    let early = Verified { valid_until: Wall::from_unix_ns(-1), ..VERIFIED };
    let late = Verified { valid_from: Wall::from_unix_ns(1), ..VERIFIED };
    for narrower in [early, late] {
        for routes in [[narrower, VERIFIED], [VERIFIED, narrower]] {
            let engine = engine_of(&routes.map(Some));
            assert!(!is_asked(&engine, 0) && !is_asked(&engine, 1));
        }
    }
}

/// Evidence counts from its first moment to its last one, and only by a date that can be believed.
#[test]
fn evidence_that_was_not_valid_at_the_start_counts_once_it_is() {
    let engine = engine_of(&[Some(VERIFIED)]);
    let when = |ns, wall_trust| Now { wall: Wall::from_unix_ns(ns), wall_trust, ..at(START) };
    let asked = |now| second_call(&engine, 0, now).1.is_some();
    assert!(!asked(when(0, WallTrust::Unsynchronised)), "the clock is not set yet");
    assert!(!asked(when(-6, WallTrust::Synchronised)));
    assert!(asked(when(-5, WallTrust::Synchronised)));
    assert!(asked(when(5, WallTrust::Synchronised)));
    assert!(!asked(when(6, WallTrust::Synchronised)));
}

/// 300 ms less 3 ms and 3 ms leave 294 ms for calls; 60 % of them are 176.4 ms.
#[test]
fn an_alternative_that_cannot_be_asked_costs_the_call_no_time() {
    let whole = START + 294 * MS;
    let cut = START + 1_764 * MS / 10;
    let expired = Verified { valid_until: Wall::from_unix_ns(-1), ..VERIFIED };
    let ahead = Verified { valid_from: Wall::from_unix_ns(1), ..VERIFIED };
    let until = |verified, now: Now| {
        let engine = engine_of(&[verified]);
        let mut flow = Flow::begin(&engine, RouteId(0), GET, now, 0, Trace::off());
        loop {
            match flow.step(now) {
                Step::Attempt(attempt) => return attempt.until.as_ns(),
                _ => flow.on(Event::Known(None), now),
            }
        }
    };
    for (verified, expected) in
        [(None, whole), (Some(expired), whole), (Some(ahead), whole), (Some(VERIFIED), cut)]
    {
        assert_eq!(until(verified, at(START)), expected, "{verified:?}");
    }
    let unset = Now { wall_trust: WallTrust::Unsynchronised, ..at(START) };
    assert_eq!(until(Some(VERIFIED), unset), whole);
}

/// A request with a credential has no copy. Where nobody can stand in either, the dependency's own 503 is the answer.
#[test]
fn the_dependencys_own_503_passes_where_nobody_can_stand_in() {
    let own = RequestFacts { copies: CopyUse::Never, credential: true, ..GET };
    let answer = |verified| {
        let engine = engine_of(&[verified]);
        let mut flow = Flow::begin(&engine, RouteId(0), own, at(START), 0, Trace::off());
        let decision = drive(&mut flow, &Script::new(says(503)), at(START));
        (words(&decision), matches!(decision.reply, Reply::Streamed(_)), engine)
    };
    let expired = Verified { valid_until: Wall::from_unix_ns(-1), ..VERIFIED };
    for verified in [None, Some(expired)] {
        let (words, passed, engine) = answer(verified);
        assert_eq!((words, passed), (("failed", "primary", "unavailable"), true));
        assert_eq!(engine.dependency(OTHER).tally.attempts(), 0);
    }
    let (_, passed, engine) = answer(Some(VERIFIED));
    assert!(!passed, "both say 503");
    assert_eq!(engine.dependency(OTHER).tally.attempts(), 1);
}
