//! Every fault of the proxy, as a raw client sees it, and what it writes down.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]

use std::time::Duration;
use tokio::time::Instant;

use backstop_lab::{
    client::{self, ClientError, Completeness, Connection, Ending, Response},
    origin::{Answer, Behaviour, Framing, Matcher, Origin},
    proxy::{Ended, Fault, MARKER, Moment, Protocol, Proxies, Upstream, Window, Writes, content_hash},
};

const LONG: Duration = Duration::from_secs(60);
const BODY: &str = "0123456789012345678901234567890123456789";

async fn upstream() -> Origin {
    let origin = Origin::start().await.unwrap();
    origin.default(Behaviour::from(Answer::new(200).header("Content-Type", "text/plain").body(BODY)));
    origin.on(Matcher::get("/chunked"), Answer::new(200).framing(Framing::Chunked { chunk: 16 }).body(BODY));
    origin
}

fn before(origin: &Origin, windows: Vec<Window>, writes: Writes) -> Proxies {
    let addresses = vec![origin.addr().to_string()];
    let upstream = Upstream { name: "up".to_owned(), addresses, protocol: Protocol::Http };
    let proxies = Proxies::start(&[upstream], windows, writes, 1).unwrap();
    proxies.begin();
    proxies
}

fn with(origin: &Origin, fault: Fault) -> Proxies {
    before(origin, vec![Window::new(0, fault, Duration::ZERO, LONG)], Writes::PassOn)
}

async fn get(proxies: &Proxies, path: &str) -> Result<Response, ClientError> {
    let mut connection = Connection::open_within(proxies.addresses(0)[0], Duration::from_millis(700)).await?;
    connection.get(path, &[(MARKER, "42")]).await
}

/// Waits until the last call has ended: the proxy hears later than its caller of an end.
async fn ended(proxies: &Proxies) -> backstop_lab::proxy::Call {
    let within = Instant::now() + Duration::from_secs(5);
    loop {
        let last = proxies.calls().last().cloned().unwrap();
        if last.ended != Ended::UnderWay {
            return last;
        }
        assert!(Instant::now() < within, "{last:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_well_passes_byte_for_byte_and_is_written_down() {
    let origin = upstream().await;
    let proxies = before(&origin, Vec::new(), Writes::PassOn);
    let mut connection = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    for path in ["/a", "/chunked", "/b?c=d"] {
        let answer = connection.get(path, &[(MARKER, "42")]).await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str(), answer.is_complete()), (200, BODY, true));
    }
    let call = ended(&proxies).await;
    assert_eq!((call.marker, call.method.as_str(), call.target.as_str()), (Some(42), "GET", "/b?c=d"));
    assert_eq!(
        (call.status, call.content, call.ended),
        (Some(200), Some(content_hash(BODY.as_bytes())), Ended::Whole)
    );
    assert!(call.passed_on && call.fault.is_none() && call.finished >= call.began);
    assert_eq!(origin.connections_accepted(), 1, "one connection carries all of a caller's");
    let chunked = &proxies.calls()[1];
    assert_eq!(chunked.content, call.content, "framing is no content");
}

#[tokio::test]
async fn connections_are_refused_and_then_accepted_again_on_the_same_port() {
    let origin = upstream().await;
    let window = Window::new(0, Fault::Refuse, Duration::ZERO, Duration::from_millis(300));
    let proxies = before(&origin, vec![window], Writes::PassOn);
    let within = Instant::now() + Duration::from_secs(5);
    let mut was_refused = false;
    loop {
        match get(&proxies, "/").await {
            // It takes a moment to stop listening.
            Ok(_) if !was_refused => {}
            Ok(answer) => {
                assert!(proxies.elapsed() >= Duration::from_millis(300), "{:?}", proxies.elapsed());
                assert_eq!(answer.status(), 200);
                break;
            }
            Err(error) => was_refused |= error.is_refused(),
        }
        assert!(Instant::now() < within);
    }
    assert!(was_refused);
}

#[tokio::test]
async fn what_is_open_is_reset_when_it_begins_to_refuse() {
    let origin = upstream().await;
    let window = Window::new(0, Fault::Refuse, Duration::from_millis(200), LONG);
    let proxies = before(&origin, vec![window], Writes::PassOn);
    let mut connection = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    connection.get("/", &[]).await.unwrap();
    assert_eq!(connection.read_to_end().await.ending, Ending::Reset);
}

#[tokio::test]
async fn answers_that_never_come_end_as_they_should() {
    let origin = upstream().await;
    for (fault, ending) in [
        (Fault::Hang, Ending::TimedOut),
        (Fault::HangUp, Ending::Fin),
        (Fault::Reset(Moment::BeforeHead), Ending::Reset),
    ] {
        let proxies = with(&origin, fault);
        let error = get(&proxies, "/").await.unwrap_err();
        assert_eq!(error.ending(), Some(ending), "{fault:?}: {error}");
        let call = ended(&proxies).await;
        let expected = if fault == Fault::Hang { Ended::CallerLeft } else { Ended::Broken };
        assert_eq!((call.ended, call.fault, call.passed_on), (expected, Some(fault.name()), false));
    }
    assert_eq!(origin.count(), 0, "none of them was passed on");
}

#[tokio::test]
async fn bodies_end_early() {
    let origin = upstream().await;
    for (fault, completeness) in [
        (Fault::Truncate, Completeness::CutByFin),
        (Fault::Reset(Moment::AfterHead), Completeness::CutByReset),
    ] {
        for path in ["/", "/chunked"] {
            let answer = get(&with(&origin, fault), path).await.unwrap();
            assert_eq!((answer.status(), answer.completeness), (200, completeness), "{fault:?} {path}");
            assert!(answer.body.len() < BODY.len());
        }
    }
}

#[tokio::test]
async fn answers_of_its_own() {
    let origin = upstream().await;
    let answer = get(&with(&origin, Fault::Status(503)), "/").await.unwrap();
    assert_eq!((answer.status(), answer.header("content-type")), (503, Some("text/html")));
    let answer = get(&with(&origin, Fault::Status(401)), "/").await.unwrap();
    assert!(answer.header("www-authenticate").is_some(), "RFC 9110 section 15.5.2");
    let answer = get(&with(&origin, Fault::WrongBody), "/").await.unwrap();
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("text/html")));
    let error = get(&with(&origin, Fault::Garbage), "/").await.unwrap_err();
    assert!(matches!(error, ClientError::MalformedHead { .. }), "{error}");
    assert_eq!(origin.count(), 0);
}

#[tokio::test]
async fn answers_are_late_or_drip() {
    let origin = upstream().await;
    let answer = get(&with(&origin, Fault::Slow(Duration::from_millis(120))), "/").await.unwrap();
    assert!(answer.head_after >= Duration::from_millis(120), "{:?}", answer.head_after);
    let answer = get(&with(&origin, Fault::Drip(Duration::from_millis(4))), "/").await.unwrap();
    // Forty bytes, each after a pause of 4 ms.
    assert!(answer.took - answer.head_after >= Duration::from_millis(150), "{:?}", answer.took);
    assert_eq!(answer.text(), BODY);
}

#[tokio::test]
async fn dates_and_ages_are_what_the_fault_says() {
    let origin = upstream().await;
    origin.default(Behaviour::from(Answer::new(200).header("Age", "3").header("age", "4").body(BODY)));
    let proxies = with(&origin, Fault::Age(77));
    let answer = get(&proxies, "/").await.unwrap();
    assert_eq!((answer.header("age"), answer.head.fields.count("age")), (Some("77"), 1));
    assert_eq!(ended(&proxies).await.age, Duration::from_secs(77));
    let answer = get(&with(&origin, Fault::Date(3600)), "/").await.unwrap();
    let date = httpdate::parse_http_date(answer.header("date").unwrap()).unwrap();
    let ahead = date.duration_since(std::time::SystemTime::now()).unwrap();
    assert!((3590..=3600).contains(&ahead.as_secs()), "{ahead:?}");
    assert_eq!(answer.head.fields.count("date"), 1);
}

#[tokio::test]
async fn no_more_connections_are_served_than_there_is_room_for() {
    let origin = upstream().await;
    let proxies = with(&origin, Fault::Full(1));
    let mut first = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    first.get("/", &[]).await.unwrap();
    assert_eq!(get(&proxies, "/").await.unwrap_err().ending(), Some(Ending::TimedOut));
    drop(first);
    let mut next = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    assert_eq!(next.get("/", &[]).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_write_that_is_withheld_reaches_nobody_and_meets_its_fault() {
    let origin = upstream().await;
    let proxies = before(&origin, Vec::new(), Writes::Withhold);
    let address = proxies.addresses(0)[0];
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = client::request(address, method, "/w", &[], b"{}").await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (200, r#"{"drill":"withheld"}"#));
    }
    assert_eq!(origin.count(), 0);
    assert_eq!(client::get(address, "/", &[]).await.unwrap().text(), BODY, "reads pass");
    let window = Window::new(0, Fault::HangUp, Duration::ZERO, LONG);
    let proxies = before(&origin, vec![window], Writes::Withhold);
    assert!(client::request(proxies.addresses(0)[0], "POST", "/w", &[], b"{}").await.is_err());
    assert_eq!(proxies.calls().len(), 1, "it is counted all the same");
}

#[tokio::test]
async fn a_request_body_is_passed_on_whole() {
    let origin = upstream().await;
    let proxies = before(&origin, Vec::new(), Writes::PassOn);
    let mut connection = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    let chunked = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    connection.send(chunked).await.unwrap();
    connection.read_response_to("POST").await.unwrap();
    connection.exchange("POST", "/l", &[], b"hello").await.unwrap();
    let bodies: Vec<_> = origin.requests().iter().map(|request| request.body.clone()).collect();
    assert_eq!(bodies, [&b"abc"[..], b"hello"]);
}

#[tokio::test]
async fn what_speaks_no_http_passes_too_and_is_refused_too() {
    let origin = upstream().await;
    let addresses = vec![origin.addr().to_string()];
    let raw = Upstream { name: "cache".to_owned(), addresses, protocol: Protocol::Raw };
    let refuse = Window::new(0, Fault::HangUp, Duration::from_millis(400), LONG);
    let proxies = Proxies::start(&[raw], vec![refuse], Writes::Withhold, 1).unwrap();
    proxies.begin();
    let mut connection = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    assert_eq!(connection.get("/", &[]).await.unwrap().text(), BODY);
    tokio::time::sleep_until(Instant::now() + Duration::from_millis(450)).await;
    assert_eq!(connection.get("/", &[]).await.unwrap_err().ending(), Some(Ending::Fin));
    assert_eq!(proxies.calls().iter().map(|call| call.fault).collect::<Vec<_>>(), [None, Some("hang_up")]);
}

/// What cannot be cut so that anybody could tell comes whole, and nobody is held to have met a fault.
#[tokio::test]
async fn an_answer_that_cannot_be_cut_is_whole_and_met_no_fault() {
    let origin = upstream().await;
    origin.on(Matcher::get("/none"), Answer::new(204));
    origin.on(Matcher::get("/empty"), Answer::new(200).body(""));
    origin.on(Matcher::get("/until-close"), Answer::new(200).framing(Framing::CloseDelimited).body(BODY));
    let old = format!("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n{BODY}");
    origin.on(Matcher::get("/old"), Behaviour::raw(old, backstop_lab::origin::Then::Close));
    let reset = Fault::Reset(Moment::AfterHead);
    for (fault, path, body) in [
        (Fault::Truncate, "/none", ""),
        (Fault::Truncate, "/empty", ""),
        (Fault::Truncate, "/until-close", BODY),
        (Fault::Truncate, "/old", BODY),
        (reset, "/none", ""),
        (reset, "/empty", ""),
        (Fault::Drip(Duration::from_millis(4)), "/none", ""),
    ] {
        let proxies = with(&origin, fault);
        let answer = get(&proxies, path).await.unwrap();
        assert_eq!((answer.text().as_str(), answer.is_complete()), (body, true), "{fault:?} {path}");
        let call = ended(&proxies).await;
        assert_eq!((call.fault, call.ended), (None, Ended::Whole), "{fault:?} {path}");
    }
    // A reset is heard by everybody, whatever ends the body.
    let proxies = with(&origin, reset);
    let answer = get(&proxies, "/until-close").await.unwrap();
    assert_eq!(answer.completeness, Completeness::CutByReset);
    let call = ended(&proxies).await;
    assert_eq!((call.fault, call.ended), (Some("reset_after_head"), Ended::Broken));
}

/// RFC 9110 section 8.6 forbids a length with a 204, and many servers send one all the same.
#[tokio::test]
async fn a_length_where_no_body_may_be_is_passed_on_and_says_nothing() {
    const ODD: &str = "HTTP/1.1 204 No Content\r\nX-Allowed: yes\r\nContent-Length: 0\r\n\r\n";
    let origin = upstream().await;
    origin.on(Matcher::get("/odd"), Behaviour::raw(ODD, backstop_lab::origin::Then::KeepAlive));
    let proxies = before(&origin, Vec::new(), Writes::PassOn);
    let mut connection = Connection::open(proxies.addresses(0)[0]).await.unwrap();
    for _ in 0..2 {
        connection.send(b"GET /odd HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let answer = connection.read_at_least(ODD.len()).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), ODD);
    }
    assert_eq!(ended(&proxies).await.status, Some(204));
}
