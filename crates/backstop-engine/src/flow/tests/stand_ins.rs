//! Whose failure it is when another dependency answers in one's place.

use std::sync::Arc;

use crate::alternative::{ANY_POLICY, Verified};
use crate::engine::Engine;
use crate::health::BreakerRules;
use crate::policy::{AlternativeRules, Dependency, DependencyId, Origin, Policy, Route};
use crate::time::Wall;

use super::support::{
    GET, REFUSED, START, at, begin, dependency, direct, head, omitted, public, route, words,
};
use crate::flow::{Event, Flow, HeadFacts, Step};

/// The first dependency fails, the second stands in for it, and both have breakers.
fn shop(of: Route) -> Arc<Engine> {
    let verified = Verified {
        rate_per_second: 1_000,
        concurrency: 10,
        valid_from: Wall::from_unix_ns(0),
        valid_until: Wall::from_unix_ns(1),
        policy: ANY_POLICY,
    };
    let alternative =
        AlternativeRules { dependency: DependencyId(1), verified: Some(verified), origin: Origin::NONE };
    let with_breaker = || Dependency { breaker: Some(BreakerRules::default()), ..dependency(20, 0) };
    let policy = Policy {
        in_flight: 20,
        dependencies: vec![with_breaker(), with_breaker()],
        routes: vec![Route { in_flight: 10, alternative: Some(alternative), ..of }],
        ..Policy::default()
    };
    Engine::new(policy).unwrap()
}

/// Refused by the first, and the head of the second's answer.
fn answered_instead(engine: &Arc<Engine>, said: HeadFacts) -> (Flow, Step) {
    let now = at(START);
    let mut flow = begin(engine, GET, START);
    let mut step = flow.step(now);
    if let Step::Peek = step {
        flow.on(Event::Known(None), now);
        step = flow.step(now);
    }
    let Step::Attempt(first) = step else { panic!("{step:?}") };
    flow.on(Event::Failed { attempt: first.id, failure: REFUSED }, now);
    let Step::Attempt(second) = flow.step(now) else { panic!("nobody stands in") };
    assert_eq!(second.dependency, DependencyId(1));
    flow.on(Event::Head { attempt: second.id, head: said }, now);
    let step = flow.step(now);
    (flow, step)
}

/// Twelve answers that stream, for twelve failures of the other: no failure of the one that answers, and its breaker, which
/// ten in a row open, stays closed.
#[test]
fn a_stand_in_that_answers_well_is_blamed_for_nothing() {
    for (of, status) in [(route(direct()), 200), (route(omitted()), 301), (route(public()), 404)] {
        let engine = shop(of);
        for _ in 0..12 {
            let (_flow, step) = answered_instead(&engine, head(status));
            let Step::Done(decision) = step else { panic!("{step:?}") };
            assert_eq!(words(&decision), ("fallback", "alternative", "connect"), "{status}");
            decision.settlement.complete();
            engine.dependency(DependencyId(0)).health.force_closed(at(START).mono);
        }
        let other = engine.dependency(DependencyId(1));
        assert_eq!((other.tally.answers(), other.tally.failures().iter().sum::<u64>()), (12, 0), "{status}");
        assert_eq!(other.health.totals().trips, 0, "{status}");
        assert_eq!(other.health.counts(at(START).mono).failures, 0, "{status}");
    }
}
