use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::policy::Origin;
use crate::resource::ResourceRules;

const MS: u64 = 1_000_000;

fn resource(concurrency: u32, rate: Option<u64>) -> Arc<Resource> {
    let name = "db".into();
    Arc::new(Resource::new(ResourceRules {
        name,
        concurrency: Some(concurrency),
        rate,
        origin: Origin::NONE,
    }))
}

fn all(resources: &[Arc<Resource>], ns: u64) -> Result<ResourcePermits, (usize, ResourceRefusal)> {
    acquire_all(resources, Mono::from_ns(ns), ClassShare::Effect, Excess::Refuse)
}

#[test]
fn all_are_taken_and_given_back_together() {
    let resources: Vec<_> = (0..7).map(|_| resource(1, None)).collect();
    for count in 0..=7 {
        let permits = all(&resources[..count], 0).unwrap();
        assert_eq!((permits.len(), permits.is_empty()), (count, count == 0));
        let in_use: u32 = resources.iter().map(|resource| resource.in_use()).sum();
        assert_eq!(in_use as usize, count);
        drop(permits);
        assert!(resources.iter().all(|resource| resource.in_use() == 0));
    }
}

/// Whichever of them refuses, and for whichever reason, the others are as if nobody had asked: each still has its whole
/// burst of 2 (40/s) and all of its places.
#[test]
fn one_refusal_leaves_all_as_they_were() {
    for full in 0..6 {
        for reason in [ResourceRefusal::Concurrency, ResourceRefusal::Rate] {
            let mut resources: Vec<_> = (0..6).map(|_| resource(2, Some(40))).collect();
            resources[full] = match reason {
                ResourceRefusal::Concurrency => resource(0, None),
                _ => resource(2, Some(0)),
            };
            for _ in 0..10 {
                assert_eq!(all(&resources, 0).err(), Some((full, reason)));
            }
            assert_eq!(resources[full].refused(reason), 10);
            resources.remove(full);
            assert!(resources.iter().all(|resource| resource.in_use() == 0));
            drop((all(&resources, 0).unwrap(), all(&resources, 0).unwrap()));
            assert_eq!(all(&resources, 0).err(), Some((0, ResourceRefusal::Rate)));
        }
    }
}

/// By hand: named twice, a resource with a burst of 1 admits the first use and not the second, so neither; the first one
/// is put back. With a burst of 3 (60/s) one pair fits, and one of the second pair's admissions is put back.
#[test]
fn what_a_rate_admitted_before_another_refused_is_put_back() {
    let once = resource(9, Some(20));
    let twice = [Arc::clone(&once), Arc::clone(&once)];
    assert_eq!(all(&twice, 0).err(), Some((1, ResourceRefusal::Rate)));
    assert_eq!(once.in_use(), 0);
    assert!(all(&twice[..1], 0).is_ok());

    let thrice = resource(9, Some(60));
    let twice = [Arc::clone(&thrice), Arc::clone(&thrice)];
    assert!(all(&twice, 0).is_ok());
    assert_eq!(all(&twice, 0).err(), Some((1, ResourceRefusal::Rate)));
    assert!(all(&twice[..1], 0).is_ok());
    assert_eq!(all(&twice[..1], 0).err(), Some((0, ResourceRefusal::Rate)));
}

/// By hand: named three times, a burst of 2 (40/s) admits two uses and not the third; both are put back, whichever way
/// they came.
#[test]
fn several_admissions_of_one_rate_are_put_back() {
    let resource = resource(9, Some(40));
    let thrice = [(); 3].map(|()| Arc::clone(&resource));
    assert_eq!(all(&thrice, 0).err(), Some((2, ResourceRefusal::Rate)));
    assert!(all(&thrice[..2], 0).is_ok());
}

#[test]
fn only_what_was_taken_in_the_end_counts_as_admitted() {
    let resources = [resource(9, Some(20)), resource(9, Some(20))];
    assert!(all(&resources[1..], 0).is_ok());
    assert_eq!(all(&resources, 0).err(), Some((1, ResourceRefusal::Rate)));
    assert_eq!(resources[0].spare_per_second(Mono::from_ns(1_000 * MS), 1), Some(20.0));
    assert_eq!(resources[1].spare_per_second(Mono::from_ns(1_000 * MS), 1), Some(19.8), "1 in five seconds");
}

/// 64 threads take two resources in opposite orders: never more than there is, all places back at the end, and the one
/// with the smaller burst decides how many there were.
#[test]
fn sixty_four_threads_take_all_or_none() {
    const THREADS: usize = 64;
    let (narrow, wide) = (resource(3, Some(2_000)), resource(5, Some(1_000_000)));
    let taken = AtomicU64::new(0);
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mut order = [Arc::clone(&narrow), Arc::clone(&wide)];
            if number % 2 == 0 {
                order.reverse();
            }
            let (taken, start, narrow) = (&taken, &start, &narrow);
            scope.spawn(move || {
                start.wait();
                for _ in 0..500 {
                    if let Ok(permits) = all(&order, 0) {
                        assert!(narrow.in_use() <= 3 && permits.len() == 2);
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!((narrow.in_use(), wide.in_use()), (0, 0));
    // The burst of 2000/s is 100. An admission that could not be put back is missing, none is there twice.
    let taken = taken.into_inner();
    assert!((1..=100).contains(&taken), "{taken}");
}
