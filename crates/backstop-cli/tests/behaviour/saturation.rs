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

/// A product whose answer is larger than what sockets hold, for clients that leave in the middle of it.
const GET_LARGE: &[u8] =
    b"GET /p/large HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: es\r\nX-Tenant: a\r\n\r\n";

const GET_PRODUCT_2: &[u8] =
    b"GET /p/2 HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: es\r\nX-Tenant: a\r\n\r\n";

/// Ten thousand clients that leave leave nothing behind. Of each fifty, one leaves in the middle of an answer, five in the
/// middle of their head, five after an answer, and the others while the origin works on theirs.
#[test]
fn ten_thousand_cancelled_requests_leave_nothing_in_flight() {
    const CANCELLED: u64 = 10_000;
    const EACH: u64 = 50;
    run(async {
        let mut shop = Shop::with(|origin| {
            let read = Policy::description("in_flight = 1000\ndeadline = \"5s\"\nbuffer = \"4 KiB\"");
            Policy::empty()
                .dependency("catalog", origin, "connections = 256")
                .route("description.public_read", &read)
        })
        .await;
        let large = "x".repeat(6_000_000);
        shop.origin.on(Matcher::path("/p/large"), products(&large));
        let mut expected = Outcomes::default();
        for _ in 0..CANCELLED / EACH {
            let gate = Gate::new();
            shop.origin.on(Matcher::path("/p/1"), products("never").gate(&gate));
            let mut clients = Vec::new();
            for number in 0..EACH {
                let mut client = Connection::open(shop.gateway.addr).await.unwrap();
                let (bytes, is_answered) = match number {
                    0 => (GET_LARGE, true),
                    1..=5 => (&GET_PRODUCT_1[..40], false),
                    6..=10 => (GET_PRODUCT_2, true),
                    _ => (GET_PRODUCT_1, false),
                };
                client.send(bytes).await.unwrap();
                if is_answered {
                    client.read_at_least(1).await.unwrap();
                }
                clients.push(client);
            }
            gate.wait_for_waiting(39, BOUND).await.unwrap();
            for client in clients {
                client.reset().unwrap();
            }
            expected.normal += 5;
            expected.abandoned += 1 + 39;
            expect::outcomes(&shop.gateway, expected).await;
            gate.open();
        }
        assert_eq!((expected.normal, expected.abandoned), (1_000, 8_000));
        assert_eq!(shop.origin.count(), 9_000, "all but those whose heads never came whole");
        shop.pass(10.0);
        expect::idle(&shop.gateway).await;
        shop.origin.on(Matcher::any(), products("after"));
        assert_eq!(shop.get("1").await.status(), 200);
        expected.normal += 1;
        expect::outcomes(&shop.gateway, expected).await;
        assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
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
