use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::AtomicU32;
use std::thread;

use super::*;

fn newcomer(limit: &Arc<Limit>) -> Option<Permit> {
    limit.try_acquire(Turn::Newcomer, Excess::Refuse)
}

fn wait(limit: &Arc<Limit>) -> Waiting {
    limit.wait_as(ClassShare::Effect).unwrap()
}

struct WakeUps(AtomicU32);

impl OnRelease for WakeUps {
    fn released(&self, _: ClassShare) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counting(places: u32) -> (Arc<Limit>, Arc<WakeUps>) {
    let limit = Arc::new(Limit::new(places));
    let wake_ups = Arc::new(WakeUps(AtomicU32::new(0)));
    limit.notify_with(Arc::<WakeUps>::clone(&wake_ups));
    (limit, wake_ups)
}

#[test]
fn the_last_place_is_given_and_the_next_is_refused() {
    let limit = Arc::new(Limit::new(2));
    let (first, second) = (newcomer(&limit), newcomer(&limit));
    assert!(first.is_some() && second.is_some());
    assert!(newcomer(&limit).is_none());
    assert_eq!((limit.in_flight(), limit.refused()), (2, 1));
    drop(first);
    assert_eq!(limit.in_flight(), 1);
    assert!(newcomer(&limit).is_some(), "a place that came back is free at once");
}

#[test]
fn no_place_means_no_permit() {
    let limit = Arc::new(Limit::new(0));
    assert!(newcomer(&limit).is_none());
    assert!(wait(&limit).try_acquire().is_none());
}

/// Observing counts what would have been refused, and refuses nothing.
#[test]
fn excess_that_is_only_counted_is_admitted_and_counted() {
    let limit = Arc::new(Limit::new(1));
    let count = || limit.try_acquire(Turn::Newcomer, Excess::Count);
    let (first, second) = (count(), count());
    assert!(first.is_some() && second.is_some());
    assert_eq!((limit.in_flight(), limit.refused()), (2, 1));
    drop(first);
    assert!(newcomer(&limit).is_none(), "one is still in the only place");
    drop(second);
    assert!(newcomer(&limit).is_some());
}

#[test]
fn a_newcomer_stands_behind_those_who_wait() {
    let limit = Arc::new(Limit::new(1));
    let waiting = wait(&limit);
    assert!(newcomer(&limit).is_none(), "the free place is the waiter's");
    let permit = waiting.try_acquire();
    assert!(permit.is_some());
    drop((permit, waiting));
    assert!(newcomer(&limit).is_some());
}

/// Only who is alone may try right after its mark: behind others a free place is theirs.
#[test]
fn a_second_waiter_does_not_overtake_the_first() {
    let limit = Arc::new(Limit::new(1));
    let first = wait(&limit);
    let second = wait(&limit);
    assert!(second.try_at_once().is_none());
    assert!(first.try_at_once().is_some());
    assert_eq!(limit.waiting(), 2);
}

#[test]
fn waiters_are_told_of_releases_and_nobody_else_is() {
    let (limit, wake_ups) = counting(1);
    drop(newcomer(&limit));
    assert_eq!(wake_ups.0.load(Ordering::Relaxed), 0, "nobody waits");
    let permit = newcomer(&limit);
    let (first, second) = (wait(&limit), wait(&limit));
    drop(permit);
    assert_eq!(wake_ups.0.load(Ordering::Relaxed), 1);
    drop(first);
    assert_eq!(wake_ups.0.load(Ordering::Relaxed), 2, "handed on to the second");
    drop(second);
    assert_eq!(wake_ups.0.load(Ordering::Relaxed), 2, "the last one hands nothing on");
    assert_eq!((limit.waiting(), limit.in_flight()), (0, 0));
}

/// Only the first name counts: two engines cannot take each other's wake-ups.
#[test]
fn who_is_told_is_named_once() {
    let (limit, wake_ups) = counting(1);
    let later = Arc::new(WakeUps(AtomicU32::new(0)));
    limit.notify_with(Arc::<WakeUps>::clone(&later));
    let _waiting = wait(&limit);
    limit.reconfigure(1);
    assert_eq!((wake_ups.0.load(Ordering::Relaxed), later.0.load(Ordering::Relaxed)), (1, 0));
}

/// What is in flight stays counted under a lower limit, and nothing is admitted until enough came back.
#[test]
fn a_lowered_limit_drains_and_a_raised_one_admits() {
    let (limit, wake_ups) = counting(3);
    let mut held: Vec<_> = (0..3).map(|_| newcomer(&limit).unwrap()).collect();
    limit.reconfigure(1);
    assert_eq!((limit.limit(), limit.in_flight()), (1, 3));
    held.pop();
    held.pop();
    assert!(newcomer(&limit).is_none());
    held.pop();
    let last = newcomer(&limit).unwrap();
    let waiting = wait(&limit);
    limit.reconfigure(2);
    assert_eq!(wake_ups.0.load(Ordering::Relaxed), 1);
    assert!(waiting.try_acquire().is_some());
    drop((last, waiting));
    assert_eq!(limit.in_flight(), 0);
}

/// A permit of before the change is known as such, and is returned all the same.
#[test]
fn a_permit_knows_its_generation() {
    let limit = Arc::new(Limit::new(2));
    let old = newcomer(&limit).unwrap();
    assert!(!old.is_outdated());
    limit.reconfigure(2);
    let new = newcomer(&limit).unwrap();
    assert!(old.is_outdated() && !new.is_outdated());
    assert_eq!((old.generation() + 1, new.generation()), (limit.generation(), limit.generation()));
    drop((old, new));
    assert_eq!(limit.in_flight(), 0);
}

/// 64 threads at eight places, each counting itself in and out: never a ninth, and all places back, also those that
/// were lost in a panic.
#[test]
fn sixty_four_threads_never_exceed_the_limit() {
    const THREADS: usize = 64;
    const ROUNDS: u32 = 2_000;
    const PLACES: u32 = 8;
    let limit = Arc::new(Limit::new(PLACES));
    let inside = AtomicU32::new(0);
    let (entered, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for round in 0..ROUNDS {
                    let Some(permit) = newcomer(&limit) else {
                        refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    entered.fetch_add(1, Ordering::Relaxed);
                    let visit = AssertUnwindSafe(|| {
                        let _permit = permit;
                        let before = inside.fetch_add(1, Ordering::AcqRel);
                        if round % 4 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(1, Ordering::AcqRel);
                        assert!(before < PLACES, "{before} were inside already");
                        if round % 8 == 0 {
                            resume_unwind(Box::new("lost in a panic"));
                        }
                    });
                    if let Err(lost) = catch_unwind(visit) {
                        assert_eq!(lost.downcast_ref(), Some(&"lost in a panic"));
                    }
                }
            });
        }
    });
    assert_eq!(limit.in_flight(), 0);
    let (entered, refused) = (entered.into_inner(), refused.into_inner());
    assert_eq!(entered + refused, 64 * ROUNDS);
    assert_eq!(limit.refused(), u64::from(refused));
    assert!(entered >= PLACES, "{entered}");
}
