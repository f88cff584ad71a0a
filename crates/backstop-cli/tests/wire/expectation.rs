//! `Expect: 100-continue` (RFC 9110 section 10.1.1): the client is told to go on, or gets its final answer.

use backstop_lab::origin::{Answer, Behaviour, ExpectContinue, Gate, Matcher};

use crate::raw::{Wires, direct, read_out};
use crate::support::{BOUND, Policy, run};

const HEAD: &str = "POST /p/1 HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 7\r\nConnection: close\r\n\r\n";

/// Whether the origin itself says 100 or not.
#[test]
fn a_client_that_waits_is_told_to_go_on() {
    run(async {
        let wires = Wires::open().await;
        wires.origin.default(Behaviour::from_fn(|request| Answer::new(200).body(request.body.clone())));
        for rule in [ExpectContinue::AtOnce, ExpectContinue::Never] {
            wires.origin.expect_continue(rule);
            let mut connection = wires.connect().await;
            connection.send(HEAD.as_bytes()).await.unwrap();
            let interim = connection.read_at_least(25).await.unwrap();
            assert_eq!(&interim[..], b"HTTP/1.1 100 Continue\r\n\r\n", "{rule:?}");
            connection.send(b"content").await.unwrap();
            let said = read_out(&mut connection).await;
            assert_eq!(said.statuses(), [200], "{rule:?}");
            assert_eq!(
                (said.answers[0].text().as_str(), said.answers[0].informational.len()),
                ("content", 0)
            );
        }
        assert_eq!(wires.origin.count_where(|request| request.text() == "content"), 2);
    });
}

#[test]
fn a_client_that_does_not_wait_is_served_as_well() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say(format!("{HEAD}content")).await;
        assert_eq!(said.statuses(), [200]);
        assert!(said.answers[0].informational.iter().all(|head| head.status == 100));
        assert_eq!(wires.origin.requests()[0].text(), "content");
    });
}

/// A request that is refused is refused without its body, and the connection cannot be used for another one.
#[test]
fn a_refused_request_gets_its_answer_without_sending_its_body() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("one.direct", &direct("*", "in_flight = 1\nlimits = { body = \"100 B\" }"))
        })
        .await;
        let gate = Gate::new();
        wires.origin.on(Matcher::path("/held"), Answer::new(200).gate(&gate));
        let mut held = wires.connect().await;
        held.send(b"GET /held HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();

        let said = wires.say(HEAD).await;
        said.refused_with(503, "no place");
        assert_eq!(said.answers[0].informational.len(), 0, "no 100 before a refusal");
        assert!(said.answers[0].head.fields.lists("connection", "close"));
        let too_large = HEAD.replace("Content-Length: 7", "Content-Length: 101");
        let said = wires.say(too_large).await;
        said.refused_with(413, "too large");
        assert_eq!(said.answers[0].informational.len(), 0);
        assert_eq!(wires.origin.count_of("POST", "/p/1"), 0);
        gate.open();
        assert_eq!(held.read_response().await.unwrap().status(), 200);
    });
}

/// RFC 9110 section 10.1.1: who answers before the content was read says whether the connection goes on. It ends, whoever
/// gave the answer, and only then.
#[test]
fn a_connection_ends_with_content_that_was_not_read_and_with_no_other() {
    let post = |path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n")
    };
    run(async {
        let wires = Wires::open().await;
        wires.origin.expect_continue(ExpectContinue::Never);
        wires.origin.on(Matcher::path("/unread"), Behaviour::status(401).before_body());
        wires.origin.on(Matcher::path("/error"), Behaviour::status(500));
        wires.origin.on(Matcher::path("/full"), Behaviour::status(503));

        // The origin's own answer, and a good one as far as Backstop is concerned: the content has not even been sent.
        let said = wires.say(post("/unread")).await;
        said.refused_with(401, "content that nobody reads");
        assert!(said.answers[0].head.fields.lists("connection", "close"), "{:?}", said.answers[0].head);

        // Failures of the origin after it has read everything: nothing is left on the wire.
        let mut connection = wires.connect().await;
        for path in ["/error", "/full", "/error"] {
            connection.send(format!("{}content", post(path)).as_bytes()).await.unwrap();
            let answer = connection.read_response().await.unwrap();
            assert!(answer.status() >= 500, "{path}");
            assert!(!answer.head.fields.lists("connection", "close"), "{path}: {:?}", answer.head);
        }
        assert_eq!(wires.origin.count_where(|request| request.text() == "content"), 3);
    });
}

/// RFC 9110 section 10.1.1, of answers that need no route: with content that is not read the connection ends, and says so;
/// without content it goes on.
#[test]
fn an_answer_of_the_gateways_own_says_whether_the_connection_goes_on() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("one.direct", &direct("OPTIONS /p/{id}", ""))
        })
        .await;
        let cases = [
            ("POST /p/1", "", 404),
            ("OPTIONS /p/1", "Via: 1.1 edge\r\n", 502),
            ("OPTIONS /p/1", "Max-Forwards: 0\r\n", 200),
        ];
        for (line, more, status) in cases {
            let head = format!("{line} HTTP/1.1\r\nHost: shop\r\n{more}");
            for content in ["Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"] {
                let said = wires.say(format!("{head}Expect: 100-continue\r\n{content}\r\n")).await;
                said.refused_with(status, line);
                assert_eq!(said.answers[0].informational.len(), 0, "nobody asks for the content");
                assert!(said.answers[0].head.fields.lists("connection", "close"), "{line}: {said:?}");
            }
            let mut connection = wires.connect().await;
            for _ in 0..2 {
                connection.send(format!("{head}\r\n").as_bytes()).await.unwrap();
                let answer = connection.read_response().await.unwrap();
                assert_eq!(answer.status(), status, "{line}");
                assert!(!answer.head.fields.lists("connection", "close"), "{line}: {:?}", answer.head);
            }
        }
        assert_eq!(wires.origin.count(), 0);
    });
}
