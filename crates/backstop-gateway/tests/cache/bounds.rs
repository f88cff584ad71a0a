//! How much may be under way, and what is left afterwards.

use std::sync::mpsc;

use backstop_gateway::cache::CacheError;

use super::server::Server;
use super::support::{World, on_a_thread, settings, settle, soon, value};

#[test]
fn one_command_too_many_is_refused_at_once_and_places_come_back() {
    let server = Server::start();
    on_a_thread(async {
        let mut three = settings(server.address);
        three.max_in_flight = 3;
        let world = World::with(three);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        server.freeze();
        let commands: Vec<_> = (0..3).map(|_| world.begin(&lane, "key")).collect();
        settle().await;
        assert_eq!(world.get(&lane, "key").await, Err(CacheError::Full));
        assert_eq!((world.counts().in_flight, world.counts().errors_of(CacheError::Full)), (3, 1));
        // Another thread has its own.
        let other = world.lane();
        let elsewhere = world.begin(&other, "key");
        assert!(!elsewhere.has_ended());
        server.thaw();
        for command in commands {
            assert_eq!(command.outcome().await, value("value"));
        }
        assert_eq!(elsewhere.outcome().await, value("value"));
        assert_eq!(world.counts().in_flight, 0);
        assert_eq!(world.get(&lane, "key").await, value("value"));
    });
}

#[test]
fn a_command_that_nobody_waits_for_keeps_its_place_until_it_is_answered() {
    let server = Server::start();
    on_a_thread(async {
        let mut one = settings(server.address);
        one.max_in_flight = 1;
        let world = World::with(one);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        server.freeze();
        drop(world.begin(&lane, "key"));
        settle().await;
        assert_eq!(world.get(&lane, "key").await, Err(CacheError::Full));
        server.thaw();
        world.until(|counts| counts.in_flight == 0).await;
        assert_eq!(world.get(&lane, "key").await, value("value"));
    });
}

#[test]
fn ten_thousand_callers_who_leave_leave_nothing_behind() {
    let server = Server::start();
    on_a_thread(async {
        let world = World::new(server.address);
        let lane = world.lane();
        world.set(&lane, "key", "value").await;
        world.set(&lane, "other", "other").await;
        for left in 0..10_000_u64 {
            world.until(|counts| counts.in_flight < 64).await;
            drop(world.begin(&lane, "key"));
            if left % 100 == 0 {
                world.until(|counts| counts.in_flight < 64).await;
                assert_eq!(world.get(&lane, "other").await, value("other"));
            }
        }
        world.until(|counts| counts.in_flight == 0).await;
        let counts = world.counts();
        assert_eq!((counts.abandoned, counts.opened, counts.connections), (10_000, 1, 1));
        assert_eq!(counts.errors, [0; CacheError::KINDS]);
        assert_eq!(world.get(&lane, "key").await, value("value"));
    });
}

#[test]
fn a_thread_has_one_connection_and_two_threads_have_two() {
    let server = Server::start();
    let world = on_a_thread(async { World::new(server.address) });
    let (ready, is_ready) = mpsc::channel();
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let threads: Vec<_> = (0..2)
        .map(|number: u64| {
            let (world, ready, mut stopped) = (world.clone(), ready.clone(), stopped.clone());
            std::thread::spawn(move || {
                on_a_thread(async {
                    let lane = world.cache.lane(number);
                    let keys: Vec<String> = (0..30).map(|key| format!("{number}-{key}")).collect();
                    for key in &keys {
                        world.set(&lane, key, key).await;
                    }
                    let gets: Vec<_> = keys.iter().map(|key| world.begin(&lane, key)).collect();
                    for (key, get) in keys.iter().zip(gets) {
                        assert_eq!(get.outcome().await, value(key));
                    }
                    ready.send(()).expect("the test waits");
                    soon(stopped.wait_for(|stopped| *stopped)).await.expect("the test tells");
                });
            })
        })
        .collect();
    for _ in &threads {
        is_ready.recv_timeout(std::time::Duration::from_secs(20)).expect("a thread is done");
    }
    assert_eq!(server.clients(), 2);
    let counts = world.counts();
    assert_eq!((counts.connections, counts.opened, counts.reconnects), (2, 2, 0));
    assert_eq!((counts.stored, counts.hits, counts.in_flight), (60, 60, 0));
    stopped.mark_unchanged();
    stop.send_replace(true);
    for thread in threads {
        thread.join().expect("it ends well");
    }
    assert_eq!((world.counts().connections, world.counts().ended), (0, [0, 0, 0, 2]));
}
