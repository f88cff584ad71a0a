//! What the operators' port says of incidents and breakers, and what lies on disk of them.

use std::path::PathBuf;
use std::time::Duration;

use backstop_lab::client::{self, Response};
use serde_json::Value;

use super::{BOUND, Gateway, Hand, Policy, Reading};

/// Copies, and with them everything else, survive a restart.
pub const DISK: &str = "snapshots = { memory = \"16 MiB\", disk = \"64 MiB\" }";
/// Opens with the second failure of four calls, for 5 s give or take a fifth, and closes with two successes and the whole
/// load at once.
pub const BREAKER: &str = "breaker = { window = \"10s\", min_calls = 4, failures = \"50%\", open = \"5s\", probes = 2 }\nrecovery = { start = \"100%\" }";
/// Writes of the shop, as a business function of their own.
pub const ORDERS: &str = "match = \"PUT /orders/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nfunction = \"order\"";

/// One dependency with a breaker; reads of the function `browse` and writes of the function `order`.
pub fn policy(origin: std::net::SocketAddr) -> Policy {
    Policy::empty()
        .store(DISK)
        .dependency("catalog", origin, BREAKER)
        .route("description.public_read", &Policy::description("function = \"browse\""))
        .route("order.direct", ORDERS)
}

/// One page of the operators' port.
pub async fn page(gateway: &Gateway, path: &str) -> Value {
    let answer = client::get(gateway.admin, path, &[]).await.expect("the operators' port answers");
    assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
    answer.json().expect("JSON")
}

/// A second goes by, and the gateway has counted what happened in it.
pub async fn second(gateway: &Gateway, hand: &mut Hand) -> Reading {
    end_of_second(gateway, hand, Duration::from_secs(1)).await
}

/// The rest of a second goes by, and the gateway has counted what happened in it.
pub async fn end_of_second(gateway: &Gateway, hand: &mut Hand, rest: Duration) -> Reading {
    let now = hand.pass(rest);
    let counted = async {
        while page(gateway, "/incidents").await["counted_until"]["boot_ns"].as_i64() != Some(now.mono) {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(BOUND, counted).await.is_ok(), "nobody counted: {:#?}", gateway.log());
    now
}

/// The identity of the incident that is not over.
pub async fn current(gateway: &Gateway) -> Option<String> {
    page(gateway, "/incidents").await["current"]["id"].as_str().map(String::from)
}

/// The phase of the incident that is not over.
pub async fn phase(gateway: &Gateway) -> Option<String> {
    page(gateway, "/incidents").await["current"]["phase"].as_str().map(String::from)
}

/// The file of an incident.
pub fn file_of(gateway: &Gateway, id: &str) -> PathBuf {
    gateway.folder().join(format!("backstop-data/incidents/{id}.json"))
}

/// Waits until a file holds JSON that satisfies a condition, within the bound. What it then holds.
pub async fn file_until(path: &std::path::Path, wanted: impl Fn(&Value) -> bool) -> Value {
    let reading = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if let Ok(value) = serde_json::from_str::<Value>(&text)
                && wanted(&value)
            {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let read = tokio::time::timeout(BOUND, reading).await;
    read.unwrap_or_else(|_| panic!("{}: {:?}", path.display(), std::fs::read_to_string(path)))
}

/// Waits until the file of breakers says that `catalog` is in a phase.
pub async fn saved(gateway: &Gateway, phase: &str) {
    let path = gateway.folder().join("backstop-data/breakers.json");
    file_until(&path, |file| file["dependencies"][0]["phase"] == phase).await;
}

/// An operator's order about a dependency's breaker.
pub async fn order(gateway: &Gateway, dependency: &str, body: &str) -> Response {
    let path = format!("/dependencies/{dependency}/breaker");
    let json = [("Content-Type", "application/json")];
    client::request(gateway.admin, "POST", &path, &json, body.as_bytes()).await.expect("an answer")
}
