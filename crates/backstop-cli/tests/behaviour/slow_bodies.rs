//! An answer whose head comes at once and whose rest does not: slow, as if its head had been. And whose time it was.

use std::time::Duration;

use backstop_lab::client::{self, Connection};
use backstop_lab::origin::{Answer, Behaviour, CutAt, Matcher, Then};

use crate::support::{BOUND, Metrics, Policy, Shop, run};

/// Five calls, more than half of which are slow, open it.
const BREAKER: &str =
    "breaker = { min_calls = 5, slow = \"150ms\", slow_share = \"60%\", open = \"5s\", probes = 2 }";
const SHORT_WINDOW: &str =
    "breaker = { window = \"1s\", min_calls = 5, slow = \"2s\", open = \"5s\", probes = 2 }";
const REQUEST: &[u8] = b"GET /feed HTTP/1.1\r\nHost: shop.example\r\n\r\n";

async fn shop(route: &str) -> Shop {
    with(BREAKER, route).await
}

async fn with(breaker: &str, route: &str) -> Shop {
    let route = format!("match = \"*\"\ndependency = \"catalog\"\nin_flight = 40\n{route}");
    Shop::with(|origin| Policy::empty().dependency("catalog", origin, breaker).route("feed.direct", &route))
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

async fn phase(shop: &Shop) -> &'static str {
    let metrics = shop.gateway.metrics().await;
    let is_it = |name: &&str| metrics.sum("backstop_breaker_phase", &[&format!("phase=\"{name}\"")]) == 1.0;
    ["closed", "open", "half_open", "ramp", "watch"].into_iter().find(is_it).expect("it is in one")
}

/// A client that has the head and ten bytes.
async fn reading(shop: &Shop) -> Connection {
    reading_unless_open(shop).await.expect("the breaker is closed")
}

/// As [`reading`], unless the breaker refuses: time that has gone by is counted by the threads of the calls, each when it runs.
async fn reading_unless_open(shop: &Shop) -> Option<Connection> {
    let mut client = Connection::open(shop.gateway.addr).await.unwrap();
    client.send(REQUEST).await.unwrap();
    let read = client.read_at_least(1).await.unwrap();
    if read.starts_with(b"HTTP/1.1 503 ") {
        assert!(is_open(&shop.gateway.metrics().await), "{read:?}");
        return None;
    }
    assert!(read.starts_with(b"HTTP/1.1 200 "), "{read:?}");
    Some(client)
}

/// Clients that leave after 160 ms: of the first five each is a slow call, and nobody after them reaches the origin.
#[test]
fn clients_that_leave_a_body_that_hangs_open_it() {
    run(async {
        let mut shop = shop("deadline = \"2s\"").await;
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
        let mut shop = shop("deadline = \"2s\"").await;
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
        let mut shop = shop("deadline = \"2s\"").await;
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
        let mut shop = shop("deadline = \"2s\"\nidle = \"10s\"").await;
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

/// Ten requests a second for what is slow after two seconds, ends after four, and was begun before the window of one: each is one
/// call of it, and the fifth that is slow opens it.
#[test]
fn what_outlasts_the_window_is_counted_all_the_same() {
    run(async {
        let mut shop = with(SHORT_WINDOW, "deadline = \"4s\"").await;
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        let mut clients = Vec::new();
        for number in 1.. {
            if is_open(&shop.gateway.metrics().await) {
                break;
            }
            assert!(number < 40, "it never opens");
            let Some(client) = reading_unless_open(&shop).await else { break };
            clients.push(client);
            shop.hand.advance(Duration::from_millis(100));
        }
        assert!(shop.origin.count() <= 20 + 6, "{}", shop.origin.count());
    });
}

/// What a probe proves it proves with its whole answer. Its client sees none of it before, and its failure then.
#[test]
fn heads_alone_close_no_breaker() {
    run(async {
        let mut shop = shop("deadline = \"2s\"").await;
        shop.is_unavailable();
        for _ in 0..5 {
            assert_eq!(shop.gateway.get("/feed", &[]).await.status(), 503);
        }
        shop.origin.on(Matcher::any(), half_and_then_nothing());
        for _ in 0..3 {
            shop.hand.advance(Duration::from_secs(7));
            let address = shop.gateway.addr;
            let before = shop.origin.count();
            let probes: Vec<_> = (0..2)
                .map(|_| tokio::spawn(async move { client::get(address, "/feed", &[]).await.unwrap() }))
                .collect();
            shop.origin.wait_for(before + 2, BOUND).await.unwrap();
            for _ in 0..5 {
                assert_eq!(shop.gateway.get("/feed", &[]).await.status(), 503);
            }
            assert_eq!(phase(&shop).await, "half_open");
            shop.hand.advance(Duration::from_secs(2));
            for probe in probes {
                assert_eq!(probe.await.unwrap().status(), 504);
            }
            assert_eq!((phase(&shop).await, shop.origin.count()), ("open", before + 2));
            // The pause doubles.
            shop.hand.advance(Duration::from_secs(30));
        }
    });
}

/// A 404 of 900 kB, which is more than a socket holds, to somebody who takes none of it for twelve seconds.
#[test]
fn a_client_that_does_not_read_keeps_nobody_out() {
    run(async {
        let mut shop = shop("deadline = \"2s\"\nlimits = { reply_time = \"1h\" }").await;
        shop.is_unavailable();
        for _ in 0..5 {
            shop.gateway.get("/feed", &[]).await;
        }
        shop.hand.advance(Duration::from_secs(7));
        shop.origin.on(Matcher::path("/missing"), Answer::new(404).body("x".repeat(900_000)));
        shop.origin.on(Matcher::path("/feed"), Answer::new(200).body("fed"));
        let mut unread = Vec::new();
        for number in 1..=4 {
            let mut client = Connection::open(shop.gateway.addr).await.unwrap();
            client.send(b"GET /missing HTTP/1.1\r\nHost: shop.example\r\n\r\n").await.unwrap();
            shop.origin.wait_for(5 + number, BOUND).await.unwrap();
            shop.gateway
                .metrics_until(|metrics| metrics.sum("backstop_in_flight", &["scope=\"dependency\""]) == 0.0)
                .await;
            unread.push(client);
        }
        shop.hand.advance(Duration::from_secs(12));
        assert_eq!(phase(&shop).await, "half_open");
        for _ in 0..2 {
            assert_eq!(shop.gateway.get("/feed", &[]).await.text(), "fed");
        }
        assert_eq!(phase(&shop).await, "ramp");
    });
}

/// A service that answers before it has read: while its client still sends, the client is waited for, and not the service.
#[test]
fn clients_that_are_slow_to_send_make_nobody_slow() {
    run(async {
        for (sent, opens) in [("01234", false), ("0123456789", true)] {
            let mut shop = shop("deadline = \"10s\"").await;
            shop.origin.on(Matcher::any(), Behaviour::from(half_and_then_nothing()).before_body());
            let mut clients = Vec::new();
            for _ in 0..6 {
                let mut client = Connection::open(shop.gateway.addr).await.unwrap();
                let head = "POST /feed HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\n";
                client.send(format!("{head}{sent}").as_bytes()).await.unwrap();
                assert!(client.read_at_least(1).await.unwrap().starts_with(b"HTTP/1.1 200 "));
                clients.push(client);
            }
            shop.hand.advance(Duration::from_secs(2));
            if opens {
                shop.gateway.metrics_until(is_open).await;
            } else {
                assert_eq!(phase(&shop).await, "closed");
                // Once more, with every timer that there is.
                shop.hand.advance(Duration::from_secs(20));
                assert_eq!(phase(&shop).await, "closed");
            }
        }
    });
}

/// The same where the answer is held back until it is whole, and the clients leave before it is.
#[test]
fn clients_that_are_slow_to_send_make_nobody_slow_whose_answer_is_held_back() {
    run(async {
        for (sent, opens) in [("01234", false), ("0123456789", true)] {
            let route = "match = \"GET /feed\"\ndependency = \"catalog\"\ndeadline = \"10s\"\nin_flight = 40\notherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";
            let mut shop = Shop::with(|origin| {
                Policy::empty().dependency("catalog", origin, BREAKER).route("feed.optional", route)
            })
            .await;
            shop.origin.on(Matcher::any(), Behaviour::from(half_and_then_nothing()).before_body());
            let mut clients = Vec::new();
            for _ in 0..6 {
                let mut client = Connection::open(shop.gateway.addr).await.unwrap();
                let head = "GET /feed HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\n";
                client.send(format!("{head}{sent}").as_bytes()).await.unwrap();
                clients.push(client);
            }
            shop.gateway
                .metrics_until(|metrics| {
                    metrics.sum("backstop_upstream_phase_seconds_count", &["phase=\"head\""]) == 6.0
                })
                .await;
            shop.hand.advance(Duration::from_secs(2));
            for client in clients {
                client.reset().unwrap();
            }
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 6).await;
            assert_eq!(phase(&shop).await, if opens { "open" } else { "closed" }, "{sent}");
        }
    });
}
