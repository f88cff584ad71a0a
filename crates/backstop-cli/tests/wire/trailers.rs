//! Trailers (RFC 9110 section 6.5): passed on as trailers or not at all, never as fields of the head.

use backstop_lab::origin::{Answer, Matcher};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::raw::{Wires, direct};
use crate::support::{Policy, run};

fn request(fields: &str, trailer: &str) -> String {
    format!(
        "POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{fields}\r\n\
         3\r\nabc\r\n0\r\n{trailer}\r\n"
    )
}

#[test]
fn announced_trailers_of_a_request_reach_the_origin_as_trailers() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say(request("Trailer: X-Sum\r\n", "X-Sum: 42\r\n")).await;
        assert_eq!(said.statuses(), [200]);
        let [request] = &wires.origin.requests()[..] else { panic!("one request") };
        assert_eq!((request.trailers.get("x-sum"), request.header("x-sum")), (Some("42"), None));
        assert_eq!((request.text().as_str(), request.complete), ("abc", true));
    });
}

/// RFC 9110 section 6.5.1: what frames, routes or authenticates a message means nothing behind it.
#[test]
fn no_trailer_becomes_a_field() {
    run(async {
        let wires = Wires::open().await;
        for trailer in [
            "X-Sum: 42",
            "Host: other",
            "Content-Length: 9",
            "Authorization: Basic x",
            "Transfer-Encoding: chunked",
        ] {
            wires.origin.forget();
            let name = trailer.split(':').next().unwrap_or_default();
            let said = wires.say(request("", &format!("{trailer}\r\n"))).await;
            said.closed(trailer);
            for request in wires.origin.requests() {
                let expected: &[&str] = match name {
                    "Host" => &["shop"],
                    "Transfer-Encoding" => &["chunked"],
                    _ => &[],
                };
                assert_eq!(request.fields.all(name).collect::<Vec<_>>(), expected, "{trailer}");
                assert!(!request.ambiguous, "{trailer}");
                if name != "X-Sum" {
                    assert_eq!(request.trailers.count(name), 0, "{trailer}");
                }
            }
        }
    });
}

#[test]
fn trailers_of_an_answer_reach_a_client_that_takes_them() {
    run(async {
        let wires = Wires::open().await;
        let answer = Answer::json("{}").chunked(2).header("Trailer", "X-Sum").trailer("X-Sum", "42");
        wires.origin.on(Matcher::any(), answer);
        let takes = wires.gateway.get("/p/1", &[("TE", "trailers"), ("Connection", "TE, close")]).await;
        assert_eq!((takes.trailers.get("x-sum"), takes.header("x-sum")), (Some("42"), None));
        assert!(takes.is_complete());
        let does_not = wires.gateway.get("/p/1", &[]).await;
        assert_eq!((does_not.trailers.len(), does_not.header("x-sum")), (0, None));
        assert_eq!((does_not.text().as_str(), does_not.is_complete()), ("{}", true));
    });
}

/// Announced, with a value each. Of these only `X-Sum` goes on.
fn lines(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name}: 1\r\n")).collect()
}

/// With fields that the operator removes and sets, in both directions, and a client that may be trusted.
async fn edited(trusted: &str) -> Wires {
    Wires::with(|origin| {
        let edits = "{ set = { x-set = \"ours\" }, remove = [\"x-gone\"] }";
        let edits = format!("request_headers = {edits}\nresponse_headers = {edits}");
        Policy::empty()
            .gateway(&format!("trusted = [{trusted}]"))
            .dependency("catalog", origin, "")
            .route("all.direct", &direct("*", &edits))
    })
    .await
}

/// RFC 9110 sections 6.5.1 and 7.6.1: whoever merges trailers into the head would read what was taken out of the head. Even
/// who is trusted may only pass on what its own client says.
#[test]
fn what_goes_no_further_in_a_requests_head_does_not_follow_its_content() {
    const NAMES: [&str; 15] = [
        "Accept-Language",
        "Accept-Encoding",
        "Backstop-Attempt",
        "X_Forwarded_For",
        "X-Forwarded-For",
        "X-Forwarded-Prefix",
        "Forwarded",
        "Via",
        "X-Secret",
        "X-Gone",
        "X-Set",
        "Keep-Alive",
        "Proxy-Authorization",
        "Cookie",
        "X-Sum",
    ];
    run(async {
        for trusted in ["", "\"127.0.0.1\""] {
            let wires = edited(trusted).await;
            let head = format!("Trailer: {}\r\nConnection: X-Secret\r\n", NAMES.join(", "));
            let said = wires.say(request(&head, &lines(&NAMES))).await;
            assert_eq!(said.statuses(), [200]);
            let [request] = &wires.origin.requests()[..] else { panic!("one request") };
            let sent: Vec<&str> = request.trailers.iter().map(|field| field.name.as_str()).collect();
            assert_eq!(sent, ["x-sum"], "{trusted}");
            assert_eq!(request.header("trailer"), Some("X-Sum"));
            assert_eq!((request.header("x-set"), request.text().as_str()), (Some("ours"), "abc"));
        }
    });
}

/// The same of an answer, in both protocols: HTTP/2 asks for no announcement.
#[test]
fn what_goes_no_further_in_an_answers_head_does_not_follow_its_content() {
    const NAMES: [&str; 7] = ["X-Secret", "X-Gone", "X-Set", "Keep-Alive", "Set-Cookie", "Backstop", "X-Sum"];
    run(async {
        let wires = edited("").await;
        let mut answer = Answer::json("{}")
            .chunked(2)
            .header("Trailer", &NAMES.join(", "))
            .header("Connection", "X-Secret");
        for name in NAMES {
            answer = answer.trailer(name, "1");
        }
        wires.origin.on(Matcher::any(), answer);
        let first = wires.gateway.get("/p/1", &[("TE", "trailers"), ("Connection", "TE, close")]).await;
        let sent: Vec<&str> = first.trailers.iter().map(|field| field.name.as_str()).collect();
        assert_eq!((sent, first.header("trailer")), (vec!["x-sum"], Some("X-Sum")));
        assert!(first.is_complete() && first.header("x-set") == Some("ours"));

        let stream = TcpStream::connect(wires.gateway.addr).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let get = hyper::Request::get("http://shop/p/1").body(Empty::<Bytes>::new()).unwrap();
        let second = sender.send_request(get).await.unwrap().into_body().collect().await.unwrap();
        let trailers = second.trailers().expect("a trailer section");
        let sent: Vec<&str> = trailers.keys().map(|name| name.as_str()).collect();
        assert_eq!(sent, ["x-sum"]);
    });
}

/// What is held back is sent with its length. In HTTP/1.1 nothing can follow that, so nothing is announced.
#[test]
fn an_answer_that_was_held_back_announces_no_trailers() {
    run(async {
        let wires = Wires::with(|origin| {
            let read = "match = \"GET /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 64\nkey = []\nmax_age = \"60s\"";
            Policy::empty().dependency("catalog", origin, "").route("read.public_read", read)
        })
        .await;
        let answer = Answer::json("{}").chunked(2).header("Trailer", "X-Sum").trailer("X-Sum", "1");
        wires.origin.on(Matcher::any(), answer);
        let first = wires.gateway.get("/p/1", &[("TE", "trailers"), ("Connection", "TE, close")]).await;
        assert_eq!((first.header("trailer"), first.header("content-length")), (None, Some("2")));
        assert!(first.is_complete() && first.trailers.iter().next().is_none());
    });
}
