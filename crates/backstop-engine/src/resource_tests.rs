use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ClassShare::{Effect, Guarded, Optional, Read};
use super::*;

const MS: u64 = 1_000_000;

fn at(ns: u64) -> Mono {
    Mono::from_ns(ns)
}

fn resource(concurrency: Option<u32>, rate: Option<u64>) -> Resource {
    Resource::new(ResourceRules { name: "catalog-db".into(), concurrency, rate, origin: Origin(7) })
}

fn take(resource: &Resource, class: ClassShare) -> Result<ResourcePermit, ResourceRefusal> {
    resource.try_acquire(at(0), class, Excess::Refuse)
}

/// As many as the class gets, all held.
fn fill(resource: &Resource, class: ClassShare) -> Vec<ResourcePermit> {
    std::iter::from_fn(|| take(resource, class).ok()).collect()
}

fn refused(resource: &Resource) -> [u64; 3] {
    [ResourceRefusal::Concurrency, ResourceRefusal::Rate, ResourceRefusal::Share]
        .map(|refusal| resource.refused(refusal))
}

/// By hand, of ten places: optional parts up to 5, reads up to 8, protected operations up to 9, effects up to 10.
#[test]
fn each_class_stops_where_others_may_go_on() {
    let resource = resource(Some(10), None);
    let mut held = Vec::new();
    for (class, in_use, refusal) in [
        (Optional, 5, ResourceRefusal::Share),
        (Read, 8, ResourceRefusal::Share),
        (Guarded, 9, ResourceRefusal::Share),
        (Effect, 10, ResourceRefusal::Concurrency),
    ] {
        held.extend(fill(&resource, class));
        assert_eq!(resource.in_use(), in_use, "{class:?}");
        assert_eq!(take(&resource, class).err(), Some(refusal));
    }
    assert_eq!(refused(&resource), [2, 0, 6]);
    assert_eq!(
        take(&resource, Optional).err(),
        Some(ResourceRefusal::Concurrency),
        "nothing is left for anybody"
    );
    held.truncate(5);
    assert!(take(&resource, Optional).is_err(), "a place that comes back above the share is not theirs");
    held.pop();
    assert!(take(&resource, Optional).is_ok());
}

/// Every limit from 1 to 20, and every class that comes first: it gets its places, and the next class the rest up to its
/// own. What a class may use is by hand in the tests of `ClassShare`.
#[test]
fn every_small_limit_is_shared_by_class() {
    for limit in 1..=20 {
        for first in ClassShare::ALL {
            let resource = resource(Some(limit), None);
            let _first = fill(&resource, first);
            assert_eq!(resource.in_use(), first.places(limit), "{limit} {first:?}");
            for second in ClassShare::ALL {
                let taken = fill(&resource, second).len() as u32;
                let left = second.places(limit).saturating_sub(first.places(limit));
                assert_eq!(taken, left, "{limit} {first:?} {second:?}");
            }
        }
    }
}

/// By hand: 40/s have a burst of 2. A refusal for want of a place leaves the rate as it was, one by the rate the places.
#[test]
fn one_refusal_uses_up_nothing_of_the_other() {
    let resource = resource(Some(1), Some(40));
    let held = take(&resource, Effect).unwrap();
    for _ in 0..10 {
        assert_eq!(take(&resource, Effect).err(), Some(ResourceRefusal::Concurrency));
    }
    drop(held);
    assert!(take(&resource, Effect).is_ok(), "the second of the burst is still there");
    assert_eq!(take(&resource, Effect).err(), Some(ResourceRefusal::Rate));
    assert_eq!((resource.in_use(), refused(&resource)), (0, [10, 1, 0]));
    assert!(resource.try_acquire(at(25 * MS), Effect, Excess::Refuse).is_ok());
}

#[test]
fn without_a_number_there_is_no_limit_but_a_count() {
    let resource = resource(None, None);
    let held: Vec<_> = (0..1_000).map(|_| take(&resource, Optional).unwrap()).collect();
    assert_eq!((resource.in_use(), resource.in_use_per_mille(), resource.concurrency()), (1_000, 0, None));
    assert_eq!(resource.spare_per_second(at(0), 1), None);
    drop(held);
    assert_eq!((resource.in_use(), resource.name(), resource.origin()), (0, "catalog-db", Origin(7)));
}

/// Observing counts what would have refused, once for each reason, and refuses nothing.
#[test]
fn what_is_only_counted_is_given() {
    let resource = resource(Some(2), Some(20));
    let count = || resource.try_acquire(at(0), Read, Excess::Count).unwrap();
    let first = count();
    assert_eq!(refused(&resource), [0, 0, 0]);
    let (second, third) = (count(), count());
    assert_eq!((resource.in_use(), resource.in_use_per_mille(), refused(&resource)), (3, 1_500, [1, 2, 1]));
    drop((first, second, third));
    assert_eq!(resource.in_use(), 0);
}

#[test]
fn a_place_comes_back_when_its_holder_panics() {
    let resource = resource(Some(1), None);
    let work = AssertUnwindSafe(|| {
        let _permit = take(&resource, Read).unwrap();
        resume_unwind(Box::new("lost"));
    });
    assert!(catch_unwind(work).is_err());
    assert_eq!(resource.in_use(), 0);
}

/// A changed resource begins a generation; what is in use stays counted. By hand: the burst of 20/s is 1, which was
/// taken; of 100/s it is 5, and comes with time: one after 10 ms.
#[test]
fn a_changed_resource_keeps_count_and_begins_a_generation() {
    let resource = resource(Some(3), Some(20));
    let old = take(&resource, Effect).unwrap();
    resource.reconfigure(at(0), Some(1), Some(100));
    assert!(old.is_outdated());
    assert_eq!(
        resource.try_acquire(at(10 * MS), Effect, Excess::Refuse).err(),
        Some(ResourceRefusal::Concurrency)
    );
    drop(old);
    let new = resource.try_acquire(at(10 * MS), Effect, Excess::Refuse).unwrap();
    assert_eq!((new.generation(), new.is_outdated(), resource.generation()), (1, false, 1));
    resource.reconfigure(at(10 * MS), None, None);
    assert!(take(&resource, Optional).is_ok());
}

/// By hand: 27 of 40 are 675 thousandths, 28 are 700. 699.5 are not 700 yet.
#[test]
fn use_is_in_thousandths_rounded_down() {
    let resource = resource(Some(40), None);
    let mut held: Vec<_> = (0..28).map(|_| take(&resource, Effect).unwrap()).collect();
    assert_eq!(resource.in_use_per_mille(), 700);
    held.pop();
    assert_eq!(resource.in_use_per_mille(), 675);
    resource.reconfigure(at(0), Some(0), None);
    assert_eq!(resource.in_use_per_mille(), 1_000, "without any place it is full");
}

/// By hand: 200/s, of which 150 were used in the last five seconds: 30/s, so 170/s are spare.
#[test]
fn spare_is_the_rate_less_what_was_admitted() {
    let resource = resource(None, Some(200));
    for number in 0..150_u64 {
        let now = at(number * 5 * MS);
        assert!(resource.try_acquire(now, Read, Excess::Refuse).is_ok());
    }
    assert_eq!(resource.spare_per_second(at(1_000 * MS), 1), Some(170.0));
    assert_eq!(resource.spare_per_second(at(6_000 * MS), 1), Some(200.0));
    assert_eq!(resource.spare_per_second(at(6_000 * MS), 4), Some(50.0), "a quarter of it is one's of four");
    assert_eq!(
        resource.spare_per_second(at(1_000 * MS), 4),
        Some(20.0),
        "a quarter, less 30 per second of its own"
    );
}

#[test]
fn reasons_of_a_resource_have_words_of_their_own() {
    let all = [ResourceRefusal::Concurrency, ResourceRefusal::Rate, ResourceRefusal::Share];
    assert_eq!(all.map(ResourceRefusal::token), ["concurrency", "rate", "share"]);
}

proptest! {
    /// Against plain counts: what is in use, a list of the last admissions, and the shares as fractions.
    #[test]
    fn a_resource_agrees_with_plain_counts(
        limit in 1..25_u32,
        steps in vec((0..4_usize, any::<bool>(), 0..60_u64, any::<prop::sample::Index>()), 1..200),
    ) {
        // 100/s are 10 ms apart, five at once.
        let resource = resource(Some(limit), Some(100));
        let (mut held, mut admitted, mut now) = (Vec::new(), Vec::<u64>::new(), 0);
        let mut counted = [0_u64; 3];
        for (class, leaves, gap_ms, who) in steps {
            now += gap_ms / 4 * MS;
            if leaves && !held.is_empty() {
                drop(held.swap_remove(who.index(held.len())));
                continue;
            }
            let with_this = held.len() as f64 + 1.0;
            let may_use = [0.6, 0.85, 0.95, 2.0][class] * f64::from(limit);
            let fits_rate = (0..admitted.len())
                .all(|first| (admitted.len() - first + 1).saturating_sub(5) as u64 * 10 * MS <= now - admitted[first]);
            let expected = if !fits_rate {
                Err(ResourceRefusal::Rate)
            } else if held.len() as u32 >= limit {
                Err(ResourceRefusal::Concurrency)
            } else if with_this >= may_use && !held.is_empty() {
                Err(ResourceRefusal::Share)
            } else {
                Ok(())
            };
            match resource.try_acquire(at(now), ClassShare::ALL[class], Excess::Refuse) {
                Ok(permit) => {
                    prop_assert_eq!(expected, Ok(()));
                    held.push(permit);
                    admitted.push(now);
                }
                Err(refusal) => {
                    prop_assert_eq!(expected, Err(refusal));
                    counted[refusal as usize] += 1;
                }
            }
            prop_assert_eq!(resource.in_use(), held.len() as u32);
            prop_assert_eq!(refused(&resource), counted);
        }
    }
}

/// 64 threads of all classes: nobody ever sees more in use than its class may, and at rest nothing is.
#[test]
fn sixty_four_threads_keep_to_their_shares() {
    const THREADS: usize = 64;
    let resource = resource(Some(20), Some(1_000_000_000));
    let inside = [const { AtomicU32::new(0) }; 4];
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (resource, inside, start) = (&resource, &inside, &start);
            scope.spawn(move || {
                let class = number % 4;
                start.wait();
                for round in 0..1_000 {
                    let Ok(permit) = take_at(resource, ClassShare::ALL[class], round) else { continue };
                    // Those of this class and all below it can never be more than this class may use.
                    inside[class].fetch_add(1, Ordering::SeqCst);
                    let below: u32 = inside[..=class].iter().map(|count| count.load(Ordering::SeqCst)).sum();
                    inside[class].fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                    assert!(below <= ClassShare::ALL[class].places(20), "{below}");
                }
            });
        }
    });
    assert_eq!(resource.in_use(), 0);
}

fn take_at(resource: &Resource, class: ClassShare, round: u64) -> Result<ResourcePermit, ResourceRefusal> {
    resource.try_acquire(at(round * MS), class, Excess::Refuse)
}
