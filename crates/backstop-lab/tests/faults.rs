//! What a raw socket really sees of each behaviour.

use std::time::Duration;

use backstop_lab::{
    client::{self, ClientError, Completeness, Connection, Ending, ResponseFraming},
    origin::{Answer, Behaviour, CutAt, Date, Framing, GARBAGE, Gate, HALF_JSON, Matcher, Origin, Then},
};

const BOUND: Duration = Duration::from_secs(5);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// Every byte that one request is answered with, and how the connection ended.
async fn seen(behaviour: impl Into<Behaviour>) -> Result<(String, Ending), Box<dyn std::error::Error>> {
    let origin = Origin::builder().default_behaviour(behaviour).start().await?;
    let mut connection = Connection::open(origin.addr()).await?;
    connection.send(GET).await?;
    let tail = connection.read_to_end().await;
    Ok((String::from_utf8_lossy(&tail.bytes).into_owned(), tail.ending))
}

async fn answer_to(behaviour: impl Into<Behaviour>) -> Result<client::Response, Box<dyn std::error::Error>> {
    let origin = Origin::builder().default_behaviour(behaviour).start().await?;
    Ok(client::get(origin.addr(), "/", &[]).await?)
}

fn plain(status: u16) -> Answer {
    Answer::new(status).date(Date::Omitted)
}

#[tokio::test]
async fn a_plain_answer_is_exactly_its_bytes() {
    let answer = plain(200).header("X-a", "1").header("x-A", "2").body("hello").then(Then::Close);
    let (bytes, ending) = seen(answer).await.unwrap();
    assert_eq!(bytes, "HTTP/1.1 200 OK\r\nX-a: 1\r\nx-A: 2\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(ending, Ending::Fin);
}

#[tokio::test]
async fn chunks_trailers_and_informational_heads_are_exactly_their_bytes() {
    let answer = plain(200)
        .informational(103, &[("Link", "</a.css>")])
        .chunked(4)
        .body("abcdefg")
        .trailer("X-End", "yes")
        .then(Then::Close);
    let (bytes, ending) = seen(answer).await.unwrap();
    let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    4\r\nabcd\r\n3\r\nefg\r\n0\r\nX-End: yes\r\n\r\n";
    assert_eq!((bytes.as_str(), ending), (expected, Ending::Fin));
}

#[tokio::test]
async fn the_client_reads_them_back() {
    let answer =
        plain(200).informational(103, &[("Link", "x")]).chunked(4).body("abcdefg").trailer("X-End", "yes");
    let response = answer_to(answer).await.unwrap();
    assert_eq!(response.informational[0].status, 103);
    assert_eq!(response.framing, ResponseFraming::Chunked);
    assert_eq!(response.text(), "abcdefg");
    assert_eq!(response.trailers.get("x-end"), Some("yes"));
    assert!(response.is_complete());
}

#[tokio::test]
async fn a_hang_sends_nothing_and_ends_with_its_peer() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::hang());
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(GET).await.unwrap();
    origin.wait_for(1, BOUND).await.unwrap();
    let mut connection = connection.bound(Duration::from_millis(50));
    let error = connection.read_response().await.unwrap_err();
    assert!(
        matches!(error, ClientError::NoHead { ending: Ending::TimedOut, received } if received.is_empty())
    );
    drop(connection);
    let stats = origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
    assert_eq!((stats.in_flight, stats.finished, stats.peers_closed), (0, 0, 1));
}

#[tokio::test]
async fn close_without_a_byte_is_fin_and_reset_is_rst() {
    assert_eq!(seen(Behaviour::close()).await.unwrap(), (String::new(), Ending::Fin));
    assert_eq!(seen(Behaviour::reset()).await.unwrap(), (String::new(), Ending::Reset));
}

#[tokio::test]
async fn a_reset_after_the_head_leaves_the_head() {
    let response = answer_to(Behaviour::reset_after_head()).await.unwrap();
    assert_eq!((response.status(), response.body.len()), (200, 0));
    assert_eq!(response.completeness, Completeness::CutByReset);
}

#[tokio::test]
async fn a_reset_in_the_body_leaves_its_first_bytes() {
    let response = answer_to(Behaviour::reset_mid_body(600, 300)).await.unwrap();
    assert_eq!(response.framing, ResponseFraming::ContentLength(600));
    assert_eq!((response.body.len(), response.completeness), (300, Completeness::CutByReset));
}

#[tokio::test]
async fn a_reset_of_a_close_delimited_body_is_no_clean_end() {
    let answer = plain(200).framing(Framing::CloseDelimited).body("abcdef").cut(CutAt::Body(3), Then::Reset);
    let response = answer_to(answer).await.unwrap();
    assert_eq!((response.text().as_str(), response.completeness), ("abc", Completeness::CutByReset));
}

#[tokio::test]
async fn truncated_bodies_are_cut_by_fin() {
    let response = answer_to(Behaviour::truncated(600, 300)).await.unwrap();
    assert_eq!(response.framing, ResponseFraming::ContentLength(600));
    assert_eq!((response.body.len(), response.completeness), (300, Completeness::CutByFin));

    let response = answer_to(Behaviour::truncated_chunked(300)).await.unwrap();
    assert_eq!(response.framing, ResponseFraming::Chunked);
    assert_eq!((response.body.len(), response.completeness), (300, Completeness::CutByFin));
}

#[tokio::test]
async fn a_chunked_body_can_be_cut_inside() {
    let answer = plain(200).chunked(4).body("abcdefghij").cut(CutAt::Body(6), Then::Close);
    let (bytes, _) = seen(answer).await.unwrap();
    assert!(bytes.ends_with("\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n"), "{bytes}");
}

#[tokio::test]
async fn half_a_head_is_no_answer() {
    let (bytes, ending) = seen(Behaviour::half_head(201)).await.unwrap();
    assert_eq!((bytes.as_str(), ending), ("HTTP/1.1 201 Created\r\nContent-Type: appl", Ending::Fin));
}

#[tokio::test]
async fn half_json_is_whole_to_the_framing() {
    let response = answer_to(Behaviour::half_json_close_delimited()).await.unwrap();
    assert_eq!(response.framing, ResponseFraming::CloseDelimited);
    assert_eq!((response.text().as_str(), response.is_complete()), (HALF_JSON, true));
    assert!(response.json().is_err());

    let response = answer_to(Behaviour::half_json_whole_framing()).await.unwrap();
    assert_eq!(response.framing, ResponseFraming::ContentLength(HALF_JSON.len() as u64));
    assert_eq!((response.text().as_str(), response.is_complete()), (HALF_JSON, true));
}

#[tokio::test]
async fn wrong_but_whole_answers() {
    let html = answer_to(Behaviour::html_200()).await.unwrap();
    assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"));
    let empty = answer_to(Behaviour::empty_200()).await.unwrap();
    assert_eq!((empty.status(), empty.body.len(), empty.is_complete()), (200, 0, true));
    let wrong = answer_to(Behaviour::wrong_json()).await.unwrap();
    assert!(wrong.json().unwrap().get("unexpected").is_some());
}

#[tokio::test]
async fn garbage_is_sent_verbatim() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::garbage());
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(GET).await.unwrap();
    assert_eq!(connection.read_to_end().await.bytes, GARBAGE);
    let error = client::get(origin.addr(), "/", &[]).await.unwrap_err();
    assert!(matches!(error, ClientError::MalformedHead { .. }), "{error}");
}

#[tokio::test]
async fn a_date_may_lie_ahead_or_be_any_text() {
    let ahead = Behaviour::future_date("{}", Duration::from_secs(3600));
    let response = answer_to(ahead).await.unwrap();
    let date = httpdate::parse_http_date(response.header("date").unwrap()).unwrap();
    let distance = date.duration_since(std::time::SystemTime::now()).unwrap();
    assert!((Duration::from_secs(3590)..=Duration::from_secs(3600)).contains(&distance), "{distance:?}");
    let response = answer_to(plain(200).date(Date::Text("yesterday".to_owned()))).await.unwrap();
    assert_eq!(response.header("date"), Some("yesterday"));
}

#[tokio::test]
async fn head_204_and_304_have_no_body() {
    let origin = Origin::start().await.unwrap();
    origin.default(Answer::json("{\"a\":1}"));
    origin.on(Matcher::path("/204"), Answer::new(204).body("never sent"));
    origin.on(Matcher::path("/304"), Answer::new(304).header("ETag", "\"e\"").body("never sent"));
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    let head = connection.exchange("HEAD", "/", &[], b"").await.unwrap();
    assert_eq!((head.header("content-length"), head.body.len()), (Some("7"), 0));
    for target in ["/204", "/304"] {
        let response = connection.get(target, &[]).await.unwrap();
        assert_eq!((response.header("content-length"), response.body.len()), (None, 0));
    }
    assert_eq!(connection.get("/", &[]).await.unwrap().text(), "{\"a\":1}");
    assert!(connection.leftover().is_empty());
    assert_eq!(origin.connections_accepted(), 1);
}

#[tokio::test]
async fn a_slow_head_comes_byte_by_byte() {
    let interval = Duration::from_millis(2);
    let response = answer_to(plain(200).body("x").slow_head(interval)).await.unwrap();
    let pauses = u32::try_from(response.head.raw.len() - 1).unwrap();
    assert!(response.head_after >= interval * pauses, "{:?}", response.head_after);
}

#[tokio::test]
async fn a_drip_comes_piece_by_piece() {
    let interval = Duration::from_millis(20);
    let response = answer_to(plain(200).body("abcdef").drip(2, interval)).await.unwrap();
    assert_eq!(response.text(), "abcdef");
    assert!(response.took - response.head_after >= interval, "{response:?}");
    assert!(response.took >= interval * 2, "{response:?}");
}

#[tokio::test]
async fn an_endless_drip_has_a_head_and_no_end() {
    for behaviour in [
        Behaviour::drip_forever(Duration::from_millis(5)),
        plain(200).endless(Duration::from_millis(5)).into(),
        plain(200).framing(Framing::CloseDelimited).endless(Duration::from_millis(5)).into(),
    ] {
        let origin = Origin::builder().default_behaviour(behaviour).start().await.unwrap();
        let mut connection = Connection::open(origin.addr()).await.unwrap().bound(Duration::from_millis(200));
        let response = connection.get("/", &[]).await.unwrap();
        assert_eq!((response.status(), response.completeness), (200, Completeness::TimedOut));
        assert!(response.body.len() > 2, "{}", response.body.len());
    }
}

#[tokio::test]
async fn a_delay_comes_before_the_head() {
    let delay = Duration::from_millis(60);
    let response = answer_to(plain(200).delay(delay)).await.unwrap();
    assert!(response.head_after >= delay, "{:?}", response.head_after);
}

#[tokio::test]
async fn a_gate_holds_the_answer_until_it_is_opened() {
    let gate = Gate::new();
    let origin = Origin::start().await.unwrap();
    origin.default(plain(200).body("late").gate(&gate));
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(GET).await.unwrap();
    gate.wait_for_waiting(1, BOUND).await.unwrap();
    assert_eq!(origin.stats().in_flight, 1);
    assert!(gate.wait_for_waiting(2, Duration::from_millis(1)).await.is_err());
    gate.open();
    assert_eq!(connection.read_response().await.unwrap().text(), "late");
    origin.wait_until(BOUND, |stats| stats.in_flight == 0 && stats.finished == 1).await.unwrap();
}

#[tokio::test]
async fn work_goes_on_when_the_peer_leaves_unless_told_otherwise() {
    let gate = Gate::new();
    let origin = Origin::start().await.unwrap();
    origin.default(plain(200).gate(&gate));
    origin.on(Matcher::path("/stop"), plain(200).gate(&gate).stop_when_peer_leaves());
    for target in ["/stop", "/go-on"] {
        let mut connection = Connection::open(origin.addr()).await.unwrap();
        connection.send(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        connection.reset().unwrap();
        origin.wait_until(BOUND, |stats| stats.peers_reset > 0).await.unwrap();
        if target == "/stop" {
            origin.wait_until(BOUND, |stats| stats.in_flight == 0).await.unwrap();
            origin.forget();
        }
    }
    assert_eq!((gate.waiting(), origin.stats().in_flight), (1, 1));
    gate.open();
    origin.wait_until(BOUND, |stats| stats.in_flight == 0 && stats.connections_open == 0).await.unwrap();
}

#[tokio::test]
async fn raw_bytes_may_claim_anything() {
    let lie = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nfour";
    let origin =
        Origin::builder().default_behaviour(Behaviour::raw(lie, Then::KeepAlive)).start().await.unwrap();
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    assert_eq!(connection.get("/", &[]).await.unwrap().text(), "fo");
    assert_eq!(connection.leftover(), b"ur");
    let answer = plain(200).header("Content-Length", "2").framing(Framing::AsWritten).body("four");
    let (bytes, ending) = seen(answer.then(Then::Close)).await.unwrap();
    assert_eq!((bytes.as_str(), ending), (lie, Ending::Fin));
}

#[tokio::test]
async fn a_kept_connection_can_be_closed_without_notice() {
    let origin = Origin::start().await.unwrap();
    origin.default(plain(200).body("ok").then(Then::Close));
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    let response = connection.get("/", &[]).await.unwrap();
    assert!(response.keeps_alive());
    assert_eq!(connection.read_to_end().await.ending, Ending::Fin);
}

#[tokio::test]
async fn an_answer_may_come_before_the_body() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::from(plain(401).body("no")).before_body());
    let mut connection = Connection::open(origin.addr()).await.unwrap();
    connection.send(b"PUT / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nabc").await.unwrap();
    let response = connection.read_response().await.unwrap();
    assert_eq!((response.status(), response.text().as_str()), (401, "no"));
    assert_eq!(connection.read_to_end().await.ending, Ending::Fin);
    assert!(!origin.requests()[0].complete);
}

#[tokio::test]
async fn an_origin_that_stops_reading_stops_the_upload() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::hang().stop_reading());
    let mut connection = Connection::open(origin.addr()).await.unwrap().bound(Duration::from_millis(300));
    connection.send(b"PUT / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").await.unwrap();
    origin.wait_until(BOUND, |stats| stats.requests == 1).await.unwrap();
    let error = connection.send(&vec![b'x'; 32 * 1024 * 1024]).await.unwrap_err();
    assert!(matches!(error, ClientError::SendTimeout(_)), "{error}");
}

#[tokio::test]
async fn a_behaviour_may_be_computed_from_the_request() {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::from_fn(|request| match request.header("x-fault") {
        Some("hang") => Behaviour::hang(),
        Some("reset") => Behaviour::reset(),
        _ => Answer::new(200).body_with(|request| request.body.clone()).into(),
    }));
    let echoed = client::request(origin.addr(), "POST", "/", &[], b"abc").await.unwrap();
    assert_eq!(echoed.text(), "abc");
    let error = client::get(origin.addr(), "/", &[("X-Fault", "reset")]).await.unwrap_err();
    assert_eq!(error.ending(), Some(Ending::Reset));
}
