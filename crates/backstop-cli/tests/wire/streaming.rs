//! Long answers: with back-pressure, in bounded memory, and cut visibly if they break.

use std::time::Duration;

use backstop_lab::client::Completeness;
use backstop_lab::origin::{Answer, Behaviour, CutAt, Framing, Matcher, Then};
use bytes::Bytes;

use crate::raw::{Wires, direct};
use crate::support::{BOUND, Gateway, Policy, expect, products, run};

const LARGE: usize = 200 << 20;

/// The most memory that the gateway's process has had so far, in bytes.
pub fn peak_memory(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).expect("the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches("kB").trim().parse::<usize>().expect("a number") * 1024
}

#[test]
fn a_large_download_to_a_slow_reader_takes_little_memory_and_blocks_the_origin() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "idle = \"5s\""))
        })
        .await;
        let body = Bytes::from(vec![b'x'; LARGE]);
        for framing in [Framing::ContentLength, Framing::Chunked { chunk: 60_000 }] {
            wires.origin.on(Matcher::path("/large"), Answer::new(200).body(body.clone()).framing(framing));
            wires.gateway.get("/small", &[]).await;
            let before = peak_memory(&wires.gateway);
            let mut connection = wires.connect().await;
            connection.send(b"GET /large HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
            let mut seen = connection.read_at_least(1 << 20).await.unwrap().len();
            // Whatever goes on while the client does not read, other clients are served.
            for _ in 0..50 {
                assert_eq!(wires.gateway.get("/small", &[]).await.status(), 200);
            }
            // The last small one may still be ending at the origin; the large one cannot.
            wires
                .origin
                .wait_until(BOUND, |stats| stats.in_flight == 1)
                .await
                .expect("it cannot send the rest");
            while seen < LARGE {
                seen += connection.read_at_least(1).await.unwrap().len();
            }
            wires.origin.wait_until(BOUND, |stats| stats.in_flight == 0).await.unwrap();
            let grown = peak_memory(&wires.gateway).saturating_sub(before);
            assert!(grown < 60 << 20, "{framing:?}: {} MiB more", grown >> 20);
        }
    });
}

/// The other way: an upload goes through as the origin takes it.
#[test]
fn a_large_upload_takes_little_memory() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "deadline = \"9s\"\nlimits = { body = \"64 MiB\" }"))
        })
        .await;
        wires.gateway.get("/small", &[]).await;
        let before = peak_memory(&wires.gateway);
        let body = vec![b'x'; 48 << 20];
        let answer = wires.gateway.request("POST", "/up", &[], &body).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(wires.origin.requests().last().unwrap().body_bytes, body.len() as u64);
        let grown = peak_memory(&wires.gateway).saturating_sub(before);
        assert!(grown < 30 << 20, "{} MiB more", grown >> 20);
    });
}

/// Server-sent events: the deadline ends with the head, and after it only a gap can be too long.
#[test]
fn a_stream_may_outlive_its_deadline_as_long_as_it_flows() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("events.direct", &direct("*", "deadline = \"200ms\"\nidle = \"300ms\""))
        })
        .await;
        let events =
            Answer::new(200).header("Content-Type", "text/event-stream").body("data: 1\n\n".repeat(20));
        let flowing = events.clone().chunked(9).drip(9, Duration::from_millis(40));
        wires.origin.on(Matcher::path("/flows"), flowing);
        wires.origin.on(Matcher::path("/stops"), events.chunked(9).cut(CutAt::Body(9), Then::Hang));
        let whole = wires.gateway.get("/flows", &[]).await;
        assert!(whole.is_complete() && whole.body.len() == 180, "{:?}", whole.completeness);
        assert!(whole.took > Duration::from_millis(400), "longer than the deadline: {:?}", whole.took);
        assert!(
            whole.head_after < Duration::from_millis(200),
            "the head does not wait: {:?}",
            whole.head_after
        );
        let cut = wires.gateway.get("/stops", &[]).await;
        assert_eq!((cut.status(), &cut.body[..]), (200, &b"data: 1\n\n"[..]));
        assert!(!cut.is_complete() && cut.took >= Duration::from_millis(290), "{:?}", cut.took);
        expect::idle(&wires.gateway).await;
    });
}

/// A read that is larger than its buffer streams: it has no alternative, becomes no copy, and is cut where it breaks.
#[test]
fn a_read_larger_than_its_buffer_streams_and_breaks_visibly() {
    run(async {
        let lines =
            Policy::description("buffer = \"16 KiB\"\nlanguages =\ncorrect =").replace("\"language\", ", "");
        let wires = Wires::with(|origin| {
            Policy::empty().dependency("catalog", origin, "").route("description.public_read", &lines)
        })
        .await;
        wires.origin.default(products("saved"));
        let saved = wires.gateway.get("/p/1", &[]).await;
        let large = Answer::new(200).header("Content-Type", "text/plain").body(vec![b'x'; 100_000]);
        wires.origin.on(Matcher::any(), large.clone());
        let whole = wires.gateway.get("/p/1", &[]).await;
        assert!(whole.is_complete() && whole.body.len() == 100_000);
        for framing in [Framing::ContentLength, Framing::Chunked { chunk: 1000 }] {
            for then in [Then::Close, Then::Reset] {
                let cut = large.clone().framing(framing).cut(CutAt::Body(50_000), then);
                wires.origin.on(Matcher::any(), cut);
                let answer = wires.gateway.get("/p/1", &[]).await;
                assert_eq!(answer.status(), 200);
                let cut = matches!(answer.completeness, Completeness::CutByFin | Completeness::CutByReset);
                assert!(cut, "{framing:?} {then:?}: {:?}", answer.completeness);
                assert!(answer.body.len() <= 50_000);
            }
        }
        // What was too large to be held became no copy; the earlier one still is.
        wires.origin.on(Matcher::any(), Behaviour::status(503));
        let copy = wires.gateway.get("/p/1", &[]).await;
        assert_eq!((copy.status(), copy.text()), (200, saved.text()));
        wires.gateway.metrics_until(|metrics| metrics.requests("failed", "incomplete") == 4).await;
    });
}
