//! HTTP/2 with prior knowledge (RFC 9113 section 3.3) in, HTTP/1.1 out.

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::raw::{Wires, direct};
use crate::support::{BOUND, Policy, expect, run};

type Sender = SendRequest<Full<Bytes>>;

async fn connect(wires: &Wires) -> Sender {
    let stream = TcpStream::connect(wires.gateway.addr).await.expect("the gateway accepts");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.expect("HTTP/2 without asking");
    tokio::spawn(connection);
    sender
}

fn request(method: &str, path: &str, fields: &[(&str, &str)], body: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("http://shop.example{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::from_static(body.as_bytes()))).expect("a request")
}

async fn whole(response: Response<hyper::body::Incoming>) -> (u16, Bytes) {
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.expect("a whole body").to_bytes())
}

#[test]
fn reads_and_writes_come_to_the_origin_in_its_own_protocol() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.default(Behaviour::from_fn(|request| Answer::new(200).body(request.body.clone())));
        let mut sender = connect(&wires).await;
        let get = sender.send_request(request("GET", "/p/1?q=%20", &[], "")).await.unwrap();
        assert_eq!(whole(get).await, (200, Bytes::new()));
        let post =
            sender.send_request(request("POST", "/p/2", &[("x-a", "1"), ("x-a", "2")], "content")).await;
        assert_eq!(whole(post.unwrap()).await, (200, Bytes::from_static(b"content")));
        let head = sender.send_request(request("HEAD", "/p/3", &[], "")).await.unwrap();
        assert_eq!(whole(head).await.1, Bytes::new());

        let requests = wires.origin.requests();
        let [get, post, _] = &requests[..] else { panic!("three requests") };
        // RFC 9113 section 8.3.1: Host is made from :authority.
        assert_eq!((get.target.as_str(), get.header("host")), ("/p/1?q=%20", Some("shop.example")));
        assert_eq!((get.minor_version, get.header("via")), (1, Some("2 edge")));
        assert!(!get.fields.iter().any(|field| field.name.starts_with(':')));
        assert_eq!((&post.body[..], post.complete, post.ambiguous), (&b"content"[..], true, false));
        assert_eq!(post.fields.all("x-a").collect::<Vec<_>>(), ["1", "2"]);
    });
}

/// RFC 9113 section 8.2.3: HTTP/2 may split them, HTTP/1.1 may not.
#[test]
fn cookie_lines_are_joined() {
    run(async {
        let wires = Wires::open().await;
        let cookies = [("cookie", "a=b"), ("cookie", "c=d; e=f"), ("cookie", "g=h")];
        let mut sender = connect(&wires).await;
        let answer = sender.send_request(request("GET", "/", &cookies, "")).await.unwrap();
        assert_eq!(answer.status(), 200);
        let request = &wires.origin.requests()[0];
        assert_eq!(request.fields.all("cookie").collect::<Vec<_>>(), ["a=b; c=d; e=f; g=h"]);
    });
}

/// RFC 9113 section 8.3.1: a `Host` beside `:authority` must say the same.
#[test]
fn a_host_that_contradicts_the_authority_is_malformed() {
    run(async {
        let wires = Wires::open().await;
        let mut sender = connect(&wires).await;
        let refused =
            sender.send_request(request("GET", "/", &[("host", "other.example")], "")).await.unwrap();
        assert_eq!(refused.status(), 400);
        assert_eq!(wires.origin.count(), 0);
        let same = sender.send_request(request("GET", "/", &[("host", "shop.example")], "")).await.unwrap();
        assert_eq!(same.status(), 200, "the connection is not to blame");
        assert_eq!(wires.origin.requests()[0].fields.all("host").collect::<Vec<_>>(), ["shop.example"]);
    });
}

/// RFC 9110 section 7.4: `https` was not received over a connection that is secured for it.
#[test]
fn another_scheme_is_misdirected() {
    run(async {
        let wires = Wires::open().await;
        let mut sender = connect(&wires).await;
        for scheme in ["https", "ftp"] {
            let mut secured = request("GET", "/", &[], "");
            *secured.uri_mut() = format!("{scheme}://shop.example/p/1").parse().unwrap();
            let refused = sender.send_request(secured).await.unwrap();
            assert_eq!(refused.status(), 421, "{scheme}");
            let mark = refused.headers().get("backstop").and_then(|mark| mark.to_str().ok());
            assert_eq!(mark, Some("outcome=rejected, reason=misdirected"));
        }
        assert_eq!(wires.origin.count(), 0);
        assert_eq!(sender.send_request(request("GET", "/", &[], "")).await.unwrap().status(), 200);
    });
}

/// A stream that is reset is a client that left: counted so, and every place comes back.
#[test]
fn a_reset_stream_returns_its_places() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "abandon_hold = \"0ms\""))
        })
        .await;
        let gate = Gate::new();
        wires.origin.on(Matcher::any(), Answer::new(200).gate(&gate));
        let mut sender = connect(&wires).await;
        for number in 1..=8 {
            let waiting = tokio::spawn(sender.send_request(request("GET", "/", &[], "")));
            gate.wait_for_waiting(number, BOUND).await.unwrap();
            waiting.abort();
            let _aborted = waiting.await;
        }
        let left = wires.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 8).await;
        assert_eq!(left.dependency_failures(), 0, "not the dependency's failure");
        expect::idle(&wires.gateway).await;
        gate.open();
        assert_eq!(sender.send_request(request("GET", "/", &[], "")).await.unwrap().status(), 200);
    });
}

/// The connection lives, but the window of the stream stays shut: the reply is not taken, and is given up in time.
#[test]
fn a_client_that_keeps_its_window_shut_is_left() {
    run(async {
        let wires = Wires::impatient().await;
        wires.origin.on(Matcher::path("/large"), Answer::new(200).body(vec![b'x'; 64 << 20]));
        let mut sender = connect(&wires).await;
        let large = sender.send_request(request("GET", "/large", &[], "")).await.unwrap();
        assert_eq!(large.status(), 200);
        wires.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 1).await;
        expect::idle(&wires.gateway).await;
        assert!(large.into_body().collect().await.is_err(), "it is cut, not ended");
        assert_eq!(wires.gateway.metrics().await.dependency_failures(), 0);

        // Whoever reads, however late each piece, is served whole.
        let mut sender = connect(&wires).await;
        let whole = sender.send_request(request("GET", "/large", &[], "")).await.unwrap();
        assert_eq!(whole.into_body().collect().await.unwrap().to_bytes().len(), 64 << 20);
    });
}

#[test]
fn many_streams_share_one_connection_and_the_bounded_pool() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connections = 8\nqueue = \"1500ms\"")
                .route("all.direct", &direct("*", "in_flight = 128"))
        })
        .await;
        wires.origin.default(Behaviour::from_fn(|request| Answer::new(200).body(request.target.clone())));
        let mut sender = connect(&wires).await;
        let streams: Vec<_> = (0..100)
            .map(|number| {
                let answer = sender.send_request(request("GET", &format!("/p/{number}"), &[], ""));
                tokio::spawn(async move { (number, whole(answer.await.expect("an answer")).await) })
            })
            .collect();
        for stream in streams {
            let (number, answer) = stream.await.unwrap();
            assert_eq!(answer, (200, Bytes::from(format!("/p/{number}"))), "each its own");
        }
        assert_eq!(wires.origin.count(), 100);
        assert!(wires.origin.peak_connections() <= 8);
        expect::idle(&wires.gateway).await;
    });
}
