//! Every interleaving of two or three threads at one limit, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p backstop-engine --release --test loom_admission`; without that flag
//! this file is empty.
#![cfg(loom)]

use std::sync::Arc;

use backstop_engine::admission::{ClassShare, Excess, Limit, OnRelease, Permit, Turn, Waiting};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

fn newcomer(limit: &Arc<Limit>) -> Option<Permit> {
    limit.try_acquire(Turn::Newcomer, Excess::Refuse)
}

fn newcomer_as(limit: &Arc<Limit>, class: ClassShare) -> Option<Permit> {
    limit.try_acquire_as(class, Turn::Newcomer, Excess::Refuse).ok()
}

fn wait(limit: &Arc<Limit>) -> Waiting {
    limit.wait_as(ClassShare::Effect).unwrap()
}

fn visit(limit: &Arc<Limit>, inside: &AtomicU32) {
    let Some(permit) = newcomer(limit) else { return };
    assert!(inside.fetch_add(1, Ordering::AcqRel) < limit.limit(), "one too many");
    inside.fetch_sub(1, Ordering::AcqRel);
    drop(permit);
}

/// Wake-ups that nobody has used yet: what a driver that wakes one waiter per release would hold.
struct WakeUps(AtomicU32);

impl WakeUps {
    fn of(limit: &Limit) -> Arc<Self> {
        let wake_ups = Arc::new(Self(AtomicU32::new(0)));
        limit.notify_with(Arc::<Self>::clone(&wake_ups));
        wake_ups
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok()
    }
}

impl OnRelease for WakeUps {
    fn released(&self, _: ClassShare) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Those inside, counted by themselves, are never more than the limit, and every place comes back.
#[test]
fn no_interleaving_exceeds_the_limit_or_loses_a_place() {
    for places in [1, 2] {
        // Three threads interleave in too many ways to try them all; a fault of counting needs few switches.
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(move || {
            let limit = Arc::new(Limit::new(places));
            let inside = Arc::new(AtomicU32::new(0));
            let others = [0, 1].map(|_| {
                let (limit, inside) = (Arc::clone(&limit), Arc::clone(&inside));
                thread::spawn(move || visit(&limit, &inside))
            });
            visit(&limit, &inside);
            for other in others {
                other.join().unwrap();
            }
            assert_eq!(limit.in_flight(), 0);
        });
    }
}

/// Two callers and two places: neither is refused.
#[test]
fn a_free_place_is_never_refused() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(2));
        let other = {
            let limit = Arc::clone(&limit);
            thread::spawn(move || newcomer(&limit).is_some())
        };
        assert!(newcomer(&limit).is_some());
        assert!(other.join().unwrap());
    });
}

/// Whoever marks itself as waiting either finds the place that came back in between or is told of it.
#[test]
fn a_release_is_either_found_or_announced() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(1));
        let wake_ups = WakeUps::of(&limit);
        let permit = newcomer(&limit).unwrap();
        let leaving = thread::spawn(move || drop(permit));
        let waiting = wait(&limit);
        let found = waiting.try_acquire();
        leaving.join().unwrap();
        if found.is_none() {
            assert!(wake_ups.take(), "asleep beside a free place");
            assert!(waiting.try_acquire().is_some());
        }
    });
}

/// The same when the place appears because the limit is raised.
#[test]
fn a_raised_limit_is_either_found_or_announced() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(1));
        let wake_ups = WakeUps::of(&limit);
        let _taken = newcomer(&limit).unwrap();
        let raising = {
            let limit = Arc::clone(&limit);
            thread::spawn(move || limit.reconfigure(2))
        };
        let waiting = wait(&limit);
        let found = waiting.try_acquire();
        raising.join().unwrap();
        if found.is_none() {
            assert!(wake_ups.take(), "asleep beside a new place");
            assert!(waiting.try_acquire().is_some());
        }
    });
}

/// A waiter that was woken and leaves instead of taking the place passes the wake-up on.
#[test]
fn a_waiter_that_leaves_hands_its_wake_up_on() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(1));
        let wake_ups = WakeUps::of(&limit);
        let permit = newcomer(&limit).unwrap();
        let (leaver, stayer) = (wait(&limit), wait(&limit));
        let releasing = thread::spawn(move || drop(permit));
        let leaving = {
            let wake_ups = Arc::clone(&wake_ups);
            thread::spawn(move || {
                wake_ups.take();
                drop(leaver);
            })
        };
        releasing.join().unwrap();
        leaving.join().unwrap();
        assert!(wake_ups.take(), "the wake-up left with a waiter that did not use it");
        assert!(stayer.try_acquire().is_some());
    });
}

/// A newcomer takes no place while somebody waits, not even one that has just come back.
#[test]
fn a_newcomer_never_overtakes_a_waiter() {
    loom::model(|| {
        let limit = Arc::new(Limit::new(1));
        let permit = newcomer(&limit).unwrap();
        let waiting = wait(&limit);
        let releasing = thread::spawn(move || drop(permit));
        let passing = {
            let limit = Arc::clone(&limit);
            thread::spawn(move || newcomer(&limit).is_some())
        };
        assert!(!passing.join().unwrap(), "overtaken");
        releasing.join().unwrap();
        assert!(waiting.try_acquire().is_some());
    });
}

/// Wake-ups per class, as a driver with one queue for each holds them: a queue keeps one for a waiter that does not listen
/// yet, and no more.
struct Queues([AtomicU32; 4]);

impl Queues {
    fn of(limit: &Limit) -> Arc<Self> {
        let queues = Arc::new(Self(std::array::from_fn(|_| AtomicU32::new(0))));
        limit.notify_with(Arc::<Self>::clone(&queues));
        queues
    }

    fn take(&self, class: ClassShare) -> bool {
        self.0[class as usize].swap(0, Ordering::AcqRel) > 0
    }
}

impl OnRelease for Queues {
    fn released(&self, class: ClassShare) {
        self.0[class as usize].store(1, Ordering::Release);
    }
}

/// Of three places reads may use two. Two reads come at any moment: an effect finds the third, every time.
#[test]
fn the_last_place_is_never_a_reads() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded.check(|| {
        let limit = Arc::new(Limit::new(3));
        let reads = [0, 1].map(|_| {
            let limit = Arc::clone(&limit);
            thread::spawn(move || {
                let permit = newcomer_as(&limit, ClassShare::Read);
                let another = newcomer_as(&limit, ClassShare::Read);
                drop((permit, another));
            })
        });
        assert!(newcomer_as(&limit, ClassShare::Effect).is_some());
        for read in reads {
            read.join().unwrap();
        }
        assert_eq!(limit.in_flight(), 0);
    });
}

/// Two places come back while an effect and a read wait, and both may be announced to the effect. Whoever of the two is not
/// served by then has a wake-up: none sleeps beside a place that it may use.
#[test]
fn no_class_sleeps_beside_a_place_that_it_may_use() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded.check(|| {
        let limit = Arc::new(Limit::new(2));
        let queues = Queues::of(&limit);
        let [first, second] = [0, 1].map(|_| newcomer(&limit).unwrap());
        let read = limit.wait_as(ClassShare::Read).unwrap();
        let releasing = thread::spawn(move || {
            drop(first);
            drop(second);
        });
        let effect = limit.wait_as(ClassShare::Effect).unwrap();
        let mut served = effect.try_at_once();
        releasing.join().unwrap();
        if served.is_none() {
            assert!(queues.take(ClassShare::Effect), "the effect sleeps beside two places");
            served = effect.try_acquire();
        }
        assert!(served.is_some());
        // Served and gone, or gone unserved: the read is told, and finds a place once less than its share is taken.
        drop((served, effect));
        assert!(queues.take(ClassShare::Read), "the read sleeps beside two places");
        assert!(read.try_acquire().is_some());
    });
}
