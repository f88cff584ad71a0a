//! Connections to a dependency, as the dependency sees them.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Origin};
use tokio::task::JoinSet;

use crate::raw::{Wires, direct};
use crate::support::shop::down;
use crate::support::{BOUND, Gateway, Policy, expect, run};

#[test]
fn there_are_never_more_connections_than_allowed() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connections = 4\nqueue = \"1900ms\"")
                .route("all.direct", &direct("*", ""))
        })
        .await;
        wires.origin.default(Answer::json("{}").delay(Duration::from_millis(2)));
        let mut clients = JoinSet::new();
        for _ in 0..64 {
            let mut connection = wires.connect().await;
            clients.spawn(async move {
                for _ in 0..20 {
                    assert_eq!(connection.get("/p/1", &[]).await.unwrap().status(), 200);
                }
            });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        let stats = wires.origin.stats();
        assert_eq!(stats.requests, 64 * 20, "each once");
        assert!(stats.peak_connections <= 4, "{stats:?}");
        assert!(stats.connections_accepted <= 8, "kept and used again: {stats:?}");
    });
}

#[test]
fn a_connection_that_rests_too_long_is_closed() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("threads = 1")
                .dependency("catalog", origin, "idle = \"20s\"")
                .route("all.direct", &direct("*", ""))
        })
        .await;
        let mut hand = wires.gateway.hand();
        wires.gateway.get("/p/1", &[]).await;
        hand.advance(Duration::from_secs(15));
        wires.gateway.get("/p/1", &[]).await;
        assert_eq!(wires.origin.connections_accepted(), 1, "used again in time");
        hand.advance(Duration::from_secs(21));
        wires.origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
        let closed = ["reason=\"idle\""];
        let metrics = wires.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_upstream_connections_closed_total", &closed), 1.0);
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        assert_eq!(wires.origin.connections_accepted(), 2);
    });
}

/// Connections die while they rest; whoever comes next does not notice, and nothing is sent twice.
#[test]
fn a_connection_that_died_at_rest_is_replaced() {
    run(async {
        let wires = Wires::open().await;
        for round in 1..=20_u64 {
            let mut requests = JoinSet::new();
            for number in 0..4 {
                let addr = wires.gateway.addr;
                let method = if number % 2 == 0 { "GET" } else { "POST" };
                requests.spawn(async move {
                    let body: &[u8] = if method == "POST" { b"once" } else { b"" };
                    backstop_lab::client::request(addr, method, &format!("/p/{round}/{number}"), &[], body)
                        .await
                });
            }
            while let Some(answer) = requests.join_next().await {
                assert_eq!(answer.unwrap().unwrap().status(), 200, "round {round}");
            }
            if round % 2 == 0 {
                wires.origin.close_connections();
            } else {
                wires.origin.reset_connections();
            }
            wires.origin.wait_until(BOUND, |stats| stats.connections_open == 0).await.unwrap();
        }
        assert_eq!(wires.origin.count(), 80);
        for round in 1..=20 {
            for number in 0..4 {
                assert_eq!(
                    wires.origin.count_where(|request| request.target == format!("/p/{round}/{number}")),
                    1
                );
            }
        }
        assert_eq!(wires.gateway.metrics().await.dependency_failures(), 0);
    });
}

/// Once a byte may have been read, a request is not sent again: not a write, and not by this version's reads either.
#[test]
fn a_request_that_may_have_arrived_is_never_sent_again() {
    run(async {
        let wires = Wires::open().await;
        for kept in [false, true] {
            for behaviour in [Behaviour::close(), Behaviour::reset()] {
                for method in ["POST", "PUT", "GET"] {
                    wires.origin.reset();
                    if kept {
                        assert_eq!(wires.gateway.get("/warm", &[]).await.status(), 200);
                    }
                    wires.origin.on(Matcher::path("/p/1"), behaviour.clone());
                    let answer = wires.gateway.request(method, "/p/1", &[], b"once").await;
                    assert_eq!(answer.status(), 502, "{method}");
                    assert_eq!(wires.origin.count_of(method, "/p/1"), 1, "{method} kept: {kept}");
                }
            }
        }
    });
}

/// Two addresses of one dependency.
struct Two {
    first: Origin,
    second: Origin,
    gateway: Gateway,
}

async fn two() -> Two {
    let (first, second) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    let table =
        format!("url = [\"{}\", \"{}\"]\nconnect = \"500ms\"\nconnections = 16", first.url(), second.url());
    let policy = Policy::empty().table("dependency.catalog", &table).route("all.direct", &direct("*", ""));
    let gateway = Gateway::start(&policy);
    Two { first, second, gateway }
}

#[test]
fn the_address_with_the_least_in_flight_is_asked() {
    run(async {
        let Two { first, second, gateway } = two().await;
        let gate = Gate::new();
        for origin in [&first, &second] {
            origin.on(Matcher::path("/held"), Answer::json("{}").gate(&gate));
        }
        let mut held = Vec::new();
        for number in 1..=6 {
            let mut connection = backstop_lab::client::Connection::open(gateway.addr).await.unwrap();
            connection.send(b"GET /held HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
            gate.wait_for_waiting(number, BOUND).await.unwrap();
            held.push(connection);
        }
        assert_eq!((first.count(), second.count()), (3, 3));
        gate.open();
        for connection in &mut held {
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
    });
}

#[test]
fn another_address_is_tried_only_if_nothing_was_sent() {
    run(async {
        let Two { first, second, gateway } = two().await;
        down(&first).await;
        for method in ["GET", "POST"] {
            for _ in 0..10 {
                let answer = gateway.request(method, "/p/1", &[], b"once").await;
                assert_eq!(answer.status(), 200, "the other address answers");
            }
        }
        assert_eq!((first.count(), second.count()), (0, 20));
        first.accept_again().await.unwrap();

        let Two { first, second, gateway } = two().await;
        first.on(Matcher::any(), Behaviour::close());
        second.on(Matcher::any(), Behaviour::close());
        for method in ["GET", "POST"] {
            assert_eq!(gateway.request(method, "/p/1", &[], b"once").await.status(), 502);
        }
        assert_eq!(first.count() + second.count(), 2, "each was asked once, at one address");
        expect::idle(&gateway).await;
    });
}
