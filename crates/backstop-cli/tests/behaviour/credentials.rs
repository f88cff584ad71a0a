//! What is somebody's own is never kept and never answered from a copy (RFC 9111 sections 3.5 and 5.2.2.7).

use backstop_lab::origin::{Answer, Matcher};

use crate::support::shop::SPANISH;
use crate::support::{Policy, Shop, expect, product, run};

const OWN: [(&str, &str); 2] = [("Authorization", "Bearer x"), ("Cookie", "session=x")];

fn with(credential: (&'static str, &'static str)) -> [(&'static str, &'static str); 4] {
    [SPANISH[0], SPANISH[1], SPANISH[2], credential]
}

/// The answer to a request with a credential may be that caller's own: nobody gets it later, not even that caller.
#[test]
fn an_answer_to_a_credential_is_never_kept() {
    run(async {
        for credential in OWN {
            let shop = Shop::open().await;
            let live = shop.gateway.get("/p/1", &with(credential)).await;
            expect::live(&live, 200, &product("1", "first", "es"));
            assert_eq!(shop.origin.requests()[0].header(credential.0), Some(credential.1), "passed on");
            shop.goes_down().await;
            expect::no_copy(&shop.get("1").await, "missing", "connect");
            expect::no_copy(&shop.gateway.get("/p/1", &with(credential)).await, "missing", "connect");
        }
    });
}

/// A public copy exists; a caller with a credential may be meant to see something else, or nothing.
#[test]
fn a_credential_is_never_answered_from_a_copy() {
    run(async {
        for credential in OWN {
            let shop = Shop::open().await;
            shop.get("1").await;
            shop.goes_down().await;
            expect::no_copy(&shop.gateway.get("/p/1", &with(credential)).await, "missing", "connect");
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "connect");
        }
    });
}

/// Nor does a private answer replace or date the public one.
#[test]
fn a_private_read_leaves_the_public_copy_as_it_is() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        shop.pass(10.0);
        shop.origin.default(crate::support::products("own"));
        shop.gateway.get("/p/1", &with(OWN[0])).await;
        shop.goes_down().await;
        expect::copy(&shop.get("1").await, &product("1", "first", "es"), 10, "connect");
    });
}

/// A Cookie may be ignored where the policy says so, and then it is removed before forwarding: what the origin never saw
/// cannot have made its answer private.
#[test]
fn an_ignored_cookie_is_removed_before_forwarding() {
    run(async {
        let shop = Shop::with(|origin| {
            let read = "ignore_cookie = true\nrequest_headers = { remove = [\"cookie\"] }";
            Policy::shop(origin).replace_route("description.public_read", &Policy::description(read))
        })
        .await;
        let live = shop.gateway.get("/p/1", &with(OWN[1])).await;
        expect::live(&live, 200, &product("1", "first", "es"));
        assert_eq!(shop.origin.requests()[0].header("cookie"), None);
        shop.is_unavailable();
        for fields in [&SPANISH[..], &with(OWN[1])] {
            let saved = shop.gateway.get("/p/1", fields).await;
            expect::copy(&saved, &product("1", "first", "es"), 0, "unavailable");
        }
    });
}

/// `Set-Cookie` is for one client: such an answer is passed on and never kept, whatever the policy overrides.
#[test]
fn set_cookie_and_private_are_never_kept_even_if_overridden() {
    run(async {
        for (name, value) in [
            ("Set-Cookie", "id=7"),
            ("Cache-Control", "private"),
            ("Cache-Control", "Private=\"x-a\", max-age=9"),
        ] {
            for read in ["", "override_origin = true"] {
                let shop = Shop::with(|origin| {
                    let read = Policy::description(read);
                    Policy::shop(origin).replace_route("description.public_read", &read)
                })
                .await;
                let body = product("1", "first", "es");
                shop.origin.on(Matcher::any(), Answer::json(body.clone()).header(name, value));
                let live = shop.get("1").await;
                expect::live(&live, 200, &body);
                assert_eq!(live.header(name), Some(value));
                shop.is_unavailable();
                expect::no_copy(&shop.get("1").await, "missing", "unavailable");
            }
        }
    });
}
