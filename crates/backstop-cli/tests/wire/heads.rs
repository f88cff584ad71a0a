//! Requests whose head is no head, or says what nobody can be sure of.

use std::time::Duration;

use crate::raw::{Wires, everything, read_out};
use crate::support::{Gateway, Metrics, run};

/// The gateway's own word for the fault, or `None` where the parser already refuses.
type Fault = Option<&'static str>;

/// RFC 9110 sections 5.5, 7.2, 7.6, 10.1.1; RFC 9112 sections 2.2, 3.2, 5.1, 5.2; RFC 6585 section 5.
const CASES: [(&str, &str, u16, Fault); 27] = [
    ("no Host", "GET / HTTP/1.1\r\n\r\n", 400, Some("host")),
    ("two Hosts", "GET / HTTP/1.1\r\nHost: shop\r\nHost: shop\r\n\r\n", 400, Some("host")),
    ("a Host with a path", "GET / HTTP/1.1\r\nHost: shop/a\r\n\r\n", 400, Some("host")),
    ("a Host with a user", "GET / HTTP/1.1\r\nHost: me@shop\r\n\r\n", 400, Some("host")),
    ("a Host with a blank", "GET / HTTP/1.1\r\nHost: shop other\r\n\r\n", 400, Some("host")),
    ("an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, Some("host")),
    ("a list of Hosts", "GET / HTTP/1.1\r\nHost: shop, other\r\n\r\n", 400, Some("host")),
    ("a Host with a bad port", "GET / HTTP/1.1\r\nHost: shop:x\r\n\r\n", 400, Some("host")),
    (
        "a nominated Host",
        "GET / HTTP/1.1\r\nHost: shop\r\nConnection: host\r\n\r\n",
        400,
        Some("nominated_field"),
    ),
    (
        "a nominated Authorization",
        "GET / HTTP/1.1\r\nHost: shop\r\nAuthorization: Basic x\r\nConnection: close, Authorization\r\n\r\n",
        400,
        Some("nominated_field"),
    ),
    (
        "two credentials",
        "GET / HTTP/1.1\r\nHost: shop\r\nAuthorization: Basic x\r\nAuthorization: Basic y\r\n\r\n",
        400,
        Some("credential"),
    ),
    ("a bare CR in a value", "GET / HTTP/1.1\r\nHost: shop\r\nX: a\rb\r\n\r\n", 400, None),
    ("a NUL in a value", "GET / HTTP/1.1\r\nHost: shop\r\nX: a\0b\r\n\r\n", 400, None),
    ("a NUL in the target", "GET /\0 HTTP/1.1\r\nHost: shop\r\n\r\n", 400, None),
    ("a folded line", "GET / HTTP/1.1\r\nHost: shop\r\nX: a\r\n b\r\n\r\n", 400, None),
    ("a blank before a colon", "GET / HTTP/1.1\r\nHost: shop\r\nX : a\r\n\r\n", 400, None),
    ("a blank before the first field", "GET / HTTP/1.1\r\n Host: shop\r\n\r\n", 400, None),
    ("no colon", "GET / HTTP/1.1\r\nHost: shop\r\nX\r\n\r\n", 400, None),
    ("no name", "GET / HTTP/1.1\r\nHost: shop\r\n: a\r\n\r\n", 400, None),
    ("no version", "GET /\r\nHost: shop\r\n\r\n", 400, None),
    ("an unknown version", "GET / HTTP/3.7\r\nHost: shop\r\n\r\n", 400, None),
    ("no request", "\u{16}\u{3}\u{1}not http\r\n\r\n", 400, None),
    ("TRACE", "TRACE / HTTP/1.1\r\nHost: shop\r\n\r\n", 405, Some("method")),
    ("CONNECT", "CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\n", 405, Some("method")),
    (
        "an unknown expectation",
        "GET / HTTP/1.1\r\nHost: shop\r\nExpect: tea\r\n\r\n",
        417,
        Some("expectation"),
    ),
    ("a dot segment", "GET /a/../b HTTP/1.1\r\nHost: shop\r\n\r\n", 400, Some("path")),
    ("a coded dot segment", "GET /a/%2E%2e/b HTTP/1.1\r\nHost: shop\r\n\r\n", 400, Some("path")),
];

#[test]
fn a_head_with_any_doubt_is_refused_and_the_connection_closes() {
    run(async {
        let wires = Wires::open().await;
        for (what, bytes, status, fault) in CASES {
            let before = wires.gateway.metrics().await;
            let said = wires.say(bytes).await;
            said.refused_with(status, what);
            let (name, label) = match fault {
                Some(fault) => ("backstop_requests_refused_early_total", format!("fault=\"{fault}\"")),
                None => ("backstop_malformed_total", String::new()),
            };
            let count = |metrics: &Metrics| metrics.sum(name, &[&label]);
            let after = wires.gateway.metrics_or_last(|now| count(now) > count(&before)).await;
            assert_eq!(count(&after), count(&before) + 1.0, "{what} is counted once");
            if fault.is_some() {
                let answer = &said.answers[0];
                assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
                assert_eq!(answer.json().unwrap()["status"], status, "{what}");
                assert_eq!(answer.header("cache-control"), Some("no-store"), "{what}");
            }
        }
        assert_eq!(wires.origin.stats().connections_accepted, 0, "{:?}", wires.origin.requests());
    });
}

/// RFC 6585 section 5, and the size that the policy sets.
#[test]
fn a_head_that_is_too_large_is_refused_by_size_and_by_count() {
    run(async {
        let wires = Wires::open().await;
        let long = format!("GET / HTTP/1.1\r\nHost: shop\r\nX: {}\r\n\r\n", "a".repeat(40 * 1024));
        wires.say(long).await.refused_with(431, "more than 32 KiB");
        let many = format!("GET / HTTP/1.1\r\nHost: shop\r\n{}\r\n", "X: a\r\n".repeat(200));
        wires.say(many).await.refused_with(431, "200 fields");
        let target = format!("GET /{} HTTP/1.1\r\nHost: shop\r\n\r\n", "a".repeat(70 * 1024));
        let said = wires.say(target).await;
        assert!(matches!(said.statuses()[..], [414 | 431]), "{said:?}");
        said.closed("a target of 70 KiB");
        assert_eq!(wires.origin.stats().connections_accepted, 0);
        // By the parser, or by the gateway where the parser had the whole of it at once.
        let refused = |metrics: &Metrics| {
            metrics.sum("backstop_malformed_total", &[])
                + metrics.sum("backstop_requests_refused_early_total", &["fault=\"head_too_large\""])
        };
        wires.gateway.metrics_until(|metrics| refused(metrics) == 3.0).await;
    });
}

/// To the byte, however it comes.
#[test]
fn a_head_may_be_as_large_as_the_policy_says_and_not_a_byte_larger() {
    run(async {
        for (kib, limit) in [(8_usize, "8 KiB"), (9, "9 KiB"), (32, "32 KiB")] {
            let wires = Wires::with(|origin| {
                everything(origin).gateway(&format!("limits = {{ head = \"{limit}\" }}"))
            })
            .await;
            let frame = "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX: \r\n\r\n".len();
            for (more, status) in [(0, 200), (1, 431), (kib * 512, 431)] {
                let value = "a".repeat(kib * 1024 - frame + more);
                let head = format!("GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX: {value}\r\n\r\n");
                let (begin, end) = head.split_at(kib * 1024 - 100);
                for pieces in [&[head.as_bytes()][..], &[begin.as_bytes(), end.as_bytes()]] {
                    let mut connection = wires.connect().await;
                    connection.send_pieces(pieces, Duration::from_millis(20)).await.unwrap();
                    let said = read_out(&mut connection).await;
                    assert_eq!(said.statuses(), [status], "{limit} and {more} in {} pieces", pieces.len());
                    said.closed(limit);
                }
            }
            assert_eq!(wires.origin.count(), 2, "{limit}");
        }
    });
}

/// A bare LF as the end of a line may be taken for one (RFC 9112 section 2.2); then the origin gets CR LF.
#[test]
fn a_bare_line_feed_in_the_head_is_read_one_way_only() {
    run(async {
        let wires = Wires::open().await;
        let said = wires.say("GET /p/1 HTTP/1.1\nHost: shop\nConnection: close\n\n").await;
        said.closed("bare LF");
        if said.statuses() == [200] {
            let received = wires.received();
            let bare = received.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r');
            assert!(!bare, "{}", String::from_utf8_lossy(&received));
        } else {
            assert_eq!((said.statuses(), wires.origin.count()), (vec![400], 0));
        }
    });
}

/// RFC 9110 section 7.6.3: what has passed here before would go round for ever.
#[test]
fn a_request_that_passed_here_before_is_a_loop() {
    run(async {
        let wires = Wires::open().await;
        for via in ["1.1 edge", "1.0 other, 1.1 EDGE (shop)", "HTTP/1.1 edge"] {
            let refused = wires.gateway.get("/p/1", &[("Via", via)]).await;
            assert_eq!(refused.status(), 502, "{via}");
            assert_eq!(refused.header("proxy-status"), Some("edge; error=proxy_loop_detected"), "{via}");
        }
        assert_eq!(wires.origin.count(), 0);
        assert_eq!(wires.gateway.get("/p/1", &[("Via", "1.1 edge2, 1.1 ledge")]).await.status(), 200);
        let request = &wires.origin.requests()[0];
        assert_eq!(
            request.fields.all("via").collect::<Vec<_>>().join(", "),
            "1.1 edge2, 1.1 ledge, 1.1 edge"
        );
    });
}

/// Two gateways that were given no name are still two; each of them knows what passed it before.
#[test]
fn gateways_without_a_name_are_not_taken_for_each_other() {
    run(async {
        let unnamed = |origin| everything(origin).without("name");
        let inner = Wires::with(unnamed).await;
        let outer = Gateway::start(&unnamed(inner.gateway.addr));
        assert_eq!(outer.get("/p/1", &[]).await.status(), 200);
        let vias: Vec<_> = inner.origin.requests()[0].fields.all("via").map(str::to_owned).collect();
        let names: Vec<_> = vias.iter().flat_map(|via| via.split(", ")).collect();
        let [first, second] = names[..] else { panic!("{vias:?}") };
        assert_ne!(first, second);
        for name in [first, second] {
            let drawn = name.strip_prefix("1.1 backstop-").expect("a pseudonym");
            assert!(drawn.len() == 8 && drawn.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        }
        // Each is called the same for as long as it runs, whatever stands around it.
        for (gateway, own) in [(&outer, first), (&inner.gateway, second)] {
            let refused = gateway.get("/p/1", &[("Via", &format!("1.0 other, {own} (shop)"))]).await;
            assert_eq!(refused.status(), 502, "{own}");
            assert_eq!(refused.header("proxy-status"), Some("backstop; error=proxy_loop_detected"));
        }
        assert_eq!(inner.origin.count(), 1);
    });
}
