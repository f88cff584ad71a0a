//! Clients that leave: whatever they held comes back, and nothing of it is the dependency's failure.

use std::time::Duration;

use backstop_lab::load::{Kind, Plan};
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use tokio::task::JoinSet;

use crate::raw::{Wires, direct};
use crate::support::{BOUND, Policy, expect, run};

async fn open(more: &str) -> Wires {
    Wires::with(|origin| {
        Policy::empty()
            .gateway("in_flight = 20000")
            .dependency("catalog", origin, "connections = 256")
            .route("all.direct", &direct("*", more))
    })
    .await
}

#[test]
fn a_thousand_clients_that_reset_in_the_middle_leave_nothing_behind() {
    run(async {
        let wires = open("in_flight = 200\nabandon_hold = \"0ms\"").await;
        let gate = Gate::new();
        wires.origin.on(Matcher::any(), Answer::json("{}").gate(&gate));
        let mut expected = 0;
        for _ in 0..10 {
            let mut clients = Vec::new();
            for _ in 0..100 {
                let mut connection = wires.connect().await;
                connection.send(b"GET /held HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
                clients.push(connection);
            }
            expected += 100;
            wires
                .gateway
                .metrics_until(|metrics| metrics.sum("backstop_in_flight", &["scope=\"route\""]) == 100.0)
                .await;
            for client in clients {
                client.reset().unwrap();
            }
            wires.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == expected).await;
        }
        expect::idle(&wires.gateway).await;
        let metrics = wires.gateway.metrics().await;
        assert_eq!((metrics.outcomes().abandoned, metrics.dependency_failures()), (1000, 0));
        gate.open();
        wires.origin.reset();
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
    });
}

/// In any phase: before the head is whole, behind it, in the middle of a body, while an answer comes.
#[test]
fn ten_thousand_connections_that_break_off_anywhere_leave_nothing_behind() {
    let beginnings: [&[u8]; 5] = [
        b"",
        b"GET /p/1 HTT",
        b"GET /p/1 HTTP/1.1\r\nHost: shop\r\n\r\n",
        b"POST /p/1 HTTP/1.1\r\nHost: shop\r\nContent-Length: 9\r\n\r\nhalf",
        b"GET /p/1 HTTP/1.1\r\nHost: shop\r\n\r\nGET /p/2 HTTP/1.1\r\nHost: shop\r\n\r\n",
    ];
    run(async {
        let wires = open("in_flight = 64").await;
        wires.origin.default(Behaviour::from(Answer::new(200).body(vec![b'x'; 20_000])));
        let mut leaving = JoinSet::new();
        for worker in 0..20 {
            let addr = wires.gateway.addr;
            leaving.spawn(async move {
                for number in 0..500 {
                    let connection = backstop_lab::client::Connection::open(addr).await;
                    let mut connection = connection.expect("the gateway accepts").bound(BOUND);
                    let beginning = (worker + number) % beginnings.len();
                    connection.send(beginnings[beginning]).await.unwrap();
                    // Where there will be an answer, some go in its midst.
                    if number % 3 == 0 && matches!(beginning, 2 | 4) {
                        let _some_of_it = connection.read_at_least(1).await;
                    }
                    if number % 2 == 0 {
                        connection.reset().unwrap();
                    }
                }
            });
        }
        while let Some(left) = leaving.join_next().await {
            left.unwrap();
        }
        let gone = |metrics: &crate::support::Metrics| {
            metrics.in_flight() == 0 && metrics.sum("backstop_client_connections", &[]) == 0.0
        };
        let metrics = wires.gateway.metrics_until(gone).await;
        assert_eq!(metrics.sum("backstop_client_connections_accepted_total", &[]), 10_000.0);
        assert_eq!(metrics.dependency_failures(), 0);
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
    });
}

/// The load tool's clients give up after 20 ms, long before the origin answers.
#[test]
fn impatient_load_leaves_nothing_behind() {
    run(async {
        let wires = open("in_flight = 200").await;
        wires.origin.default(Answer::json("{}").delay(Duration::from_millis(60)));
        let plan = Plan::new(wires.gateway.addr, 1000.0, Duration::from_secs(1))
            .connections(200)
            .timeout(Duration::from_millis(20))
            .kind(Kind::get("/p/1"));
        let summary = backstop_lab::load::run(plan).await.unwrap();
        assert_eq!(summary.total.offered, 1000);
        assert!(summary.total.failed > 0, "{summary:?}");
        expect::idle(&wires.gateway).await;
        let metrics = wires.gateway.metrics().await;
        assert!(metrics.outcome("abandoned") > 0);
        assert_eq!(metrics.dependency_failures(), 0);
        let open = ["state=\"in_use\""];
        wires
            .gateway
            .metrics_until(|metrics| metrics.sum("backstop_upstream_connections", &open) == 0.0)
            .await;
    });
}
