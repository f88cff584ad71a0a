//! Never more connections than allowed, nothing begun too late, nobody refused while there is a place.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use backstop::upstream::{CallError, Progress, Upstream};
use backstop_engine::admission::Excess;
use backstop_engine::failure::{Cause, NotAsked};
use backstop_gateway::upstream::{Settings, Timed};
use tokio::sync::{Barrier, Semaphore, oneshot};
use tokio::task::{spawn_local, yield_now};

use crate::origin::Origin;
use crate::support::{Answer, OK, SECOND, Whole, World, get, on_a_thread, soon, whole};

/// What a call that gave no answer came to.
fn cause(answer: Answer) -> Cause {
    match answer {
        Err(CallError::Failed(failure)) => Cause::Failed(failure),
        Err(CallError::NotAsked(reason)) => Cause::NotAsked(reason),
        other => panic!("no reason: {other:?}"),
    }
}

#[test]
fn many_callers_on_two_threads_share_few_connections() {
    let origin = Origin::answering(OK);
    let world = World::new(origin.address, 4);
    // A thread that leaves takes its connections along; so both stay to the end.
    let both_done = Arc::new(Barrier::new(2));
    let thread = |world: World| {
        let both_done = Arc::clone(&both_done);
        thread::spawn(move || {
            on_a_thread(async {
                let lane = world.pool.lane();
                let callers: Vec<_> = (0..32)
                    .map(|_| {
                        let (world, lane) = (world.clone(), lane.clone());
                        spawn_local(async move {
                            for _ in 0..20 {
                                let attempt = loop {
                                    match world.try_attempt() {
                                        Some(attempt) => break attempt,
                                        None => yield_now().await,
                                    }
                                };
                                let answer =
                                    lane.call(attempt, get(), &Progress::new()).await.expect("an answer");
                                assert_eq!(whole(answer).await, Ok(Whole::ok()));
                                assert!(world.counts().open <= 4);
                            }
                        })
                    })
                    .collect();
                for caller in callers {
                    caller.await.expect("a caller ends");
                }
                both_done.wait().await;
            });
        })
    };
    let threads = [thread(world.clone()), thread(world.clone())];
    for thread in threads {
        thread.join().expect("a thread ends");
    }
    let seen = origin.seen();
    assert_eq!(seen.heads.len(), 2 * 32 * 20, "every request once");
    assert!(seen.accepted <= 4, "{} connections", seen.accepted);
    assert_eq!(world.limit.in_flight(), 0);
}

#[test]
fn connections_that_are_closed_after_every_answer_are_never_too_many_either() {
    let origin = Origin::start(async |mut peer| {
        if peer.head().await.is_some() {
            peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        }
        peer.closed().await;
    });
    let world = World::new(origin.address, 2);
    on_a_thread(async {
        let lane = world.pool.lane();
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (world, lane) = (world.clone(), lane.clone());
                spawn_local(async move {
                    for _ in 0..50 {
                        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
                        assert!(world.counts().open <= 2);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("a caller ends");
        }
    });
    assert_eq!(origin.seen().accepted, 100);
}

#[test]
fn nothing_begins_once_the_time_is_over() {
    let origin = Origin::start(async |mut peer| peer.closed().await);
    on_a_thread(async {
        let world = World::new(origin.address, 64);
        world.pool.set_connections(4);
        let lane = world.pool.lane();
        let callers: Vec<_> = (0..64)
            .map(|_| {
                let (world, lane) = (world.clone(), lane.clone());
                spawn_local(async move {
                    let mut attempt = world.attempt();
                    attempt.abandon_hold = Some(Duration::ZERO);
                    let (until, progress) = (attempt.until, Progress::new());
                    tokio::select! {
                        biased;
                        answer = lane.call(attempt, get(), &progress) => cause(answer),
                        () = world.clock.sleep_until(until) => progress.time_up(),
                    }
                })
            })
            .collect();
        origin.until(|seen| seen.accepted == 4).await;
        world.until(|counts| counts.waiting == 60).await;

        // Every waiter is told that there are places, and before any of them can run the time of all is over.
        world.pool.set_connections(64);
        world.hand.advance(10 * SECOND);
        let mut causes = Vec::new();
        for caller in callers {
            causes.push(caller.await.expect("a caller ends"));
        }
        // Who waited for a connection has asked nobody, and nobody is to blame for it.
        let count = |wanted: &str| causes.iter().filter(|cause| cause.token() == wanted).count();
        assert_eq!((count("pool_timeout"), count("read_timeout")), (60, 4), "{causes:?}");
        world.until(|counts| counts.open == 0).await;
        origin.until(|seen| seen.open == 0).await;
        assert_eq!(origin.seen().accepted, 4);
        assert_eq!(world.counts().durations[Timed::Connect as usize].count(), 4);
        assert_eq!(world.limit.in_flight(), 0);
    });
}

#[test]
fn a_call_whose_time_is_over_when_it_comes_does_nothing() {
    let origin = Origin::answering(OK);
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let mut attempt = world.attempt();
        attempt.until = world.clock.mono();
        let too_late = Cause::NotAsked(NotAsked::TooLate);
        assert_eq!(cause(lane.call(attempt, get(), &Progress::new()).await), too_late);

        // Nor does it take a connection that rests.
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        let mut attempt = world.attempt();
        attempt.until = world.clock.mono();
        assert_eq!(cause(lane.call(attempt, get(), &Progress::new()).await), too_late);
        assert_eq!((world.counts().idle, world.limit.in_flight()), (1, 0));
        assert_eq!(origin.seen().heads.len(), 1);
    });
}

#[test]
fn a_connection_that_rests_on_one_thread_serves_another_when_no_place_is_free() {
    let origin = Origin::answering(OK);
    let world = World::new(origin.address, 1);
    let (rests, resting) = mpsc::channel::<()>();
    let (finish, finished) = oneshot::channel::<()>();
    let first = {
        let world = world.clone();
        thread::spawn(move || {
            on_a_thread(async {
                let lane = world.pool.lane();
                assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
                world.until(|counts| counts.idle == 1).await;
                rests.send(()).expect("the other thread waits");
                finished.await.expect("the other thread ends");
            });
        })
    };
    resting.recv().expect("the first thread has called");
    on_a_thread(async {
        let lane = world.pool.lane();
        for _ in 0..3 {
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            world.until(|counts| counts.idle == 1).await;
        }
    });
    let counts = world.counts();
    assert_eq!((counts.opened, counts.reused, counts.stolen, counts.open), (1, 3, 3, 1));
    assert_eq!(origin.seen().accepted, 1);
    finish.send(()).expect("the first thread waits");
    first.join().expect("the first thread ends");
}

#[test]
fn while_a_limit_is_only_counted_nobody_waits() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.closed().await;
    });
    on_a_thread(async {
        let mut settings = Settings::new(vec![origin.address.into()], 3, SECOND);
        settings.excess = Excess::Count;
        let world = World::with(settings);
        world.pool.set_connections(1);
        let lane = world.pool.lane();
        for _ in 0..3 {
            let (world, lane) = (world.clone(), lane.clone());
            spawn_local(async move { lane.call(world.attempt(), get(), &Progress::new()).await.is_ok() });
        }
        origin.until(|seen| seen.heads.len() == 3).await;
        assert_eq!(world.counts().open, 3);
    });
}

#[test]
fn who_waits_for_a_place_gets_the_next_connection_that_rests() {
    let go = Arc::new(Semaphore::new(0));
    let origin = {
        let go = Arc::clone(&go);
        Origin::start(move |mut peer| {
            let go = Arc::clone(&go);
            async move {
                while peer.head().await.is_some() {
                    go.acquire().await.expect("open").forget();
                    peer.say(OK).await;
                }
            }
        })
    };
    on_a_thread(async {
        let world = World::new(origin.address, 2);
        world.pool.set_connections(1);
        let lane = world.pool.lane();
        let calls: Vec<_> = (0..2)
            .map(|_| {
                let (world, lane) = (world.clone(), lane.clone());
                spawn_local(async move { world.fetch(&lane, get()).await })
            })
            .collect();
        origin.until(|seen| seen.heads.len() == 1).await;
        world.until(|counts| counts.waiting == 1).await;
        go.add_permits(2);
        for call in calls {
            assert_eq!(soon(call).await.expect("it ends"), Ok(Whole::ok()));
        }
        assert_eq!(origin.seen().accepted, 1);
    });
}
