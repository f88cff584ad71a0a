//! Clients that leave while they wait. A public report: a proxy counted them as failures of the service and opened its
//! breaker, <https://github.com/traefik/traefik/issues/2932>; a library lost their permits,
//! <https://github.com/joshrotenberg/tower-resilience/issues/365>.

use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::{Behaviour, Gate, Matcher, Then};

use crate::support::shop::GET_PRODUCT_1;
use crate::support::{BOUND, Outcomes, Policy, Shop, expect, product, products, run};

/// The shop with time enough: deadline 2 s and nothing that stands still of itself.
async fn patient_shop() -> Shop {
    Shop::with(|origin| {
        Policy::shop(origin)
            .replace_route("description.public_read", &Policy::description("deadline = \"2s\""))
    })
    .await
}

/// Ten clients leave while the origin works. They are counted as what they are, nothing is held against the origin, and
/// every place is free again: four patient clients are all admitted at `in_flight = 4`.
#[test]
fn impatient_clients_are_no_failures_and_leave_no_places_taken() {
    run(async {
        let shop = patient_shop().await;
        for number in 1..=10 {
            let gate = Gate::new();
            shop.origin.on(Matcher::any(), products("slow").gate(&gate));
            shop.client_leaves(&gate, 1).await;
            expect::outcomes(&shop.gateway, Outcomes { abandoned: number, ..Outcomes::default() }).await;
            gate.open();
        }
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.dependency_failures(), 0);
        expect::idle(&shop.gateway).await;

        shop.origin.on(Matcher::any(), products("patient"));
        expect::live(&shop.get("1").await, 200, &product("1", "patient", "es"));
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("four").gate(&gate));
        let four = async { tokio::join!(shop.get("1"), shop.get("1"), shop.get("1"), shop.get("1")) };
        let opened = async {
            gate.wait_for_waiting(4, BOUND).await.unwrap();
            gate.open();
        };
        let ((a, b, c, d), ()) = tokio::join!(four, opened);
        for answer in [a, b, c, d] {
            expect::live(&answer, 200, &product("1", "four", "es"));
        }
        expect::outcomes(&shop.gateway, Outcomes { normal: 5, abandoned: 10, ..Outcomes::default() }).await;
        assert_eq!(shop.origin.count(), 15);
    });
}

/// A copy exists, the client leaves while the origin hangs: no copy is served to nobody, and none is counted.
#[test]
fn a_client_that_left_gets_no_copy_counted() {
    run(async {
        let mut shop = patient_shop().await;
        shop.get("1").await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_PRODUCT_1).await.unwrap();
        shop.origin.wait_for(2, BOUND).await.unwrap();
        client.reset().unwrap();
        expect::outcomes(&shop.gateway, Outcomes { normal: 1, abandoned: 1, ..Outcomes::default() }).await;
        shop.pass(3.0);
        expect::idle(&shop.gateway).await;
        let metrics = shop.gateway.metrics().await;
        assert_eq!(
            (metrics.dependency_failures(), metrics.sum("backstop_copy_age_seconds_count", &[])),
            (0, 0.0)
        );
    });
}

/// One connection, kept by a call that nobody waits for until a stated second is over.
async fn one_connection() -> Shop {
    Shop::with(|origin| {
        Policy::empty().dependency("catalog", origin, "connections = 1").route(
            "all.direct",
            "match = \"*\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\nabandon_hold = \"1s\"",
        )
    })
    .await
}

/// The client has left: the connection is taken until the second is over.
async fn is_kept_for_the_hold(shop: &mut Shop) {
    expect::outcomes(&shop.gateway, Outcomes { abandoned: 1, ..Outcomes::default() }).await;
    shop.origin.on(Matcher::any(), products("first"));
    let full = shop.get("1").await;
    expect::refused(&full, 503, "outcome=rejected, reason=dependency_full");
    assert_eq!((shop.origin.count(), shop.origin.connections_open()), (1, 1));
    shop.hand.advance(Duration::from_secs(1));
    expect::idle(&shop.gateway).await;
    expect::live(&shop.get("1").await, 200, &product("1", "first", "es"));
    assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
}

/// An abandoned call may still occupy the origin, so its place at the dependency is kept until the stated hold is over:
/// leaving quickly is no way to send more than `connections` allow.
#[test]
fn an_abandoned_call_keeps_its_place_at_the_dependency_for_the_hold() {
    run(async {
        let mut shop = one_connection().await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_PRODUCT_1).await.unwrap();
        shop.origin.wait_for(1, BOUND).await.unwrap();
        client.reset().unwrap();
        is_kept_for_the_hold(&mut shop).await;
    });
}

/// The head of an answer says nothing about the work: who leaves in the middle of the body leaves a call behind that goes on
/// occupying the origin, until the answer has ended or the stated hold is over.
#[test]
fn a_call_that_is_left_in_the_middle_of_its_answer_keeps_its_place_for_the_hold() {
    run(async {
        let mut shop = one_connection().await;
        let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
        shop.origin.on(Matcher::any(), Behaviour::raw(half, Then::Hang));
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_PRODUCT_1).await.unwrap();
        client.read_at_least(half.len()).await.unwrap();
        client.reset().unwrap();
        is_kept_for_the_hold(&mut shop).await;
    });
}
