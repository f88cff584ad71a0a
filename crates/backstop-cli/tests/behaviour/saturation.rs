//! Full means a refusal at once, without touching the origin, and no place is ever lost.

use std::time::Duration;

use backstop_lab::client::{self, Connection};
use backstop_lab::origin::{Gate, Matcher};

use crate::support::shop::{GET_PRODUCT_1, SPANISH};
use crate::support::{BOUND, Outcomes, Policy, Shop, expect, products, run};

async fn shop_for_two() -> Shop {
    Shop::with(|origin| {
        let read = Policy::description("in_flight = 2\ndeadline = \"5s\"");
        Policy::shop(origin).replace_route("description.public_read", &read)
    })
    .await
}

/// Copies count in the same limit as live answers: clients that do not read hold the places.
#[test]
fn copies_count_in_the_same_limit() {
    run(async {
        let shop = Shop::with(|origin| {
            let read = Policy::description("in_flight = 2\nbuffer = \"6 MiB\"\ndeadline = \"5s\"");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        let long = "x".repeat(5_000_000);
        shop.origin.on(Matcher::any(), products(&long));
        assert_eq!(shop.get("1").await.status(), 200);
        shop.is_unavailable();
        let mut slow_readers = Vec::new();
        for _ in 0..2 {
            let mut client = Connection::open(shop.gateway.addr).await.unwrap();
            client.send(GET_PRODUCT_1).await.unwrap();
            client.read_at_least(1).await.unwrap();
            slow_readers.push(client);
        }
        let asked = shop.origin.count();
        expect::refused(&shop.get("1").await, 503, "outcome=rejected, reason=capacity");
        assert_eq!(shop.origin.count(), asked);
        drop(slow_readers);
        expect::idle(&shop.gateway).await;
        expect::marked_as_copy(&shop.get("1").await, 0, "unavailable");
    });
}

/// Ten thousand clients that leave, in every phase of their request, leave nothing behind.
#[test]
fn ten_thousand_cancelled_requests_leave_nothing_in_flight() {
    const CANCELLED: u64 = 10_000;
    run(async {
        let mut shop = Shop::with(|origin| {
            let read = Policy::description("in_flight = 1000\ndeadline = \"5s\"");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("never").gate(&gate));
        for _ in 0..CANCELLED / 50 {
            let mut clients = Vec::new();
            for number in 0..50 {
                let mut client = Connection::open(shop.gateway.addr).await.unwrap();
                let bytes = if number % 10 == 0 { &GET_PRODUCT_1[..40] } else { GET_PRODUCT_1 };
                client.send(bytes).await.unwrap();
                clients.push(client);
            }
            for client in clients {
                client.reset().unwrap();
            }
        }
        shop.pass(10.0);
        expect::idle(&shop.gateway).await;
        gate.open();
        shop.origin.on(Matcher::any(), products("after"));
        assert_eq!(shop.get("1").await.status(), 200);
        let metrics = shop.gateway.metrics().await;
        let outcomes = metrics.outcomes();
        assert_eq!((outcomes.normal, outcomes.failed, outcomes.fallback), (1, 0, 0), "{outcomes:?}");
        assert_eq!(metrics.dependency_failures(), 0);
    });
}

pub mod timing {
    //! How long a refusal takes, by the real clock.

    use super::*;

    /// Two are held; 200 more are refused in under 5 ms (median), and the origin hears of none of them.
    #[test]
    fn the_excess_is_refused_in_milliseconds() {
        run(async {
            let shop = shop_for_two().await;
            let gate = Gate::new();
            shop.origin.on(Matcher::any(), products("held").gate(&gate));
            let address = shop.gateway.addr;
            let held =
                [0, 1].map(|_| tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await }));
            gate.wait_for_waiting(2, BOUND).await.unwrap();
            let mut times = Vec::new();
            for _ in 0..200 {
                let refused = shop.get("1").await;
                expect::refused(&refused, 503, "outcome=rejected, reason=capacity");
                times.push(refused.took);
            }
            times.sort_unstable();
            assert!(times[100] < Duration::from_millis(5), "{:?}", times[100]);
            assert_eq!(shop.origin.count(), 2);
            gate.open();
            for held in held {
                assert_eq!(held.await.unwrap().unwrap().status(), 200);
            }
            expect::outcomes(&shop.gateway, Outcomes { normal: 2, rejected: 200, ..Outcomes::default() })
                .await;
        });
    }
}
