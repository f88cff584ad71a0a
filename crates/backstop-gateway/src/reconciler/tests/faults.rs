//! What the ledger refuses once is tried again, and a reconciler that panics is started again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use backstop_engine::operation::{Attention, State, Untracked};

use super::upstream::{BOUND, Upstream, answer};
use super::world::{World, count, eventually, lines, listen, pay};

fn paid(number: u8) -> Upstream {
    let content = format!(r#"{{"key":"k{number}","status":"paid"}}"#);
    Upstream::start(move |_| answer(200, &content))
}

/// Two of its first calls: the one for the routes that are known, and the one for who needed a person before.
#[test]
fn a_ledger_that_refuses_at_the_start_is_asked_again_each_second() {
    listen();
    let upstream = paid(1);
    let (mut world, faulty) = World::faulty(vec![pay(&upstream)]);
    let (id, gone) = (world.unknown("pay", 1), world.unknown("gone", 220));
    faulty.refuses_routes.store(2, Ordering::SeqCst);
    world.start();
    eventually(|| count(&world.counts().turns_failed) >= 1);
    assert!(upstream.requests().is_empty());
    eventually(|| {
        world.step();
        matches!(world.state(id), State::Succeeded(_))
    });
    eventually(|| {
        world.step();
        world.state(gone) == State::Attention(Attention::NoStatusQuery)
    });
    assert_eq!(count(&world.counts().turns_failed), 2);
}

#[test]
fn a_summary_that_could_not_be_made_is_made_later_and_once() {
    listen();
    let upstream = Upstream::start(|_| answer(200, r#"{"key":"another","status":"paid"}"#));
    let (mut world, faulty) = World::faulty(vec![pay(&upstream)]);
    let id = world.unknown("pay", 221);
    world.start();
    eventually(|| matches!(world.state(id), State::Attention(_)));
    assert!(world.handle.take().unwrap().close(BOUND));
    faulty.refuses_lists.store(3, Ordering::SeqCst);
    world.start();
    let told = || lines(&format!("oldest={id}")).len();
    eventually(|| {
        world.step();
        told() == 1
    });
    assert_eq!(faulty.refuses_lists.load(Ordering::SeqCst), 0);
    world.pass(Duration::from_secs(5));
    assert_eq!(told(), 1);
}

/// Its first five turns panic. By hand: it is begun again after 1, 2, 4, 8 and 16 s, and what it said at the start counts for 10.
#[test]
fn a_reconciler_that_panics_is_started_again_and_silent_until_then() {
    listen();
    let upstream = paid(222);
    let (mut world, faulty) = World::faulty(vec![pay(&upstream)]);
    let id = world.unknown("pay", 222);
    faulty.panics.store(5, Ordering::SeqCst);
    world.start();
    let restarts = || count(&world.counts().restarts);
    eventually(|| restarts() == 1);
    for (so_far, seconds) in [(2, 1), (3, 2), (4, 4)] {
        world.hand.advance(Duration::from_secs(seconds));
        eventually(|| restarts() == so_far);
    }
    world.hand.advance(Duration::from_secs(8) - Duration::from_nanos(1));
    assert_eq!(world.tracked(id), Err(Untracked::Silent));
    assert_eq!(restarts(), 4);
    world.hand.advance(Duration::from_nanos(1));
    eventually(|| restarts() == 5);
    world.hand.advance(Duration::from_secs(16));
    eventually(|| matches!(world.state(id), State::Succeeded(_)));
    eventually(|| world.operations.following.of_all(true).heartbeat == Some(world.clock.mono()));
    assert_eq!(restarts(), 5);
    assert_eq!(lines("the reconciler has panicked").len(), 5);
    assert!(world.handle.take().unwrap().close(BOUND));
}

#[test]
fn a_reconciler_that_waits_to_be_started_again_ends_when_it_is_told_to() {
    let (mut world, faulty) = World::faulty(Vec::new());
    faulty.panics.store(u32::MAX, Ordering::SeqCst);
    world.start();
    eventually(|| count(&world.counts().restarts) == 1);
    assert!(world.handle.take().unwrap().close(BOUND));
}

/// Its task ends, its operation is asked for again when its lease is over, and no other notices.
#[test]
fn a_query_that_panics_ends_alone() {
    listen();
    let upstream = paid(223);
    let (mut world, faulty) = World::faulty(vec![pay(&upstream)]);
    let id = world.unknown("pay", 223);
    faulty.record_panics.store(1, Ordering::SeqCst);
    world.start();
    eventually(|| !lines("a status query has panicked").is_empty());
    world.pass(Duration::from_secs(6));
    assert_eq!(upstream.requests().len(), 1, "its lease is 2 s and 5 s of grace");
    eventually(|| {
        world.step();
        matches!(world.state(id), State::Succeeded(_))
    });
    assert_eq!((upstream.requests().len(), count(&world.counts().restarts)), (2, 0));
}
