//! Calls that were not made used up what they might have taken: the rate of a route's reads behind its cache, and that of
//! a stand-in.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Excess, Turn};
use crate::engine::Engine;
use crate::flow::{Flow, Method, Reply, RequestFacts, Step, Trace};
use crate::health::BreakerRules;
use crate::policy::{
    AlternativeRules, CacheId, CacheRules, CachedRead, FillRules, Origin, Policy, Route, RouteClass, RouteId,
};
use crate::resource::{ClassShare, ResourceRules};

use super::super::support::{
    GET, OK, REFUSED, SECOND, START, Script, Upstream, at, begin, direct, drive, public_read, route, words,
};
use super::{World, dependency, engine, mono, resource, second, standing_in};

/// Reads behind a cache, one at a time and this many per second, of a dependency that uses this database.
fn behind_a_cache(rate: Option<u64>, database: ResourceRules) -> Arc<Engine> {
    let fill = FillRules {
        concurrency: 1,
        rate,
        deadline: Duration::from_secs(2),
        waiters: 100,
        origin: Origin::NONE,
    };
    let class = RouteClass::CachedRead(CachedRead {
        cache: CacheId(0),
        ttl: Duration::from_secs(5),
        timeout: Duration::from_millis(20),
        fill,
        local_copy: false,
        read: public_read(),
    });
    Engine::new(Policy {
        in_flight: 100,
        dependencies: vec![dependency("catalog", &[0])],
        resources: vec![database],
        caches: vec![CacheRules { name: "cache".into(), breaker: BreakerRules::default() }],
        routes: vec![route(class)],
        ..Policy::default()
    })
    .unwrap()
}

fn is_read(engine: &Arc<Engine>) -> bool {
    let mut flow = Flow::begin_fill(engine, RouteId(0), 1, at(START), 0, Trace::off());
    matches!(flow.step(at(START)), Step::Attempt(_))
}

/// One read per second is allowed. The database refuses ten before it: none of them was a read, so the one is still there.
#[test]
fn a_read_that_the_database_refuses_costs_the_budget_nothing() {
    let engine = behind_a_cache(Some(1), resource(Some(1), None));
    let taken = engine.resources()[0].try_acquire(mono(START), ClassShare::Effect, Excess::Refuse).unwrap();
    for _ in 0..10 {
        assert!(!is_read(&engine));
    }
    drop(taken);
    assert!(is_read(&engine));
    assert!(!is_read(&engine), "one per second");
    let budget = &engine.route(RouteId(0)).fills.as_ref().unwrap().budget;
    let later = START + SECOND;
    // By hand: one in the five seconds that are looked at, so 0.8 of 1 per second are spare.
    assert_eq!(budget.spare_per_second(mono(later), 1), Some(0.8));
}

/// The stand-in was verified for one call per second. All its places are taken when ten ask: the one is still there.
#[test]
fn a_stand_in_that_has_no_place_costs_what_was_verified_nothing() {
    let one_per_second = |route: Route| {
        let mut route = standing_in(route);
        let rules: &mut AlternativeRules = route.alternative.as_mut().unwrap();
        rules.verified.as_mut().unwrap().rate_per_second = 1;
        route
    };
    let two = vec![dependency("catalog", &[]), dependency("replica", &[])];
    let engine = engine(vec![one_per_second(route(direct()))], two, vec![]);
    let ask = || words(&World::of(Upstream::Fails(REFUSED), OK).ask(&engine, 0, GET, START));
    let places = || second(&engine).in_flight.try_acquire(Turn::Newcomer, Excess::Refuse);
    let all: Vec<_> = std::iter::from_fn(places).collect();
    for _ in 0..5 {
        assert_eq!(ask(), ("failed", "none", "connect"));
    }
    drop(all);
    assert_eq!(ask(), ("fallback", "alternative", "connect"));
    assert_eq!(ask(), ("failed", "none", "connect"), "one per second");
    assert_eq!(second(&engine).tally.attempts(), 1);
}

/// What a refusal by the reads' own budget promises is what that can bear, and not what its database has to spare. By hand:
/// ten per second less the one that was read of late, per five seconds: 9.8, half of it promised: a slot in 204 ms, so the
/// first five are told the second after next and the sixth the one after that. Without a rate nobody knows.
#[test]
fn those_who_were_refused_by_the_budget_come_back_at_its_rate() {
    let told = |rate: Option<u64>| {
        let engine = behind_a_cache(rate, resource(None, Some(2_000)));
        let mut flow = Flow::begin_fill(&engine, RouteId(0), 1, at(START), 0, Trace::off());
        let Step::Attempt(_under_way) = flow.step(at(START)) else { panic!("not read") };
        let head = RequestFacts { method: Method::Head, ..GET };
        [(); 10].map(|()| {
            let mut flow = begin(&engine, head, START);
            let decision = drive(&mut flow, &Script::new(OK), at(START));
            let Reply::Refusal(refusal) = decision.reply else { panic!("{:?}", decision.reply) };
            refusal.retry_after_s
        })
    };
    let of_ten = told(Some(10));
    assert_eq!(of_ten[0], Some(2));
    assert_eq!(of_ten[9], Some(3), "{of_ten:?}");
    assert_eq!(told(None), [None; 10]);
}
