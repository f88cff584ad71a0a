//! At the end of the deadline nothing is begun any more.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};

use crate::raw::{Wires, direct};
use crate::saturation::hold;
use crate::support::{BOUND, Policy, expect, run};

/// The place comes after 200 of 300 ms. The connect that then begins would have 250 ms of its own; the deadline ends it, nothing
/// was sent, and nothing else is begun.
#[test]
fn nothing_starts_once_the_time_is_over() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("threads = 1")
                .dependency("catalog", origin, "connections = 1\nqueue = \"250ms\"\nconnect = \"250ms\"")
                .route("short.direct", &direct("GET /short", "deadline = \"300ms\""))
                .route("rest.direct", &direct("*", ""))
        })
        .await;
        let mut hand = wires.gateway.hand();
        hand.freeze();
        let gate = Gate::new();
        wires.origin.on(Matcher::path("/held"), Answer::json("{}").header("Connection", "close").gate(&gate));
        let mut held = wires.connect().await;
        held.send(b"GET /held HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        let mut short = wires.connect().await;
        short.send(b"GET /short HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        let waits = ["scope=\"route\"", "name=\"short\""];
        wires.gateway.metrics_until(|metrics| metrics.sum("backstop_in_flight", &waits) == 1.0).await;
        hand.advance(Duration::from_millis(200));
        wires.origin.fill_backlog().await.unwrap();
        let accepted = wires.origin.connections_accepted();
        gate.open();
        assert_eq!(held.read_response().await.unwrap().status(), 200);
        let begun = ["result=\"begun\""];
        wires
            .gateway
            .metrics_until(|metrics| metrics.sum("backstop_dependency_calls_total", &begun) == 2.0)
            .await;
        // These go through the same thread, after what the place that came free has woken.
        for _ in 0..5 {
            assert_eq!(wires.gateway.get("/a/../b", &[]).await.status(), 400);
        }
        hand.advance(Duration::from_millis(100));
        let ended = short.read_response().await.unwrap();
        assert_eq!(
            (ended.status(), ended.header("backstop")),
            (504, Some("outcome=failed, reason=connect_timeout"))
        );
        expect::idle(&wires.gateway).await;
        assert_eq!(wires.origin.count_of("GET", "/short"), 0);
        assert_eq!(wires.origin.connections_accepted(), accepted);
    });
}

/// A place that comes when the wait for it is over is not used, and no other connection is begun.
#[test]
fn a_place_that_comes_after_the_wait_is_not_used() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connections = 1\nqueue = \"250ms\"")
                .route("short.direct", &direct("GET /short", "deadline = \"300ms\""))
                .route("rest.direct", &direct("*", ""))
        })
        .await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let refused = wires.gateway.get("/short", &[]).await;
        expect::refused(&refused, 503, "outcome=rejected, reason=pool_timeout");
        gate.open();
        assert_eq!(held[0].read_response().await.unwrap().status(), 200);
        // The place is free now; the request that has its answer must not take it.
        expect::idle(&wires.gateway).await;
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        assert_eq!(wires.origin.count_of("GET", "/short"), 0);
        assert_eq!(wires.origin.connections_accepted(), 1);
    });
}

/// 504 where the dependency was asked and did not answer, 503 where it was never asked.
#[test]
fn the_status_tells_whether_the_dependency_was_asked() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connect = \"190ms\"")
                .route("all.direct", &direct("*", "deadline = \"200ms\""))
        })
        .await;
        wires.origin.on(Matcher::any(), Behaviour::hang());
        let hung = wires.gateway.get("/p/1", &[]).await;
        assert_eq!(
            (hung.status(), hung.header("backstop")),
            (504, Some("outcome=failed, reason=read_timeout"))
        );
        assert_eq!(hung.header("proxy-status"), Some("edge; error=http_response_timeout"));
        assert_eq!(wires.origin.count(), 1, "not asked twice");

        wires.origin.fill_backlog().await.unwrap();
        let accepted = wires.origin.connections_accepted();
        let slow = wires.gateway.get("/p/1", &[]).await;
        assert_eq!(
            (slow.status(), slow.header("backstop")),
            (504, Some("outcome=failed, reason=connect_timeout"))
        );
        assert_eq!(slow.header("proxy-status"), Some("edge; error=connection_timeout"));
        assert_eq!((wires.origin.count(), wires.origin.connections_accepted()), (1, accepted));
    });
}

/// An answer that began in time and then drips is cut where the time is over: never a short whole answer.
#[test]
fn a_dripping_answer_is_cut_visibly() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "deadline = \"300ms\""))
        })
        .await;
        wires.origin.on(Matcher::any(), Behaviour::drip_forever(Duration::from_millis(20)));
        let cut = wires.gateway.get("/p/1", &[]).await;
        assert_eq!(cut.status(), 200, "its head came in time");
        assert!(!cut.is_complete() && !cut.body.is_empty(), "{:?}", cut.completeness);
        wires.gateway.metrics_until(|metrics| metrics.requests("failed", "read_timeout") == 1).await;
        wires.origin.on(Matcher::any(), Answer::json("{}").slow_head(Duration::from_millis(20)));
        let late = wires.gateway.get("/p/1", &[]).await;
        assert_eq!(late.status(), 504, "its head did not");
        expect::idle(&wires.gateway).await;
    });
}
