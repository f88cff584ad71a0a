//! What tries a dependency out, and how each way in which that can end decides something or gives its place back. A public
//! report: a call that ended in an answer which counts for nothing kept its place, and the breaker refused everything from
//! then on, <https://github.com/resilience4j/resilience4j/issues/544>; the same was reported of another library,
//! <https://github.com/nodeshift/opossum/issues/388>.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{BOUND, Outcomes, Policy, Shop, expect, product, products, run};

/// Three failures after one success open it, for a second, give or take a fifth; two successes close it.
const BREAKER: &str = "breaker = { min_calls = 4, failures = \"75%\", slow = \"150ms\", open = \"1s\", probes = 2 }\nrecovery = { start = \"100%\" }";

/// A shop whose breaker is open and may be tried, and whose origin works again.
async fn may_be_tried() -> Shop {
    let mut shop = with_breaker(BREAKER, "in_flight = 2000").await;
    shop.is_unavailable();
    for _ in 0..3 {
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "unavailable");
    }
    let before = shop.origin.count();
    assert_eq!(shop.get("1").await.status(), 200);
    assert_eq!(shop.origin.count(), before, "it is open");
    shop.origin.reset();
    shop.origin.default(products("second"));
    shop.hand.advance(Duration::from_millis(1200));
    shop
}

async fn with_breaker(breaker: &str, read: &str) -> Shop {
    let shop = Shop::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, breaker)
            .route("description.public_read", &Policy::description(read))
    })
    .await;
    shop.get("1").await;
    shop
}

/// Product 1 is answered by the origin, and so is everything from now on.
async fn is_closed_again(shop: &Shop) {
    for _ in 0..4 {
        expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
    }
}

/// Twice as many answers about the request as there are probes: each reaches its client, none opens it again, and none
/// keeps a place. Opening it again is a public report of its own, <https://github.com/Netflix/Hystrix/issues/2005>.
#[test]
fn a_404_decides_nothing_and_keeps_no_place() {
    run(async {
        let shop = may_be_tried().await;
        shop.origin.on(Matcher::get("/p/9"), Behaviour::status(404));
        for _ in 0..4 {
            expect::live(&shop.get("9").await, 404, r#"{"status":404}"#);
        }
        is_closed_again(&shop).await;
    });
}

/// A whole answer of another form is passed on as what it is, and keeps no place either.
#[test]
fn an_answer_of_another_schema_decides_nothing_and_keeps_no_place() {
    run(async {
        let shop = may_be_tried().await;
        shop.origin.on(Matcher::get("/p/9"), Behaviour::wrong_json());
        for _ in 0..4 {
            let mark = "outcome=failed, source=primary, reason=incorrect";
            expect::passed(&shop.get("9").await, 200, r#"{"unexpected":[1,2,3]}"#, mark);
        }
        is_closed_again(&shop).await;
    });
}

/// An answer whose head is larger than what is read is a failure: it is open again, and tried again when that is over.
#[test]
fn an_answer_that_is_refused_here_opens_it_again_and_no_longer_than_that() {
    run(async {
        let mut shop = may_be_tried().await;
        let large = Answer::json(product("9", "second", "es")).header("X-Large", &"x".repeat(300 * 1024));
        shop.origin.on(Matcher::get("/p/9"), large);
        expect::no_copy(&shop.get("9").await, "missing", "protocol");
        expect::copy_unasked(&shop.get("1").await, &product("1", "first", "es"), 1, "breaker_open");
        // The second time is twice as long: two seconds and a fifth.
        shop.hand.advance(Duration::from_millis(2400));
        is_closed_again(&shop).await;
    });
}

/// Clients that leave while theirs is the call that tries it: the origin does not know and works on, so the place is taken
/// until it has answered. Two have left and are at work, and the third is not asked; then each place goes to the next one.
#[test]
fn a_client_that_leaves_keeps_its_place_while_the_origin_works() {
    run(async {
        let shop = may_be_tried().await;
        let mut left = 0;
        for _ in 0..3 {
            let gate = Gate::new();
            shop.origin.on(Matcher::any(), products("slow").gate(&gate));
            let before = shop.origin.count();
            for at_work in 1..=2 {
                shop.client_leaves(&gate, at_work).await;
                left += 1;
                shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == left).await;
            }
            for _ in 0..4 {
                expect::copy_unasked(&shop.get("1").await, &product("1", "first", "es"), 1, "breaker_open");
            }
            assert_eq!(shop.origin.count(), before + 2);
            gate.open();
            expect::idle(&shop.gateway).await;
        }
        shop.origin.on(Matcher::any(), products("second"));
        is_closed_again(&shop).await;
    });
}

/// 151 ms are slow. An answer that comes too late to be of use is no recovery.
#[test]
fn a_slow_answer_is_no_recovery() {
    run(async {
        let mut shop = may_be_tried().await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("second").gate(&gate).times(1));
        let address = shop.gateway.addr;
        let slow = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.hand.advance(Duration::from_millis(151));
        gate.open();
        expect::live(&slow.await.unwrap(), 200, &product("1", "second", "es"));
        let before = shop.origin.count();
        let copy = shop.get("1").await;
        let mark = "outcome=fallback, source=snapshot, age=0, reason=breaker_open";
        assert_eq!((copy.status(), copy.header("backstop")), (200, Some(mark)));
        assert_eq!(shop.origin.count(), before);
    });
}

/// One that hangs is over with its deadline, and the next one goes when the open time is.
#[test]
fn a_hanging_probe_ends_and_another_one_goes() {
    run(async {
        let mut shop = may_be_tried().await;
        shop.origin.on(Matcher::any(), Behaviour::hang().times(1));
        let address = shop.gateway.addr;
        let hung = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() });
        shop.origin.wait_for(1, BOUND).await.unwrap();
        shop.hand.advance(Duration::from_millis(300));
        expect::copy(&hung.await.unwrap(), &product("1", "first", "es"), 1, "read_timeout");
        expect::copy_unasked(&shop.get("1").await, &product("1", "first", "es"), 1, "breaker_open");
        assert_eq!(shop.origin.count(), 1);
        shop.hand.advance(Duration::from_millis(2400));
        is_closed_again(&shop).await;
    });
}

/// A thousand ask at one moment. Two of them reach the origin, which holds them; all others have their copies, and nobody
/// waits for the two.
#[test]
fn of_a_thousand_at_once_only_the_probes_reach_it() {
    run(async {
        let shop = may_be_tried().await;
        let gate = Gate::new();
        shop.origin.default(products("second").gate(&gate));
        let address = shop.gateway.addr;
        let all: Vec<_> = (0..1000)
            .map(|_| tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() }))
            .collect();
        gate.wait_for_waiting(2, BOUND).await.unwrap();
        let copies = Outcomes { normal: 1, fallback: 4 + 998, ..Outcomes::default() };
        expect::outcomes(&shop.gateway, copies).await;
        let stats = shop.origin.stats();
        assert_eq!((gate.waiting(), stats.requests, stats.peak_in_flight), (2, 2, 2));
        gate.open();
        let mut live = 0;
        for answer in all {
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), 200);
            live += u32::from(answer.header("backstop").is_none());
        }
        assert_eq!(live, 2);
        is_closed_again(&shop).await;
    });
}
