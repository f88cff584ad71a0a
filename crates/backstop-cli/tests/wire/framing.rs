//! A request whose end two parsers could see differently goes no further.
//!
//! RFC 9112 sections 6.1 and 6.3: a transfer coding that is not exactly `chunked`, once, and a length that is not one
//! decimal number are answered here, the connection closes, and the origin gets no byte.

use crate::raw::{Said, Wires};
use crate::support::{Metrics, run};

/// A `POST` with these framing fields and a body that either reading could take for its own.
fn post(version: &str, framing: &str) -> String {
    format!("POST /p/1 HTTP/{version}\r\nHost: shop\r\n{framing}\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
}

fn refusals(metrics: &Metrics) -> u64 {
    let counted = ["backstop_malformed_total", "backstop_requests_refused_early_total"];
    counted.iter().map(|name| metrics.sum(name, &[])).sum::<f64>() as u64
}

#[test]
fn a_request_with_an_uncertain_end_is_refused_and_never_reaches_the_origin() {
    let cases = [
        ("1.1", "Transfer-Encoding: gzip, chunked", 501),
        ("1.1", "Transfer-Encoding: chunked, chunked", 501),
        ("1.1", "Transfer-Encoding: chunked, gzip", 400),
        ("1.1", "Transfer-Encoding: gzip", 400),
        ("1.1", "Transfer-Encoding: xchunked", 400),
        ("1.1", "Transfer-Encoding: \"chunked\"", 400),
        ("1.1", "Transfer-Encoding: chunked;q=1", 400),
        ("1.1", "Transfer-Encoding:", 400),
        ("1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("1.1", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 400),
        ("1.0", "Transfer-Encoding: chunked", 400),
        ("1.1", "Content-Length: 3\r\nContent-Length: 4", 400),
        ("1.1", "Content-Length: 3, 4", 400),
        ("1.1", "Content-Length: 3, 3", 400),
        ("1.1", "Content-Length: +3", 400),
        ("1.1", "Content-Length: -3", 400),
        ("1.1", "Content-Length: 0x3", 400),
        ("1.1", "Content-Length: 3a", 400),
        ("1.1", "Content-Length: 3 3", 400),
        ("1.1", "Content-Length:", 400),
        ("1.1", "Content-Length: 3.0", 400),
        ("1.1", "Content-Length: 18446744073709551616", 400),
        ("1.1", "Content-Length : 3", 400),
    ];
    run(async {
        let wires = Wires::open().await;
        for (version, framing, status) in cases {
            wires.say(post(version, framing)).await.refused_with(status, framing);
        }
        assert_eq!(wires.origin.stats().connections_accepted, 0, "{:?}", wires.origin.requests());
        let counted = wires.gateway.metrics_until(|metrics| refusals(metrics) >= cases.len() as u64).await;
        assert_eq!(refusals(&counted), cases.len() as u64);
        assert_eq!(counted.in_flight(), 0);
    });
}

/// RFC 9112 section 6.3: several equal lengths may be taken for one.
#[test]
fn equal_lengths_become_one_or_are_refused() {
    run(async {
        let wires = Wires::open().await;
        let request = "POST /p/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc";
        let said = wires.say(request).await;
        if said.statuses() == [400] {
            assert_eq!(wires.origin.count(), 0);
        } else {
            assert_eq!(said.statuses(), [200]);
            let [request] = &wires.origin.requests()[..] else { panic!("one request") };
            assert_eq!(request.fields.count("content-length"), 1);
            assert_eq!((&request.body[..], request.ambiguous), (&b"abc"[..], false));
        }
    });
}

/// RFC 9112 section 6.1: `Transfer-Encoding` wins, `Content-Length` goes no further, and the connection closes after.
#[test]
fn both_framings_become_the_one_safe_reading() {
    run(async {
        let wires = Wires::open().await;
        for fields in [
            "Content-Length: 7\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 7",
        ] {
            wires.origin.forget();
            let said: Said = wires
                .say(format!(
                    "POST /p/1 HTTP/1.1\r\nHost: shop\r\n{fields}\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /second HTTP/1.1\r\nHost: shop\r\n\r\n"
                ))
                .await;
            said.closed(fields);
            assert!(said.answers.len() <= 1, "{said:?}");
            let requests = wires.origin.requests();
            assert_eq!(wires.origin.count_of("GET", "/second"), 0);
            if let [request] = &requests[..] {
                assert_eq!(said.statuses(), [200]);
                assert!(!request.ambiguous, "one framing only: {:?}", request.head);
                assert_eq!((&request.body[..], request.complete), (&b"abc"[..], true));
            } else {
                assert_eq!((said.statuses(), requests.len()), (vec![400], 0));
            }
        }
    });
}
