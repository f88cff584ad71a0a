//! What the origin says it received is what was sent.

use std::{io::ErrorKind, time::Duration};

use backstop_lab::{
    client::{self, ClientError, Connection, Ending},
    origin::{Answer, Behaviour, ExpectContinue, Gate, Limits, Matcher, OnAccept, Origin, RequestFraming},
};

const BOUND: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_request_is_recorded_byte_by_byte() {
    let origin = Origin::start().await.unwrap();
    let head = "PUT /p/1?x=2 HTTP/1.1\r\nHost: shop\r\nx-B:  2 \r\nX-b: 1\r\nContent-Length: 3\r\n\r\n";
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection
        .send_pieces(&[&head.as_bytes()[..9], &head.as_bytes()[9..], b"a", b"bc"], Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(connection.read_response().await.unwrap().text(), r#"{"ok":true}"#);
    let requests = origin.requests();
    let request = &requests[0];
    assert_eq!(request.head, head.as_bytes());
    assert_eq!(
        (request.method.as_str(), request.target.as_str(), request.path()),
        ("PUT", "/p/1?x=2", "/p/1")
    );
    let lines: Vec<_> =
        request.fields.iter().map(|field| (field.name.as_str(), field.value.as_str())).collect();
    assert_eq!(lines, [("Host", "shop"), ("x-B", "2"), ("X-b", "1"), ("Content-Length", "3")]);
    assert_eq!((request.framing, request.text().as_str()), (RequestFraming::ContentLength(3), "abc"));
    assert!(request.complete && !request.ambiguous);
    assert_eq!(origin.bytes_received(), head.len() as u64 + 3);
    assert_eq!(origin.count_of("PUT", "/p/1"), 1);
    assert_eq!(origin.count_of("GET", "/p/1"), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start().await.unwrap();
    origin.default(Answer::new(200).body_with(|request| request.target.clone().into()));
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    let all = b"GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                2\r\nab\r\n0\r\nT: x\r\n\r\nGET /3 HTTP/1.1\r\n\r\n";
    connection.send(all).await.unwrap();
    for expected in ["/1", "/2", "/3"] {
        assert_eq!(connection.read_response().await.unwrap().text(), expected);
    }
    let requests = origin.requests();
    assert_eq!(requests.iter().map(|request| request.order).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((requests[1].text().as_str(), requests[1].trailers.get("t")), ("ab", Some("x")));
    assert!(requests.windows(2).all(|pair| pair[0].arrived_ns <= pair[1].arrived_ns));
    assert_eq!((origin.connections_accepted(), origin.connections()[0].requests), (1, 3));
}

#[tokio::test]
async fn a_cut_body_is_recorded_as_cut() {
    let origin = Origin::start().await.unwrap();
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc").await.unwrap();
    origin.wait_until(BOUND, |stats| stats.requests == 1 && stats.complete_requests == 0).await.unwrap();
    connection.reset().unwrap();
    origin.wait_until(BOUND, |stats| stats.cut_bodies == 1).await.unwrap();
    let requests = origin.requests();
    assert_eq!((requests[0].complete, requests[0].body_bytes), (false, 3));
}

#[tokio::test]
async fn raw_recording_keeps_what_is_no_http() {
    let origin = Origin::builder().record_raw(true).start().await.unwrap();
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    let bytes = b"GET /1 HTTP/1.1\r\n\r\n\x00\x01 rubbish\r\n\r\n";
    connection.send(bytes).await.unwrap();
    assert_eq!(connection.read_response().await.unwrap().status(), 200);
    assert_eq!(connection.read_response().await.unwrap().status(), 400);
    assert_eq!(connection.read_to_end().await.ending, Ending::Fin);
    assert_eq!(origin.connections()[0].received, bytes);
    assert_eq!((origin.count(), origin.stats().invalid_requests), (1, 1));
}

#[tokio::test]
async fn two_framings_are_recorded_as_ambiguous() {
    let origin = Origin::builder().record_raw(true).start().await.unwrap();
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    let smuggled = b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
                     0\r\n\r\nGET /second HTTP/1.1\r\n\r\n";
    connection.send(smuggled).await.unwrap();
    origin.wait_for(2, BOUND).await.unwrap();
    assert!(origin.requests()[0].ambiguous);
    assert_eq!(origin.count_of("GET", "/second"), 1);
}

#[tokio::test]
async fn expect_continue_follows_the_switch() {
    let origin = Origin::start().await.unwrap();
    let head = b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";

    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(head).await.unwrap();
    let interim = connection.read_at_least(25).await.unwrap();
    assert_eq!(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(b"ok").await.unwrap();
    assert_eq!(connection.read_response().await.unwrap().status(), 200);

    origin.expect_continue(ExpectContinue::After(Duration::from_millis(50)));
    connection.send(head).await.unwrap();
    assert_eq!(connection.read_at_least(25).await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send(b"ok").await.unwrap();
    assert!(connection.read_response().await.unwrap().informational.is_empty());

    origin.expect_continue(ExpectContinue::Never);
    connection.send(head).await.unwrap();
    origin.wait_until(BOUND, |stats| stats.requests == 3).await.unwrap();
    connection.send(b"ok").await.unwrap();
    assert!(connection.read_response().await.unwrap().informational.is_empty());
}

#[tokio::test]
async fn peaks_count_what_was_there_at_once() {
    let gate = Gate::new();
    let origin = Origin::start().await.unwrap();
    origin.default(Answer::new(200).gate(&gate));
    let mut connections = Vec::new();
    for _ in 0..3 {
        let mut connection = Connection::open(origin.addr()).await.unwrap();
        connection.send(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        connections.push(connection);
    }
    gate.wait_for_waiting(3, BOUND).await.unwrap();
    gate.open();
    for connection in &mut connections {
        assert_eq!(connection.read_response().await.unwrap().status(), 200);
    }
    drop(connections);
    let stats = origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    assert_eq!((stats.peak_in_flight, stats.peak_connections, stats.in_flight), (3, 3, 0));
    origin.reset();
    assert_eq!(origin.stats().peak_connections, 0);
    assert!(origin.requests().is_empty() && origin.connections().is_empty());
}

#[tokio::test]
async fn scripts_and_limited_behaviours_are_followed() {
    let origin = Origin::start().await.unwrap();
    origin.script(Matcher::get("/p/1"), [Behaviour::status(503).times(2), Behaviour::status(404)]);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client::get(origin.addr(), "/p/1", &[]).await.unwrap().status());
    }
    assert_eq!(statuses, [503, 503, 404, 200]);
    origin.wait_for_matching(&Matcher::get("/p/1"), 4, BOUND).await.unwrap();
    assert_eq!(origin.count_where(|request| request.path() == "/p/1"), 4);
    let late = origin.wait_for(5, Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(late.stats.requests, 4);
}

#[tokio::test]
async fn limits_hold_and_are_counted() {
    let limits = Limits {
        head_bytes: 1024,
        body_bytes: 100,
        recorded_body_bytes: 4,
        records: 2,
        connections: 1,
        ..Limits::default()
    };
    let origin = Origin::builder().limits(limits).start().await.unwrap();
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.exchange("POST", "/1", &[], b"abcdefgh").await.unwrap();
    for target in ["/2", "/3"] {
        connection.get(target, &[]).await.unwrap();
    }
    let mut second = Connection::open(origin.addr()).await.unwrap();
    assert_eq!(second.read_to_end().await.ending, Ending::Fin);
    let long = "x".repeat(2000);
    assert_eq!(connection.get("/", &[("X-Long", &long)]).await.unwrap().status(), 431);
    drop(connection);
    let stats = origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    assert_eq!((stats.requests, stats.unrecorded_requests, stats.too_large), (3, 1, 1));
    assert_eq!((stats.connections_over_limit, stats.unrecorded_bytes), (1, 4));
    let requests = origin.requests();
    assert_eq!((requests.len(), requests[0].text().as_str(), requests[0].body_bytes), (2, "abcd", 8));
}

#[tokio::test]
async fn connections_can_be_ended_at_once() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::hang());
    for (ending, act) in
        [(Ending::Fin, Origin::close_connections as fn(&Origin)), (Ending::Reset, Origin::reset_connections)]
    {
        let mut connection = Connection::open(origin.addr()).await.unwrap();
        connection.send(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        origin.wait_until(BOUND, |stats| stats.in_flight == 1).await.unwrap();
        act(&origin);
        assert_eq!(connection.read_to_end().await.ending, ending);
        origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_may_fail_as_soon_as_it_is_accepted() {
    let origin = Origin::start().await.unwrap();
    for (on_accept, ending) in [(OnAccept::Close, Ending::Fin), (OnAccept::Reset, Ending::Reset)] {
        origin.on_accept(on_accept);
        match Connection::open(origin.addr()).await {
            Ok(mut connection) => assert_eq!(connection.read_to_end().await.ending, ending),
            // A reset may overtake the end of `connect`.
            Err(ClientError::Connect(error)) => {
                assert_eq!((ending, error.kind()), (Ending::Reset, ErrorKind::ConnectionReset));
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(origin.count(), 0);
}
