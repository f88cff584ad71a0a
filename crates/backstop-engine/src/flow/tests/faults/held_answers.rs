//! A failed answer was thrown away for a retry or a stand-in that then did not happen, and became Backstop's own 503.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::flow::{CopyUse, HeadFacts, Reply, RequestFacts};
use crate::policy::{AlternativeRules, Route, StatusSet};

use super::super::support::{
    Body, GET, GOOD, OK, SECOND, START, Upstream, direct, head, public, route, says, words,
};
use super::{World, dependency, engine, first, mono, open, retrying, second, standing_in};

fn two(route: Route) -> Arc<Engine> {
    engine(vec![route], vec![dependency("catalog", &[]), dependency("replica", &[])], vec![])
}

/// A request that no copy may answer, on a class with copies.
const OWN: RequestFacts = RequestFacts { copies: CopyUse::Never, ..GET };

fn passes(engine: &Arc<Engine>, facts: RequestFacts, status: u16, why: &str) {
    let before = first(engine).tally.failures().iter().sum::<u64>();
    let decision = World::of(says(status), OK).ask(engine, 0, facts, START);
    let reason = if status == 429 { "declared" } else { "unavailable" };
    assert_eq!(words(&decision), ("failed", "primary", reason), "{why}");
    assert!(matches!(decision.reply, Reply::Streamed(_)), "{why}: {:?}", decision.reply);
    decision.settlement.complete();
    assert_eq!(first(engine).tally.failures().iter().sum::<u64>(), before + 1, "{why}: counted once");
    assert_eq!(second(engine).tally.attempts(), 0, "{why}");
}

/// Whatever keeps the retry from being made, the failed answer is the answer.
#[test]
fn what_no_retry_follows_is_passed_on() {
    let declared = StatusSet::of(&[429]);
    for (class, facts) in [(direct(), GET), (public(), OWN)] {
        let new = || two(Route { declared, ..retrying(route(class.clone())) });
        passes(&new(), facts, 504, "a reported timeout");
        passes(&new(), facts, 429, "a declared status");
        passes(&new(), RequestFacts { attempt: 2, ..facts }, 503, "tried by the caller already");
        passes(&new(), RequestFacts { repeatable: false, ..facts }, 503, "cannot be sent again");
        let unpaid = new();
        while first(&unpaid).retries.try_spend() {}
        passes(&unpaid, facts, 503, "nothing saved");
    }
}

/// Whatever keeps the stand-in from being asked, too: also what is found out only when its place is asked for.
#[test]
fn what_no_stand_in_follows_is_passed_on() {
    for (class, facts) in [(direct(), GET), (public(), OWN)] {
        let route = standing_in(route(class));
        let rules = route.alternative.unwrap();
        let unverified = AlternativeRules { verified: None, ..rules };
        passes(&two(Route { alternative: Some(unverified), ..route.clone() }), facts, 503, "no evidence");
        let opened = two(route.clone());
        open(second(&opened), START);
        passes(&opened, facts, 503, "its breaker is open");
        let full = two(route);
        let limit = &second(&full).in_flight;
        let _all: Vec<_> = std::iter::from_fn(|| {
            limit.try_acquire(crate::admission::Turn::Newcomer, crate::admission::Excess::Refuse)
        })
        .collect();
        passes(&full, facts, 503, "it is full");
    }
}

/// What is followed is dropped: by the stand-in, and by a retry.
#[test]
fn what_is_followed_is_not_passed_on() {
    let decision = World::of(says(503), OK).ask(&two(standing_in(route(direct()))), 0, GET, START);
    assert_eq!(words(&decision), ("fallback", "alternative", "unavailable"));
    let engine = two(retrying(route(direct())));
    let decision = World::of(says(503), OK).ask(&engine, 0, GET, START);
    assert_eq!(words(&decision), ("failed", "primary", "unavailable"));
    assert_eq!(first(&engine).tally.attempts(), 2);
}

/// The wish of a 503 to be called later was heard only where the answer was replaced. By hand: opened at once for 5 s, it
/// stays open for the 30 s that were asked for.
#[test]
fn a_passed_503_is_heard() {
    let engine = two(route(direct()));
    let later = HeadFacts { retry_after: Some(Duration::from_secs(30)), ..head(503) };
    let world = World::of(Upstream::Answers(later, Body::Is(GOOD)), OK);
    for _ in 0..10 {
        assert_eq!(words(&world.ask(&engine, 0, GET, START)), ("failed", "primary", "unavailable"));
    }
    assert_eq!(first(&engine).health.known_up(mono(START)), Some(mono(START + 30 * SECOND)));
}
