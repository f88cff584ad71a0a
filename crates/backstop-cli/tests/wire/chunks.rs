//! Chunked requests (RFC 9112 section 7.1), whose faults may lie behind a head that was already passed on.

use crate::raw::Wires;
use crate::support::{BOUND, expect, run};

const HEAD: &str = "POST /p/1 HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n";
const SECOND: &str = "GET /second HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";

/// The origin may have seen the beginning of such a request, but never its end, and never what follows it.
#[test]
fn a_broken_chunk_ends_the_connection_and_never_completes_the_request() {
    let cases = [
        ("a plus sign", "+3\r\nabc\r\n0\r\n\r\n"),
        ("a minus sign", "-3\r\nabc\r\n0\r\n\r\n"),
        ("a hexadecimal prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
        ("no size", "\r\nabc\r\n0\r\n\r\n"),
        ("no digit", "z\r\nabc\r\n0\r\n\r\n"),
        ("an overflow", "10000000000000003\r\nabc\r\n0\r\n\r\n"),
        ("a blank inside", "1 0\r\nabc\r\n0\r\n\r\n"),
        ("a bare LF after the size", "3\nabc\r\n0\r\n\r\n"),
        ("a bare LF after the data", "3\r\nabc\n0\r\n\r\n"),
        ("a bare CR after the size", "3\rabc\r\n0\r\n\r\n"),
        ("a bare LF in an extension", "3;a=\nb\r\nabc\r\n0\r\n\r\n"),
        ("no line end after the data", "3\r\nabc0\r\n\r\n"),
        ("data longer than its size", "3\r\nabcd\r\n0\r\n\r\n"),
        ("a bare LF at the end", "3\r\nabc\r\n0\r\n\n"),
        ("a bare LF after the last size", "3\r\nabc\r\n0\n\r\n"),
        ("no colon in a trailer", "3\r\nabc\r\n0\r\nbroken\r\n\r\n"),
        ("a folded trailer", "3\r\nabc\r\n0\r\nA: 1\r\n folded\r\n\r\n"),
    ];
    run(async {
        let wires = Wires::open().await;
        for (what, chunks) in cases {
            let said = wires.say(format!("{HEAD}{chunks}{SECOND}")).await;
            said.closed(what);
            assert!(said.statuses().iter().all(|status| (400..500).contains(status)), "{what}: {said:?}");
            assert!(said.answers.len() <= 1, "{what}: {said:?}");
            let gone = wires.origin.wait_until(BOUND, |stats| stats.in_flight == 0).await;
            gone.unwrap_or_else(|error| panic!("{what}: {error}"));
            let complete = wires.origin.count_where(|request| request.complete);
            assert_eq!(complete, 0, "{what}: {:?}", wires.origin.requests());
            assert_eq!(wires.origin.count_of("GET", "/second"), 0, "{what}");
            wires.origin.forget();
        }
        expect::idle(&wires.gateway).await;
        let metrics = wires.gateway.metrics().await;
        assert_eq!(
            metrics.dependency_failures(),
            0,
            "what a client does wrong is not the dependency's failure"
        );
    });
}

/// Extensions are to be ignored (RFC 9112 section 7.1.1), and leading zeros change no number.
#[test]
fn what_the_chunked_coding_allows_is_read_and_framed_anew() {
    let cases = [
        ("an extension", "3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n"),
        ("leading zeros", "0000003\r\nabc\r\n000\r\n\r\n"),
        ("seventeen digits", "00000000000000003\r\nabc\r\n0\r\n\r\n"),
        ("two chunks", "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
        ("capital digits", "A\r\n0123456789\r\n0\r\n\r\n"),
    ];
    run(async {
        let wires = Wires::open().await;
        for (what, chunks) in cases {
            let said = wires.say(format!("{HEAD}{chunks}{SECOND}")).await;
            assert_eq!(said.statuses(), [200, 200], "{what}: {said:?}");
            let [post, second] = &wires.origin.requests()[..] else { panic!("{what}: two requests") };
            let body: &[u8] = if what == "capital digits" { b"0123456789" } else { b"abc" };
            assert_eq!((&post.body[..], post.complete, post.ambiguous), (body, true, false), "{what}");
            assert_eq!(second.target, "/second");
            assert!(!wires.received().contains(&b';'), "an extension belongs to one connection");
            wires.origin.forget();
        }
    });
}

/// Extensions without end are an attack (RFC 9112 section 7.1.1).
#[test]
fn endless_extensions_are_cut_off() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say(format!("{HEAD}3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(64 * 1024))).await;
        said.closed("64 KiB of extension");
        assert!(said.statuses().iter().all(|status| *status >= 400), "{said:?}");
        assert_eq!(wires.origin.count_where(|request| request.complete), 0);
    });
}

/// RFC 9110 section 9.3.1: content of a GET has no meaning of its own, but an origin may have given it one.
#[test]
fn content_of_a_read_reaches_the_origin() {
    run(async {
        let wires = Wires::open().await;
        for method in ["GET", "HEAD", "OPTIONS"] {
            wires.origin.forget();
            let said = wires
                .say(format!(
                    "{method} /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ncontent\r\n0\r\n\r\n"
                ))
                .await;
            said.closed(method);
            let answer = said.answers.first().map(|answer| answer.status());
            assert_eq!((answer, said.answers.len()), (Some(200), 1), "{method}: {said:?}");
            let [request] = &wires.origin.requests()[..] else { panic!("one request: {said:?}") };
            assert_eq!(
                (request.text().as_str(), request.complete, request.ambiguous),
                ("content", true, false)
            );
            assert_eq!(request.header("transfer-encoding"), Some("chunked"));
        }
    });
}
