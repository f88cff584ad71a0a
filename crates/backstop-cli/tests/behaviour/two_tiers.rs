//! Two gateways in a row. A public report: the inner cache answered from a stale copy, the outer one took it for a fresh
//! answer and restarted the clock, <https://github.com/mitodl/ol-infrastructure/pull/5143>.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Origin};

use crate::support::shop::{SPANISH, down};
use crate::support::{Gateway, Hand, Outcomes, Policy, Shop, expect, product, products, run};

/// Client, outer gateway, inner gateway, origin; both keep copies for 6 s, and time stands still.
struct Tiers {
    origin: Origin,
    inner: Gateway,
    outer: Gateway,
    hands: [Hand; 2],
}

impl Tiers {
    async fn start() -> Self {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let six_seconds = |address, name: &str| {
            Policy::shop(address)
                .gateway(&format!("name = \"{name}\""))
                .replace_route("description.public_read", &Policy::description("max_age = \"6s\""))
        };
        let inner = Gateway::start(&six_seconds(origin.addr(), "inner"));
        let outer = Gateway::start(&six_seconds(inner.addr, "edge"));
        let mut hands = [inner.hand(), outer.hand()];
        hands.iter_mut().for_each(Hand::freeze);
        Self { origin, inner, outer, hands }
    }

    /// Time goes by everywhere.
    fn pass(&mut self, by: Duration) {
        self.hands.iter_mut().for_each(|hand| hand.advance(by));
    }

    async fn get(&self) -> Response {
        self.outer.get("/p/1", &SPANISH).await
    }
}

const STEP: Duration = Duration::from_millis(500);

/// The origin is gone from t = 0. Nothing older than 6 s counted from then is ever served, whoever kept it, and the age
/// that the client reads is the true one.
#[test]
fn no_copy_outlives_its_age_through_a_second_gateway() {
    run(async {
        let mut tiers = Tiers::start().await;
        let body = product("1", "first", "es");
        expect::live(&tiers.get().await, 200, &body);
        down(&tiers.origin).await;
        for half_seconds in 1..=30 {
            tiers.pass(STEP);
            let answer = tiers.get().await;
            if half_seconds <= 12 {
                assert_eq!((answer.status(), answer.text()), (200, body.clone()), "{half_seconds}");
                let age = (half_seconds / 2).to_string();
                assert_eq!(answer.header("age"), Some(age.as_str()));
                let mark = answer.mark().unwrap().expect("it is marked");
                assert_eq!((mark.outcome.as_str(), mark.age_s), ("fallback", Some(half_seconds / 2)));
                assert_eq!(mark.source.as_deref(), Some("snapshot"));
            } else {
                expect::no_copy(&answer, "age", "unavailable");
            }
        }
        assert_eq!(tiers.origin.count(), 1);
        // The outer gateway calls the inner one's copy what it is: no normal answer.
        expect::outcomes(
            &tiers.outer,
            Outcomes { normal: 1, fallback: 12, rejected: 18, ..Outcomes::default() },
        )
        .await;
        let metrics = tiers.outer.metrics().await;
        // At 6 s the inner one says `age=6`, which may be up to 7 s: the outer one serves its own, exactly 6 s old.
        assert_eq!(metrics.requests("fallback", "upstream_degraded"), 11);
        assert_eq!(metrics.requests("fallback", "unavailable"), 1);
        expect::outcomes(
            &tiers.inner,
            Outcomes { normal: 1, fallback: 12, rejected: 18, ..Outcomes::default() },
        )
        .await;
    });
}

/// What the inner gateway answered from its copy never became a new correct read of the outer one: when the inner gateway is
/// gone too, the outer copy is as old as the first read.
#[test]
fn a_degraded_answer_is_not_kept_as_a_new_read() {
    run(async {
        let mut tiers = Tiers::start().await;
        let body = product("1", "first", "es");
        tiers.get().await;
        down(&tiers.origin).await;
        tiers.pass(Duration::from_secs(3));
        assert_eq!(tiers.get().await.header("age"), Some("3"));
        let Tiers { inner, outer, hands: [_, mut hand], .. } = tiers;
        inner.kill();
        hand.advance(Duration::from_secs(3));
        let last = outer.get("/p/1", &SPANISH).await;
        assert_eq!((last.status(), last.text(), last.header("age")), (200, body, Some("6")));
        hand.advance(Duration::from_nanos(1));
        let refused = outer.get("/p/1", &SPANISH).await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.mark().unwrap().unwrap().reason.as_deref(), Some("age"));
    });
}

/// The inner gateway allows more than the outer one: its copy is then a failure to the outer one, which has none of its own
/// that is young enough.
#[test]
fn the_outer_limit_holds_whatever_the_inner_one_allows() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let inner = Gateway::start(&Policy::shop(origin.addr()).gateway("name = \"inner\""));
        let read = Policy::description("max_age = \"6s\"");
        let policy = Policy::shop(inner.addr).replace_route("description.public_read", &read);
        let outer = Gateway::start(&policy);
        let mut hands = [inner.hand(), outer.hand()];
        hands.iter_mut().for_each(Hand::freeze);
        outer.get("/p/1", &SPANISH).await;
        down(&origin).await;
        hands.iter_mut().for_each(|hand| hand.advance(Duration::from_secs(7)));
        expect::no_copy(&outer.get("/p/1", &SPANISH).await, "age", "unavailable");
        assert_eq!(inner.get("/p/1", &SPANISH).await.header("age"), Some("7"));
    });
}

/// A request that may not be answered from a copy (it carries a credential, or asks for a language that is not offered) may
/// not get another gateway's copy beyond this route's age either. It tells its age in whole seconds, rounded down: 59 s is
/// below 60 s whatever was cut off, and 60 s may be more.
#[test]
fn the_limit_holds_for_requests_that_use_no_copies() {
    run(async {
        let shop = Shop::open().await;
        let french = [("Accept-Language", "fr"), SPANISH[1], SPANISH[2]];
        let own = [SPANISH[0], SPANISH[1], SPANISH[2], ("Authorization", "Bearer x")];
        for fields in [&french[..], &own[..]] {
            for age in [59, 60] {
                let mark = format!("outcome=fallback, source=snapshot, age={age}");
                shop.origin.default(Answer::json("{}").header("backstop", &mark));
                let answer = shop.gateway.get("/p/1", fields).await;
                if age == 59 {
                    assert_eq!((answer.status(), answer.header("backstop")), (200, Some(mark.as_str())));
                } else {
                    expect::no_copy(&answer, "missing", "unavailable");
                }
            }
        }
    });
}

/// An answer about the request is passed on, whatever a gateway behind this one says of it (RFC 9110 section 15.5).
#[test]
fn a_marked_answer_about_the_request_is_never_replaced() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        for status in [401, 404, 422] {
            let mark = "outcome=fallback, source=snapshot, age=90";
            shop.origin.default(Answer::new(status).header("backstop", mark));
            assert_eq!(shop.get("1").await.status(), status);
        }
    });
}

/// A mark that cannot be understood says that something was done to the answer: it is not the origin's own word, and how old
/// it is nobody knows.
#[test]
fn an_answer_with_an_unreadable_mark_is_neither_kept_nor_served() {
    run(async {
        for mark in
            ["outcome=fallback, age=", "outcome=fallback, age=9.5", "outcome=fallback, age=\"9\"", "\"", "="]
        {
            let mut shop = Shop::open().await;
            shop.get("1").await;
            shop.pass(10.0);
            let own = Answer::json(product("1", "second", "es"));
            shop.origin.default(
                own.header("backstop", "outcome=fallback, source=snapshot").header("backstop", mark),
            );
            let first = product("1", "first", "es");
            expect::copy(&shop.get("1").await, &first, 10, "unavailable");
            shop.goes_down().await;
            expect::copy(&shop.get("1").await, &first, 10, "connect");
        }
    });
}
