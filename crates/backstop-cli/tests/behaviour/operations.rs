//! `backstop operations` against the operators' port of a gateway with a ledger on disk, which was written by an earlier life of
//! it.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::operation::{OperationId, Schedule};
use backstop_engine::time::{Now, Wall};
use backstop_lab::client;
use backstop_store::ledger::sqlite;
use backstop_store::ledger::{Ledger, LedgerOptions};
use backstop_store::testing::{begin, unknown};
use serde_json::{Value, json};

use crate::support::gateway::{folder, output};
use crate::support::{BOUND, Gateway, Policy, run};

const EFFECT: &str = r#"match = "POST /pay"
authorizer = "sessions"
dependency = "payments"
deadline = "10s"
in_flight = 10
shared_account = false
outcome = { succeeded = [{ status = 201 }], refused = [{ status = 402 }] }
status_query = { path = "/operations/{operation_id}", succeeded = [{ status = 200, json = { "/status" = "succeeded" } }] }
upstream_retention = "24h"
unknown_answer = "auto""#;
const SESSIONS: &str = r#"url = "http://127.0.0.1:1/check"
allow = { header = "x-allowed: yes" }
principal = "header.x-user"
timeout = "100ms"
in_flight = 60"#;

fn id(number: u8) -> String {
    OperationId::from_bytes([number; 16]).to_string()
}

fn earlier(now: Now, by: Duration) -> Now {
    let wall = now.wall.as_unix_ns() - i64::try_from(by.as_nanos()).unwrap();
    Now { wall: Wall::from_unix_ns(wall), ..now }
}

/// What an earlier life left: 1 began two hours ago, so its hour of verification is over and it needs a person; 2 began a minute
/// ago and is unknown; 3 was under way when that life ended, so it is unknown in the next one.
fn an_earlier_life(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("ledger.key"), [7; 32]).unwrap();
    let now = Clock::system().unwrap().now();
    let ledger = sqlite::open(folder, LedgerOptions::default(), 1, now).unwrap();
    unknown(&ledger, 1, earlier(now, Duration::from_secs(7200)), Schedule::default().draw(0));
    unknown(&ledger, 2, earlier(now, Duration::from_secs(60)), Schedule::default().draw(0));
    let _under_way = begin(&ledger, 3, now);
    assert_eq!(ledger.sweep(Default::default(), 7, now).wait().unwrap().overdue, 1);
    assert!(ledger.close(BOUND));
}

/// The policy of all lives.
fn policy() -> Policy {
    Policy::empty()
        .store("path = \"data\"")
        .dependency("payments", "127.0.0.1:1".parse().unwrap(), "")
        .table("authorizer.sessions", SESSIONS)
        .route("pay.effect", EFFECT)
}

/// What the binary says, with the admin address behind its words.
async fn says(gateway: &Gateway, words: &[&str]) -> (ExitStatus, String, String) {
    let (admin, folder) = (gateway.admin.to_string(), gateway.folder().to_owned());
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["--admin".into(), admin]);
    let told = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        output(&words, &folder)
    });
    told.await.unwrap()
}

async fn says_json(gateway: &Gateway, words: &[&str]) -> Value {
    let (status, told, errors) = says(gateway, words).await;
    assert!(status.success(), "{words:?}: {errors}");
    serde_json::from_str(&told).unwrap()
}

fn with_gateway<F: Future<Output = ()>>(test: impl FnOnce(Gateway) -> F) {
    let folder = folder();
    an_earlier_life(&folder.join("data"));
    run(async { test(Gateway::start_in(&folder, &policy())).await });
    let _gone_already = std::fs::remove_dir_all(&folder);
}

#[test]
fn what_needs_somebody_is_listed_and_shown() {
    with_gateway(|gateway| async move {
        let (status, told, errors) = says(&gateway, &["operations", "list"]).await;
        assert!(status.success(), "{errors}");
        let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        let [head, first, second, third] = &rows[..] else { panic!("{told}") };
        assert_eq!(head[..], ["ID", "STATE", "WHY", "ROUTE", "AGE", "SINCE"]);
        assert_eq!(first[..5], [&id(1), "attention", "deadline", "pay", "2h00m"]);
        assert_eq!(second[..4], [&id(2), "unknown", "timeout", "pay"]);
        assert_eq!(third[..4], [&id(3), "unknown", "restarted", "pay"]);

        let page = says_json(&gateway, &["operations", "list", "--state", "unknown", "--json"]).await;
        let ids = |page: &Value| -> Vec<Value> {
            page["operations"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
        };
        assert_eq!(ids(&page), [json!(id(2)), json!(id(3))]);
        let (_, told, _) = says(&gateway, &["operations", "list", "--state", "failed"]).await;
        assert_eq!(told, "no operations in failed\n");

        // From the moment on at which 2 began.
        let began = page["operations"][0]["began"].as_str().unwrap();
        let later = says_json(&gateway, &["operations", "list", "--from", began, "--json"]).await;
        assert_eq!(ids(&later), [json!(id(2)), json!(id(3))]);
        let (_, told, _) = says(&gateway, &["operations", "list", "--from", "2200-01-01"]).await;
        assert_eq!(told, "no operations from 2200-01-01 on\n");
        let (status, _, errors) = says(&gateway, &["operations", "list", "--from", "yesterday"]).await;
        assert_eq!(status.code(), Some(2));
        assert!(errors.contains("`from` is a date in UTC such as 2026-01-31T23:59:59Z"), "{errors}");

        // Page by page, as each says how to go on.
        let (_, told, note) = says(&gateway, &["operations", "list", "--limit", "2"]).await;
        assert_eq!(told.lines().count(), 3, "{told}");
        let mark = note.trim().strip_prefix("there are more: add --after ").unwrap().to_owned();
        let (_, told, note) = says(&gateway, &["operations", "list", "--limit", "2", "--after", &mark]).await;
        assert!(told.lines().nth(1).unwrap().starts_with(&id(3)) && note.is_empty(), "{told}{note}");

        let (_, told, _) = says(&gateway, &["operations", "show", &id(3)]).await;
        assert!(
            told.starts_with(&format!("operation  {}\nstate      unknown (restarted)\n", id(3))),
            "{told}"
        );
        assert!(
            told.lines().last().unwrap().ends_with("dispatching -> unknown (restarted), by recovery"),
            "{told}"
        );
    });
}

#[test]
fn a_decision_survives_a_restart_with_name_and_reason() {
    with_gateway(|gateway| async move {
        let words = ["operations", "resolve", &id(1), "--outcome", "not-executed"];
        let why = ["--reason", "the bank knows no such payment", "--by", "ana"];
        let words: Vec<&str> = words.into_iter().chain(why).collect();
        let (status, told, errors) = says(&gateway, &words).await;
        assert!(status.success(), "{errors}");
        let expected = format!(
            "operation {}\n  was  attention (deadline)\n  is   not_executed (person)\n  by   ana: the bank knows no such payment\n",
            id(1)
        );
        assert_eq!(told, expected);

        // Again, and what still has its status asked for: no, and why.
        let (status, told, errors) = says(&gateway, &words).await;
        assert_eq!((status.code(), told.as_str()), (Some(1), ""));
        assert!(errors.starts_with("error: the gateway refuses (409): it is decided already"), "{errors}");
        assert!(errors.contains("; it is not_executed (person)"), "{errors}");
        let other = ["operations", "resolve", &id(2), "--outcome", "failed", "--reason", "r", "--by", "ana"];
        let (status, _, errors) = says(&gateway, &other).await;
        assert_eq!(status.code(), Some(1));
        assert!(
            errors.contains("its status is still asked for") && errors.contains("it is unknown"),
            "{errors}"
        );

        let metrics = gateway.metrics().await;
        let of = |state: &str| metrics.sum("backstop_operations", &[&format!("state=\"{state}\"")]);
        assert_eq!((of("attention"), of("unknown"), of("not_executed")), (0.0, 2.0, 1.0));
        assert_eq!(metrics.sum("backstop_operations_reports_refused_total", &["reason=\"decided\""]), 1.0);
        assert_eq!(metrics.sum("backstop_operations_reports_refused_total", &["reason=\"not_now\""]), 1.0);
        let ages = metrics.sum("backstop_operations_unknown_oldest_seconds", &[]);
        assert!((60.0..600.0).contains(&ages), "2 began a minute ago: {ages}");
        let ready = client::get(gateway.admin, "/readyz", &[]).await.unwrap().json().unwrap();
        assert_eq!(ready["warnings"], json!([]));

        let gateway = gateway.restart(&policy());
        let shown = says_json(&gateway, &["operations", "show", &id(1), "--json"]).await;
        let history = shown["history"].as_array().unwrap();
        assert_eq!((history.len(), &shown["state"]), (3, &json!("not_executed")));
        let last = &history[2];
        assert_eq!((&last["actor"], &last["by"]), (&json!("person"), &json!("ana")));
        assert_eq!(last["reason"], "the bank knows no such payment");
    });
}

/// Over the wire: a page of another site that is open in an operator's browser decides nothing.
#[test]
fn a_page_of_another_site_decides_nothing() {
    with_gateway(|gateway| async move {
        let order = br#"{"outcome":"failed","by":"ana","reason":"r"}"#;
        let target = format!("/operations/{}/resolve", id(1));
        let json = ("Content-Type", "application/json");
        let table: [(&[(&str, &str)], u16); 4] = [
            (&[json, ("Origin", "http://evil.example")], 403),
            (&[json, ("Sec-Fetch-Site", "cross-site")], 403),
            (&[("Content-Type", "text/plain")], 415),
            (&[], 415),
        ];
        for (fields, status) in table {
            let answer = client::request(gateway.admin, "POST", &target, fields, order).await.unwrap();
            assert_eq!(answer.status(), status, "{fields:?}: {}", answer.text());
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        }
        let long = vec![b' '; 16 * 1024 + 1];
        let answer = client::request(gateway.admin, "POST", &target, &[json], &long).await.unwrap();
        assert_eq!(answer.status(), 413);
        let shown = says_json(&gateway, &["operations", "show", &id(1), "--json"]).await;
        assert_eq!((&shown["state"], shown["history"].as_array().unwrap().len()), (&json!("attention"), 2));
    });
}
