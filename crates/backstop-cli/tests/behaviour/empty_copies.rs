//! Copies that are all gone, and a database behind the service that cannot bear the whole demand. A public report: empty
//! cache nodes, misses that overloaded the database, and a refill that timed out and never came about,
//! <https://slack.engineering/slacks-incident-on-2-22-22/>.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Gate, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{BOUND, Policy, Shop, expect, product, products, run};

/// What the database was verified to bear: four at once (reads leave the last of them to effects), twenty a second.
async fn with_database() -> Shop {
    Shop::with(|origin| {
        Policy::empty()
            .table("resource.db", "concurrency = 4\nrate = \"20/s\"")
            .dependency("catalog", origin, "uses = [\"db\"]")
            .route("description.public_read", &Policy::description("in_flight = 200\nmax_age = \"10m\""))
    })
    .await
}

/// A hundred requests a second for fifty products of which none has a copy. Twenty a second reach the database, all of them
/// are answered and kept, and what is refused becomes less by itself until nothing is.
#[test]
fn an_empty_store_fills_within_what_the_database_bears() {
    run(async {
        let mut shop = with_database().await;
        let mut refused = Vec::new();
        // Numerical Recipes' generator: an order of the products that has nothing to do with the order of what is admitted.
        let mut chance: u32 = 1;
        for second in 1..=30 {
            let mut refused_now = 0;
            for _ in 0..100 {
                chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let id = ((chance >> 16) % 50).to_string();
                let answer = shop.get(&id).await;
                match answer.header("backstop") {
                    None => expect::live(&answer, 200, &product(&id, "first", "es")),
                    Some(mark) if answer.status() == 200 => {
                        assert!(mark.ends_with("reason=resource_full"), "{mark}");
                        assert_eq!(answer.text(), product(&id, "first", "es"));
                    }
                    Some(_) => {
                        assert_eq!(answer.status(), 503, "{:?}", answer.head);
                        refused_now += 1;
                    }
                }
                shop.hand.advance(Duration::from_millis(10));
            }
            // One at once, and one for each 50 ms.
            assert!(shop.origin.count() <= 20 * second + 1, "{} in {second} s", shop.origin.count());
            refused.push(refused_now);
        }
        assert_eq!(shop.origin.count(), 600, "it works all the time");
        assert!(refused[0] > 60, "nearly all have no copy at first: {refused:?}");
        assert_eq!(refused[25..], [0; 5], "and all in the end: {refused:?}");
    });
}

/// Forty ask for forty products at one moment. Three reach the database; all others are refused at once, and their places are
/// free for those who come later.
#[test]
fn a_crowd_of_misses_is_refused_at_once() {
    run(async {
        let mut shop = with_database().await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("first").gate(&gate));
        let address = shop.gateway.addr;
        let ask = |id: u32| {
            tokio::spawn(async move { client::get(address, &format!("/p/{id}"), &SPANISH).await.unwrap() })
        };
        let mut held = Vec::new();
        for id in 0..3 {
            held.push(ask(id));
            gate.wait_for_waiting(id as usize + 1, BOUND).await.unwrap();
            shop.hand.advance(Duration::from_millis(50));
        }
        let crowd: Vec<_> = (3..40).map(ask).collect();
        for refused in crowd {
            let refused = refused.await.unwrap();
            let mark = "outcome=rejected, reason=missing, cause=resource_full";
            assert_eq!((refused.status(), refused.header("backstop")), (503, Some(mark)));
        }
        assert_eq!((shop.origin.count(), shop.origin.stats().peak_in_flight), (3, 3));
        gate.open();
        for held in held {
            assert_eq!(held.await.unwrap().status(), 200);
        }
        expect::live(&shop.get("3").await, 200, &product("3", "first", "es"));
    });
}
