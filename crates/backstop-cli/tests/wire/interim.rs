//! Interim answers (RFC 9110 section 15.2): passed on as they come, to those who may get them.

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Then};

use crate::raw::{Wires, direct, read_out};
use crate::streaming::peak_memory;
use crate::support::{BOUND, Policy, run};

const STYLE: [(&str, &str); 1] = [("Link", "</style.css>; rel=preload")];
const SCRIPT: [(&str, &str); 2] = [("Link", "</script.js>; rel=preload"), ("Connection", "x-hop")];

fn with_hints() -> Answer {
    Answer::json("{}").informational(103, &STYLE).informational(103, &SCRIPT)
}

#[test]
fn early_hints_come_before_the_answer_in_their_order() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.on(Matcher::path("/hints"), with_hints());
        let mut connection = wires.connect().await;
        // A kept connection, and others in between: hints belong to their own request.
        for _ in 0..5 {
            let answer = connection.get("/hints", &[]).await.unwrap();
            let hints: Vec<_> =
                answer.informational.iter().map(|head| (head.status, head.fields.get("link"))).collect();
            assert_eq!(hints, [(103, Some(STYLE[0].1)), (103, Some(SCRIPT[0].1))]);
            assert!(answer.informational.iter().all(|head| head.fields.count("connection") == 0));
            assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"));
            let plain = connection.get("/plain", &[]).await.unwrap();
            assert_eq!((plain.informational.len(), plain.status()), (0, 200));
        }
    });
}

/// Hints are of use only while the answer is not there yet.
#[test]
fn early_hints_do_not_wait_for_the_answer() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.on(
            Matcher::path("/hints"),
            Behaviour::raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", Then::Hang),
        );
        let mut connection = wires.connect().await;
        connection.send(b"GET /hints HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        let bytes =
            connection.read_at_least(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".len()).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        assert!(text.starts_with("http/1.1 103 ") && text.contains("link: </a>"), "{text}");
    });
}

/// What the operator keeps from clients does not go to them in a hint, and a hint has no length (RFC 9110 section 8.6).
#[test]
fn a_hint_says_nothing_that_its_answer_may_not_say() {
    run(async {
        let wires = Wires::with(|origin| {
            let edits = "response_headers = { remove = [\"server\", \"x-internal\"] }";
            Policy::empty().dependency("catalog", origin, "").route("all.direct", &direct("*", edits))
        })
        .await;
        let hint = [STYLE[0], ("Server", "secret/1.2"), ("X-Internal", "10.0.0.7"), ("Content-Length", "7")];
        let answer = Answer::json("{}").informational(103, &hint).header("Server", "secret/1.2");
        wires.origin.on(Matcher::any(), answer);
        let answer = wires.gateway.get("/hints", &[]).await;
        let [hint] = &answer.informational[..] else { panic!("one hint: {answer:?}") };
        assert_eq!((hint.status, hint.fields.get("link")), (103, Some(STYLE[0].1)));
        for name in ["server", "x-internal", "content-length"] {
            assert_eq!(hint.fields.get(name), None, "{name}");
        }
        assert_eq!((answer.status(), answer.text().as_str(), answer.header("server")), (200, "{}", None));
    });
}

#[test]
fn pipelined_requests_each_get_their_own_hints() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.on(Matcher::path("/hints"), with_hints());
        let said = wires
            .say(
                "GET /hints HTTP/1.1\r\nHost: shop\r\n\r\nGET /plain HTTP/1.1\r\nHost: shop\r\n\r\n\
                 GET /hints HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n",
            )
            .await;
        let hints: Vec<_> = said.answers.iter().map(|answer| answer.informational.len()).collect();
        assert_eq!((said.statuses(), hints), (vec![200, 200, 200], vec![2, 0, 2]));
    });
}

/// RFC 9110 section 15.2: never to an HTTP/1.0 client.
#[test]
fn an_old_client_gets_no_interim_answer() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.on(Matcher::any(), with_hints());
        for request in [
            "GET /hints HTTP/1.0\r\nHost: shop\r\n\r\n",
            "POST /hints HTTP/1.0\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
        ] {
            let mut connection = wires.connect().await;
            connection.send(request.as_bytes()).await.unwrap();
            let said = read_out(&mut connection).await;
            assert_eq!((said.statuses(), said.answers[0].informational.len()), (vec![200], 0), "{said:?}");
        }
        assert_eq!(wires.origin.requests()[1].text(), "abc");
    });
}

/// A hint that comes after its request was given up is nobody's, least of all the next request's.
#[test]
fn a_late_hint_never_reaches_the_next_request() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("late.direct", &direct("GET /late", "deadline = \"100ms\"\nabandon_hold = \"5s\""))
                .route("rest.direct", &direct("*", ""))
        })
        .await;
        let (late, next) = (Gate::new(), Gate::new());
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </late>\r\n\r\n";
        wires.origin.on(Matcher::path("/late"), Behaviour::raw(hint, Then::KeepAlive).gate(&late));
        wires.origin.on(Matcher::path("/next"), Answer::json("{}").gate(&next));
        let mut connection = wires.connect().await;
        assert_eq!(connection.get("/late", &[]).await.unwrap().status(), 504);
        connection.send(b"GET /next HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        next.wait_for_waiting(1, BOUND).await.unwrap();
        late.open();
        wires.origin.wait_until(BOUND, |stats| stats.finished == 1).await.unwrap();
        // The hint is on its way; these go through the same threads after it.
        for _ in 0..20 {
            assert_eq!(wires.gateway.get("/other", &[]).await.status(), 200);
        }
        next.open();
        let answer = connection.read_response().await.unwrap();
        assert_eq!((answer.status(), answer.informational.len()), (200, 0), "{:?}", answer.informational);
    });
}

/// A client that does not read leaves no hints behind in memory, and gets its answer all the same.
#[test]
fn hints_for_a_client_that_does_not_read_take_little_memory() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "deadline = \"9s\""))
        })
        .await;
        let link = format!("Link: <{}>\r\n", "x".repeat(7_000));
        // So large that few of them are left out for coming together.
        let hint = format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", link.repeat(3));
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        let hints = hint.repeat((64 << 20) / hint.len());
        wires.gateway.get("/small", &[]).await;
        let before = peak_memory(&wires.gateway);
        wires.origin.on(Matcher::path("/hints"), Behaviour::raw(hints + answer, Then::KeepAlive));
        let mut connection = wires.connect().await;
        connection.send(b"GET /hints HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").await.unwrap();
        wires.gateway.metrics_until(|metrics| metrics.outcome("normal") == 2).await;
        let grown = peak_memory(&wires.gateway).saturating_sub(before);
        assert!(grown < 16 << 20, "{} MiB more", grown >> 20);
        let tail = connection.read_to_end().await;
        assert!(tail.bytes.ends_with(b"\r\n\r\n{}"), "{} bytes", tail.bytes.len());
    });
}
