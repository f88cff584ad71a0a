//! The bounded queue in front of a dependency.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::admission::{ClassShare, OnRelease};
use crate::engine::Engine;
use crate::flow::{Attempt, Event, Flow, Step};
use crate::policy::{DependencyId, RouteId};
use crate::time::Mono;

use super::support::{
    GET, MS, START, at, begin, called, counted, dependency, engine, in_flight, omitted, route, words,
};

/// How often somebody was told that a place may be free.
struct WakeUps(AtomicU32);

impl OnRelease for WakeUps {
    fn released(&self, _: ClassShare) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl WakeUps {
    fn so_far(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One connection, one request that holds it, a queue of this many milliseconds.
fn busy(queue_ms: u64) -> (Arc<Engine>, Arc<WakeUps>, (Flow, Attempt)) {
    let mut optional = route(omitted());
    optional.in_flight = 8;
    let engine = engine(8, vec![optional], vec![dependency(1, queue_ms)]);
    let wake_ups = Arc::new(WakeUps(AtomicU32::new(0)));
    engine.dependency(DependencyId(0)).in_flight.notify_with(Arc::<WakeUps>::clone(&wake_ups));
    let holder = called(&engine, GET, START);
    (engine, wake_ups, holder)
}

fn waiting(engine: &Arc<Engine>, ns: u64) -> Flow {
    let mut flow = begin(engine, GET, ns);
    assert!(matches!(flow.step(at(ns)), Step::Wait { .. }));
    flow
}

fn waiters(engine: &Engine) -> u32 {
    engine.dependency(DependencyId(0)).in_flight.waiting()
}

#[test]
fn a_released_place_wakes_a_waiter_which_then_calls() {
    let (engine, wake_ups, (holder, call)) = busy(20);
    let mut flow = waiting(&engine, START);
    assert_eq!((waiters(&engine), wake_ups.so_far()), (1, 0));
    drop(call);
    assert_eq!(wake_ups.so_far(), 1);
    flow.on(Event::Released, at(START + MS));
    assert_eq!(in_flight(&engine)[3], 1, "the place is taken with the event");
    assert!(matches!(flow.step(at(START + MS)), Step::Attempt(_)));
    assert_eq!(waiters(&engine), 0);
    drop(holder);
}

/// The place was released for the waiter; who comes in between waits behind it, free place or not.
#[test]
fn a_newcomer_does_not_overtake_a_waiter() {
    let (engine, _wake_ups, (_holder, call)) = busy(20);
    let mut first = waiting(&engine, START);
    drop(call);
    let mut second = waiting(&engine, START);
    first.on(Event::Released, at(START));
    assert!(matches!(first.step(at(START)), Step::Attempt(_)));
    second.on(Event::Released, at(START));
    assert!(
        matches!(second.step(at(START)), Step::Attempt(_)),
        "its turn, once the first has called and let go"
    );
}

/// Somebody else was faster: whoever was woken goes on waiting, and no longer than before.
#[test]
fn a_wake_up_for_nothing_goes_on_waiting() {
    let (engine, _wake_ups, _holder) = busy(20);
    let mut flow = waiting(&engine, START);
    flow.on(Event::Released, at(START + MS));
    let Step::Wait { until, .. } = flow.step(at(START + MS)) else { panic!("not waiting") };
    assert_eq!(until, Mono::from_ns(START + 20 * MS), "the end of the wait does not move");
}

#[test]
fn the_end_of_the_queue_is_a_pool_timeout() {
    let (engine, _wake_ups, _holder) = busy(20);
    let mut flow = begin(&engine, GET, START);
    let Step::Wait { until, dependency, .. } = flow.step(at(START)) else { panic!("not waiting") };
    assert_eq!((until, dependency), (Mono::from_ns(START + 20 * MS), DependencyId(0)));
    flow.on(Event::TimeUp(None), at(START + 20 * MS));
    let Step::Done(decision) = flow.step(at(START + 20 * MS)) else { panic!("not done") };
    assert_eq!(words(&decision), ("fallback", "omitted", "pool_timeout"));
    assert_eq!(waiters(&engine), 0);
    assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 1, "the holder's own");
}

/// The place comes back together with the end of the wait: it is not left lying.
#[test]
fn a_place_that_is_free_at_the_end_of_the_queue_is_taken() {
    let (engine, _wake_ups, (_holder, call)) = busy(20);
    let mut flow = waiting(&engine, START);
    drop(call);
    flow.on(Event::TimeUp(None), at(START + 20 * MS));
    assert!(matches!(flow.step(at(START + 20 * MS)), Step::Attempt(_)));
}

/// 300 ms less 3 ms for the reply and 3 ms for the alternative: the queue ends there, however long it is.
#[test]
fn a_deadline_shorter_than_the_queue_ends_it() {
    let (engine, _wake_ups, (_holder, call)) = busy(60_000);
    let mut flow = begin(&engine, GET, START);
    let Step::Wait { until, .. } = flow.step(at(START)) else { panic!("not waiting") };
    assert_eq!(until, Mono::from_ns(START + 294 * MS));
    // The place comes back at that very moment: nothing is sent all the same, and the place is given back.
    drop(call);
    flow.on(Event::Released, at(START + 294 * MS));
    let Step::Done(decision) = flow.step(at(START + 294 * MS)) else { panic!("not done") };
    assert_eq!(words(&decision), ("fallback", "omitted", "too_late"));
    assert_eq!(in_flight(&engine)[3], 0);
}

/// Woken and dropped before it could act: the next one is told instead of sleeping beside a free place.
#[test]
fn a_waiter_that_leaves_hands_its_wake_up_on() {
    let (engine, wake_ups, (_holder, call)) = busy(20);
    let (first, mut second) = (waiting(&engine, START), waiting(&engine, START));
    drop(call);
    assert_eq!(wake_ups.so_far(), 1);
    drop(first);
    assert_eq!((wake_ups.so_far(), waiters(&engine)), (2, 1));
    second.on(Event::Released, at(START));
    assert!(matches!(second.step(at(START)), Step::Attempt(_)));
}

/// Two places may have come back under one wake-up: whoever takes the first tells the next.
#[test]
fn a_waiter_that_is_served_tells_the_next() {
    let (engine, wake_ups, (_holder, call)) = busy(20);
    let (mut first, _second) = (waiting(&engine, START), waiting(&engine, START));
    drop(call);
    first.on(Event::Released, at(START));
    assert_eq!((wake_ups.so_far(), waiters(&engine)), (2, 1));
}

/// A waiter that leaves is nobody's failure, and no call was begun for it.
#[test]
fn a_waiter_that_leaves_is_counted_once_and_blames_nobody() {
    let (engine, _wake_ups, holder) = busy(20);
    drop(waiting(&engine, START));
    assert_eq!(counted(&engine), [("abandoned", "none", "client_left", 1)]);
    let calls = &engine.dependency(DependencyId(0)).tally;
    assert_eq!((calls.attempts(), calls.abandoned()), (1, 0));
    drop(holder);
    assert_eq!(in_flight(&engine), [0; 4]);
    assert_eq!(waiters(&engine), 0);
    assert_eq!(engine.route(RouteId(0)).in_flight.waiting(), 0);
}

/// No queue: a full dependency is full at once.
#[test]
fn without_a_queue_a_full_dependency_is_full_at_once() {
    let (engine, _wake_ups, _holder) = busy(0);
    let mut flow = begin(&engine, GET, START);
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("fallback", "omitted", "dependency_full"));
}
