//! Time in which the client keeps a call waiting was taken for the dependency's own: slow uploads opened its breaker.

use std::time::Duration;

use crate::engine::Engine;
use crate::flow::{ClientFault, Event, Step};
use crate::health::{BreakerRules, Phase, WindowCount};
use crate::policy::{Dependency, DependencyId};

use super::super::support::{GET, MS, POST, SECOND, START, at, called, direct, head, route};
use super::{dependency, engine, first, mono, open};

/// What lasts longer than 100 ms is slow; four slow calls open it.
fn impatient() -> std::sync::Arc<Engine> {
    let breaker = BreakerRules { min_calls: 4, slow: Duration::from_millis(100), ..BreakerRules::default() };
    let dependency = Dependency { breaker: Some(breaker), ..dependency("uploads", &[]) };
    engine(vec![route(direct())], vec![dependency], vec![])
}

fn counts(engine: &Engine, ns: u64) -> WindowCount {
    engine.dependency(DependencyId(0)).health.counts(mono(ns))
}

/// By hand: 5 s of waiting for the client and 50 ms for the answer are a call of 50 ms, ten times over; 5 s and 101 ms are
/// one of 101 ms.
#[test]
fn slow_uploads_are_no_slow_calls() {
    let engine = impatient();
    let end = START + 5 * SECOND + 50 * MS;
    for _ in 0..10 {
        let (mut flow, call) = called(&engine, POST, START);
        flow.on(Event::ClientWaited(Duration::from_secs(5)), at(end));
        flow.on(Event::Head { attempt: call.id, head: head(200) }, at(end));
        let Step::Done(decision) = flow.step(at(end)) else { panic!("not done") };
        decision.settlement.complete();
    }
    assert_eq!(counts(&engine, end), WindowCount { calls: 10, failures: 0, slow: 0 });
    let (mut flow, call) = called(&engine, POST, START);
    flow.on(Event::ClientWaited(Duration::from_secs(5)), at(end + 51 * MS));
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(end + 51 * MS));
    assert_eq!(counts(&engine, end + 51 * MS), WindowCount { calls: 11, failures: 0, slow: 1 });
}

/// The client is slow and then leaves: the dependency had no time to be slow.
#[test]
fn a_slow_client_that_leaves_says_nothing() {
    let engine = impatient();
    for _ in 0..10 {
        let (mut flow, call) = called(&engine, POST, START);
        flow.on(Event::ClientWaited(Duration::from_secs(5)), at(START + 5 * SECOND));
        first(&engine).health.phase(mono(START + 5 * SECOND));
        drop((flow, call));
    }
    assert_eq!(counts(&engine, START + 5 * SECOND), WindowCount::default());
}

/// A request that is itself at fault says nothing of the dependency, however long it took; a probe's slot comes back.
#[test]
fn a_client_at_fault_says_nothing_of_the_dependency() {
    for fault in [ClientFault::Slow, ClientFault::TooLarge, ClientFault::Broken] {
        let engine = impatient();
        let late = START + 5 * SECOND;
        for _ in 0..10 {
            let (mut flow, call) = called(&engine, POST, START);
            first(&engine).health.phase(mono(late));
            flow.on(Event::ClientFault(fault), at(late));
            drop((flow, call));
        }
        assert_eq!(counts(&engine, late), WindowCount::default(), "{fault:?}");

        open(first(&engine), late);
        let up = late + 5 * SECOND;
        for _ in 0..10 {
            let (mut flow, call) = called(&engine, GET, up);
            flow.on(Event::ClientFault(fault), at(up + 9 * SECOND));
            drop((flow, call));
        }
        assert_eq!(first(&engine).health.phase(mono(up + 9 * SECOND)), Phase::HalfOpen, "{fault:?}");
    }
}
