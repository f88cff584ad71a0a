//! The model of the status page: what it says is what clients got, and since when it says so is when it began.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::Origin;
use serde_json::{Value, json};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, down};
use crate::support::state::{page, policy, second};
use crate::support::{Gateway, Hand, products, run};

/// 2026-03-01T14:00:00Z, an hour after boot.
const START: &str = "freeze; at 3600000000000 1772373600000000000";

struct Shop {
    origin: Origin,
    gateway: Gateway,
    hand: Hand,
    requests: u64,
}

impl Shop {
    async fn open() -> Self {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let policy = policy(origin.addr()).store("snapshots = { memory = \"16 MiB\", disk = \"0 B\" }");
        let mut gateway = Gateway::start_with_clock(&folder(), &policy, START);
        HOST.clone_into(&mut gateway.host);
        let hand = gateway.hand();
        Self { origin, gateway, hand, requests: 0 }
    }

    async fn reads(&mut self, reads: u64) {
        for _ in 0..reads {
            self.gateway.get("/p/1", &SPANISH).await;
        }
        self.requests += reads;
        let all = self.requests as f64;
        self.gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) == all).await;
    }

    async fn seconds(&mut self, seconds: u64) {
        for _ in 0..seconds {
            second(&self.gateway, &mut self.hand).await;
        }
    }

    async fn status(&self) -> Value {
        page(&self.gateway, "/status.json").await
    }
}

fn route<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["routes"].as_array().unwrap().iter().find(|route| route["name"] == name).unwrap()
}

/// By hand: nothing is asked for; two good reads in the first second; a refused connection from 14:00:01 on, answered with
/// copies of 1 s; eleven seconds later none of the last ten seconds' reads is a copy.
#[test]
fn a_route_is_on_its_rung_since_the_second_in_which_it_began_and_leaves_it_ten_seconds_after_the_last() {
    run(async {
        let mut shop = Shop::open().await;
        let quiet = shop.status().await;
        assert_eq!(
            (&quiet["state"], &route(&quiet, "description")["state"]),
            (&json!("normal"), &json!("quiet"))
        );
        shop.reads(2).await;
        let normal = shop.status().await;
        let read = route(&normal, "description");
        assert_eq!(
            (&read["rung"], &read["since"]),
            (&json!("dependency"), &json!("2026-03-01T14:00:00.000Z"))
        );
        shop.seconds(1).await;

        down(&shop.origin).await;
        shop.reads(3).await;
        let degraded = shop.status().await;
        let read = route(&degraded, "description");
        assert_eq!(
            (&degraded["state"], &read["state"], &read["rung"]),
            (&json!("degraded"), &json!("degraded"), &json!("copy"))
        );
        assert_eq!(read["since"], "2026-03-01T14:00:01.000Z");
        let outcomes = json!({ "normal": 2, "fallback": 3, "rejected": 0, "failed": 0, "abandoned": 0 });
        assert_eq!(read["last_minute"], outcomes);
        assert_eq!(read["copy_ages"]["copies"], 3);
        assert_eq!(read["copy_ages"]["oldest_seconds"], 1.0);
        assert_eq!(read["coverage"], 0.8, "four of five reads had a copy: not the first one");
        shop.seconds(1).await;
        shop.origin.accept_again().await.unwrap();
        // The breaker may be probed after 5 s and a fifth; two successes close it.
        shop.hand.pass(Duration::from_secs(7));
        shop.seconds(1).await;
        shop.reads(4).await;
        // What was counted until 14:00:02 counts until 14:00:12, and not any more from then on.
        shop.seconds(1).await;
        let last = route(&shop.status().await, "description").clone();
        assert_eq!((&last["rung"], &last["since"]), (&json!("copy"), &json!("2026-03-01T14:00:01.000Z")));
        shop.seconds(1).await;
        let over = route(&shop.status().await, "description").clone();
        assert_eq!((&over["rung"], &over["state"]), (&json!("dependency"), &json!("normal")));
    });
}

/// The whole of it, of a situation that is known to the last count.
#[test]
fn the_model_of_a_known_situation() {
    run(async {
        let mut shop = Shop::open().await;
        shop.reads(8).await;
        shop.seconds(2).await;
        down(&shop.origin).await;
        shop.reads(6).await;
        for _ in 0..2 {
            shop.gateway.request("PUT", "/orders/1", &[], b"{}").await;
        }
        shop.requests += 2;
        shop.reads(0).await;
        shop.seconds(1).await;
        let mut status = shop.status().await;
        // What depends on the size of a structure or on chance.
        for (place, name) in
            [("/store/memory_bytes", "bytes"), ("/dependencies/0/next_probe_seconds", "jittered")]
        {
            let value = status.pointer_mut(place).unwrap();
            assert!(value.as_f64().unwrap() > 0.0, "{place}");
            *value = name.into();
        }
        // An hour of steps, nearly all of them empty: the last one is what the others are like.
        let history = status["history"].as_object_mut().unwrap();
        for list in ["functions", "dependencies"] {
            for named in history[list].as_object_mut().unwrap().values_mut() {
                for steps in named.as_object_mut().unwrap().values_mut() {
                    let all = steps.as_array().unwrap();
                    assert_eq!(all.len(), 360);
                    *steps = all.last().unwrap().clone();
                }
            }
        }
        insta::assert_snapshot!(format!("{status:#}"));
    });
}

#[test]
fn a_browser_is_told_to_load_nothing_and_another_site_is_shown_nothing() {
    run(async {
        let shop = Shop::open().await;
        let admin = shop.gateway.admin;
        for path in ["/", "/status", "/status.json", "/status.css", "/status.js"] {
            let own = client::get(admin, path, &[("Host", &admin.to_string())]).await.unwrap();
            assert_eq!(own.status(), 200, "{path}");
            let policy = own.header("content-security-policy").unwrap();
            assert!(
                policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
                "{policy}"
            );
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(own.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(own.header("cache-control"), Some("no-store"));
            let other = client::get(admin, path, &[("Host", "status.evil.example:9901")]).await.unwrap();
            assert_eq!(other.status(), 421, "{path}");
            assert!(!other.text().contains("description"), "{path}");
        }
        let posted = client::request(admin, "POST", "/status", &[], b"x").await.unwrap();
        assert_eq!((posted.status(), posted.header("allow")), (405, Some("GET, HEAD")));
        assert_eq!(client::get(admin, "/incidents/none.html", &[]).await.unwrap().status(), 404);
    });
}
