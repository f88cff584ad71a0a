//! Answers that are held back until they are complete share a bounded memory.

use backstop_lab::origin::{Answer, CutAt, Framing, Matcher, Then};

use crate::raw::Wires;
use crate::support::{Metrics, Policy, expect, run};

fn held(metrics: &Metrics) -> f64 {
    metrics.sum("backstop_buffer_bytes", &[])
}

#[test]
fn without_room_an_answer_streams_instead_of_being_held() {
    run(async {
        let lines = Policy::description("buffer = \"100 KiB\"\ndeadline = \"1s\"\nlanguages =\ncorrect =")
            .replace("\"language\", ", "");
        let wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("buffer_memory = \"128 KiB\"")
                .dependency("catalog", origin, "")
                .route("description.public_read", &lines)
        })
        .await;
        let answer = Answer::new(200).header("Content-Type", "text/plain").body(vec![b'x'; 90_000]);
        let stuck = answer.clone().framing(Framing::ContentLength).cut(CutAt::Body(80_000), Then::Hang);
        wires.origin.on(Matcher::path("/p/1"), stuck);
        wires.origin.on(Matcher::path("/p/2"), answer);

        // 80 000 bytes are held for one that does not go on.
        let mut first = wires.connect().await;
        first.send(b"GET /p/1 HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        wires.gateway.metrics_until(|metrics| held(metrics) == 80_000.0).await;
        // Another 90 000 have no room beside them.
        let second = wires.gateway.get("/p/2", &[]).await;
        assert!(second.is_complete() && second.body.len() == 90_000, "{:?}", second.completeness);
        let metrics = wires.gateway.metrics_until(|metrics| held(metrics) <= 80_000.0).await;
        assert_eq!(metrics.sum("backstop_buffer_full_total", &[]), 1.0);
        assert_eq!(metrics.sum("backstop_buffer_limit_bytes", &[]), 131_072.0);
        assert_eq!(metrics.sum("backstop_store_entries", &[]), 0.0, "what was not held became no copy");

        // The first one's time is over; its memory is free again.
        assert_eq!(first.read_response().await.unwrap().status(), 503);
        wires.gateway.metrics_until(|metrics| held(metrics) == 0.0).await;
        let again = wires.gateway.get("/p/2", &[]).await;
        assert!(again.is_complete());
        let metrics = wires.gateway.metrics_until(|metrics| held(metrics) == 0.0).await;
        assert_eq!(metrics.sum("backstop_store_entries", &[]), 1.0, "with room it was held, and kept");
        expect::idle(&wires.gateway).await;
    });
}

/// Complete does not mean sent: as long as the client does not take it, the answer keeps its places and its memory.
#[test]
fn a_held_answer_keeps_its_places_until_it_is_taken() {
    const LENGTH: usize = 48 << 20;
    run(async {
        let lines = Policy::description("buffer = \"64 MiB\"\ndeadline = \"5s\"\nlanguages =\ncorrect =")
            .replace("\"language\", ", "");
        let wires = Wires::with(|origin| {
            Policy::empty()
                .store("snapshots = { memory = \"128 MiB\", disk = \"0 B\" }")
                .dependency("catalog", origin, "")
                .route("description.public_read", &lines)
        })
        .await;
        let answer = Answer::new(200).header("Content-Type", "text/plain").body(vec![b'x'; LENGTH]);
        wires.origin.on(Matcher::any(), answer);
        let mut connection = wires.connect().await;
        connection.send(b"GET /p/1 HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        let mut seen = connection.read_at_least(1).await.unwrap().len();
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_in_flight", &["scope=\"route\""]), 1.0);
        assert_eq!(metrics.sum("backstop_in_flight", &["scope=\"dependency\""]), 0.0, "that is over");
        assert_eq!((held(&metrics) as usize, metrics.outcome("normal")), (LENGTH, 0));
        while seen < LENGTH {
            seen += connection.read_at_least(1).await.unwrap().len();
        }
        let metrics = wires.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        assert_eq!((held(&metrics), metrics.outcome("normal")), (0.0, 1));
    });
}
