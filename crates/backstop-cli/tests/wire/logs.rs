//! The log: one JSON line for every fallback and refusal, with the reason and the policy's line.

use std::time::Duration;

use backstop_lab::origin::Gate;
use serde_json::Value;

use crate::raw::{Wires, direct};
use crate::saturation::hold;
use crate::support::shop::down;
use crate::support::{BOUND, Gateway, Policy, products, run};

/// The decisions logged so far, once there are so many.
async fn decisions(gateway: &Gateway, count: usize) -> Vec<Value> {
    let logged = || -> Vec<Value> {
        let lines = gateway.log().into_iter().filter(|line| line.starts_with('{'));
        let values = lines.map(|line| serde_json::from_str::<Value>(&line).expect("a JSON object a line"));
        values.filter(|value| value["target"] == "backstop::decision").collect()
    };
    let waiting = async {
        while logged().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _compared_below = tokio::time::timeout(BOUND, waiting).await;
    let logged = logged();
    assert_eq!(logged.len(), count, "{:#?}", gateway.log());
    logged
}

/// The text of the policy at `policy.toml:LINE:COLUMN`.
fn rule_at(policy: &str, place: &Value) -> String {
    let place = place.as_str().expect("a place");
    let mut parts = place.strip_prefix("policy.toml:").expect("the file as it was named").split(':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok()).expect("a number");
    let (line, column) = (number(), number());
    policy.lines().nth(line - 1).expect("the line").chars().skip(column - 1).collect()
}

#[test]
fn every_fallback_and_refusal_is_logged_with_its_reason_and_its_rule() {
    run(async {
        let description = Policy::description("languages =\ncorrect =").replace("\"language\", ", "");
        let mut text = String::new();
        let wires = Wires::with(|origin| {
            let policy = Policy::empty()
                .dependency("catalog", origin, "")
                .route("description.public_read", &description)
                .route("rest.direct", &direct("*", "in_flight = 1"));
            text = policy.text();
            policy
        })
        .await;
        let gateway = &wires.gateway;
        wires.origin.default(products("saved"));
        assert_eq!(gateway.get("/p/1", &[]).await.status(), 200);
        let gate = Gate::new();
        let _held = hold(&wires, &gate, &["/held"]).await;
        gateway.get("/full", &[]).await;
        gate.open();
        gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        down(&wires.origin).await;
        gateway.get("/p/1", &[]).await;
        gateway.get("/p/2", &[]).await;
        gateway.get("/down", &[]).await;

        let lines = decisions(gateway, 4).await;
        let told: Vec<_> = lines
            .iter()
            .map(|line| {
                ["route", "outcome", "source", "reason", "cause"].map(|key| line[key].as_str().unwrap_or("-"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ["rest", "rejected", "none", "capacity", "capacity"],
                ["description", "fallback", "snapshot", "connect", "connect"],
                ["description", "rejected", "none", "missing", "connect"],
                ["rest", "failed", "none", "connect", "connect"],
            ]
        );
        assert!(
            rule_at(&text, &lines[0]["policy"]).contains("in_flight = 1")
                || rule_at(&text, &lines[0]["policy"]).starts_with('1'),
            "{}",
            lines[0]["policy"]
        );
        for line in &lines {
            let rule = rule_at(&text, &line["policy"]);
            assert!(!rule.trim().is_empty(), "{} names a rule", line["policy"]);
            assert_eq!(line["left_out"], 0);
            assert!(line["timestamp"].is_string() && line["level"] == "INFO");
        }
        assert_eq!(lines[1]["age_seconds"], 0);
    });
}

/// In an outage the same line would come thousands of times a second: ten of them are written, the rest are counted.
#[test]
fn a_flood_of_the_same_line_is_told_as_a_number() {
    run(async {
        let wires = Wires::open().await;
        let mut hand = wires.gateway.hand();
        down(&wires.origin).await;
        hand.freeze();
        for _ in 0..25 {
            assert_eq!(wires.gateway.get("/down", &[]).await.status(), 502);
        }
        hand.advance(Duration::from_secs(1));
        assert_eq!(wires.gateway.get("/down", &[]).await.status(), 502);
        let left_out: Vec<_> = decisions(&wires.gateway, 11)
            .await
            .iter()
            .map(|line| line["left_out"].as_u64().unwrap())
            .collect();
        assert_eq!(left_out, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15]);
    });
}

/// What clients send is data: it cannot forge a line.
#[test]
fn nothing_that_a_client_sends_is_in_the_log() {
    run(async {
        let wires = Wires::open().await;
        down(&wires.origin).await;
        let secret = [("Authorization", "Bearer s3cret-t0ken"), ("Cookie", "session=s3cret-t0ken")];
        wires.gateway.get("/s3cret-t0ken?key=s3cret-t0ken", &secret).await;
        decisions(&wires.gateway, 1).await;
        assert!(!wires.gateway.log().iter().any(|line| line.contains("s3cret-t0ken")));
        assert!(!format!("{:?}", wires.gateway.metrics().await).contains("s3cret-t0ken"));
    });
}

/// What came to no route has no rule; it is logged with its fault all the same, and no oftener than anything else.
#[test]
fn a_request_without_a_route_is_logged_too() {
    run(async {
        let policy = Policy::empty();
        let gateway = Gateway::start(&policy.table("dependency.none", "url = \"http://127.0.0.1:9\"").route(
            "only.direct",
            "match = \"GET /only\"\ndependency = \"none\"\ndeadline = \"1s\"\nin_flight = 1",
        ));
        gateway.hand().freeze();
        for _ in 0..12 {
            assert_eq!(gateway.get("/nowhere", &[]).await.status(), 404);
        }
        // Ten lines in one second of the gateway's clock, and no more.
        let lines = decisions(&gateway, 10).await;
        assert!(
            lines.iter().all(|line| line["reason"] == "no_route" && line["outcome"] == "rejected"),
            "{lines:#?}"
        );
    });
}
