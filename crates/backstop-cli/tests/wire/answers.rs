//! Answers whose end is not certain: 502, and their connection is never used again.

use backstop_lab::origin::{Behaviour, Matcher, Then};

use crate::raw::Wires;
use crate::support::{Policy, expect, product, products, run};

/// RFC 9112 sections 2.2, 5, 6.1, 6.3; RFC 9110 section 15.2.2 for an upgrade that nobody asked for.
fn broken() -> Vec<(&'static str, String)> {
    let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    vec![
        ("an unknown coding", with("Transfer-Encoding: gzip, chunked")),
        ("a coding that is not chunked", with("Transfer-Encoding: gzip")),
        ("chunked twice", with("Transfer-Encoding: chunked, chunked")),
        ("two coding lines", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")),
        ("both framings", with("Content-Length: 3\r\nTransfer-Encoding: chunked")),
        ("two lengths", with("Content-Length: 3\r\nContent-Length: 4")),
        ("a list of lengths", with("Content-Length: 3, 3")),
        ("a signed length", with("Content-Length: +3")),
        ("a negative length", with("Content-Length: -3")),
        ("a hexadecimal length", with("Content-Length: 0x3")),
        ("an empty length", with("Content-Length:")),
        ("a length beyond all numbers", with("Content-Length: 99999999999999999999")),
        ("a folded line", with("Content-Length: 3\r\nX: a\r\n b")),
        ("a NUL", with("Content-Length: 3\r\nX: a\0b")),
        ("a bare CR", with("Content-Length: 3\r\nX: a\rb")),
        ("a field without a colon", with("Content-Length: 3\r\nX")),
        ("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n".into()),
        ("a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n".into()),
        ("an unknown version", "HTTP/7.1 200 OK\r\nContent-Length: 0\r\n\r\n".into()),
        (
            "an upgrade unasked",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".into(),
        ),
        ("a huge head", with(&format!("Content-Length: 3\r\nX: {}", "a".repeat(64 * 1024)))),
        ("too many fields", with(&format!("Content-Length: 3\r\n{}X: a", "X: a\r\n".repeat(200)))),
        ("no HTTP at all", String::from_utf8_lossy(backstop_lab::origin::GARBAGE).into_owned()),
    ]
}

#[test]
fn an_answer_with_an_uncertain_end_is_502_and_its_connection_is_closed() {
    run(async {
        // One thread, so that there is one connection to the origin at a time.
        let wires = Wires::with(|origin| crate::raw::everything(origin).gateway("threads = 1")).await;
        for (number, (what, bytes)) in broken().into_iter().enumerate() {
            wires.origin.on(Matcher::path("/broken"), Behaviour::raw(bytes, Then::KeepAlive));
            let answer = wires.gateway.get("/broken", &[]).await;
            assert_eq!(answer.status(), 502, "{what}: {:?}", answer.head);
            let mark = "outcome=failed, reason=protocol";
            assert_eq!(answer.header("backstop"), Some(mark), "{what}");
            assert_eq!(answer.header("proxy-status"), Some("edge; error=http_protocol_error"), "{what}");
            assert_eq!(wires.gateway.get("/whole", &[]).await.status(), 200, "{what}");
            // What came before stays as it is; the broken connection is replaced by one new one each time.
            assert_eq!(wires.origin.connections_accepted(), number as u64 + 2, "{what}");
        }
        assert_eq!(wires.origin.count_of("GET", "/broken"), broken().len() as u64, "nothing is asked twice");
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.failures("protocol"), broken().len() as u64);
    });
}

/// RFC 9112 section 6.3: bytes after an answer are never another one.
#[test]
fn bytes_behind_an_answer_are_never_a_second_one() {
    run(async {
        let wires = Wires::open().await;
        let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst\
             HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond";
        wires.origin.on(Matcher::path("/twice"), Behaviour::raw(twice, Then::KeepAlive));
        wires.origin.on(Matcher::path("/next"), Behaviour::json("\"own\""));
        for _ in 0..20 {
            let mut connection = wires.connect().await;
            let first = connection.get("/twice", &[]).await.unwrap();
            assert_eq!(first.text(), "first");
            let next = connection.get("/next", &[]).await.unwrap();
            assert_eq!(next.text(), "\"own\"", "never what was left over");
        }
        assert_eq!(wires.origin.count(), 40);
    });
}

#[test]
fn half_a_head_is_502_and_never_an_answer() {
    run(async {
        let wires = Wires::open().await;
        for then in [Then::Close, Then::Reset] {
            wires.origin.on(Matcher::any(), Behaviour::raw("HTTP/1.1 200 OK\r\nContent-Le", then));
            let answer = wires.gateway.get("/p/1", &[]).await;
            assert_eq!(answer.status(), 502, "{then:?}");
        }
        assert_eq!(wires.origin.count(), 2);
    });
}

/// The same answers on a route with copies: the copy is served, and none of them becomes one.
#[test]
fn a_broken_answer_becomes_the_copy_where_there_is_one() {
    run(async {
        let wires = Wires::with(Policy::shop).await;
        wires.origin.default(products("saved"));
        let spanish = [("Accept-Language", "es")];
        let saved = product("1", "saved", "es");
        expect::live(&wires.gateway.get("/p/1", &spanish).await, 200, &saved);
        for (what, bytes) in broken() {
            wires.origin.on(Matcher::any(), Behaviour::raw(bytes, Then::KeepAlive));
            let answer = wires.gateway.get("/p/1", &spanish).await;
            assert_eq!((answer.status(), answer.text()), (200, saved.clone()), "{what}");
            let mark = answer.mark().unwrap().expect("marked");
            assert_eq!(
                (mark.outcome.as_str(), mark.source.as_deref()),
                ("fallback", Some("snapshot")),
                "{what}"
            );
        }
    });
}
