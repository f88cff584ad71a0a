//! What a breaker counts, as it shows from outside: what the dependency did, and nothing that Backstop or the date did.

use std::time::Duration;

use backstop_lab::client::{self, Connection, Response};
use backstop_lab::origin::{Behaviour, Gate, Matcher};
use tokio::task::JoinHandle;

use crate::support::shop::{GET_PRODUCT_1, SPANISH};
use crate::support::{BOUND, Gateway, Policy, Shop, expect, product, products, run};

/// Five calls, more than half of which are failed or slow, open it for five seconds, give or take a fifth.
const BREAKER: &str = "breaker = { min_calls = 5, failures = \"50%\", slow = \"150ms\", slow_share = \"60%\", open = \"5s\", probes = 2 }";

async fn with(dependency: &str, read: &str) -> Shop {
    let shop = Shop::with(|origin| {
        Policy::empty()
            .table("resource.db", "concurrency = 2")
            .dependency("catalog", origin, &format!("{BREAKER}\n{dependency}"))
            .route("description.public_read", &Policy::description(read))
    })
    .await;
    shop.get("1").await;
    shop
}

fn asking(shop: &Shop, target: &'static str) -> JoinHandle<Response> {
    let address = shop.gateway.addr;
    tokio::spawn(async move { client::get(address, target, &SPANISH).await.unwrap() })
}

/// The one phase that the dependency is in, by its metric.
async fn phase(gateway: &Gateway) -> &'static str {
    let metrics = gateway.metrics().await;
    let names = ["closed", "open", "half_open", "ramp", "watch", "forced_open", "forced_closed"];
    let of = |name: &&str| metrics.sum("backstop_breaker_phase", &[&format!("phase=\"{name}\"")]) == 1.0;
    let present: Vec<_> = names.into_iter().filter(of).collect();
    assert_eq!((present.len(), metrics.sum("backstop_breaker_phase", &[])), (1, 1.0), "{present:?}");
    present[0]
}

async fn share(gateway: &Gateway) -> f64 {
    gateway.metrics().await.sum("backstop_ramp_share", &[])
}

/// A full route, a full dependency, a full resource: forty times refused, and nobody blames the dependency.
/// Of three connections, and of two places in the resource, reads may use one less.
#[test]
fn our_own_refusals_are_no_failures_of_the_dependency() {
    run(async {
        let full = [
            ("", "in_flight = 2", 2, "capacity"),
            ("connections = 3", "in_flight = 50", 2, "dependency_full"),
            ("uses = [\"db\"]", "in_flight = 50", 1, "resource_full"),
        ];
        for (dependency, read, places, reason) in full {
            let shop = with(dependency, read).await;
            let gate = Gate::new();
            shop.origin.on(Matcher::any(), products("held").gate(&gate));
            let held: Vec<_> = (0..places).map(|_| asking(&shop, "/p/1")).collect();
            gate.wait_for_waiting(places, BOUND).await.unwrap();
            for _ in 0..40 {
                let refused = shop.get("2").await;
                assert_eq!(refused.status(), 503);
                assert!(refused.header("backstop").unwrap().ends_with(reason), "{:?}", refused.head);
            }
            assert_eq!(shop.origin.count(), 1 + places as u64, "{reason}");
            gate.open();
            for held in held {
                expect::live(&held.await.unwrap(), 200, &product("1", "held", "es"));
            }
            assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0, "{reason}");
            assert_eq!(phase(&shop.gateway).await, "closed", "{reason}");
        }
    });
}

/// Clients that wait no longer than 160 ms, in front of an origin that hangs. No call ever comes to its own end, and the
/// origin is left alone all the same: what its callers gave up after it was slow counts as slow.
#[test]
fn clients_that_give_up_on_a_hanging_dependency_open_it() {
    run(async {
        let mut shop = with("", "").await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        for number in 1..=4 {
            let mut client = Connection::open(shop.gateway.addr).await.unwrap();
            client.send(GET_PRODUCT_1).await.unwrap();
            shop.origin.wait_for(1 + number, BOUND).await.unwrap();
            shop.hand.advance(Duration::from_millis(160));
            client.reset().unwrap();
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == number).await;
        }
        assert_eq!(phase(&shop.gateway).await, "open");
        expect::copy_unasked(&shop.get("1").await, &product("1", "first", "es"), 0, "breaker_open");
        assert_eq!(shop.origin.count(), 5);
    });
}

/// The same clients in front of an origin that was not slow yet: nothing is known of it, and nothing opens.
#[test]
fn clients_that_give_up_earlier_say_nothing() {
    run(async {
        let mut shop = with("", "").await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        for number in 1..=20 {
            let mut client = Connection::open(shop.gateway.addr).await.unwrap();
            client.send(GET_PRODUCT_1).await.unwrap();
            shop.origin.wait_for(1 + number, BOUND).await.unwrap();
            shop.hand.advance(Duration::from_millis(100));
            client.reset().unwrap();
            shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == number).await;
        }
        assert_eq!(phase(&shop.gateway).await, "closed");
    });
}

/// A dependency that hangs costs the first callers their wait, and nobody after them: forty copies without a moment of time.
#[test]
fn a_hang_is_not_waited_for_again_and_again() {
    run(async {
        let mut shop = with("", "").await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        for number in 2..=5 {
            let hung = asking(&shop, "/p/1");
            shop.origin.wait_for(number, BOUND).await.unwrap();
            shop.hand.advance(Duration::from_millis(300));
            assert_eq!(hung.await.unwrap().status(), 200);
        }
        // The clock stands still: whoever waited for the origin would wait for ever.
        for _ in 0..40 {
            expect::copy_unasked(&shop.get("1").await, &product("1", "first", "es"), 1, "breaker_open");
        }
        assert_eq!(shop.origin.count(), 5);
    });
}

/// The date is set an hour back and an hour ahead: an open breaker stays open for its time, and what was counted counts.
#[test]
fn a_step_of_the_date_moves_no_breaker() {
    run(async {
        let hour_ns = 3_600_000_000_000;
        for step_ns in [-hour_ns, hour_ns] {
            let mut shop = with("", "").await;
            shop.is_unavailable();
            for _ in 0..3 {
                shop.get("1").await;
            }
            shop.hand.wall(step_ns);
            assert_eq!(phase(&shop.gateway).await, "closed", "four calls are too few");
            shop.get("1").await;
            assert_eq!(phase(&shop.gateway).await, "open", "the five are all remembered");
            shop.hand.wall(-2 * step_ns);
            let before = shop.origin.count();
            shop.hand.advance(Duration::from_millis(3_999));
            shop.get("1").await;
            assert_eq!((phase(&shop.gateway).await, shop.origin.count()), ("open", before));
            shop.hand.advance(Duration::from_millis(2_001));
            shop.get("1").await;
            assert_eq!(shop.origin.count(), before + 1, "its time is over");
        }
    });
}

/// From closed to closed, each phase is the only one that is told. Nobody asks for ten minutes, and the share that it comes
/// back with stays where it is: nothing was seen that would speak for more.
#[test]
fn each_phase_is_told_alone_and_without_traffic_nothing_grows() {
    run(async {
        let mut shop = with("", "").await;
        assert_eq!(phase(&shop.gateway).await, "closed");
        shop.is_unavailable();
        for _ in 0..4 {
            shop.get("1").await;
        }
        assert_eq!((phase(&shop.gateway).await, share(&shop.gateway).await), ("open", 0.0));
        shop.origin.reset();
        shop.origin.default(products("second"));
        shop.hand.advance(Duration::from_secs(6));
        shop.get("1").await;
        assert_eq!(phase(&shop.gateway).await, "half_open");
        shop.get("1").await;
        assert_eq!((phase(&shop.gateway).await, share(&shop.gateway).await), ("ramp", 0.1));
        shop.hand.advance(Duration::from_secs(600));
        assert_eq!((phase(&shop.gateway).await, share(&shop.gateway).await), ("ramp", 0.1));
        // Five good answers and the end of a second: a step. Six steps, and it is given everything.
        for step in [0.15, 0.225, 0.337, 0.505, 0.757, 1.0] {
            for _ in 0..5 {
                shop.hand.advance(Duration::from_millis(200));
                expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
            }
            assert_eq!(share(&shop.gateway).await, step);
        }
        assert_eq!(phase(&shop.gateway).await, "watch");
        shop.hand.advance(Duration::from_secs(60));
        assert_eq!(phase(&shop.gateway).await, "closed");
    });
}
