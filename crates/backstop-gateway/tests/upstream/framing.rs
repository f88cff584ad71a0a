//! Where an answer ends, and what may follow it on the same connection.

use std::sync::{Arc, Mutex};

use backstop::upstream::{Framing, Progress, Upstream};
use backstop_gateway::upstream::{Closed, Interim};
use http::{HeaderMap, Method, StatusCode};

use crate::origin::Origin;
use crate::support::{OK, Whole, World, empty, get, on_a_thread, request, whole};

#[test]
fn a_body_that_ends_with_the_connection_says_so_and_takes_it_along() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say("HTTP/1.1 200 OK\r\n\r\nok").await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for _ in 0..2 {
            let answer = lane.call(world.attempt(), get(), &Progress::new()).await.expect("a head");
            assert_eq!(answer.extensions().get(), Some(&Framing::UntilClose));
            assert_eq!(whole(answer).await, Ok(Whole::ok()));
        }
        assert_eq!(world.counts().closed[Closed::Answered as usize], 2);
        assert_eq!(origin.seen().accepted, 2);
    });
}

#[test]
fn bytes_after_an_answer_are_never_another_one() {
    let forged = format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
    let late = [OK, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"];
    on_a_thread(async {
        let origin = Origin::start(move |mut peer| {
            let forged = forged.clone();
            async move {
                while peer.head().await.is_some() {
                    peer.say(&forged).await;
                }
            }
        });
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for call in 1..=3 {
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            world.until(|counts| counts.open == 0).await;
            assert_eq!(origin.seen().accepted, call);
        }

        // They may also come when the connection rests already.
        let origin = Origin::start(move |mut peer| async move {
            peer.head().await;
            peer.say(late[0]).await;
            if peer.number == 1 {
                peer.say(late[1]).await;
            }
            peer.closed().await;
        });
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        world.until(|counts| counts.open == 0).await;
        assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
        assert_eq!(origin.seen().accepted, 2);
    });
}

#[test]
fn answers_without_content_leave_the_connection_usable() {
    const ANSWERS: [(Method, &str, u16); 7] = [
        (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", 200),
        (Method::HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200),
        (Method::HEAD, "HTTP/1.1 200 OK\r\n\r\n", 200),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", 204),
        (Method::GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304),
        (Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
        (Method::GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200),
    ];
    let origin = Origin::start(async |mut peer| {
        for (_, answer, _) in ANSWERS {
            peer.head().await;
            peer.say(answer).await;
        }
        peer.closed().await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for (method, _, status) in ANSWERS {
            let answer = lane.call(world.attempt(), request(method, empty()), &Progress::new()).await;
            let answer = answer.expect("a head");
            assert_eq!(answer.extensions().get(), Some(&Framing::Delimited));
            assert_eq!(whole(answer).await, Ok(Whole { status, body: String::new() }));
            assert_eq!(world.limit.in_flight(), 0);
        }
        assert_eq!((origin.seen().accepted, world.counts().reused), (1, 6));
    });
}

#[test]
fn an_answer_in_chunks_with_trailers_is_read_whole() {
    let origin = Origin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nX-Sum: 1\r\n\r\n",
    );
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        for _ in 0..3 {
            assert_eq!(world.fetch(&lane, get()).await, Ok(Whole::ok()));
            world.until(|counts| counts.idle == 1).await;
        }
        assert_eq!(origin.seen().accepted, 1);
    });
}

#[test]
fn interim_answers_are_handed_on() {
    let origin = Origin::start(async |mut peer| {
        peer.head().await;
        peer.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        peer.say("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n").await;
        peer.say(&format!("HTTP/1.1 102 Processing\r\n\r\n{OK}")).await;
        peer.closed().await;
    });
    on_a_thread(async {
        let world = World::new(origin.address, 1);
        let lane = world.pool.lane();
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut request = get();
        request.extensions_mut().insert(Interim(Arc::new({
            let told = Arc::clone(&told);
            move |status: StatusCode, headers: &HeaderMap| {
                told.lock().expect("not poisoned").push((status.as_u16(), headers.get("link").cloned()));
            }
        })));
        assert_eq!(world.fetch(&lane, request).await, Ok(Whole::ok()));
        let told = told.lock().expect("not poisoned");
        let link = http::HeaderValue::from_static("</style.css>");
        assert_eq!(*told, [(103, Some(link)), (102, None)]);
        assert_eq!(world.counts().idle, 1);
    });
}
