//! `Retry-After` spoke of the wrong dependency, of a moment that nobody knew, and promised one resource several times.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::flow::{Reply, RequestFacts};
use crate::health::{Saved, SavedPhase};
use crate::policy::{DependencyId, Route};

use super::super::support::{GET, OK, POST, REFUSED, SECOND, START, Upstream, direct, route};
use super::{MIDDLE, World, dependency, engine, first, mono, open, resource, second, standing_in};

const DOWN: Upstream = Upstream::Fails(REFUSED);

fn retry_after(engine: &Arc<Engine>, route: u16, facts: RequestFacts, ns: u64) -> Option<u32> {
    let decision = World::of(DOWN, DOWN).ask(engine, route, facts, ns);
    let Reply::Refusal(refusal) = decision.reply else { panic!("{:?}", decision.reply) };
    refusal.retry_after_s
}

/// By hand: its own database spares 100 per second, of which half are promised: one per 20 ms, from 5 s on, is second 6. The
/// stand-in's spares 1000 and is not open: second 2, if it were that one's.
#[test]
fn the_routes_own_dependency_is_meant() {
    let own_and_other = vec![dependency("catalog", &[0]), dependency("replica", &[1])];
    let rates = vec![resource(None, Some(100)), resource(None, Some(1_000))];
    let engine = engine(vec![standing_in(route(direct()))], own_and_other, rates);
    open(first(&engine), START);
    assert_eq!(retry_after(&engine, 0, GET, START), Some(6));
    assert_eq!(second(&engine).tally.attempts(), 1, "it was asked, and failed");
}

/// Half open, open and waiting for a safe call, forced open: nobody knows when it lets calls through.
#[test]
fn a_moment_that_is_not_known_is_not_told() {
    let new =
        || engine(vec![route(direct())], vec![dependency("catalog", &[0])], vec![resource(None, Some(100))]);
    let opened = new();
    open(first(&opened), START);
    let up = START + 5 * SECOND;
    assert_eq!(retry_after(&opened, 0, GET, up - 1), Some(2), "at the earliest in a second");
    assert_eq!(retry_after(&opened, 0, POST, up), None, "only a safe call tries it");
    let probes = [(); 3].map(|()| first(&opened).health.admit(mono(up), true, MIDDLE).unwrap());
    assert_eq!(retry_after(&opened, 0, GET, up), None, "half open");
    drop(probes);
    let forced = new();
    first(&forced).health.force_open(mono(START));
    assert_eq!(retry_after(&forced, 0, GET, START), None, "by order");
}

/// Two dependencies on one database that takes two per second, both opened for 5 s.
fn two_users() -> Arc<Engine> {
    let other = Route { dependency: DependencyId(1), ..route(direct()) };
    let users = vec![dependency("catalog", &[0]), dependency("stock", &[0])];
    engine(vec![route(direct()), other], users, vec![resource(None, Some(2))])
}

/// By hand: half of two per second is one slot per second, from 5 s on: 6, 7, 8, whoever refuses.
#[test]
fn a_shared_resources_spare_is_promised_once() {
    let engine = two_users();
    open(first(&engine), START);
    open(second(&engine), START);
    let told: Vec<_> = [0, 1, 0].into_iter().map(|route| retry_after(&engine, route, GET, START)).collect();
    assert_eq!(told, [Some(6), Some(7), Some(8)]);
}

/// By hand: the other user had 1.5 per second and will have it again, so 0.5 are spare: one slot in four seconds, the first
/// at 9 s. Once that user's incident is over its calls are seen in what the resource admits (none here): 1 s.
#[test]
fn what_all_users_had_before_is_not_spare_while_they_are_held_back() {
    let engine = two_users();
    open(first(&engine), START);
    let saved = Saved {
        phase: SavedPhase::Open,
        rest: Duration::from_secs(5),
        trips: 1,
        rate_milli: 1_500,
        p95: Duration::ZERO,
    };
    second(&engine).health.restore(mono(START), saved, Duration::ZERO);
    assert_eq!(second(&engine).health.usual_rate(), Some(1.5));
    assert_eq!(retry_after(&engine, 0, GET, START), Some(9));

    let over = two_users();
    open(first(&over), START);
    second(&over).health.restore(mono(START), saved, Duration::ZERO);
    for _ in 0..3 {
        let up = mono(START + 5 * SECOND);
        second(&over).health.admit(up, true, MIDDLE).unwrap().answered(up);
    }
    assert_eq!(second(&over).health.usual_rate(), None);
    assert_eq!(retry_after(&over, 0, GET, START), Some(6));
}

/// Who uses two resources takes a slot of each and is told the later. By hand: two per second are 6 s; one per second has
/// a slot in two seconds: 7 s. The next finds both one slot further: 7 and 9.
#[test]
fn the_latest_slot_of_several_resources_is_told() {
    let rates = vec![resource(None, Some(2)), resource(None, Some(1)), resource(Some(5), None)];
    let engine = engine(vec![route(direct())], vec![dependency("catalog", &[0, 1, 2])], rates);
    open(first(&engine), START);
    let told = [(); 2].map(|()| retry_after(&engine, 0, GET, START));
    assert_eq!(told, [Some(7), Some(9)]);
    let ok = World::of(OK, OK).ask(&two_users(), 0, GET, START);
    assert!(matches!(ok.reply, Reply::Streamed(_)));
}
