//! A call that was allowed and then not begun: our own doing, for which nobody is blamed.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Cause, NotAsked};
use crate::flow::{AttemptId, Event, Step};
use crate::health::{BreakerRules, PerMille, Phase};
use crate::policy::{Dependency, DependencyId, Origin, RetryRules, Route};
use crate::retry::Owner;

use super::support::{
    GET, REFUSED, START, at, called, dependency, direct, engine, in_flight, public, route, words,
};

/// One failure opens the breaker.
fn touchy() -> Dependency {
    let breaker = BreakerRules {
        min_calls: 1,
        failures: PerMille(1),
        slow: Duration::from_secs(60),
        ..BreakerRules::default()
    };
    Dependency { breaker: Some(breaker), ..dependency(4, 0) }
}

fn failures(engine: &Arc<Engine>) -> u64 {
    engine.dependency(DependencyId(0)).tally.failures().iter().sum()
}

fn phase(engine: &Arc<Engine>) -> Phase {
    engine.dependency(DependencyId(0)).health.phase(at(START).mono)
}

#[test]
fn a_call_that_was_not_begun_blames_nobody_and_leads_to_the_alternative() {
    for reason in [NotAsked::PoolTimeout, NotAsked::TooLate] {
        let engine = engine(8, vec![route(public())], vec![touchy()]);
        let (mut flow, call) = called(&engine, GET, START);
        flow.on(Event::NotAsked { attempt: call.id, reason }, at(START));
        assert!(matches!(flow.step(at(START)), Step::Load { .. }));
        flow.on(Event::Copy(Ok(None)), at(START));
        let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
        assert_eq!(words(&decision), ("rejected", "none", "missing"));
        assert_eq!(decision.account.cause, Some(Cause::NotAsked(reason)));
        assert_eq!((failures(&engine), phase(&engine)), (0, Phase::Closed));
        drop((decision, call, flow));
        assert_eq!(in_flight(&engine), [0; 4]);
    }
}

/// A failure would have opened it: the breaker of the test above is one that opens.
#[test]
fn a_call_that_failed_does() {
    let engine = engine(8, vec![route(public())], vec![touchy()]);
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Failed { attempt: call.id, failure: REFUSED }, at(START));
    assert!(matches!(phase(&engine), Phase::Open { .. }));
    assert_eq!(failures(&engine), 1);
}

/// Without an alternative the reason stands in the answer, and the refusal is Backstop's own.
#[test]
fn without_an_alternative_it_is_a_refusal() {
    let engine = engine(8, vec![route(direct())], vec![touchy()]);
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::NotAsked { attempt: call.id, reason: NotAsked::PoolTimeout }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("rejected", "none", "pool_timeout"));
}

/// Of another attempt, or twice, it changes nothing.
#[test]
fn of_another_attempt_it_changes_nothing() {
    let engine = engine(8, vec![route(public())], vec![touchy()]);
    let (mut flow, call) = called(&engine, GET, START);
    let reason = NotAsked::TooLate;
    flow.on(Event::NotAsked { attempt: AttemptId(2), reason }, at(START));
    assert_eq!(engine.dependency(DependencyId(0)).tally.late_results(), 1);
    flow.on(Event::NotAsked { attempt: call.id, reason }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Load { .. }));
    flow.on(Event::NotAsked { attempt: call.id, reason }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Load { .. }));
    assert_eq!(engine.dependency(DependencyId(0)).tally.late_results(), 2);
}

/// A retry that was paid for and then not begun gets its payment back: three are saved at the beginning, and three stay.
#[test]
fn a_second_call_that_was_not_begun_is_not_paid() {
    let retry = RetryRules { attempts: 2, owner: Owner::Backstop, origin: Origin::NONE };
    let engine = engine(8, vec![Route { retry: Some(retry), ..route(direct()) }], vec![dependency(4, 0)]);
    let retries = &engine.dependency(DependencyId(0)).retries;
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::Failed { attempt: call.id, failure: REFUSED }, at(START));
    let Step::Pause { until } = flow.step(at(START)) else { panic!("not made once more") };
    assert_eq!((retries.spent(), retries.level_thousandths(), retries.in_flight()), (1, 2_000, 1));
    drop(call);
    let now = at(until.as_ns());
    flow.on(Event::TimeUp(None), now);
    let Step::Attempt(call) = flow.step(now) else { panic!("not called") };
    flow.on(Event::NotAsked { attempt: call.id, reason: NotAsked::PoolTimeout }, now);
    let Step::Done(decision) = flow.step(now) else { panic!("not done") };
    assert_eq!(words(&decision), ("failed", "none", "connect"), "what the first call came to");
    assert_eq!((retries.spent(), retries.level_thousandths(), retries.in_flight()), (0, 3_000, 0));
}
