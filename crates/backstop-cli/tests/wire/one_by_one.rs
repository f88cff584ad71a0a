//! One connection, several requests, and any cut between two segments.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};

use crate::raw::{Wires, read_out};
use crate::support::{BOUND, run};

/// RFC 9112 section 9.3.2: in the order of the requests, whatever is ready first.
#[test]
fn pipelined_requests_are_answered_in_their_order() {
    run(async {
        let wires = Wires::open().await;
        let gate = Gate::new();
        wires.origin.default(Behaviour::from_fn(|request| Answer::new(200).body(request.target.clone())));
        wires.origin.on(Matcher::path("/first"), Answer::new(200).body("/first").gate(&gate));
        let mut connection = wires.connect().await;
        let requests = "GET /first HTTP/1.1\r\nHost: shop\r\n\r\n\
             POST /second HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n\r\nbody\
             HEAD /third HTTP/1.1\r\nHost: shop\r\n\r\n\
             GET /fourth HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";
        connection.send(requests.as_bytes()).await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        gate.open();
        let first = connection.read_response().await.unwrap();
        let second = connection.read_response().await.unwrap();
        let third = connection.read_response_to("HEAD").await.unwrap();
        let last = read_out(&mut connection).await;
        assert_eq!(
            (first.text(), second.text(), third.text()),
            ("/first".into(), "/second".into(), String::new())
        );
        assert_eq!(third.header("content-length"), Some("6"));
        assert_eq!(last.answers[0].text(), "/fourth");
        last.closed("Connection: close");
        let targets: Vec<_> = wires.origin.requests().iter().map(|request| request.target.clone()).collect();
        assert_eq!(targets, ["/first", "/second", "/third", "/fourth"]);
    });
}

const REQUEST: &[u8] = b"POST /p/1?q=a HTTP/1.1\r\nHost: shop\r\nX-A: b\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
    5\r\nhello\r\n1;x\r\n!\r\n0\r\n\r\n";

/// The cut between two segments means nothing, wherever it lies.
#[test]
fn a_request_cut_at_any_byte_is_the_same_request() {
    run(async {
        let wires = Wires::open().await;
        for cut in 1..REQUEST.len() {
            let mut connection = wires.connect().await;
            let (before, after) = REQUEST.split_at(cut);
            connection.send_pieces(&[before, after], Duration::from_millis(1)).await.unwrap();
            let said = read_out(&mut connection).await;
            assert_eq!(said.statuses(), [200], "cut at {cut}: {said:?}");
        }
        let mut connection = wires.connect().await;
        let bytes: Vec<&[u8]> = REQUEST.chunks(1).collect();
        connection.send_pieces(&bytes, Duration::from_millis(1)).await.unwrap();
        assert_eq!(read_out(&mut connection).await.statuses(), [200], "byte by byte");

        let requests = wires.origin.requests();
        assert_eq!(requests.len(), REQUEST.len(), "each exactly once");
        for request in requests {
            assert_eq!((request.target.as_str(), &request.body[..]), ("/p/1?q=a", &b"hello!"[..]));
            assert_eq!(request.header("x-a"), Some("b"));
            assert!(request.complete);
        }
    });
}

/// RFC 9112 section 9.3: a connection stays for the next request unless somebody says otherwise.
#[test]
fn a_connection_carries_many_requests() {
    run(async {
        let wires = Wires::open().await;
        let mut connection = wires.connect().await;
        for _ in 0..50 {
            let answer = connection.get("/p/1", &[]).await.unwrap();
            assert!(answer.keeps_alive());
        }
        assert_eq!(wires.origin.count(), 50);
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_client_connections_accepted_total", &[]), 1.0);
        assert_eq!(wires.origin.connections_accepted(), 1, "and so does the one behind it");
    });
}
