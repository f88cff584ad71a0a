//! Calls that nobody waits for any more, and what they go on occupying.

use std::sync::Arc;
use std::time::Duration;

use backstop::upstream::{Progress, Upstream};
use backstop_engine::flow::Attempt;
use backstop_gateway::upstream::{Closed, Lane};
use bytes::Bytes;
use http::Method;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use crate::origin::Origin;
use crate::support::{Bytestream, OK, SECOND, Whole, World, fed, get, on_a_thread, request};

/// An origin that answers when it is told to.
fn patient(answer: String) -> (Origin, Arc<Semaphore>) {
    let go = Arc::new(Semaphore::new(0));
    let origin = Origin::start({
        let go = Arc::clone(&go);
        move |mut peer| {
            let (go, answer) = (Arc::clone(&go), answer.clone());
            async move {
                while peer.head().await.is_some() {
                    go.acquire().await.expect("open").forget();
                    peer.say(&answer).await;
                }
            }
        }
    });
    (origin, go)
}

/// Calls, and leaves as soon as the origin has the request.
async fn leave(lane: &Lane<Bytestream>, attempt: Attempt, origin: &Origin) {
    let progress = Progress::new();
    let heads = origin.seen().heads.len() + 1;
    tokio::select! {
        _answer = lane.call(attempt, get(), &progress) => panic!("answered"),
        () = origin.until(|seen| seen.heads.len() == heads) => {}
    }
}

/// What is stated, and how long a call of ten seconds is then kept.
const HOLDS: [(Option<Duration>, Duration); 2] =
    [(Some(Duration::from_secs(3)), Duration::from_secs(3)), (None, Duration::from_secs(10))];

/// The only call was given up now: its place comes back when this is over, and not a nanosecond sooner.
async fn keeps_its_place_for(hold: Duration, world: &World) {
    let nanosecond = Duration::from_nanos(1);
    let_everything_run().await;
    world.hand.advance(hold - nanosecond);
    let_everything_run().await;
    assert_eq!((world.limit.in_flight(), world.counts().open), (1, 1));
    world.hand.advance(nanosecond);
    world.until(|counts| counts.open == 0).await;
    assert_eq!(world.limit.in_flight(), 0);
    assert_eq!(world.counts().closed[Closed::Abandoned as usize], 1);
}

/// Gives everything that is ready the chance to go on.
async fn let_everything_run() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[test]
fn an_abandoned_call_keeps_its_place_until_the_origin_has_answered() {
    let (origin, go) = patient(OK.to_owned());
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        leave(&lane, world.attempt(), &origin).await;
        let_everything_run().await;
        assert_eq!((world.limit.in_flight(), world.counts().open), (1, 1));
        assert_eq!((world.counts().abandoned, world.counts().abandoned_now), (1, 1));
        assert!(world.try_attempt().is_none(), "the origin is still working");

        go.add_permits(1);
        world.until(|counts| counts.abandoned_now == 0).await;
        assert_eq!((world.limit.in_flight(), world.counts().idle), (0, 1));

        go.add_permits(1);
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()), "and not the answer that nobody wanted");
        assert_eq!(origin.seen().accepted, 1, "over the same connection");
    });
}

#[test]
fn and_no_longer_than_the_hold() {
    for (hold, length) in HOLDS {
        let (origin, _never) = patient(OK.to_owned());
        on_a_thread(async {
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            let mut attempt = world.attempt();
            attempt.abandon_hold = hold;
            leave(&lane, attempt, &origin).await;
            keeps_its_place_for(length, &world).await;
        });
    }
}

#[test]
fn the_time_that_the_clients_own_bytes_took_does_not_shorten_the_hold() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.body(4).await;
        peer.closed().await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let (feed, body) = fed();
        let progress = Progress::new();
        {
            let mut call = Box::pin(lane.call(world.attempt(), request(Method::POST, body), &progress));
            tokio::select! {
                biased;
                _answer = &mut call => panic!("answered"),
                () = origin.until(|seen| seen.heads.len() == 1) => {}
            }
            world.hand.advance(9 * SECOND);
            feed.send(Ok(Bytes::from_static(b"late"))).expect("it is read");
            drop(feed);
            while progress.phase() != backstop_engine::failure::Phase::Head {
                tokio::select! { biased; _answer = &mut call => panic!("answered"), () = yield_now() => {} }
            }
        }
        world.hand.advance(9 * SECOND);
        let_everything_run().await;
        assert_eq!(world.limit.in_flight(), 1, "ten seconds, and nine for the client");
        world.hand.advance(SECOND);
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.limit.in_flight(), 0);
    });
}

#[test]
fn an_origin_that_closes_ends_the_hold() {
    let go = Arc::new(Semaphore::new(0));
    let origin = Origin::start({
        let go = Arc::clone(&go);
        move |mut peer| {
            let go = Arc::clone(&go);
            async move {
                peer.head().await;
                go.acquire().await.expect("open").forget();
            }
        }
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        leave(&lane, world.attempt(), &origin).await;
        let_everything_run().await;
        assert_eq!(world.limit.in_flight(), 1);
        go.add_permits(1);
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.limit.in_flight(), 0);
    });
}

#[test]
fn an_unwanted_answer_that_is_too_large_costs_the_connection() {
    let body = "x".repeat(100 * 1024);
    let (origin, go) = patient(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        leave(&lane, world.attempt(), &origin).await;
        go.add_permits(1);
        world.until(|counts| counts.closed[Closed::Abandoned as usize] == 1).await;
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.limit.in_flight(), 0);
    });
}

/// An origin that answers at once with a head and three of five bytes, and with the rest when it is told to.
fn halting() -> (Origin, Arc<Semaphore>) {
    let go = Arc::new(Semaphore::new(0));
    let origin = Origin::start({
        let go = Arc::clone(&go);
        move |mut peer| {
            let go = Arc::clone(&go);
            async move {
                while peer.head().await.is_some() {
                    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc").await;
                    go.acquire().await.expect("open").forget();
                    peer.say("de").await;
                }
            }
        }
    });
    (origin, go)
}

/// The head says nothing about the work: the origin goes on with the rest of its answer.
#[test]
fn a_call_that_is_left_in_the_middle_of_its_answer_keeps_its_place_until_the_answer_has_ended() {
    let (origin, go) = halting();
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let answer = lane.call(world.attempt(), get(), &Progress::new()).await.expect("a head");
        drop(answer);
        let_everything_run().await;
        assert_eq!((world.limit.in_flight(), world.counts().open), (1, 1));
        assert_eq!((world.counts().abandoned, world.counts().abandoned_now), (1, 1));
        assert!(world.try_attempt().is_none(), "the origin is still working");

        go.add_permits(1);
        world.until(|counts| counts.abandoned_now == 0).await;
        assert_eq!((world.limit.in_flight(), world.counts().idle), (0, 1));

        go.add_permits(1);
        let next = world.fetch(&lane, get()).await;
        assert_eq!(
            next,
            Ok(Whole { status: 200, body: "abcde".to_owned() }),
            "and nothing of the one before"
        );
        assert_eq!(origin.seen().accepted, 1, "over the same connection");
    });
}

#[test]
fn nor_longer_than_the_hold_in_the_middle_of_the_answer() {
    for (hold, length) in HOLDS {
        let (origin, _never) = halting();
        on_a_thread(async {
            let world = World::new(origin.address, 1);
            let lane = world.pool.lane();
            let mut attempt = world.attempt();
            attempt.abandon_hold = hold;
            drop(lane.call(attempt, get(), &Progress::new()).await.expect("a head"));
            keeps_its_place_for(length, &world).await;
        });
    }
}

/// What is left is too much to be read for nobody: the connection is closed, which the origin sees.
#[test]
fn a_large_rest_costs_the_connection() {
    let body = "x".repeat(2 << 20);
    let (origin, go) = patient(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        go.add_permits(1);
        drop(lane.call(world.attempt(), get(), &Progress::new()).await.expect("a head"));
        world.until(|counts| counts.closed[Closed::Abandoned as usize] == 1).await;
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.limit.in_flight(), 0);
    });
}

#[test]
fn a_thread_that_ends_with_calls_under_way_returns_everything() {
    let (origin, _never) = patient(OK.to_owned());
    let world = World::new(origin.address, 2);
    on_a_thread(async {
        let lane = world.pool.lane();
        leave(&lane, world.attempt(), &origin).await;
        let (world, lane) = (world.clone(), lane.clone());
        tokio::task::spawn_local(
            async move { lane.call(world.attempt(), get(), &Progress::new()).await.is_ok() },
        );
        origin.until(|seen| seen.heads.len() == 2).await;
    });
    assert_eq!((world.limit.in_flight(), world.counts().open), (0, 0));
    assert_eq!(world.counts().addresses[0].in_flight, 0);
}
