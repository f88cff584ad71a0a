//! An answer whose head comes at once and whose rest does not: slow, as if its head had been.

use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, CutAt, Matcher, Then};

use crate::support::{Metrics, Policy, Shop, run};

/// Five calls, more than half of which are slow, open it.
const BREAKER: &str =
    "breaker = { min_calls = 5, slow = \"150ms\", slow_share = \"60%\", open = \"5s\", probes = 2 }";
const REQUEST: &[u8] = b"GET /feed HTTP/1.1\r\nHost: shop.example\r\n\r\n";

async fn shop(route: &str) -> Shop {
    let route =
        format!("match = \"*\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 40\n{route}");
    Shop::with(|origin| Policy::empty().dependency("catalog", origin, BREAKER).route("feed.direct", &route))
        .await
}

/// A head and ten bytes of twenty, and then nothing.
fn half_and_then_nothing() -> Answer {
    Answer::new(200)
        .header("Content-Type", "text/plain")
        .body("x".repeat(20))
        .cut(CutAt::Body(10), Then::Hang)
}

fn is_open(metrics: &Metrics) -> bool {
    metrics.sum("backstop_breaker_phase", &["phase=\"open\""]) == 1.0
}

/// A client that has the head and ten bytes.
async fn reading(shop: &Shop) -> Connection {
    let mut client = Connection::open(shop.gateway.addr).await.unwrap();
    client.send(REQUEST).await.unwrap();
    let read = client.read_at_least(1).await.unwrap();
    assert!(read.starts_with(b"HTTP/1.1 200 "), "{read:?}");
    client
}

/// Clients that leave after 160 ms: of the first five each is a slow call, and nobody after them reaches the origin.
#[test]
fn clients_that_leave_a_body_that_hangs_open_it() {
    run(async {
        let mut shop = shop("").await;
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        for number in 1..=5 {
            let client = reading(&shop).await;
            shop.hand.advance(Duration::from_millis(160));
            client.reset().unwrap();
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == number).await;
        }
        for _ in 0..20 {
            let refused = shop.gateway.get("/feed", &[]).await;
            assert_eq!(refused.header("backstop").unwrap().rsplit("reason=").next(), Some("breaker_open"));
        }
        assert_eq!(shop.origin.count(), 5);
    });
}

/// Clients that stay: it is told when it is slow, not when the deadline is over.
#[test]
fn a_body_that_hangs_is_slow_before_it_ends() {
    run(async {
        let mut shop = shop("").await;
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(reading(&shop).await);
        }
        shop.hand.advance(Duration::from_millis(150));
        assert!(!is_open(&shop.gateway.metrics().await), "exactly 150 ms are accepted");
        shop.hand.advance(Duration::from_millis(1));
        shop.gateway.metrics_until(is_open).await;
        assert!(clients.iter_mut().all(|client| !client.has_ended()), "nobody is cut off by that");
    });
}

/// Leaving earlier says nothing of what would have come.
#[test]
fn clients_that_leave_a_body_earlier_say_nothing() {
    run(async {
        let mut shop = shop("").await;
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        for number in 1..=10 {
            let client = reading(&shop).await;
            shop.hand.advance(Duration::from_millis(140));
            client.reset().unwrap();
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == number).await;
        }
        assert!(!is_open(&shop.gateway.metrics().await));
        assert_eq!(shop.origin.count(), 10);
    });
}

/// A route that accepts silence between two pieces.
#[test]
fn a_stream_without_end_may_be_silent() {
    run(async {
        let mut shop = shop("idle = \"10s\"").await;
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        let mut clients = Vec::new();
        for _ in 0..6 {
            clients.push(reading(&shop).await);
        }
        shop.hand.advance(Duration::from_secs(9));
        drop(clients);
        shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 6).await;
        assert!(!is_open(&shop.gateway.metrics().await));
    });
}
