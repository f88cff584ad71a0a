//! A write withdraws the copies of what it may have changed: at once, durably, and also when nobody knows its end.

use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, CutAt, Gate, Matcher, Then};

use crate::support::shop::{HOST, SPANISH, written};
use crate::support::{BOUND, Gateway, Metrics, Outcomes, Policy, Shop, expect, product, products, run};

const DISK: &str = "snapshots = { memory = \"16 MiB\", disk = \"64 MiB\" }";

/// Copies of product 1 in two languages and two tenants, and of product 2.
async fn stocked(shop: &Shop) {
    for language in ["es", "en"] {
        for tenant in ["a", "b"] {
            let fields = [("Accept-Language", language), ("X-Tenant", tenant)];
            assert_eq!(shop.gateway.get("/p/1", &fields).await.status(), 200);
        }
    }
    shop.get("2").await;
}

/// Whether product 1 has copies (all of them, or none) after the origin has failed; product 2 always has.
async fn product_1_has_copies(shop: &Shop) -> bool {
    shop.is_unavailable();
    expect::copy(&shop.get("2").await, &product("2", "first", "es"), 0, "unavailable");
    let mut statuses = Vec::new();
    for language in ["es", "en"] {
        for tenant in ["a", "b"] {
            let fields = [("Accept-Language", language), ("X-Tenant", tenant)];
            statuses.push(shop.gateway.get("/p/1", &fields).await.status());
        }
    }
    assert!(statuses == [200; 4] || statuses == [503; 4], "all variants alike: {statuses:?}");
    statuses == [200; 4]
}

/// 2xx and 3xx changed the resource (RFC 9111 section 4.4); a server error leaves it unknown; a client error says that
/// nothing was done.
#[test]
fn a_write_on_the_same_path_withdraws_every_variant() {
    run(async {
        let table = [
            ("PUT", 204, false),
            ("DELETE", 200, false),
            ("POST", 201, false),
            ("POST", 303, false),
            ("PUT", 500, false),
            ("PUT", 503, false),
            ("PUT", 400, true),
            ("PUT", 409, true),
            ("DELETE", 404, true),
            ("POST", 422, true),
        ];
        for (method, status, stays) in table {
            let shop = Shop::open().await;
            stocked(&shop).await;
            shop.origin.on(Matcher::path("/p/1").method(method), Answer::new(status));
            assert_eq!(shop.gateway.request(method, "/p/1", &[], b"{}").await.status(), status);
            assert_eq!(product_1_has_copies(&shop).await, stays, "{method} {status}");
            assert_eq!(shop.origin.count_of(method, "/p/1"), 1);
        }
    });
}

/// The query does not matter: a write to the path may have changed what any query of it shows.
#[test]
fn a_write_withdraws_every_query_of_its_path() {
    run(async {
        let shop = Shop::open().await;
        shop.gateway.get("/p/1?page=2", &SPANISH).await;
        shop.origin.on(Matcher::any().method("PUT"), Answer::new(204));
        shop.gateway.request("PUT", "/p/1", &[], b"{}").await;
        shop.is_unavailable();
        expect::no_copy(&shop.gateway.get("/p/1?page=2", &SPANISH).await, "missing", "unavailable");
    });
}

/// The origin read the whole write and then reset: nobody knows whether it happened. The client is told 502 and the
/// copies are gone.
#[test]
fn a_write_with_an_unknown_end_withdraws() {
    run(async {
        for (fault, reason) in [(Behaviour::reset(), "reset"), (Behaviour::garbage(), "protocol")] {
            let shop = Shop::open().await;
            stocked(&shop).await;
            shop.origin.on(Matcher::any().method("PUT"), fault);
            let answer = shop.gateway.request("PUT", "/p/1", &[], b"{}").await;
            expect::refused(&answer, 502, &format!("outcome=failed, reason={reason}"));
            assert!(!product_1_has_copies(&shop).await);
            assert_eq!(shop.origin.count_of("PUT", "/p/1"), 1, "never sent twice");
        }
    });
}

/// The origin carries a write out after it was given up. What a read saw in between is passed on but is not the last correct
/// answer: nothing that the write may change is kept for 10 s, or for the write's `abandon_hold` where that is longer.
#[test]
fn a_read_before_a_late_write_is_not_kept() {
    run(async {
        for (stated, held_ns) in [
            ("", 10_000_000_000_u64),
            ("abandon_hold = \"0s\"", 10_000_000_000),
            ("abandon_hold = \"20s\"", 20_000_000_000),
        ] {
            let mut shop = Shop::with(|origin| {
                let write = format!("match = \"PUT /p/{{id}}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4\n{stated}");
                Policy::shop(origin).replace_route("write.direct", &write)
            })
            .await;
            stocked(&shop).await;
            shop.origin.script(Matcher::any().method("PUT"), [Behaviour::reset()]);
            shop.gateway.request("PUT", "/p/1", &[], b"{}").await;
            expect::live(&shop.get("1").await, 200, &product("1", "first", "es"));
            shop.hand.advance(Duration::from_nanos(held_ns - 1));
            expect::live(&shop.get("1").await, 200, &product("1", "first", "es"));
            // Now it is carried out.
            shop.origin.default(products("second"));
            shop.goes_down().await;
            expect::no_copy(&shop.get("1").await, "missing", "connect");
            let other = shop.get("2").await;
            expect::copy(&other, &product("2", "first", "es"), held_ns / 1_000_000_000 - 1, "connect");
            shop.origin.accept_again().await.unwrap();
            shop.hand.advance(Duration::from_nanos(1));
            expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
            shop.goes_down().await;
            expect::copy(&shop.get("1").await, &product("1", "second", "es"), 0, "connect");
        }
    });
}

/// 202 says that the write is carried out later (RFC 9110 section 15.3.3), and an answer that breaks off says nothing.
#[test]
fn a_write_that_was_only_accepted_or_whose_answer_broke_off_may_still_come() {
    run(async {
        let accepted = || Behaviour::from(Answer::new(202));
        let cut = || Behaviour::truncated(100, 10);
        let hanging = || Answer::new(200).body("x".repeat(100)).cut(CutAt::Body(10), Then::Hang).into();
        let behaviours: [(&dyn Fn() -> Behaviour, bool); 3] =
            [(&accepted, true), (&cut, false), (&hanging, false)];
        for (behaviour, whole) in behaviours {
            let mut shop = Shop::open().await;
            stocked(&shop).await;
            shop.origin.script(Matcher::any().method("PUT"), [behaviour()]);
            let mut client = Connection::open(shop.gateway.addr).await.unwrap().bound(BOUND);
            client
                .send(b"PUT /p/1 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\n{}")
                .await
                .unwrap();
            if whole {
                assert_eq!(client.read_response().await.unwrap().status(), 202);
            } else {
                client.read_at_least(20).await.unwrap();
                drop(client);
                // The request is over; the call may go on occupying the origin.
                let is_over =
                    |metrics: &Metrics| metrics.sum("backstop_in_flight", &["scope=\"process\""]) == 0.0;
                shop.gateway.metrics_until(is_over).await;
            }
            expect::live(&shop.get("1").await, 200, &product("1", "first", "es"));
            shop.goes_down().await;
            expect::no_copy(&shop.get("1").await, "missing", "connect");
            shop.origin.accept_again().await.unwrap();
            shop.pass(10.0);
            shop.get("1").await;
            shop.goes_down().await;
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "connect");
        }
    });
}

/// Certainly not sent: the connection was refused. The copies stay.
#[test]
fn a_write_that_was_never_sent_withdraws_nothing() {
    run(async {
        let shop = Shop::open().await;
        stocked(&shop).await;
        shop.goes_down().await;
        let answer = shop.gateway.request("PUT", "/p/1", &[], b"{}").await;
        expect::refused(&answer, 502, "outcome=failed, reason=connect");
        shop.origin.accept_again().await.unwrap();
        assert!(product_1_has_copies(&shop).await);
        assert_eq!(shop.origin.count_of("PUT", "/p/1"), 0);
    });
}

/// The client leaves in the middle of its PUT, or while the origin works on it. Whether it happened is unknown.
#[test]
fn a_client_that_leaves_in_the_middle_of_a_put_withdraws() {
    run(async {
        for whole in [false, true] {
            let shop = Shop::open().await;
            stocked(&shop).await;
            let gate = Gate::new();
            shop.origin.on(Matcher::any().method("PUT"), Behaviour::from(Answer::new(204)).gate(&gate));
            let mut client = Connection::open(shop.gateway.addr).await.unwrap();
            let half = b"PUT /p/1 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 10\r\n\r\n12345";
            client.send(half).await.unwrap();
            shop.origin.wait_until(BOUND, |stats| stats.requests == 6).await.unwrap();
            if whole {
                client.send(b"67890").await.unwrap();
                gate.wait_for_waiting(1, BOUND).await.unwrap();
            }
            client.reset().unwrap();
            expect::outcomes(&shop.gateway, Outcomes { normal: 5, abandoned: 1, ..Outcomes::default() })
                .await;
            assert!(!product_1_has_copies(&shop).await, "whole: {whole}");
            assert_eq!(shop.origin.count_of("PUT", "/p/1"), 1);
            gate.open();
        }
    });
}

/// The write is answered when the disk has the withdrawal, so `kill -9` right after the answer brings no copy back.
#[test]
fn a_withdrawal_survives_kill_9_right_after_the_answer() {
    run(async {
        for status in [204, 500] {
            let shop = Shop::with(|origin| Policy::shop(origin).store(DISK)).await;
            stocked(&shop).await;
            written(&shop.gateway, 5).await;
            shop.origin.on(Matcher::any().method("PUT"), Answer::new(status));
            // The clock stands still: the bound of the wait for the disk never ends before the disk has confirmed.
            assert_eq!(shop.gateway.request("PUT", "/p/1", &[], b"{}").await.status(), status);
            let policy = Policy::shop(shop.origin.addr()).store(DISK);
            let mut hand = shop.hand;
            let start = hand.reading().as_start();
            let gateway = Gateway::start_with_clock(&shop.gateway.kill(), &policy, &start);
            shop.origin.on(Matcher::any(), Behaviour::status(503));
            expect::no_copy(&gateway.get("/p/1", &SPANISH).await, "missing", "unavailable");
            expect::copy(
                &gateway.get("/p/2", &SPANISH).await,
                &product("2", "first", "es"),
                0,
                "unavailable",
            );
        }
    });
}

/// The same for what the origin says is gone.
#[test]
fn a_404_survives_kill_9_right_after_the_answer() {
    run(async {
        let shop = Shop::with(|origin| Policy::shop(origin).store(DISK)).await;
        stocked(&shop).await;
        written(&shop.gateway, 5).await;
        shop.origin.on(Matcher::get("/p/1"), Behaviour::status(404));
        assert_eq!(shop.get("1").await.status(), 404);
        let policy = Policy::shop(shop.origin.addr()).store(DISK);
        let mut hand = shop.hand;
        let start = hand.reading().as_start();
        let gateway = Gateway::start_with_clock(&shop.gateway.kill(), &policy, &start);
        shop.origin.on(Matcher::any(), Behaviour::status(503));
        for language in ["es", "en"] {
            let fields = [("Accept-Language", language), ("X-Tenant", "b"), ("Host", HOST)];
            expect::no_copy(&gateway.get("/p/1", &fields).await, "missing", "unavailable");
        }
    });
}
