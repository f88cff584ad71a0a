//! What the origin says about old copies (RFC 9111 section 4.2.4) counts before what the operator allows.

use backstop_lab::origin::{Answer, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{Policy, Shop, expect, product, run};

/// A shop whose origin has answered once with these fields, and then went away.
async fn after(read: &str, fields: &[(&str, &str)]) -> Shop {
    let shop = Shop::with(|origin| {
        Policy::shop(origin).replace_route("description.public_read", &Policy::description(read))
    })
    .await;
    let answer = Answer::json(product("1", "first", "es"));
    let answer = fields.iter().fold(answer, |answer, (name, value)| answer.header(name, value));
    shop.origin.on(Matcher::any(), answer);
    assert_eq!(shop.get("1").await.status(), 200);
    shop.goes_down().await;
    shop
}

/// `no-store` is not kept at all; `no-cache` never answers without asking.
#[test]
fn no_store_and_no_cache_forbid_every_copy() {
    run(async {
        let shop = after("", &[("Cache-Control", "no-store")]).await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
        let shop = after("", &[("Cache-Control", "no-cache, max-age=30")]).await;
        expect::no_copy(&shop.get("1").await, "forbidden", "connect");
    });
}

/// These forbid an old copy, not a fresh one: age strictly below the lifetime.
#[test]
fn must_revalidate_and_its_kin_allow_a_fresh_copy_only() {
    run(async {
        for directives in [
            "max-age=10, must-revalidate",
            "max-age=10, proxy-revalidate",
            "s-maxage=10",
            "max-age=50, S-MaxAge=\"10\"",
        ] {
            let mut shop = after("", &[("Cache-Control", directives)]).await;
            shop.pass(9.999);
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 9, "connect");
            shop.pass(0.001);
            expect::no_copy(&shop.get("1").await, "forbidden", "connect");
        }
        // Without a lifetime there is nothing fresh.
        let shop = after("", &[("Cache-Control", "must-revalidate")]).await;
        expect::no_copy(&shop.get("1").await, "forbidden", "connect");
    });
}

/// `max-age` alone says when an answer stops being fresh, not that an old one is forbidden. `Cache-Status` says how stale.
#[test]
fn max_age_alone_forbids_nothing() {
    run(async {
        let mut shop = after("", &[("Cache-Control", "max-age=10")]).await;
        shop.pass(30.0);
        let saved = shop.get("1").await;
        expect::copy(&saved, &product("1", "first", "es"), 30, "connect");
        assert_eq!(saved.header("cache-status"), Some("edge; fwd=stale; ttl=-20; detail=connect"));
    });
}

/// `stale-if-error` (RFC 5861) bounds the copy from the end of its freshness. It shortens what the operator allows and never
/// lengthens it.
#[test]
fn stale_if_error_shortens_and_never_lengthens() {
    run(async {
        let mut shop = after("", &[("Cache-Control", "max-age=10, stale-if-error=5")]).await;
        shop.pass(15.0);
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 15, "connect");
        shop.hand.advance(std::time::Duration::from_nanos(1));
        expect::no_copy(&shop.get("1").await, "forbidden", "connect");

        let mut shop = after("", &[("Cache-Control", "max-age=10, stale-if-error=3600")]).await;
        shop.pass(60.001);
        expect::no_copy(&shop.get("1").await, "age", "connect");
    });
}

/// The targeted field (RFC 9213) stands in for `Cache-Control`: the origin grants Backstop what it forbids to all others.
#[test]
fn the_origin_can_grant_a_copy_to_backstop_alone() {
    run(async {
        let fields =
            [("Cache-Control", "no-store"), ("Backstop-Cache-Control", "max-age=5, stale-if-error=20")];
        let mut shop = after("", &fields).await;
        shop.pass(25.0);
        let saved = shop.get("1").await;
        expect::copy(&saved, &product("1", "first", "es"), 25, "connect");
        shop.pass(1.0);
        expect::no_copy(&shop.get("1").await, "forbidden", "connect");

        // It can forbid as well, whatever everybody else may.
        let fields = [("Cache-Control", "public, max-age=3600"), ("Backstop-Cache-Control", "no-store")];
        let shop = after("", &fields).await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
        // What does not parse is as if it were absent.
        let fields = [("Cache-Control", "no-store"), ("Backstop-Cache-Control", "max-age=,")];
        let shop = after("", &fields).await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
    });
}

/// `override_origin = true`, in writing: all of that is overridden, the operator's own limit is not.
#[test]
fn the_operator_may_override_the_origin_in_writing() {
    run(async {
        for directives in
            ["no-store", "no-cache", "must-revalidate", "s-maxage=1", "max-age=0, stale-if-error=0"]
        {
            let mut shop = after("override_origin = true", &[("Cache-Control", directives)]).await;
            shop.pass(60.0);
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 60, "connect");
            shop.pass(0.001);
            expect::no_copy(&shop.get("1").await, "age", "connect");
        }
    });
}

/// A client that says `no-store` may get a copy, but its own answer is not kept.
#[test]
fn a_clients_no_store_keeps_its_answer_out() {
    run(async {
        let shop = Shop::open().await;
        let mut fields = crate::support::shop::SPANISH.to_vec();
        fields.push(("Cache-Control", "no-store"));
        shop.gateway.get("/p/1", &fields).await;
        shop.get("2").await;
        shop.goes_down().await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
        expect::copy(&shop.gateway.get("/p/2", &fields).await, &product("2", "first", "es"), 0, "connect");
    });
}

/// The newest word counts: where the origin says of what it answers now that it must not be kept, with content or with a 304,
/// the copy of before goes too. A cookie says so of one answer only.
#[test]
fn an_answer_that_must_not_be_kept_ends_the_copy_of_before() {
    run(async {
        for (name, value, goes) in [
            ("Cache-Control", "private", true),
            ("Cache-Control", "no-store", true),
            ("Cache-Control", "private;x", true),
            ("Backstop-Cache-Control", "private", true),
            ("Set-Cookie", "a=b", false),
        ] {
            for status in [200, 304] {
                let shop = Shop::open().await;
                let first = Answer::json(product("1", "first", "es")).header("ETag", "\"a\"");
                shop.origin.on(Matcher::any(), first);
                shop.get("1").await;
                let newest = if status == 304 {
                    Answer::new(304).header("ETag", "\"a\"")
                } else {
                    Answer::json(product("1", "newest", "es"))
                };
                shop.origin.on(Matcher::any(), newest.header(name, value));
                let conditional = [SPANISH[0], SPANISH[1], SPANISH[2], ("If-None-Match", "\"a\"")];
                let asked = if status == 304 { &conditional[..] } else { &SPANISH[..] };
                assert_eq!(shop.gateway.get("/p/1", asked).await.status(), status);
                shop.goes_down().await;
                let after = shop.get("1").await;
                if goes {
                    expect::no_copy(&after, "missing", "connect");
                } else {
                    expect::copy(&after, &product("1", "first", "es"), 0, "connect");
                }
            }
        }
    });
}
