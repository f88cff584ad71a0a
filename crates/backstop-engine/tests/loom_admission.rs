//! Every interleaving of two or three threads at one limit, explored by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p backstop-engine --release --test loom_admission`; without that flag
//! this file is empty.
#![cfg(loom)]

use std::sync::Arc;

use backstop_engine::admission::{Excess, Limit, OnRelease, Permit, Turn};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

fn newcomer(limit: &Arc<Limit>) -> Option<Permit> {
    limit.try_acquire(Turn::Newcomer, Excess::Refuse)
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
    fn released(&self) {
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
        let waiting = limit.wait();
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
        let waiting = limit.wait();
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
        let (leaver, stayer) = (limit.wait(), limit.wait());
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
        let waiting = limit.wait();
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
