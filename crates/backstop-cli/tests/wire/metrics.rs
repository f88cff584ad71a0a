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

/// Every metric of the reference, with its type.
fn documented() -> Vec<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).expect("the reference");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        cells.next().zip(cells.next())
    })
    .collect()
}

/// A policy in which there is something of everything that is counted.
pub fn with_everything(origin: std::net::SocketAddr) -> Policy {
    let read = Policy::description(
        "languages =\ncorrect =\nfunction = \"browse\"\nretry = { attempts = 2 }\nalternative = { dependency = \"replica\" }",
    );
    policy(origin)
        .gateway("exercise = \"100%\"")
        .gateway("access_log = { path = \"access.log\" }")
        .table("telemetry", "traces = { url = \"http://127.0.0.2:9/v1/traces\" }")
        .table("resource.db", "concurrency = 10")
        .dependency("replica", std::net::SocketAddr::from(([127, 0, 0, 2], 9)), "uses = [\"db\"]")
        .replace_route("description.public_read", &read.replace("\"language\", ", ""))
        .route(
            "reviews.cached_read",
            "match = \"GET /r/{id}\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 2\nkey = []\n\
             correct = { type = \"application/json\" }\nlocal_copy = { max_age = \"60s\" }\n\
             cache = { url = \"redis://127.0.0.2:9\", ttl = \"5s\" }\nfill = { concurrency = 2, rate = \"10/s\" }",
        )
        .table(
            "authorizer.sessions",
            "url = \"http://127.0.0.2:9/check\"\nallow = { header = \"x-allowed\" }\ntimeout = \"50ms\"\nin_flight = 10",
        )
        .route(
            "account.guarded",
            "match = \"POST /account\"\ndependency = \"catalog\"\nauthorizer = \"sessions\"\ndeadline = \"300ms\"\nin_flight = 2",
        )
        .route(
            "seen.direct",
            "match = \"GET /seen\"\ndependency = \"catalog\"\nmode = \"observe\"\ndeadline = \"300ms\"\nin_flight = 2",
        )
        .route(
            "pay.effect",
            "match = \"POST /pay\"\ndependency = \"catalog\"\nauthorizer = \"sessions\"\ndeadline = \"300ms\"\nin_flight = 2\nscope = \"route\"\noutcome = { succeeded = [{ status = 201 }] }",
        )
}

/// Whoever builds alert rules finds every name from the first moment, not only after the first incident; and every series
/// whose labels are known beforehand, for a rate is only seen from the second value on.
#[test]
fn every_metric_is_there_from_the_beginning() {
    run(async {
        let wires = Wires::with(with_everything).await;
        let response = client::get(wires.gateway.admin, "/metrics", &[]).await.unwrap();
        assert_eq!(
            response.header("content-type"),
            Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
        );
        let text = response.text();
        let documented = documented();
        assert!(documented.len() > 40, "{documented:?}");
        for (name, kind) in &documented {
            let base = name.trim_end_matches("_total");
            assert!(text.contains(&format!("# TYPE {base} {kind}\n")), "{name} {kind}\n{text}");
            assert!(text.contains(&format!("# HELP {base} ")), "{name} is explained");
            let of_the_past = [
                "backstop_requests_total",
                "backstop_fallback_coverage_ratio",
                "backstop_authorizer_keys_age_seconds",
            ];
            if !of_the_past.contains(&name.as_str()) {
                let series = if kind == "histogram" { format!("{name}_bucket") } else { name.clone() };
                let has_series = text
                    .lines()
                    .any(|line| line.strip_prefix(&series).is_some_and(|rest| rest.starts_with(['{', ' '])));
                assert!(has_series, "{name} has a series from the beginning\n{text}");
            }
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

/// Two calls on one connection, the second of which its client leaves: it occupies the dependency until that has answered.
#[test]
fn a_call_that_nobody_waits_for_is_seen_for_as_long_as_it_lasts() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connections = 1")
                .route("all.direct", &direct("*", ""))
        })
        .await;
        assert_eq!(wires.gateway.get("/first", &[]).await.status(), 200);
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let of = |metrics: &crate::support::Metrics, state: &str| {
            metrics.sum("backstop_upstream_calls", &[&format!("state=\"{state}\"")])
        };
        let before = wires.gateway.metrics().await;
        assert_eq!((of(&before, "abandoned"), of(&before, "waiting")), (0.0, 0.0));
        assert_eq!(before.sum("backstop_upstream_connections_opened_total", &[]), 1.0);
        assert_eq!(before.sum("backstop_upstream_connections_reused_total", &[]), 1.0);
        assert_eq!(before.sum("backstop_upstream_connections_replaced_total", &[]), 0.0);
        let stolen = before.sum("backstop_upstream_connections_stolen_total", &[]);
        assert!(stolen <= 1.0, "by which thread the second one came is up to the system");
        held.remove(0).reset().unwrap();
        wires.gateway.metrics_until(|metrics| of(metrics, "abandoned") == 1.0).await;
        gate.open();
        wires.gateway.metrics_until(|metrics| of(metrics, "abandoned") == 0.0).await;
    });
}
