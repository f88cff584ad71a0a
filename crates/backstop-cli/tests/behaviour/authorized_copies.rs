//! Copies behind an authorizer: whose they are, who writes them, and who ends them.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::guarded::{ANA, BOB, Guarded, policy, yes};
use crate::support::shop::{HOST, down};
use crate::support::{BOUND, Gateway, Policy, expect, products, run};

/// With the copies of one class shared by all who are allowed.
fn shared(policy: &Policy, lines: &str) -> Policy {
    let key = format!("key = []\nshared = true\n{lines}");
    policy
        .clone()
        .replace_table("route.public_read.public_read", |table| table.replace("key = [\"principal\"]", &key))
}

/// The same name under another authorizer, or under none, is somebody else: the copies of before are not theirs.
#[test]
fn another_authorizers_callers_find_no_copies() {
    run(async {
        for (class, change) in [
            ("staff", "http://{}/staff"),
            ("sign", "x-allowed: very"),
            ("header", "header.x-name"),
            ("none", ""),
        ] {
            let mut made = None;
            let shop = Guarded::of(|origin, authorizer| {
                let on_disk = "snapshots = { memory = \"1 MiB\", disk = \"64 MiB\" }";
                let policy = policy(origin, authorizer, "").store(on_disk);
                let policy = if class == "none" { shared(&policy, "") } else { policy };
                made = Some(policy.clone());
                policy
            })
            .await;
            let before = made.unwrap();
            let target = "/public_read";
            let live = shop.gateway.get(target, &ANA).await.text();
            let changed = before.clone().replace_table("authorizer.sessions", |table| match class {
                "staff" => table.replace("/check", "/staff"),
                "sign" => table.replace("x-allowed: yes", change),
                "header" => table.replace("header.x-user", change),
                _ => table.to_owned(),
            });
            let changed = changed.replace_table("route.public_read.public_read", |table| match class {
                "none" => table.replace("authorizer = \"sessions\"\n", "").replace("shared = true", ""),
                _ => table.to_owned(),
            });
            down(&shop.origin).await;
            shop.authorizer.on(
                Matcher::any(),
                Answer::new(204)
                    .header("X-Allowed", if class == "sign" { "very" } else { "yes" })
                    .header("X-User", "ana")
                    .header("X-Name", "ana"),
            );
            let folder = shop.gateway.stop();
            let mut gateway = Gateway::start_with_clock(&folder, &changed, "freeze");
            HOST.clone_into(&mut gateway.host);
            let fields: &[_] = if class == "none" { &[("Host", HOST)] } else { &ANA };
            expect::no_copy(&gateway.get(target, fields).await, "missing", "connect");
            // And under the one of before they are found again.
            shop.authorizer.on(Matcher::any(), yes("ana"));
            let mut gateway = gateway.restart(&before);
            HOST.clone_into(&mut gateway.host);
            assert_eq!(gateway.get(target, &ANA).await.text(), live, "{class}");
        }
    });
}

/// `echo = { "/for" = "principal" }`: what is another's is not correct, on each class that keeps reads.
#[test]
fn what_names_another_caller_is_incorrect() {
    run(async {
        let shop = Guarded::of(|origin, authorizer| {
            let echo = "correct = { type = \"application/json\", echo = { \"/for\" = \"principal\" } }\nincorrect = \"fallback\"";
            ["public_read", "cached_read"].into_iter().fold(policy(origin, authorizer, ""), |policy, class| {
                policy.replace_table(&format!("route.{class}.{class}"), |table| {
                    table.replace("correct = { type = \"application/json\" }", echo)
                })
            })
        })
        .await;
        for class in ["public_read", "cached_read"] {
            let target = format!("/{class}");
            shop.origin.on(Matcher::any(), Answer::json("{\"for\":\"mallory\"}"));
            for _ in 0..2 {
                let response = shop.gateway.get(&target, &ANA).await;
                assert_eq!(response.status(), 503, "{class}: {:?}", response.head);
            }
            shop.origin.on(Matcher::any(), Answer::json("{\"for\":\"ana\"}"));
            assert_eq!(shop.gateway.get(&target, &ANA).await.status(), 200, "{class}");
            assert_eq!(shop.gateway.get(&target, &BOB).await.status(), 503, "{class}");
        }
    });
}

/// What a caller sends beside the credential that was looked at writes no copy of everybody's: a cookie, or an
/// `Authorization` that nobody looks at. Where the cookie is taken away before, it does not matter.
#[test]
fn no_caller_writes_the_others_copy() {
    run(async {
        let own = [ANA[0], ANA[1], ("Cookie", "theme=EVIL")];
        let session = [("Host", HOST), ("Cookie", "session=ana"), ("Authorization", "Bearer EVIL")];
        for (asks_with, ignores, fields, is_kept) in [
            ("[\"authorization\", \"cookie\"]", false, &ANA[..], true),
            ("[\"authorization\", \"cookie\"]", false, &own[..], false),
            ("[\"authorization\", \"cookie\"]", true, &own[..], true),
            ("[\"cookie\"]", true, &session[..], false),
            ("[\"cookie\"]", true, &session[..2], true),
        ] {
            let shop = Guarded::of(|origin, authorizer| {
                let ignored = match ignores {
                    true => "ignore_cookie = true\nrequest_headers = { remove = [\"cookie\"] }",
                    false => "",
                };
                shared(&policy(origin, authorizer, &format!("send = {asks_with}")), ignored)
            })
            .await;
            shop.says(yes("ana"));
            shop.origin.on(Matcher::any(), products("first"));
            assert_eq!(shop.gateway.get("/public_read", fields).await.status(), 200);
            shop.origin.on(Matcher::any(), Behaviour::status(503));
            let plain = shop.gateway.get("/public_read", &[("Host", HOST)]).await;
            let what = format!("{asks_with} {ignores} {fields:?}");
            assert_eq!(plain.status() == 200, is_kept, "{what}: {:?}", plain.head);
        }
    });
}

/// The dependency refuses Bob, who was allowed: that says nothing of the copy that all share. One caller's own copy it ends.
#[test]
fn a_refusal_to_one_caller_ends_no_shared_copy() {
    run(async {
        for (is_shared, ends) in [(true, false), (false, true)] {
            let shop = Guarded::of(|origin, authorizer| {
                let policy = policy(origin, authorizer, "");
                if is_shared { shared(&policy, "") } else { policy }
            })
            .await;
            let refused = if is_shared { &BOB } else { &ANA };
            assert_eq!(shop.gateway.get("/public_read", &ANA).await.status(), 200);
            for status in [401, 403] {
                shop.origin.on(Matcher::any(), Behaviour::status(status));
                assert_eq!(shop.gateway.get("/public_read", refused).await.status(), status);
            }
            shop.origin.on(Matcher::any(), Behaviour::status(503));
            let after = shop.gateway.get("/public_read", &ANA).await;
            assert_eq!(after.status() == 200, !ends, "{:?}", after.head);
        }
    });
}

/// Four questions that are never answered, on a route with nine seconds: once their time is over twice, of which once nobody
/// waits for them any more, others are asked about.
#[test]
fn questions_that_hang_hold_their_places_no_longer_than_they_may() {
    run(async {
        let mut shop = Guarded::of(|origin, authorizer| {
            let policy = policy(origin, authorizer, "breaker = { min_calls = 10000, failures = \"100%\" }");
            policy
                .replace_table("authorizer.sessions", |table| {
                    table.replace("in_flight = 20", "in_flight = 5")
                })
                .replace_table("route.guarded.guarded", |table| {
                    table.replace("deadline = \"1s\"", "deadline = \"9s\"")
                })
        })
        .await;
        shop.says(Behaviour::hang());
        let gateway = shop.gateway.addr;
        let asking: Vec<_> = (0..4)
            .map(|_| {
                tokio::spawn(
                    async move { client::request(gateway, "POST", "/guarded", &ANA, b"").await.unwrap() },
                )
            })
            .collect();
        shop.authorizer.wait_for(4, BOUND).await.unwrap();
        shop.pass(100);
        for asking in asking {
            assert_eq!(asking.await.unwrap().status(), 503);
        }
        shop.says(yes("ana"));
        let full = shop.ask("guarded").await;
        assert_eq!(
            full.header("backstop"),
            Some("outcome=rejected, reason=authorizer, cause=dependency_full")
        );
        shop.hand.advance(Duration::from_millis(100));
        shop.gateway
            .metrics_until(|metrics| {
                metrics.sum("backstop_in_flight", &["scope=\"dependency\"", "name=\"sessions\""]) == 0.0
            })
            .await;
        assert_eq!(shop.ask("guarded").await.status(), 200);
    });
}
