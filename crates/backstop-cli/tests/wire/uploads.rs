//! What a client may send: no more, and no more slowly, than the policy says. None of it is the dependency's failure.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour};

use crate::raw::{Wires, direct, read_out};
use crate::support::{BOUND, Policy, expect, run};

async fn with_limits(limits: &str) -> Wires {
    Wires::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, "")
            .route("all.direct", &direct("*", &format!("limits = {{ {limits} }}")))
    })
    .await
}

/// 408, and it is the client that was slow (RFC 9110 section 15.5.9).
#[test]
fn a_slow_upload_is_the_clients_own() {
    run(async {
        let wires = with_limits("body_time = \"200ms\"").await;
        for head in ["Content-Length: 100\r\n\r\nbegun", "Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"] {
            let said = wires.say(format!("POST /p/1 HTTP/1.1\r\nHost: shop\r\n{head}")).await;
            said.refused_with(408, head);
            assert_eq!(said.answers[0].header("backstop"), Some("outcome=rejected, reason=client_slow"));
            assert!(said.answers[0].took >= Duration::from_millis(195), "{:?}", said.answers[0].took);
        }
        expect::idle(&wires.gateway).await;
        let metrics = wires.gateway.metrics().await;
        assert_eq!((metrics.requests("rejected", "client_slow"), metrics.dependency_failures()), (2, 0));
        assert_eq!(wires.origin.count_where(|request| request.complete), 0);
    });
}

/// Time in which the client keeps us waiting moves the deadline back: it is not the dependency's.
#[test]
fn a_patient_upload_outlives_the_deadline() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "deadline = \"200ms\"\nlimits = { body_time = \"5s\" }"))
        })
        .await;
        let mut connection = wires.connect().await;
        let head: &[u8] =
            b"POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        let pieces = [head, b"a", b"b", b"c", b"d"];
        connection.send_pieces(&pieces, Duration::from_millis(100)).await.unwrap();
        let said = read_out(&mut connection).await;
        assert_eq!(said.statuses(), [200], "{said:?}");
        assert_eq!(wires.origin.requests()[0].text(), "abcd");
    });
}

/// Four calls of which more than 60 % took over 300 ms would open the breaker. Each of these takes 400 ms, all of them the
/// client's.
#[test]
fn slow_clients_open_no_breaker() {
    run(async {
        let breaker = "breaker = { min_calls = 4, slow = \"300ms\" }";
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, breaker)
                .route("all.direct", &direct("*", "deadline = \"5s\"\nlimits = { body_time = \"5s\" }"))
        })
        .await;
        for _ in 0..6 {
            let mut connection = wires.connect().await;
            let head: &[u8] =
                b"POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 2\r\n\r\n";
            connection.send_pieces(&[head, b"a", b"b"], Duration::from_millis(200)).await.unwrap();
            let said = read_out(&mut connection).await;
            assert_eq!(said.statuses(), [200], "{said:?}");
        }
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_breaker_events_total", &["event=\"trip\""]), 0.0);
    });
}

/// Announced, it is refused before it takes a place or a byte; found out on the way, it never completes.
#[test]
fn a_body_that_is_too_large_never_comes_to_the_origin_whole() {
    run(async {
        let wires = with_limits("body = \"1 KiB\"").await;
        let announced =
            wires.say("POST /p/1 HTTP/1.1\r\nHost: shop\r\nContent-Length: 1025\r\n\r\nbegun").await;
        announced.refused_with(413, "announced");
        assert_eq!(wires.origin.stats().connections_accepted, 0);
        let chunk = format!("400\r\n{}\r\n", "x".repeat(0x400));
        let found_out = wires
            .say(format!(
                "POST /p/1 HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}1\r\nx\r\n0\r\n\r\n"
            ))
            .await;
        found_out.refused_with(413, "found out");
        assert_eq!(
            found_out.answers[0].header("backstop"),
            Some("outcome=rejected, reason=client_too_large")
        );
        assert_eq!(wires.origin.count_where(|request| request.complete), 0);
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.dependency_failures(), 0);

        let largest = wires.gateway.request("POST", "/p/1", &[], &[b'x'; 1024]).await;
        assert_eq!(largest.status(), 200, "the limit itself is accepted");
        let chunked = wires
            .say(format!(
                "POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"
            ))
            .await;
        assert_eq!(chunked.statuses(), [200]);
        expect::idle(&wires.gateway).await;
    });
}

/// A head that does not come is no request: nothing is answered for it but the end, and nothing is held.
#[test]
fn a_slow_head_ends_the_connection() {
    run(async {
        let wires = Wires::with(|origin| {
            crate::raw::everything(origin).gateway("limits = { head_time = \"200ms\" }")
        })
        .await;
        for begun in ["G", "GET /p/1 HTTP/1.1\r\nHost: shop\r\nX: "] {
            let said = wires.say(begun).await;
            said.closed(begun);
            assert!(said.statuses().iter().all(|status| *status == 408), "{said:?}");
        }
        assert_eq!(wires.origin.count(), 0);
        let open = |metrics: &crate::support::Metrics| metrics.sum("backstop_client_connections", &[]) == 0.0;
        wires.gateway.metrics_until(open).await;
    });
}

/// An origin that answers before it has the whole body has answered (RFC 9110 section 10.1.1).
#[test]
fn an_early_answer_ends_the_upload() {
    run(async {
        use backstop_lab::origin::{Behaviour, Matcher};
        let wires = Wires::open().await;
        wires.origin.on(Matcher::any(), Behaviour::status(403).before_body());
        let mut connection = wires.connect().await;
        connection
            .send(b"POST /p/1 HTTP/1.1\r\nHost: shop\r\nContent-Length: 100000\r\n\r\nbegun")
            .await
            .unwrap();
        let said = read_out(&mut connection).await;
        assert_eq!(said.statuses(), [403]);
        said.closed("the rest of the body is unread");
        expect::idle(&wires.gateway).await;
        assert_eq!(wires.origin.count(), 1);
    });
}

/// The origin answers before it has the whole request, and then the client breaks it off: whoever is to blame, it is not
/// the origin.
#[test]
fn a_request_that_breaks_off_while_it_is_answered_blames_nobody() {
    run(async {
        let wires = with_limits("body_time = \"300ms\"").await;
        let endless = Answer::new(200).endless(Duration::from_millis(5));
        wires.origin.default(Behaviour::from(endless).before_body());
        let head = "POST /p/1 HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n";
        for (number, rest) in ["zz\r\nno chunk\r\n", ""].into_iter().enumerate() {
            let mut connection = wires.connect().await;
            connection.send(head.as_bytes()).await.unwrap();
            wires.origin.wait_until(BOUND, |stats| stats.requests > number as u64).await.unwrap();
            // The answer has begun; a malformed chunk, or nothing until the client's own time is over.
            let began = connection.read_at_least(12).await.unwrap();
            assert!(began.starts_with(b"HTTP/1.1 200"), "{began:?}");
            connection.send(rest.as_bytes()).await.unwrap();
            expect::idle(&wires.gateway).await;
        }
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.dependency_failures(), 0, "{metrics:#?}");
        assert_eq!((metrics.outcome("abandoned"), metrics.outcome("failed")), (2, 0));
    });
}
