//! A graceful stop: what is under way finishes, what is new is refused, and all of it within a bound.

use std::time::Duration;

use backstop_lab::client::Ending;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use tokio::time::Instant;

use crate::raw::{Wires, direct, everything};
use crate::saturation::hold;
use crate::support::gateway::{folder, output};
use crate::support::shop::{SPANISH, down};
use crate::support::{BOUND, Gateway, Policy, Shop, expect, product, run};

#[test]
fn a_request_under_way_finishes_and_new_ones_are_refused_at_once() {
    run(async {
        let mut wires = Wires::open().await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let mut idle = wires.connect().await;
        assert_eq!(idle.get("/before", &[]).await.unwrap().status(), 200);
        let mut unused = wires.connect().await;
        let asked = wires.origin.count();

        wires.gateway.signal("TERM");
        // A connection that rests is closed, whether it was used before or not.
        assert_eq!(idle.read_to_end().await.ending, Ending::Fin);
        assert_eq!(unused.read_to_end().await.ending, Ending::Fin);
        let refused = wires.gateway.get("/new", &[]).await;
        expect::refused(&refused, 503, "outcome=rejected, reason=draining");
        assert!(refused.took < Duration::from_millis(50), "{:?}", refused.took);
        assert!(refused.head.fields.lists("connection", "close"));
        let ready = backstop_lab::client::get(wires.gateway.admin, "/readyz", &[]).await.unwrap();
        assert_eq!((ready.status(), ready.json().unwrap()["draining"].as_bool()), (503, Some(true)));
        let alive = backstop_lab::client::get(wires.gateway.admin, "/livez", &[]).await.unwrap();
        assert_eq!(alive.status(), 200);
        assert_eq!(wires.origin.count(), asked, "the origin is not asked any more");

        gate.open();
        let finished = held[0].read_response().await.unwrap();
        assert_eq!((finished.status(), finished.text().as_str()), (200, "{}"));
        assert_eq!(held[0].read_to_end().await.ending, Ending::Fin);
        assert_eq!(wires.gateway.wait().code(), Some(0));
        wires
            .origin
            .wait_until(BOUND, |stats| stats.connections_open == 0)
            .await
            .expect("no connection is left");
    });
}

/// An answer is given when the client has it, not when it lies ready for it.
#[test]
fn answers_that_wait_for_slow_readers_are_not_cut() {
    run(async {
        let mut wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("limits = { head = \"1 MiB\" }")
                .dependency("catalog", origin, "")
                .route("all.direct", &direct("*", "idle = \"9s\""))
        })
        .await;
        // hyper keeps up to as much as a head of what the system does not take: among these sizes, some lie there.
        const STEP: usize = 512 << 10;
        wires.origin.default(Behaviour::from_fn(|request| {
            let steps = request.target.trim_start_matches('/').parse().unwrap_or(0);
            Answer::new(200).body(vec![b'x'; steps * STEP])
        }));
        let mut connections = Vec::new();
        for steps in 1..=16_usize {
            let mut connection = wires.connect().await;
            let head = format!("GET /{steps} HTTP/1.1\r\nHost: shop\r\n\r\n");
            connection.send(head.as_bytes()).await.unwrap();
            connections.push((steps, connection));
        }
        wires.origin.wait_until(BOUND, |stats| stats.requests == 16).await.unwrap();
        answers_lie_ready(&wires).await;
        wires.gateway.signal("TERM");
        for (steps, mut connection) in connections.into_iter().rev() {
            let answer =
                connection.read_response().await.unwrap_or_else(|error| panic!("{steps}: {error:?}"));
            assert_eq!((answer.status(), answer.body.len(), answer.is_complete()), (200, steps * STEP, true));
            assert_eq!(connection.read_to_end().await.ending, Ending::Fin);
            if steps > 14 {
                // It is stopping, and waits for those who have not read yet: 7 MiB are more than the system takes.
                let refused = wires.gateway.get("/0", &[]).await;
                expect::refused(&refused, 503, "outcome=rejected, reason=draining");
            }
        }
        assert_eq!(wires.gateway.wait().code(), Some(0));
    });
}

/// Waits until nothing moves any more: no place and no connection is given back while the gateway is asked twenty times.
async fn answers_lie_ready(wires: &Wires) {
    let held = async || {
        let metrics = wires.gateway.metrics().await;
        let in_use = metrics.sum("backstop_upstream_connections", &["state=\"in_use\""]);
        (metrics.in_flight(), in_use, wires.origin.stats().finished)
    };
    let waiting = async {
        let (mut before, mut same) = (held().await, 0);
        while same < 20 {
            let now = held().await;
            same = if now == before { same + 1 } else { 0 };
            before = now;
        }
    };
    tokio::time::timeout(BOUND, waiting).await.expect("it comes to rest");
}

/// What does not finish in time is cut, and the stop is a success all the same.
#[test]
fn the_stop_has_a_bound() {
    run(async {
        let mut wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("drain = \"300ms\"")
                .dependency("catalog", origin, "")
                .route("events.direct", &direct("*", "deadline = \"300ms\"\nidle = \"10s\""))
        })
        .await;
        let endless = Answer::new(200).chunked(1).endless(Duration::from_millis(10));
        wires.origin.on(Matcher::path("/events"), endless);
        let mut connection = wires.connect().await;
        connection.send(b"GET /events HTTP/1.1\r\nHost: shop\r\n\r\n").await.unwrap();
        connection.read_at_least(200).await.unwrap();
        let began = Instant::now();
        wires.gateway.signal("TERM");
        assert_eq!(wires.gateway.wait().code(), Some(0));
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(3), "{took:?}");
        let cut = connection.read_to_end().await;
        assert!(!cut.bytes.ends_with(b"0\r\n\r\n"), "cut, not ended");
    });
}

#[test]
fn a_second_signal_ends_at_once() {
    run(async {
        let mut wires = Wires::open().await;
        let gate = Gate::new();
        let _held = hold(&wires, &gate, &["/held"]).await;
        let mut idle = wires.connect().await;
        wires.gateway.signal("TERM");
        assert_eq!(idle.read_to_end().await.ending, Ending::Fin, "the signal has come");
        // A thread that hears of it a moment later may still take the connection, and close it unused.
        let refused = async {
            loop {
                if let Ok(answer) = backstop_lab::client::get(wires.gateway.addr, "/new", &[]).await {
                    break answer;
                }
            }
        };
        let refused = tokio::time::timeout(BOUND, refused).await.expect("an answer");
        assert_eq!(refused.status(), 503, "it is stopping and waits for the one that is held");
        wires.gateway.signal("INT");
        assert_eq!(wires.gateway.wait().code(), Some(130));
    });
}

/// Ctrl-C is a stop like any other.
#[test]
fn an_interrupt_lets_a_request_under_way_finish() {
    run(async {
        let mut wires = Wires::open().await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let mut idle = wires.connect().await;
        wires.gateway.signal("INT");
        assert_eq!(idle.read_to_end().await.ending, Ending::Fin, "the signal has come");
        gate.open();
        let finished = held[0].read_response().await.unwrap();
        assert_eq!((finished.status(), finished.is_complete()), (200, true));
        assert_eq!(wires.gateway.wait().code(), Some(0));
    });
}

/// There is no reload in this version: asked for one, the process says so and goes on, as often as it is asked.
#[test]
fn a_hangup_is_said_to_do_nothing_and_ends_nothing() {
    run(async {
        let mut wires = Wires::open().await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held"]).await;
        let told = |gateway: &Gateway| {
            let log = gateway.log();
            log.iter().filter(|line| line.contains("a reload is not available in this version")).count()
        };
        for times in 1..=2 {
            wires.gateway.signal("HUP");
            let waiting = async {
                while told(&wires.gateway) < times {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let said = tokio::time::timeout(BOUND, waiting).await;
            assert!(said.is_ok(), "{:#?}", wires.gateway.log());
        }
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200);
        wires.gateway.signal("TERM");
        wires.gateway.signal("HUP");
        gate.open();
        assert_eq!(held[0].read_response().await.unwrap().status(), 200);
        assert_eq!(wires.gateway.wait().code(), Some(0));
    });
}

/// Copies that wait for the disk are written before the end, with their dates.
#[test]
fn copies_are_on_disk_before_the_end() {
    run(async {
        let on_disk =
            |origin| Policy::shop(origin).store("snapshots = { memory = \"16 MiB\", disk = \"16 MiB\" }");
        let mut shop = Shop::with(on_disk).await;
        let policy = on_disk(shop.origin.addr());
        for id in 0..50 {
            assert_eq!(shop.get(&id.to_string()).await.status(), 200);
        }
        let reading = shop.hand.reading();
        let Shop { origin, gateway, .. } = shop;
        let folder = gateway.stop();
        down(&origin).await;
        let clock = reading.after(Duration::from_secs(30)).as_start();
        let gateway = Gateway::start_with_clock(&folder, &policy, &clock);
        for id in 0..50 {
            let answer = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            expect::copy(&answer, &product(&id.to_string(), "first", "es"), 30, "connect");
        }
    });
}

/// Nothing is half served: an address that is in use is an error that names it, with a hint, and exit status 2.
#[test]
fn an_address_in_use_is_a_clear_error() {
    run(async {
        let wires = Wires::open().await;
        let taken = wires.gateway.addr;
        for key in ["listen", "admin"] {
            let policy = everything(wires.origin.addr()).gateway(&format!("{key} = \"{taken}\""));
            let folder = folder();
            std::fs::write(folder.join("policy.toml"), policy.text()).unwrap();
            let (status, out, err) = output(&["run", "policy.toml"], &folder);
            assert_eq!((status.code(), out.as_str()), (Some(2), ""), "{err}");
            assert!(err.contains(&format!("cannot listen on {taken}")), "{err}");
            assert!(err.contains("another process listens there"), "{err}");
        }
        assert_eq!(wires.gateway.get("/p/1", &[]).await.status(), 200, "the one that runs is not disturbed");
    });
}
