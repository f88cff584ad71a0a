//! Elapsed times, by their medians. These tests run alone.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use tokio::time::Instant;

use crate::raw::{Wires, direct};
use crate::saturation::{hold, two_places};
use crate::support::{BOUND, Policy, expect, run};

const DEADLINE: Duration = Duration::from_millis(300);
/// What the end of a deadline may be late by.
const LATE: Duration = Duration::from_millis(50);

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Five times the same request, one after the other.
async fn took(wires: &Wires, path: &str, check: impl Fn(&Response)) -> Duration {
    let mut times = Vec::new();
    for _ in 0..5 {
        let answer = wires.gateway.get(path, &[]).await;
        check(&answer);
        times.push(answer.took);
    }
    median(times)
}

#[test]
fn a_refusal_takes_less_than_five_milliseconds() {
    run(async {
        let wires = two_places().await;
        let gate = Gate::new();
        let _held = hold(&wires, &gate, &["/held/1", "/held/2"]).await;
        let before = wires.origin.stats();
        let mut times = Vec::new();
        for _ in 0..200 {
            let refused = wires.gateway.get("/third", &[]).await;
            assert_eq!(refused.header("backstop"), Some("outcome=rejected, reason=capacity"));
            times.push(refused.took);
        }
        let median = median(times);
        assert!(median < Duration::from_millis(5), "{median:?}");
        assert_eq!(wires.origin.stats().requests, before.requests);
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}

/// Two routes with the deadline, one that must answer with a copy or 503 and one that passes on.
fn policy(origin: std::net::SocketAddr, dependency: &str) -> Policy {
    Policy::empty()
        .dependency("catalog", origin, dependency)
        .route("held.direct", &direct("GET /held", "deadline = \"9s\""))
        .route(
            "read.public_read",
            "match = \"GET /read\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 8\nmax_age = \"60s\"",
        )
        .route("rest.direct", &direct("*", "deadline = \"300ms\""))
}

#[test]
fn whatever_hangs_ends_at_the_deadline() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "connect = \"290ms\"")).await;
        let hangs = [
            ("nothing comes", Behaviour::hang()),
            ("the body drips", Behaviour::drip_forever(Duration::from_millis(10))),
            ("the head drips", Behaviour::slow_head(Duration::from_millis(20))),
            ("the body stops", Answer::new(200).chunked(1).endless(Duration::from_secs(60)).into()),
        ];
        for (what, behaviour) in hangs {
            wires.origin.on(Matcher::any(), behaviour);
            for path in ["/read", "/direct"] {
                let median = took(&wires, path, |answer| {
                    let kept = path == "/direct" && answer.status() == 200 && !answer.is_complete();
                    assert!(matches!(answer.status(), 503 | 504) || kept, "{what} {path}: {:?}", answer.head);
                })
                .await;
                assert!(median <= DEADLINE + LATE, "{what} {path}: {median:?}");
                assert!(
                    median >= DEADLINE / 2,
                    "{what} {path}: most of the time is the dependency's: {median:?}"
                );
            }
        }
        wires.origin.fill_backlog().await.unwrap();
        wires.origin.close_connections();
        let accepted = wires.origin.connections_accepted();
        for path in ["/read", "/direct"] {
            let median = took(&wires, path, |answer| assert!(matches!(answer.status(), 503 | 504))).await;
            assert!(
                median <= DEADLINE + LATE && median >= DEADLINE / 2,
                "a slow connect, {path}: {median:?}"
            );
        }
        assert_eq!(wires.origin.connections_accepted(), accepted);
    });
}

#[test]
fn a_full_pool_ends_at_the_deadline() {
    run(async {
        let wires = Wires::with(|origin| policy(origin, "connections = 1\nqueue = \"290ms\"")).await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let median = took(&wires, "/read", |answer| assert_eq!(answer.status(), 503)).await;
        assert!(median <= DEADLINE + LATE && median >= DEADLINE / 2, "{median:?}");
        let opened = wires.origin.connections_accepted();
        gate.open();
        held[0].read_response().await.unwrap();
        expect::idle(&wires.gateway).await;
        assert_eq!(
            (wires.origin.count(), wires.origin.connections_accepted()),
            (1, opened),
            "nothing started late"
        );
    });
}

/// A client that does not take its reply is left after `reply_time`, and what it held is free again.
#[test]
fn a_client_that_does_not_read_is_left() {
    run(async {
        let wires = Wires::impatient().await;
        wires.origin.on(Matcher::any(), Answer::new(200).body(vec![b'x'; 64 << 20]));
        let mut times = Vec::new();
        for round in 1..=3 {
            let mut connection = wires.connect().await;
            connection.send(b"GET /large HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
            connection.read_at_least(1).await.unwrap();
            let began = Instant::now();
            wires.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == round).await;
            times.push(began.elapsed());
            expect::idle(&wires.gateway).await;
            let tail = connection.bound(BOUND).read_to_end().await;
            assert!(tail.bytes.len() < 64 << 20, "it was cut");
        }
        let median = median(times);
        assert!(median >= Duration::from_millis(250) && median < Duration::from_millis(700), "{median:?}");
        assert_eq!(wires.gateway.metrics().await.dependency_failures(), 0);
    });
}
