//! A small shop whose catalog breaks and comes back, with the clock moved second by second and traffic in each.

use std::time::Duration;

use backstop_lab::origin::{Behaviour, Origin};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, down};
use crate::support::state::{end_of_second, page};
use crate::support::{Gateway, Hand, Policy, products};

/// 2026-03-01T14:00:00Z, an hour after boot.
const START: &str = "freeze; at 3600000000000 1772373600000000000";
/// Opens with the second failure of four calls, is probed after 20 s, and gives the load back in steps of two seconds.
const BREAKER: &str = "uses = [\"catalog-db\"]\nbreaker = { window = \"10s\", min_calls = 4, failures = \"50%\", open = \"20s\", probes = 2 }\n\
    recovery = { start = \"20%\", up = 1.25, tick = \"2s\" }";

pub struct Town {
    pub catalog: Origin,
    /// It answers for as long as this is here.
    _recommender: Origin,
    pub gateway: Gateway,
    pub hand: Hand,
    requests: u64,
}

fn policy(catalog: &Origin, recommender: &Origin) -> Policy {
    let read = |function: &str| Policy::description(&format!("in_flight = 50\nfunction = \"{function}\""));
    Policy::empty()
        .gateway("name = \"shop-edge\"")
        .table("resource.catalog-db", "concurrency = 40")
        .dependency("catalog", catalog.addr(), BREAKER)
        .dependency("recommender", recommender.addr(), "connections = 8")
        .route("description.public_read", &read("browse"))
        .route(
            "recommendations.optional",
            "match = \"GET /p/{id}/recommendations\"\ndependency = \"recommender\"\ndeadline = \"300ms\"\nin_flight = 20\n\
             function = \"browse\"\notherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }",
        )
        .route(
            "order.direct",
            "match = \"POST /orders\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 20\nfunction = \"order\"",
        )
        .route(
            "search.direct",
            "match = \"GET /search\"\ndependency = \"recommender\"\ndeadline = \"1s\"\nin_flight = 20",
        )
}

impl Town {
    pub async fn open() -> Self {
        let (catalog, recommender) =
            (Origin::start().await.expect("an origin"), Origin::start().await.expect("an origin"));
        catalog.default(products("first"));
        recommender.default(Behaviour::json(r#"["1","2"]"#));
        let mut gateway = Gateway::start_with_clock(&folder(), &policy(&catalog, &recommender), START);
        HOST.clone_into(&mut gateway.host);
        let hand = gateway.hand();
        Self { catalog, _recommender: recommender, gateway, hand, requests: 0 }
    }

    /// Where the page is.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.gateway.admin)
    }

    /// Seconds with eight reads, two parts and two orders each, a twelfth of a second apart.
    pub async fn seconds(&mut self, seconds: u64) {
        const BETWEEN: Duration = Duration::from_millis(80);
        for _ in 0..seconds {
            for half in 0..2 {
                for product in 1..=4 {
                    self.read(half * 4 + product).await;
                    self.hand.pass(BETWEEN);
                }
                let part = format!("/p/{}/recommendations", half + 1);
                self.gateway.get(&part, &[]).await;
                self.hand.pass(BETWEEN);
                self.gateway.request("POST", "/orders", &[], b"{}").await;
                if half == 0 {
                    self.hand.pass(BETWEEN);
                }
            }
            self.requests += 12;
            let all = self.requests as f64;
            self.gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) == all).await;
            end_of_second(&self.gateway, &mut self.hand, Duration::from_secs(1) - BETWEEN * 11).await;
        }
    }

    async fn read(&self, product: u32) {
        let fields = [("Accept-Language", "es"), ("X-Tenant", "a")];
        self.gateway.get(&format!("/p/{product}"), &fields).await;
    }

    /// The catalog refuses connections.
    pub async fn breaks(&self) {
        down(&self.catalog).await;
    }

    /// The catalog is there again.
    pub async fn heals(&self) {
        self.catalog.accept_again().await.expect("the origin listens again");
    }

    /// The model.
    pub async fn status(&self) -> serde_json::Value {
        page(&self.gateway, "/status.json").await
    }
}
