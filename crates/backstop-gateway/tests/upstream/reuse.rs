//! When a connection serves another call, and what happens if it has died meanwhile.

use std::sync::mpsc;
use std::thread;

use backstop::upstream::{Progress, Upstream};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Attempt;
use backstop_gateway::upstream::Closed;

use crate::origin::Origin;
use crate::support::{OK, SECOND, Whole, World, get, on_a_thread, post, whole};

#[test]
fn the_connection_used_last_is_used_first() {
    let origin = Origin::answering(OK);
    on_a_thread(async {
        let world = World::new(origin.address, 4);
        let lane = world.pool.lane();
        for _ in 0..10 {
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            assert_eq!(
                (world.counts().idle, world.counts().open),
                (1, 1),
                "at rest before the permit is back"
            );
        }
        assert_eq!(origin.seen().accepted, 1);
        assert_eq!((world.counts().opened, world.counts().reused), (1, 9));
    });
}

#[test]
fn an_answer_that_allows_no_other_is_obeyed() {
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    ] {
        let origin = Origin::answering(answer);
        on_a_thread(async {
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            for _ in 0..3 {
                assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            }
            assert_eq!(origin.seen().accepted, 3, "{answer:?}");
            assert_eq!(world.counts().closed[Closed::Answered as usize], 3);
        });
    }
}

#[test]
fn a_connection_that_died_at_rest_is_replaced() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say(OK).await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for call in 1..=3 {
            assert_eq!(world.fetch(&lane, post("once")).await, Ok(Whole::ok()));
            world.until(|counts| counts.idle == 0).await;
            assert_eq!(origin.seen().accepted, call);
        }
        world.pool.sweep(world.clock.mono());
        assert_eq!(world.counts().closed[Closed::Peer as usize], 3);
    });
}

#[test]
fn a_request_that_was_certainly_not_sent_goes_over_another_connection() {
    let origin = Origin::answering(OK);
    let world = World::new(origin.address, 1);
    let (rests, resting) = mpsc::channel::<()>();
    let (end, ended) = mpsc::channel::<()>();
    let first = {
        let world = world.clone();
        thread::spawn(move || {
            on_a_thread(async {
                let lane = world.pool.lane();
                assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
                // From here on nothing drives the connection any more, so nothing is written on it; in the end it is
                // dropped with the thread.
                rests.send(()).expect("the other thread waits");
                ended.recv().expect("the other thread calls");
                std::mem::forget(lane);
            });
        })
    };
    resting.recv().expect("the first thread has called");
    on_a_thread(async {
        let lane = world.pool.lane();
        let call = tokio::task::spawn_local({
            let (world, lane) = (world.clone(), lane.clone());
            async move { world.fetch(&lane, post("once")).await }
        });
        world.until(|counts| counts.stolen == 1).await;
        end.send(()).expect("the first thread waits");
        assert_eq!(call.await.expect("it ends"), Ok(Whole::ok()));
    });
    first.join().expect("the first thread ends");
    let (seen, counts) = (origin.seen(), world.counts());
    assert_eq!((seen.accepted, seen.heads.len()), (2, 2));
    assert_eq!((counts.replaced, counts.opened), (1, 2));
}

/// On a connection that others had, a second answer to their request could come in as the answer to this one.
#[test]
fn what_is_sent_once_at_most_has_a_connection_of_its_own() {
    let origin = Origin::answering(OK);
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for round in 1..=3 {
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()), "it rests afterwards");
            assert_eq!(world.counts().idle, 1);
            let once = Attempt { is_once: true, ..world.attempt() };
            let answer = lane.call(once, post("once"), &Progress::new()).await.expect("an answer");
            assert_eq!(whole(answer).await, Ok(Whole::ok()));
            assert_eq!((origin.seen().accepted, world.counts().idle), (2 * round, 0));
        }
        let seen = origin.seen();
        let is_closing = |head: &String| head.to_lowercase().contains("\r\nconnection: close\r\n");
        let (once, others): (Vec<_>, Vec<_>) = seen.heads.iter().partition(|head| head.starts_with("POST"));
        assert!(once.iter().all(|head| is_closing(head)) && once.len() == 3, "RFC 9112 section 9.6");
        assert!(!others.iter().any(|head| is_closing(head)) && others.len() == 3);
        assert_eq!((world.counts().opened, world.counts().reused), (6, 0));
        assert_eq!(world.counts().closed[Closed::Idle as usize], 3, "for the place of one of its own");
    });
}

#[test]
fn a_request_that_may_have_been_sent_is_never_sent_again() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say(OK).await;
        // The second one is received and then the connection dies.
        peer.head().await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 2);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        let reset = Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe);
        assert_eq!(world.fetch(&lane, post("once")).await, Err(reset));
        let seen = origin.seen();
        assert_eq!(seen.heads.iter().filter(|head| head.starts_with("POST")).count(), 1);
        assert_eq!((seen.accepted, world.counts().replaced), (1, 0));
        assert_eq!(world.counts().closed[Closed::Failed as usize], 1);
    });
}

#[test]
fn a_request_on_a_connection_whose_end_was_not_noticed_is_delivered_at_most_once() {
    for reset in [true, false] {
        let (dies, died) = mpsc::channel::<()>();
        let origin = Origin::start(move |mut peer| {
            let dies = dies.clone();
            async move {
                peer.head().await;
                peer.say(OK).await;
                if peer.number == 1 {
                    if reset {
                        peer.reset();
                    } else {
                        drop(peer);
                    }
                    dies.send(()).expect("the caller waits");
                } else {
                    peer.closed().await;
                }
            }
        });
        on_a_thread(async {
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            // Nothing on this thread is driven meanwhile, so nobody can have noticed.
            died.recv().expect("the origin closes");
            let answer = world.fetch(&lane, post("once")).await;
            let posts = origin.seen().heads.iter().filter(|head| head.starts_with("POST")).count();
            match answer {
                Ok(answer) => assert_eq!((answer, posts), (Whole::ok(), 1)),
                Err(failure) => {
                    assert!(matches!(failure.kind, FailureKind::Reset | FailureKind::Write), "{failure:?}");
                    assert_eq!(posts, 0);
                    if reset {
                        assert_eq!(failure.sent, Sent::No, "no byte was taken by the dead connection");
                    }
                }
            }
        });
    }
}

#[test]
fn connections_do_not_rest_too_long() {
    let origin = Origin::answering(OK);
    on_a_thread(async {
        let world = World::new(origin.address, 2);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        world.hand.advance(29 * SECOND);
        world.pool.sweep(world.clock.mono());
        assert_eq!(world.counts().idle, 1);

        world.hand.advance(SECOND);
        world.pool.sweep(world.clock.mono());
        assert_eq!(world.counts().closed[Closed::Idle as usize], 1);
        world.until(|counts| counts.open == 0).await;

        // Without a sweep, the next call notices.
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        world.hand.advance(30 * SECOND);
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        assert_eq!(world.counts().closed[Closed::Idle as usize], 2);
        assert_eq!(origin.seen().accepted, 3);
    });
}

#[test]
fn a_pool_that_stops_keeps_nothing() {
    let origin = Origin::answering(OK);
    on_a_thread(async {
        let world = World::new(origin.address, 2);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        world.pool.close_idle();
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()), "what is under way still ends");
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.counts().closed[Closed::Stopped as usize], 2);
    });
}

#[test]
fn a_thread_that_leaves_takes_its_connections_along() {
    let origin = Origin::answering(OK);
    let world = World::new(origin.address, 2);
    on_a_thread(async {
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        drop(lane);
        world.until(|counts| counts.open == 0).await;
    });
    on_a_thread(async {
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
    });
    assert_eq!((world.counts().open, world.counts().opened), (0, 2));
}
