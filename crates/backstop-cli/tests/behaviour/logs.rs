//! Every fallback and refusal leaves a line that says why, and which line of the policy decided.

use serde_json::Value;

use crate::support::{Shop, expect, run};

fn decisions(shop: &Shop) -> Vec<Value> {
    let lines = shop.gateway.log();
    let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter(|line| line["target"] == "backstop::decision").collect()
}

#[test]
fn every_fallback_and_refusal_has_its_reason_in_the_log() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        shop.goes_down().await;
        shop.pass(30.0);
        shop.get("1").await;
        shop.get("2").await;
        shop.pass(31.0);
        expect::no_copy(&shop.get("1").await, "age", "connect");
        shop.gateway.get("/other", &[]).await;
        let told = decisions(&shop);
        let words: Vec<[&str; 4]> = told
            .iter()
            .map(|line| ["route", "outcome", "reason", "cause"].map(|key| line[key].as_str().unwrap()))
            .collect();
        assert_eq!(
            words,
            [
                ["description", "fallback", "connect", "connect"],
                ["description", "rejected", "missing", "connect"],
                ["description", "rejected", "age", "connect"],
                ["rest", "failed", "connect", "connect"],
            ],
            "the normal answer leaves none"
        );
        assert_eq!(told[0]["age_seconds"], 30);
        let place = told[2]["policy"].as_str().unwrap();
        let line: usize = place.split(':').nth(1).and_then(|line| line.parse().ok()).expect(place);
        let policy = std::fs::read_to_string(shop.gateway.folder().join("policy.toml")).unwrap();
        assert_eq!(policy.lines().nth(line - 1), Some("max_age = \"60s\""), "{place}");
    });
}

/// An outage does not flood the log: ten lines a second for each route and reason, and the next one says how many were left
/// out.
#[test]
fn an_outage_does_not_flood_the_log() {
    run(async {
        let mut shop = Shop::open().await;
        shop.is_unavailable();
        for _ in 0..100 {
            shop.get("1").await;
        }
        assert_eq!(decisions(&shop).len(), 10);
        shop.pass(1.0);
        shop.get("1").await;
        let told = decisions(&shop);
        assert_eq!((told.len(), &told[10]["left_out"]), (11, &Value::from(90)));
    });
}
