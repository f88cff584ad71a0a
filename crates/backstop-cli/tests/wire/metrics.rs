//! The metrics after a sequence whose every step is known.

use backstop_lab::client;
use backstop_lab::origin::{Behaviour, Gate, Matcher};

use crate::raw::{Wires, direct};
use crate::saturation::hold;
use crate::support::shop::down;
use crate::support::{Policy, expect, products, run};

fn policy(origin: std::net::SocketAddr) -> Policy {
    let description = Policy::description("languages =\ncorrect =").replace("\"language\", ", "");
    Policy::empty()
        .dependency("catalog", origin, "connections = 16")
        .route("description.public_read", &description)
        .route(
            "extra.optional",
            "match = \"GET /extra\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 2\n\
             otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }",
        )
        .route("rest.direct", &direct("*", "in_flight = 2"))
}

#[test]
fn every_request_is_counted_once_by_what_it_came_to() {
    run(async {
        let wires = Wires::with(policy).await;
        let gateway = &wires.gateway;
        wires.origin.default(products("saved"));
        let mut hand = gateway.hand();
        hand.freeze();
        for _ in 0..3 {
            assert_eq!(gateway.get("/p/1", &[]).await.status(), 200);
        }
        assert_eq!(gateway.get("/extra", &[]).await.status(), 200);
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held/1", "/held/2"]).await;
        let taken = gateway.metrics().await;
        assert_eq!(taken.sum("backstop_in_flight", &["scope=\"process\""]), 2.0);
        assert_eq!(taken.sum("backstop_in_flight", &["scope=\"route\"", "name=\"rest\""]), 2.0);
        assert_eq!(taken.sum("backstop_in_flight", &["scope=\"dependency\"", "name=\"catalog\""]), 2.0);
        assert_eq!(taken.sum("backstop_upstream_connections", &["state=\"in_use\""]), 2.0);
        assert_eq!(gateway.get("/full", &[]).await.status(), 503);
        gate.open();
        for connection in &mut held {
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
        wires.origin.on(Matcher::path("/broken"), Behaviour::status(500));
        assert_eq!(gateway.get("/broken", &[]).await.status(), 500);
        down(&wires.origin).await;
        hand.advance(std::time::Duration::from_secs(30));
        assert_eq!(gateway.get("/p/1", &[]).await.header("age"), Some("30"));
        assert_eq!(gateway.get("/p/2", &[]).await.status(), 503);
        assert_eq!(gateway.get("/extra", &[]).await.text(), "[]");
        assert_eq!(gateway.get("/down", &[]).await.status(), 502);

        let metrics = gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        let requests = |route: &str, outcome: &str, source: &str, reason: &str| {
            let labels = [("route", route), ("outcome", outcome), ("source", source), ("reason", reason)]
                .map(|(name, value)| format!("{name}=\"{value}\""));
            metrics.sum("backstop_requests_total", &labels.each_ref().map(String::as_str)) as u64
        };
        assert_eq!(requests("description", "normal", "primary", "none"), 3);
        assert_eq!(requests("description", "fallback", "snapshot", "connect"), 1);
        assert_eq!(requests("description", "rejected", "none", "missing"), 1);
        assert_eq!(requests("extra", "normal", "primary", "none"), 1);
        assert_eq!(requests("extra", "fallback", "omitted", "connect"), 1);
        assert_eq!(requests("rest", "normal", "primary", "none"), 2);
        assert_eq!(requests("rest", "rejected", "none", "capacity"), 1);
        assert_eq!(requests("rest", "failed", "primary", "server_error"), 1);
        assert_eq!(requests("rest", "failed", "none", "connect"), 1);
        assert_eq!(metrics.sum("backstop_requests_total", &[]), 12.0, "and nothing else");

        assert_eq!((metrics.failures("connect"), metrics.dependency_failures()), (4, 4));
        assert_eq!(metrics.sum("backstop_dependency_calls_total", &["result=\"begun\""]), 11.0);
        assert_eq!(metrics.sum("backstop_copy_age_seconds_count", &["route=\"description\""]), 1.0);
        assert_eq!(metrics.sum("backstop_copy_age_seconds_sum", &["route=\"description\""]), 30.0);
        assert_eq!(metrics.sum("backstop_store_entries", &[]), 1.0);
        // Of five reads in the last minute the first and the one of another product had no copy.
        assert_eq!(metrics.sum("backstop_fallback_coverage_ratio", &["route=\"description\""]), 0.6);
        assert_eq!(metrics.sum("backstop_in_flight_limit", &["name=\"rest\""]), 2.0);
        assert_eq!(metrics.sum("backstop_in_flight_refused_total", &["name=\"rest\""]), 1.0);
        expect::idle(gateway).await;
    });
}

/// Whoever builds alert rules finds every name from the first moment, not only after the first incident.
#[test]
fn every_metric_is_there_from_the_beginning() {
    run(async {
        let wires = Wires::with(policy).await;
        let response = client::get(wires.gateway.admin, "/metrics", &[]).await.unwrap();
        assert_eq!(
            response.header("content-type"),
            Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
        );
        let text = response.text();
        for (name, kind) in [
            ("backstop_requests", "counter"),
            ("backstop_dependency_failures", "counter"),
            ("backstop_dependency_calls", "counter"),
            ("backstop_in_flight", "gauge"),
            ("backstop_in_flight_limit", "gauge"),
            ("backstop_in_flight_refused", "counter"),
            ("backstop_copy_age_seconds", "histogram"),
            ("backstop_fallback_coverage_ratio", "gauge"),
            ("backstop_buffer_bytes", "gauge"),
            ("backstop_buffer_limit_bytes", "gauge"),
            ("backstop_buffer_full", "counter"),
            ("backstop_store_entries", "gauge"),
            ("backstop_store_memory_bytes", "gauge"),
            ("backstop_store_disk_ok", "gauge"),
            ("backstop_store_writes", "counter"),
            ("backstop_withdrawals_unconfirmed", "gauge"),
            ("backstop_withdrawals_late", "counter"),
            ("backstop_upstream_connections", "gauge"),
            ("backstop_upstream_connections_opened", "counter"),
            ("backstop_upstream_connections_closed", "counter"),
            ("backstop_upstream_phase_seconds", "histogram"),
            ("backstop_client_connections", "gauge"),
            ("backstop_client_connections_accepted", "counter"),
            ("backstop_malformed", "counter"),
            ("backstop_requests_refused_early", "counter"),
        ] {
            assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} {kind}\n{text}");
            assert!(text.contains(&format!("# HELP {name} ")), "{name} is explained");
        }
        for kind in ["connect", "read_timeout", "incomplete", "unavailable", "declared"] {
            let series =
                format!("backstop_dependency_failures_total{{dependency=\"catalog\",kind=\"{kind}\"}} 0\n");
            assert!(text.contains(&series), "{series}");
        }
        let families: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut once = families.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), families.len(), "each is declared once");
    });
}
