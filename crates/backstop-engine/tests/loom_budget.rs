//! Every interleaving of two or three threads at a retry budget, a rate and a part of a limit, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p backstop-engine --release --test loom_budget`; without that flag this
//! file is empty.
#![cfg(loom)]

use std::sync::Arc;

use backstop_engine::admission::{Excess, Limit, Permit, Turn};
use backstop_engine::policy::Origin;
use backstop_engine::rate::Rate;
use backstop_engine::resource::{ClassShare, Resource, ResourceRules, acquire_all};
use backstop_engine::retry::{Budget, BudgetRules};
use backstop_engine::retry_after::Slots;
use backstop_engine::time::Mono;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const NOW: Mono = Mono::from_ns(5_000_000_000);

/// Three threads interleave in too many ways to try them all; a fault of counting needs few switches.
fn bounded() -> loom::model::Builder {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded
}

fn budget(initial_thousandths: u32) -> Arc<Budget> {
    Arc::new(Budget::new(BudgetRules { initial_thousandths, ..BudgetRules::default() }))
}

/// One retry is saved: of three that want it, one gets it.
#[test]
fn one_saved_retry_is_spent_once() {
    bounded().check(|| {
        let budget = budget(1_000);
        let others = [0, 1].map(|_| {
            let budget = Arc::clone(&budget);
            thread::spawn(move || u64::from(budget.try_spend()))
        });
        let mine = u64::from(budget.try_spend());
        let spent = others.into_iter().map(|other| other.join().unwrap()).sum::<u64>() + mine;
        assert_eq!((spent, budget.spent(), budget.exhausted()), (1, 1, 2));
        assert_eq!(budget.level_thousandths(), 0);
    });
}

/// 0.9 are saved and a success comes while two want to retry: at most one does, and nothing earned is lost.
#[test]
fn a_success_under_way_pays_once_and_is_not_lost() {
    bounded().check(|| {
        let budget = budget(900);
        let earning = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.deposit())
        };
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || u64::from(budget.try_spend()))
        };
        let mine = u64::from(budget.try_spend());
        earning.join().unwrap();
        let spent = other.join().unwrap() + mine;
        assert!(spent <= 1);
        assert_eq!(spent * 1_000 + budget.level_thousandths(), 1_000);
    });
}

/// Of four calls in flight one may be a retry: never two at once, and who finds no place pays nothing.
#[test]
fn retries_under_way_never_exceed_their_share() {
    loom::model(|| {
        let budget = budget(3_000);
        let inside = Arc::new(AtomicU32::new(0));
        let visit = |budget: &Budget, inside: &AtomicU32| {
            let Ok(permit) = budget.start(4) else { return };
            assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two retries at once");
            inside.fetch_sub(1, Ordering::AcqRel);
            drop(permit);
        };
        let other = {
            let (budget, inside) = (Arc::clone(&budget), Arc::clone(&inside));
            thread::spawn(move || visit(&budget, &inside))
        };
        visit(&budget, &inside);
        other.join().unwrap();
        assert_eq!(budget.in_flight(), 0);
        assert_eq!(budget.spent() * 1_000 + budget.level_thousandths(), 3_000);
    });
}

/// A burst of two: of three that come in one moment, two are admitted.
#[test]
fn a_burst_is_given_once() {
    bounded().check(|| {
        let rate = Arc::new(Rate::new(10, 2));
        let others = [0, 1].map(|_| {
            let rate = Arc::clone(&rate);
            thread::spawn(move || u32::from(rate.try_take(NOW)))
        });
        let mine = u32::from(rate.try_take(NOW));
        let admitted = others.into_iter().map(|other| other.join().unwrap()).sum::<u32>() + mine;
        assert_eq!((admitted, rate.spare(NOW)), (2, 0));
    });
}

/// The rate is changed twice in the moment in which three ask for the two of the burst: two get it all the same.
#[test]
fn a_change_gives_and_takes_nothing() {
    bounded().check(|| {
        let rate = Arc::new(Rate::new(10, 2));
        let asking = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || (0..2).filter(|_| rate.try_take(NOW)).count())
        };
        let changing = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || {
                rate.set(NOW, 1_000);
                rate.set(NOW, 10);
            })
        };
        let mine = usize::from(rate.try_take(NOW));
        let admitted = asking.join().unwrap() + mine;
        changing.join().unwrap();
        assert_eq!((admitted, rate.spare(NOW)), (2, 0));
    });
}

/// One of two places may be used by this part. Two of the part never use both, one of the whole is never refused for
/// them, and every place comes back.
#[test]
fn a_part_never_takes_more_than_its_places() {
    bounded().check(|| {
        let limit = Arc::new(Limit::new(2));
        let inside = Arc::new(AtomicU32::new(0));
        let visit = |limit: &Arc<Limit>, inside: &AtomicU32| {
            let permit = limit.try_acquire_within(Turn::Newcomer, Excess::Refuse, 1);
            if permit.is_some() {
                assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two in one place");
                inside.fetch_sub(1, Ordering::AcqRel);
            }
        };
        let others = [0, 1].map(|_| {
            let (limit, inside) = (Arc::clone(&limit), Arc::clone(&inside));
            thread::spawn(move || visit(&limit, &inside))
        });
        let whole: Option<Permit> = limit.try_acquire(Turn::Newcomer, Excess::Refuse);
        assert!(whole.is_some(), "the second place is never the part's");
        drop(whole);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(limit.in_flight(), 0);
    });
}

/// A part stands behind those who wait, like everybody, and the place that comes back is found or announced to them.
#[test]
fn a_part_never_overtakes_a_waiter() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(2));
        let held = [(); 2].map(|()| limit.try_acquire(Turn::Newcomer, Excess::Refuse));
        let waiting = limit.wait_as(ClassShare::Effect).unwrap();
        let releasing = thread::spawn(move || drop(held));
        let passing = {
            let limit = Arc::clone(&limit);
            thread::spawn(move || limit.try_acquire_within(Turn::Newcomer, Excess::Refuse, 1).is_some())
        };
        assert!(!passing.join().unwrap(), "overtaken");
        releasing.join().unwrap();
        assert!(waiting.try_acquire().is_some());
    });
}

/// Two that need both of two resources with one place each, in opposite orders: never more than there is, nothing stays
/// taken, and of the rates no more than their bursts (1) are used.
#[test]
fn all_or_none_leaves_nothing_behind() {
    bounded().check(|| {
        let resource = || {
            let name = "db".into();
            let rules = ResourceRules { name, concurrency: Some(1), rate: Some(20), origin: Origin::NONE };
            Arc::new(Resource::new(rules))
        };
        let resources = [resource(), resource()];
        let take = |resources: &[Arc<Resource>]| {
            let permits = acquire_all(resources, NOW, ClassShare::Effect, Excess::Refuse);
            u32::from(permits.is_ok())
        };
        let other = {
            let mut resources = resources.clone();
            resources.reverse();
            thread::spawn(move || take(&resources))
        };
        let admitted = take(&resources) + other.join().unwrap();
        assert!(admitted <= 1);
        assert!(resources.iter().all(|resource| resource.in_use() == 0));
    });
}

/// One wants three of a burst of two, and puts back what it got; another takes one in the meantime. What was taken and
/// what is left are never more than the burst.
#[test]
fn what_is_put_back_is_never_given_twice() {
    bounded().check(|| {
        let rules =
            ResourceRules { name: "db".into(), concurrency: None, rate: Some(40), origin: Origin::NONE };
        let resource = Arc::new(Resource::new(rules));
        let wanting = {
            let thrice = [(); 3].map(|()| Arc::clone(&resource));
            thread::spawn(move || acquire_all(&thrice, NOW, ClassShare::Effect, Excess::Refuse).is_ok())
        };
        let take = || resource.try_acquire(NOW, ClassShare::Effect, Excess::Refuse).is_ok();
        let mut taken = u32::from(take());
        assert!(!wanting.join().unwrap());
        taken += (0..3).filter(|_| take()).count() as u32;
        assert!(taken <= 2, "{taken}");
        assert_eq!(resource.in_use(), 0);
    });
}

/// Two refusals are never told the same slot: with one slot in five seconds they are five seconds apart.
#[test]
fn each_refusal_has_a_slot_of_its_own() {
    loom::model(|| {
        let slots = Arc::new(Slots::new());
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.assign(NOW, NOW, 0.4))
        };
        let mine = slots.assign(NOW, NOW, 0.4);
        let mut told = [mine, other.join().unwrap()];
        told.sort();
        assert_eq!(told, [Some(6), Some(11)]);
    });
}
