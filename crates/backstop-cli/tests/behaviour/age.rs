//! How old a copy may be, to the nanosecond, and whose copy it is.

use std::time::Duration;

use crate::support::{Outcomes, Shop, expect, product, run};

/// `max_age = "60s"` is inclusive: 30 s, exactly 60 s, and not a nanosecond more.
#[test]
fn sixty_seconds_are_served_and_one_nanosecond_more_is_refused() {
    run(async {
        let mut shop = Shop::open().await;
        let saved = product("1", "first", "es");
        expect::live(&shop.get("1").await, 200, &saved);
        shop.goes_down().await;
        shop.pass(30.0);
        expect::copy(&shop.get("1").await, &saved, 30, "connect");
        shop.pass(30.0);
        expect::copy(&shop.get("1").await, &saved, 60, "connect");
        shop.hand.advance(Duration::from_nanos(1));
        let refused = shop.get("1").await;
        expect::no_copy(&refused, "age", "connect");
        assert_eq!(refused.json().unwrap()["type"], "urn:backstop:problem:snapshot-too-old");

        let expected = Outcomes { normal: 1, fallback: 2, rejected: 1, ..Outcomes::default() };
        expect::outcomes(&shop.gateway, expected).await;
        let metrics = shop.gateway.metrics().await;
        assert_eq!((metrics.requests("fallback", "connect"), metrics.requests("rejected", "age")), (2, 1));
        assert_eq!(metrics.failures("connect"), 3);
        let ages = |suffix: &str| metrics.sum(&format!("backstop_copy_age_seconds_{suffix}"), &[]);
        assert_eq!((ages("count"), ages("sum")), (2.0, 90.0));
        assert_eq!(shop.origin.count(), 1, "it refused everything after the first");
    });
}

/// Time since boot never runs back on a real machine; a copy whose date lies ahead is a sign that something is very wrong.
#[test]
fn a_copy_from_the_future_is_refused() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        shop.is_unavailable();
        shop.hand.mono(-1);
        let refused = shop.get("1").await;
        expect::no_copy(&refused, "age", "unavailable");
        assert_eq!(refused.json().unwrap()["type"], "urn:backstop:problem:snapshot-from-future");
        shop.hand.mono(1);
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "unavailable");
    });
}

#[test]
fn what_was_never_read_is_missing() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        shop.is_unavailable();
        expect::no_copy(&shop.get("2").await, "missing", "unavailable");
        let query = shop.gateway.get("/p/1?size=2", &crate::support::shop::SPANISH).await;
        expect::no_copy(&query, "missing", "unavailable");
        expect::outcomes(&shop.gateway, Outcomes { normal: 1, rejected: 2, ..Outcomes::default() }).await;
        assert_eq!(shop.origin.count(), 3, "every read asked the origin once");
    });
}

/// The key of the route is product, language and tenant. A copy of one is never the answer to another.
#[test]
fn another_language_or_tenant_is_never_served() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        shop.goes_down().await;
        shop.pass(1.0);
        let others: [&[(&str, &str)]; 6] = [
            &[("Accept-Language", "en"), ("X-Tenant", "a")],
            &[("Accept-Language", "es"), ("X-Tenant", "b")],
            &[("Accept-Language", "es"), ("X-Tenant", "A")],
            &[("Accept-Language", "es"), ("X-Tenant", "")],
            &[("Accept-Language", "es")],
            &[("X-Tenant", "a")],
        ];
        for other in others {
            let refused = shop.gateway.get("/p/1", other).await;
            expect::no_copy(&refused, "missing", "connect");
        }
        let host = [("Host", "other.example"), ("Accept-Language", "es"), ("X-Tenant", "a")];
        expect::no_copy(&shop.gateway.get("/p/1", &host).await, "missing", "connect");
        // A regional variant is negotiated to the language that the route has (RFC 4647 section 3.4).
        let mexican = [("Accept-Language", "es-MX, de;q=0.5"), ("X-Tenant", "a")];
        expect::copy(&shop.gateway.get("/p/1", &mexican).await, &product("1", "first", "es"), 1, "connect");
    });
}

/// A copy that is served every second for a minute is as old at the end as one that lay still.
#[test]
fn serving_never_renews_the_date() {
    run(async {
        let mut shop = Shop::open().await;
        let saved = product("1", "first", "es");
        shop.get("1").await;
        shop.is_unavailable();
        for age in 1..=60 {
            shop.pass(1.0);
            expect::copy(&shop.get("1").await, &saved, age, "unavailable");
        }
        shop.pass(1.0);
        expect::no_copy(&shop.get("1").await, "age", "unavailable");
        expect::outcomes(
            &shop.gateway,
            Outcomes { normal: 1, fallback: 60, rejected: 1, ..Outcomes::default() },
        )
        .await;
    });
}

/// The age that an answer already had when it came counts (RFC 9111 section 4.2.3): 50 s on arrival leave 10 s.
#[test]
fn an_age_that_was_received_counts() {
    run(async {
        let mut shop = Shop::open().await;
        let saved = product("1", "first", "es");
        let answer = backstop_lab::origin::Answer::json(saved.clone()).header("Age", "50");
        shop.origin.on(backstop_lab::origin::Matcher::any(), answer);
        let live = shop.get("1").await;
        assert_eq!((live.status(), live.header("age")), (200, Some("50")));
        shop.goes_down().await;
        for age in 50..=60 {
            expect::copy(&shop.get("1").await, &saved, age, "connect");
            shop.pass(1.0);
        }
        expect::no_copy(&shop.get("1").await, "age", "connect");
    });
}

/// The origin answers again: its answer is served at once, unmarked, and is the copy from then on.
#[test]
fn a_recovered_origin_is_believed_at_once() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        shop.goes_down().await;
        shop.pass(59.0);
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 59, "connect");
        shop.origin.accept_again().await.unwrap();
        shop.origin.default(crate::support::products("second"));
        expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
        shop.goes_down().await;
        shop.pass(60.0);
        expect::copy(&shop.get("1").await, &product("1", "second", "es"), 60, "connect");
        assert_eq!(shop.origin.count(), 2);
    });
}
