//! Requests with a body: streamed, answered early, broken off.

use backstop::upstream::{CallError, Progress, Upstream};
use backstop_engine::failure::{FailureKind, Phase, Sent};
use backstop_engine::flow::ClientFault;
use backstop_gateway::upstream::{ClientBody, Closed, Timed};
use bytes::Bytes;
use http::{HeaderValue, Method};
use tokio::task::spawn_local;

use crate::origin::Origin;
use crate::support::{OK, Whole, World, failure, fed, on_a_thread, post, request, whole};

#[test]
fn a_body_is_streamed_and_the_connection_is_used_again() {
    let origin = Origin::start(async |mut peer| {
        while let Some(head) = peer.head().await {
            if head.contains("transfer-encoding: chunked") {
                assert_eq!(peer.body(3).await.as_deref(), Some(&b"3\r\n"[..]));
                peer.say("HTTP/1.1 103 Early Hints\r\n\r\n").await;
                assert_eq!(peer.body(13).await.as_deref(), Some(&b"abc\r\n2\r\nde\r\n0"[..]));
                peer.body(4).await;
            }
            peer.say(OK).await;
        }
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for _ in 0..2 {
            let (feed, body) = fed();
            let progress = std::rc::Rc::new(Progress::new());
            let call = spawn_local({
                let (world, lane, progress) = (world.clone(), lane.clone(), progress.clone());
                async move { lane.call(world.attempt(), request(Method::POST, body), &progress).await }
            });
            feed.send(Ok(Bytes::from_static(b"abc"))).expect("it is read");
            world.until(|counts| counts.in_use == 1).await;
            assert!(matches!(progress.phase(), Phase::Queue | Phase::Connect | Phase::Send));
            feed.send(Ok(Bytes::from_static(b"de"))).expect("it is read");
            drop(feed);
            let answer = call.await.expect("it ends").expect("an answer");
            assert_eq!(progress.phase(), Phase::Head);
            assert_eq!(whole(answer).await, Ok(Whole::ok()));
            assert_eq!(world.fetch(&lane, post("")).await, Ok(Whole::ok()));
        }
        assert_eq!(origin.seen().accepted, 1);
        assert_eq!(world.counts().durations[Timed::Send as usize].count(), 2);
        assert_eq!(world.counts().durations[Timed::Head as usize].count(), 4);
    });
}

#[test]
fn an_answer_in_the_middle_of_an_upload_is_read_and_ends_the_connection() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n").await;
        peer.closed().await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let (feed, body) = fed();
        feed.send(Ok(Bytes::from_static(b"abc"))).expect("it is read");
        let answer = world.fetch(&lane, request(Method::POST, body)).await;
        assert_eq!(answer, Ok(Whole { status: 413, body: String::new() }));
        world.until(|counts| counts.open == 0).await;
        assert!(feed.is_closed(), "nobody reads the rest");
        assert_eq!(world.counts().closed[Closed::Answered as usize], 1);
        assert_eq!(world.limit.in_flight(), 0);
    });
}

#[test]
fn an_early_answer_is_read_although_the_origin_then_resets_the_connection() {
    // It closes with bytes unread, which makes the kernel send a reset while the request is still being written.
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno").await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for _ in 0..50 {
            let (feed, body) = fed();
            for _ in 0..64 {
                feed.send(Ok(Bytes::from(vec![b'x'; 64 * 1024]))).expect("it is read");
            }
            let answer = world.fetch(&lane, request(Method::POST, body)).await;
            assert_eq!(answer, Ok(Whole { status: 413, body: "no".to_owned() }));
        }
    });
}

#[test]
fn a_write_that_fails_without_an_answer_is_the_failure() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.reset();
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let (feed, body) = fed();
        for _ in 0..64 {
            feed.send(Ok(Bytes::from(vec![b'x'; 64 * 1024]))).expect("it is read");
        }
        let failure =
            failure(lane.call(world.attempt(), request(Method::POST, body), &Progress::new()).await);
        assert!(matches!(failure.kind, FailureKind::Write | FailureKind::Reset), "{failure:?}");
        assert_eq!(failure.sent, Sent::Maybe);
    });
}

#[test]
fn a_client_that_breaks_off_is_no_failure_of_the_dependency() {
    let origin = Origin::start(async |mut peer| peer.closed().await);
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let plain = || "the client is gone".into();
        let slow = || ClientBody(ClientFault::Slow).into();
        let errors: [(fn() -> crate::support::BoxError, ClientFault); 2] =
            [(plain, ClientFault::Broken), (slow, ClientFault::Slow)];
        for (error, expected) in errors {
            let (feed, body) = fed();
            feed.send(Ok(Bytes::from_static(b"abc"))).expect("it is read");
            feed.send(Err(error())).expect("it is read");
            let answer = lane.call(world.attempt(), request(Method::POST, body), &Progress::new()).await;
            assert!(matches!(answer, Err(CallError::Client(fault)) if fault == expected), "{answer:?}");
            world.until(|counts| counts.open == 0).await;
            assert_eq!(world.limit.in_flight(), 0);
        }
    });
}

#[test]
fn a_body_shorter_than_its_own_length_is_the_clients_fault() {
    let origin = Origin::start(async |mut peer| peer.closed().await);
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let (feed, body) = fed();
        feed.send(Ok(Bytes::from_static(b"abc"))).expect("it is read");
        drop(feed);
        let mut request = request(Method::POST, body);
        request.headers_mut().insert("content-length", HeaderValue::from_static("10"));
        let answer = lane.call(world.attempt(), request, &Progress::new()).await;
        assert!(matches!(answer, Err(CallError::Client(ClientFault::Broken))), "{answer:?}");
        world.until(|counts| counts.open == 0).await;
    });
}
