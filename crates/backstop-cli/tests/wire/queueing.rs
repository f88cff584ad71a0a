//! A dependency whose connections are all busy: refused at once, or after a bounded wait.

use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::Gate;

use crate::raw::{Wires, direct};
use crate::saturation::hold;
use crate::support::{Policy, expect, run};

async fn one_connection(queue: &str) -> (Wires, Gate, Vec<Connection>) {
    let wires = Wires::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, &format!("connections = 1\nqueue = \"{queue}\""))
            .route("all.direct", &direct("*", ""))
    })
    .await;
    let gate = Gate::new();
    let held = hold(&wires, &gate, &["/held"]).await;
    (wires, gate, held)
}

#[test]
fn without_a_queue_a_full_dependency_refuses_at_once() {
    run(async {
        let (wires, gate, _held) = one_connection("0ms").await;
        let refused = wires.gateway.get("/p/1", &[]).await;
        expect::refused(&refused, 503, "outcome=rejected, reason=dependency_full");
        assert_eq!((wires.origin.count(), wires.origin.connections_accepted()), (1, 1));
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.dependency_failures(), 0, "it was not asked");
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}

#[test]
fn a_queue_waits_for_its_time_and_no_longer() {
    run(async {
        let (wires, gate, _held) = one_connection("200ms").await;
        let refused = wires.gateway.get("/p/1", &[]).await;
        expect::refused(&refused, 503, "outcome=rejected, reason=pool_timeout");
        assert!(refused.took >= Duration::from_millis(195), "{:?}", refused.took);
        assert_eq!((wires.origin.count(), wires.origin.connections_accepted()), (1, 1));
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}

#[test]
fn a_place_that_is_freed_is_given_to_whoever_waits() {
    run(async {
        let (wires, gate, mut held) = one_connection("1500ms").await;
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let mut connection = wires.connect().await;
            connection.send(b"GET /p/1 HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
            waiting.push(connection);
        }
        let route = ["scope=\"route\"", "name=\"all\""];
        wires.gateway.metrics_until(|metrics| metrics.sum("backstop_in_flight", &route) == 9.0).await;
        assert_eq!(wires.origin.count(), 1, "they wait");
        gate.open();
        assert_eq!(held[0].read_response().await.unwrap().status(), 200);
        for connection in &mut waiting {
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
        assert_eq!((wires.origin.count(), wires.origin.peak_connections()), (9, 1));
    });
}
