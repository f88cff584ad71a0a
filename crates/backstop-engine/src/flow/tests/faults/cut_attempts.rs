//! A first attempt was cut short to leave time for another one that could not follow.

use crate::admission::Excess;
use crate::flow::RequestFacts;
use crate::health::{RecoveryRules, Saved, SavedPhase};
use crate::policy::{Dependency, Route};
use crate::resource::ClassShare;
use crate::retry::Owner;

use super::super::support::{GET, MS, START, called, public, route};
use super::{dependency, engine, first, mono, resource, retrying};

/// By hand, of 300 ms: 294 ms are for attempts, 6 tenths of that are 176.4 ms.
const CUT: u64 = START + 176_400_000;
const WHOLE: u64 = START + 294 * MS;

fn with(change: impl FnOnce(&mut Route)) -> std::sync::Arc<crate::engine::Engine> {
    let mut route = retrying(route(public()));
    change(&mut route);
    let recovering = Dependency { recovery: Some(RecoveryRules::default()), ..dependency("catalog", &[0]) };
    engine(vec![route], vec![recovering], vec![resource(Some(10), None)])
}

fn until(engine: &std::sync::Arc<crate::engine::Engine>, facts: RequestFacts) -> u64 {
    called(engine, facts, START).1.until.as_ns()
}

#[test]
fn an_attempt_is_cut_only_where_another_may_follow() {
    assert_eq!(until(&with(|_| {}), GET), CUT, "a retry may follow");
    assert_eq!(
        until(&with(|_| {}), RequestFacts { attempt: 2, ..GET }),
        WHOLE,
        "the caller has tried already"
    );
    let others = with(|route| route.retry.as_mut().unwrap().owner = Owner::Client);
    assert_eq!(until(&others, GET), WHOLE, "somebody else owns the retries");
    let single = with(|route| route.retry.as_mut().unwrap().attempts = 1);
    assert_eq!(until(&single, GET), WHOLE, "one attempt");

    let unpaid = with(|_| {});
    while first(&unpaid).retries.try_spend() {}
    assert_eq!(until(&unpaid, GET), WHOLE, "nothing saved");

    let taken = with(|_| {});
    let _retry = first(&taken).retries.start(1).unwrap();
    assert_eq!(until(&taken, GET), WHOLE, "as many retries as may be are under way");

    let watched = with(|_| {});
    let rest = std::time::Duration::from_secs(60);
    let saved = Saved { phase: SavedPhase::Watch, rest, ..Saved::default() };
    first(&watched).health.restore(mono(START), saved, std::time::Duration::ZERO);
    assert_eq!(until(&watched, GET), WHOLE, "retries are suspended");
}

/// By hand, of ten places: with seven taken by others a retry is not made, with six it is.
#[test]
fn a_busy_resource_forbids_the_retry_and_the_cut() {
    for (others, expected) in [(6, CUT), (7, WHOLE)] {
        let engine = with(|_| {});
        let take = || engine.resources()[0].try_acquire(mono(START), ClassShare::Effect, Excess::Refuse);
        let held: Vec<_> = (0..others).map(|_| take().unwrap()).collect();
        assert_eq!(until(&engine, GET), expected, "{others}");
        drop(held);
    }
}
