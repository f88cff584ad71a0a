//! Every fallback and refusal leaves a line that says why, and which line of the policy decided.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::Origin;
use serde_json::Value;

use crate::support::gateway::folder;
use crate::support::{BOUND, Policy, Shop, expect, products, run};

/// The decisions logged so far, once there are `count`. A thread of its own writes them.
async fn decisions(shop: &Shop, count: usize) -> Vec<Value> {
    let logged = || -> Vec<Value> {
        let lines = shop.gateway.log();
        let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter(|line| line["target"] == "backstop::decision").collect()
    };
    let waiting = async {
        while logged().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _compared_below = tokio::time::timeout(BOUND, waiting).await;
    let logged = logged();
    assert_eq!(logged.len(), count, "{:#?}", shop.gateway.log());
    logged
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
        let told = decisions(&shop, 4).await;
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
        decisions(&shop, 10).await;
        shop.pass(1.0);
        shop.get("1").await;
        let told = decisions(&shop, 11).await;
        assert_eq!(told[10]["left_out"], 90);
    });
}

/// Whoever starts the gateway may not read its log: that costs lines, never an answer and never the stop.
#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let folder = folder();
        let policy = Policy::shop(origin.addr()).gateway("listen = \"127.0.0.1:0\"");
        std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(["run", "policy.toml"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut address = None;
        while address.is_none() {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the gateway says where it listens");
            address = line.strip_prefix("listening on http://").and_then(|rest| rest.trim().parse().ok());
        }
        let address: SocketAddr = address.unwrap();
        // From here on nobody reads. The thirty lines that are written at most do not fit into the smallest pipe.
        rustix::pipe::fcntl_setpipe_size(stderr.get_ref(), 4096).unwrap();
        origin.refuse().await.unwrap();
        for number in 0..40 {
            let _marked =
                client::get(address, &format!("/p/{number}"), &[("Accept-Language", "es")]).await.unwrap();
            let _unmarked = client::request(address, "TRACE", "/", &[], b"").await.unwrap();
            let _direct = client::get(address, "/other", &[]).await.unwrap();
        }
        origin.accept_again().await.unwrap();
        let live = client::get(address, "/other", &[]).await.unwrap();
        assert_eq!(live.status(), 200);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let ended = tokio::task::spawn_blocking(move || (child.wait(), stderr));
        let (status, _unread) = tokio::time::timeout(BOUND, ended).await.expect("it stops").unwrap();
        assert!(status.unwrap().success());
    });
}
