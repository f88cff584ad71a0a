//! At the end of the deadline nothing is begun any more.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};

use crate::raw::{Wires, direct};
use crate::saturation::hold;
use crate::support::{Policy, expect, run};

/// A connection that comes too late is not used, and no other is begun.
#[test]
fn nothing_starts_once_the_time_is_over() {
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
