//! Messages on their way: methods, statuses and bodies as they are.

use backstop_lab::client::ResponseFraming;
use backstop_lab::origin::{Answer, Behaviour, Framing, Matcher, RequestFraming, Then};

use crate::raw::{Wires, direct};
use crate::support::{Policy, run};

/// RFC 9110 section 7.6: what is not known is passed on.
#[test]
fn unknown_methods_and_statuses_go_through() {
    run(async {
        let wires = Wires::open().await;
        for method in ["PATCH", "BREW", "M-SEARCH", "PROPFIND", "get", "X!#$%&'*+-.^_`|~1"] {
            let answer = wires.gateway.request(method, "/pot", &[], b"tea").await;
            assert_eq!(answer.status(), 200, "{method}");
            assert_eq!(wires.origin.count_of(method, "/pot"), 1, "{method}");
        }
        for status in [201, 226, 299, 300, 302, 399, 400, 418, 425, 451, 499, 599, 600, 999] {
            wires.origin.on(Matcher::any(), Behaviour::status(status));
            let answer = wires.gateway.get("/p/1", &[]).await;
            assert_eq!((answer.status(), answer.text()), (status, format!(r#"{{"status":{status}}}"#)));
        }
    });
}

/// RFC 9112 section 6.3: these have no content, whatever their fields say.
#[test]
fn answers_without_content_have_none() {
    run(async {
        let wires = Wires::open().await;
        let body = Answer::new(200).header("Content-Type", "text/plain").body("content");
        wires.origin.on(Matcher::path("/p/1"), body);
        wires.origin.on(Matcher::path("/204"), Answer::new(204));
        wires.origin.on(
            Matcher::path("/304"),
            Behaviour::raw(
                "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n",
                Then::KeepAlive,
            ),
        );
        let mut connection = wires.connect().await;
        for _ in 0..3 {
            let head = connection.exchange("HEAD", "/p/1", &[], b"").await.unwrap();
            assert_eq!((head.status(), head.header("content-length")), (200, Some("7")));
            let empty = connection.exchange("GET", "/204", &[], b"").await.unwrap();
            assert_eq!((empty.status(), empty.framing), (204, ResponseFraming::None));
            assert_eq!((empty.header("content-length"), empty.header("transfer-encoding")), (None, None));
            let same = connection.exchange("GET", "/304", &[("If-None-Match", "\"a\"")], b"").await.unwrap();
            assert_eq!((same.status(), same.header("etag")), (304, Some("\"a\"")));
            let get = connection.get("/p/1", &[]).await.unwrap();
            assert_eq!(get.text(), "content", "nothing of the others is left on the wire");
        }
        assert_eq!(wires.origin.connections_accepted(), 1, "each of them leaves its connection usable");
        assert_eq!(wires.origin.count_of("HEAD", "/p/1"), 3);
    });
}

/// Whatever frames an answer, its bytes and its end are the same.
#[test]
fn bodies_are_the_same_in_every_framing() {
    let body: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    run(async {
        let wires = Wires::open().await;
        for framing in [Framing::ContentLength, Framing::Chunked { chunk: 1000 }, Framing::CloseDelimited] {
            wires.origin.on(Matcher::path("/down"), Answer::new(200).body(body.clone()).framing(framing));
            let answer = wires.gateway.get("/down", &[]).await;
            assert!(answer.is_complete() && answer.body == body, "{framing:?}");
            let old = wires.say("GET /down HTTP/1.0\r\nHost: shop\r\n\r\n").await;
            let [old] = &old.answers[..] else { panic!("{framing:?}: {old:?}") };
            assert!(old.body == body && old.header("transfer-encoding").is_none(), "{framing:?}");
        }
        wires.origin.forget();
        let answer = wires.gateway.request("POST", "/up", &[], &body).await;
        assert_eq!(answer.status(), 200);
        let request = &wires.origin.requests()[0];
        assert_eq!(request.framing, RequestFraming::ContentLength(body.len() as u64));
        assert!(request.complete && request.body == body);
    });
}

/// RFC 9110 section 8.6: a request without content gets no framing that it did not have.
#[test]
fn a_request_without_content_stays_one() {
    run(async {
        let wires = Wires::open().await;
        wires.gateway.get("/p/1", &[]).await;
        wires.gateway.request("POST", "/p/2", &[("Content-Length", "0")], b"").await;
        let requests = wires.origin.requests();
        assert_eq!(requests[0].framing, RequestFraming::None);
        assert_eq!(requests[1].framing, RequestFraming::ContentLength(0));
    });
}

/// RFC 9110 section 7.6.2: with nothing left a request goes no further, else one is taken off.
#[test]
fn options_goes_as_far_as_it_may() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("read.direct", &direct("GET /p/{id}", ""))
                .route("write.direct", &direct("PUT /p/{id}", ""))
                .route("ask.direct", &direct("OPTIONS /p/{id}", ""))
        })
        .await;
        let ends = wires.gateway.request("OPTIONS", "/p/1", &[("Max-Forwards", "0")], b"").await;
        assert_eq!((ends.status(), ends.text().as_str()), (200, ""));
        assert_eq!(ends.header("allow"), Some("GET, HEAD, OPTIONS, PUT"));
        assert_eq!(wires.origin.count(), 0, "it is answered here");
        for (sent, seen) in [("1", "0"), ("10", "9")] {
            let passed = wires.gateway.request("OPTIONS", "/p/1", &[("Max-Forwards", sent)], b"").await;
            assert_eq!(passed.status(), 200);
            let request = wires.origin.requests().last().expect("it is passed on").clone();
            assert_eq!(request.header("max-forwards"), Some(seen));
        }
        // TRACE is refused however far it may go; other methods may ignore it.
        let trace = wires.gateway.request("TRACE", "/p/1", &[("Max-Forwards", "0")], b"").await;
        assert_eq!(trace.status(), 405);
        wires.gateway.get("/p/1", &[("Max-Forwards", "0")]).await;
        assert_eq!(wires.origin.requests().last().expect("a request").header("max-forwards"), Some("0"));
    });
}
