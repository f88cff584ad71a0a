//! HTTP/1.0 clients: they take the end of the connection for the end of an answer that has no length (RFC 9112 section 6.3).
//! An answer that is not whole must not end like one that is.

use std::time::Duration;

use backstop_lab::client::{Ending, Tail};
use backstop_lab::origin::{Answer, Behaviour, CutAt, Matcher, Then};

use crate::raw::{Wires, direct};
use crate::support::{Policy, run};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A route for streams, one for reads that are larger than their buffer, and one for the rest.
async fn wires() -> Wires {
    let read = Policy::description(
        "buffer = \"16 KiB\"\nlanguages =\ncorrect =\nkey = [\"path.id\"]\nunavailable_status = \"contract\"",
    );
    Wires::with(|origin| {
        Policy::empty()
            .gateway("drain = \"1s\"")
            .gateway("limits = { reply_time = \"300ms\" }")
            .dependency("catalog", origin, "")
            .route("description.public_read", &read)
            .route("events.direct", &direct("GET /events/{rest*}", "deadline = \"300ms\"\nidle = \"200ms\""))
            .route("large.direct", &direct("GET /large", "deadline = \"1s\"\nidle = \"5s\""))
            .route("all.direct", &direct("*", "deadline = \"300ms\""))
    })
    .await
}

async fn old(wires: &Wires, request: &str) -> Tail {
    let mut connection = wires.connect().await;
    connection.send(request.as_bytes()).await.unwrap();
    connection.read_to_end().await
}

#[test]
fn an_answer_that_breaks_off_resets_an_old_client() {
    run(async {
        let wires = wires().await;
        let large =
            Answer::new(200).header("Content-Type", "text/plain").body(vec![b'x'; 100_000]).chunked(1000);
        let small = Answer::new(200).header("Content-Type", "text/plain").body("hello").chunked(5);
        let cuts: Vec<(&str, &str, Behaviour)> = vec![
            ("a close", "/a", small.clone().cut(CutAt::LastChunk, Then::Close).into()),
            ("a reset", "/a", small.clone().cut(CutAt::LastChunk, Then::Reset).into()),
            ("the deadline", "/a", small.clone().cut(CutAt::LastChunk, Then::Hang).into()),
            ("the idle limit", "/events/1", small.cut(CutAt::LastChunk, Then::Hang).into()),
            ("a bad chunk", "/a", Behaviour::raw(format!("{HEAD}5\r\nhello\r\nzz\r\n"), Then::Hang)),
            ("half a chunk", "/a", Behaviour::raw(format!("{HEAD}9\r\nhello"), Then::Close)),
            (
                "a read that is too large, closed",
                "/p/1",
                large.clone().cut(CutAt::Body(50_000), Then::Close).into(),
            ),
            (
                "a read that is too large, reset",
                "/p/1",
                large.clone().cut(CutAt::Body(50_000), Then::Reset).into(),
            ),
            ("a read that is too large, late", "/p/1", large.cut(CutAt::Body(50_000), Then::Hang).into()),
        ];
        for (what, path, behaviour) in cuts {
            wires.origin.on(Matcher::any(), behaviour);
            for more in ["", "Connection: keep-alive\r\n"] {
                let tail = old(&wires, &format!("GET {path} HTTP/1.0\r\nHost: shop\r\n{more}\r\n")).await;
                assert_eq!(tail.ending, Ending::Reset, "{what}: {tail:?}");
            }
            // With HTTP/1.1 the missing last chunk tells it.
            let new =
                old(&wires, &format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")).await;
            assert!(
                new.bytes.starts_with(b"HTTP/1.1 200") && !new.bytes.ends_with(b"\r\n0\r\n\r\n"),
                "{what}: {new:?}"
            );
            assert_ne!(new.ending, Ending::TimedOut, "{what}");
        }
    });
}

/// Whatever ends it: a client that does not read, a stop, the end of the process.
#[test]
fn an_answer_that_the_gateway_ends_resets_an_old_client() {
    run(async {
        let mut wires = wires().await;
        let endless = Answer::new(200).chunked(1).endless(Duration::from_millis(10));
        wires.origin.on(Matcher::path("/events/1"), endless);
        wires.origin.on(Matcher::path("/large"), Answer::new(200).chunked(60_000).body(vec![b'x'; 24 << 20]));

        let mut slow = wires.connect().await;
        slow.send(b"GET /large HTTP/1.0\r\nHost: shop\r\n\r\n").await.unwrap();
        wires.gateway.metrics_until(|metrics| metrics.outcomes().abandoned == 1).await;
        assert_eq!(slow.read_to_end().await.ending, Ending::Reset, "a client that does not read");

        let mut stopped = wires.connect().await;
        stopped.send(b"GET /events/1 HTTP/1.0\r\nHost: shop\r\n\r\n").await.unwrap();
        stopped.read_at_least(100).await.unwrap();
        wires.gateway.signal("TERM");
        assert_eq!(stopped.read_to_end().await.ending, Ending::Reset, "a stop");
        assert_eq!(wires.gateway.wait().code(), Some(0));

        let wires = self::wires().await;
        wires.origin.on(Matcher::any(), Answer::new(200).chunked(1).endless(Duration::from_millis(10)));
        let mut killed = wires.connect().await;
        killed.send(b"GET /events/1 HTTP/1.0\r\nHost: shop\r\n\r\n").await.unwrap();
        killed.read_at_least(100).await.unwrap();
        wires.gateway.signal("KILL");
        assert_eq!(killed.read_to_end().await.ending, Ending::Reset, "the end of the process");
    });
}

#[test]
fn a_whole_answer_ends_plainly_for_an_old_client() {
    run(async {
        let wires = wires().await;
        let body = vec![b'x'; 300_000];
        let text = Answer::new(200).header("Content-Type", "text/plain");
        let chunked: Behaviour = text.clone().body(body.clone()).chunked(1000).into();
        wires.origin.on(Matcher::path("/a"), chunked.clone());
        wires.origin.on(Matcher::path("/p/1"), chunked);
        wires.origin.on(Matcher::path("/b"), text.clone().body("").chunked(1));
        wires.origin.on(Matcher::path("/c"), text.body("trailed").chunked(3).trailer("X-End", "1"));
        wires.origin.on(Matcher::path("/d"), Answer::new(204));
        for (method, path, length) in [
            ("GET", "/a", body.len()),
            ("HEAD", "/a", 0),
            ("GET", "/p/1", body.len()),
            ("GET", "/b", 0),
            ("GET", "/c", 7),
            ("GET", "/d", 0),
        ] {
            let mut connection = wires.connect().await;
            connection
                .send(format!("{method} {path} HTTP/1.0\r\nHost: shop\r\n\r\n").as_bytes())
                .await
                .unwrap();
            // Late, but within the limit: the rest still lies in the gateway.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let answer = connection.read_response_to(method).await.unwrap();
            assert_eq!(answer.body.len(), length, "{method} {path}");
            assert!(answer.is_complete(), "{method} {path}: {:?}", answer.completeness);
            assert_eq!(connection.read_to_end().await.ending, Ending::Fin, "{method} {path}");
        }
    });
}
