//! What is heard of resources: a call found the resource full because of itself, and one word spoke for all of them.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::Excess;
use crate::alternative::NoAlternative;
use crate::engine::Engine;
use crate::flow::HeadFacts;
use crate::health::{PerMille, Phase, RecoveryRules};
use crate::policy::{Dependency, ResourceId};
use crate::resource::ClassShare;

use super::super::support::{
    Body, GET, GOOD, MS, OK, REFUSED, SECOND, START, Upstream, direct, head, route, words,
};
use super::{World, dependency, engine, first, mono, open, resource, retrying, second, standing_in};

/// By hand: the only place is taken by the call itself, which is nobody else: green. Five answers in each second: 100, 150,
/// 225 thousandths.
#[test]
fn a_resource_of_one_place_comes_back_through_its_ramp() {
    let recovering = Dependency { recovery: Some(RecoveryRules::default()), ..dependency("catalog", &[0]) };
    let engine = engine(vec![route(direct())], vec![recovering], vec![resource(Some(1), None)]);
    let well = World::of(OK, OK);
    open(first(&engine), START);
    let mut now = START + 5 * SECOND;
    for _ in 0..3 {
        well.ask(&engine, 0, GET, now).settlement.complete();
    }
    for share in [100, 150, 225] {
        assert_eq!(first(&engine).health.phase(mono(now)), Phase::Ramp { share: PerMille(share) });
        for _ in 0..5 {
            now += 100 * MS;
            let decision = well.ask(&engine, 0, GET, now);
            assert_eq!(words(&decision), ("normal", "primary", "none"));
            decision.settlement.complete();
        }
        now += 500 * MS;
    }
}

/// The failed answer still holds the only place; that alone speaks against no retry.
#[test]
fn a_failed_answers_own_place_does_not_forbid_its_retry() {
    let engine = engine(
        vec![retrying(route(direct()))],
        vec![dependency("catalog", &[0])],
        vec![resource(Some(1), None)],
    );
    World::of(super::super::support::says(503), OK).ask(&engine, 0, GET, START);
    assert_eq!(first(&engine).tally.attempts(), 2);
}

/// A primary on these resources, and a stand-in on the first.
fn two(primary_uses: &[u16]) -> Arc<Engine> {
    engine(
        vec![standing_in(route(direct()))],
        vec![dependency("catalog", primary_uses), dependency("replica", &[0])],
        vec![resource(Some(10), None), resource(Some(10), None)],
    )
}

fn told(wait_ms: u64) -> World {
    let wait = Some(Duration::from_millis(wait_ms));
    let head = HeadFacts { database_wait: wait, ..head(200) };
    World::of(Upstream::Answers(head, Body::Is(GOOD)), OK)
}

/// Whether the stand-in is asked once the primary fails.
fn stands_in(engine: &Arc<Engine>) -> bool {
    World::of(Upstream::Fails(REFUSED), OK).ask(engine, 0, GET, START).settlement.complete();
    second(engine).tally.attempts() > 0
}

fn refused(engine: &Engine, why: NoAlternative) -> u64 {
    second(engine).stand_in.refused(why)
}

/// One short wait of a primary on two resources says of neither that it is well; a long one may be either's.
#[test]
fn one_word_is_no_good_news_of_several_resources() {
    let alone = two(&[0]);
    told(1).ask(&alone, 0, GET, START).settlement.complete();
    assert!(stands_in(&alone), "of one resource it is");

    let several = two(&[0, 1]);
    told(1).ask(&several, 0, GET, START).settlement.complete();
    assert!(!stands_in(&several));
    assert_eq!(refused(&several, NoAlternative::Unknown), 1);
    told(21).ask(&several, 0, GET, START).settlement.complete();
    assert!(!stands_in(&several));
    assert_eq!(refused(&several, NoAlternative::Red), 1);
}

/// By hand, of ten places: above nine tenths in use are ten. Nobody says a word about a stand-in's own resource, but that it
/// is used up is seen.
#[test]
fn a_resource_that_is_used_up_is_red() {
    for (in_use, expected) in [(7, true), (9, false), (10, false)] {
        let engine = engine(
            vec![standing_in(route(direct()))],
            vec![dependency("catalog", &[]), dependency("replica", &[0])],
            vec![resource(Some(10), None)],
        );
        assert_eq!(second(&engine).rules.uses, [ResourceId(0)]);
        let held = (0..in_use).map(|_| {
            engine.resources()[0].try_acquire(mono(START), ClassShare::Effect, Excess::Refuse).unwrap()
        });
        let held: Vec<_> = held.collect();
        assert_eq!(stands_in(&engine), expected, "{in_use}");
        // Nine are amber: it may be asked, and a read then finds the rest kept for others.
        assert_eq!(refused(&engine, NoAlternative::Red), u64::from(in_use == 10), "{in_use}");
        drop(held);
    }
}
