//! Who may follow a read behind a cache, and what of its answer is theirs.

use std::time::Duration;

use backstop_lab::origin::{Answer, Gate, Matcher};

use super::cached_read::{World, read, review, route};
use crate::support::{BOUND, Metrics, Policy, Redis, Shop, expect, run};

/// A read that began before a change brings what was before, and goes on for those who came before it too. Whoever comes
/// after the change was answered gets a read of its own.
#[test]
fn who_comes_after_a_change_does_not_follow_a_read_from_before_it() {
    run(async {
        let world = World::open().await;
        let mut hand = world.shop.gateway.hand();
        let gate = Gate::new();
        world
            .shop
            .origin
            .on(Matcher::path("/r/1").method("GET"), Answer::json(review("1", "first")).gate(&gate));
        let changing = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            hand.advance(Duration::from_millis(1));
            world.shop.origin.on(Matcher::any().method("PUT"), Answer::new(204));
            assert_eq!(world.shop.gateway.request("PUT", "/r/1", &[], b"{}").await.status(), 204);
            hand.advance(Duration::from_millis(1));
            world.shop.origin.on(Matcher::path("/r/1").method("GET"), Answer::json(review("1", "second")));
            read(&world.get("1").await, &review("1", "second"));
            gate.open();
        };
        let (before, ()) = tokio::join!(world.get("1"), changing);
        read(&before, &review("1", "first"));
        let from_now_on = world.get("1").await;
        assert_eq!(from_now_on.text(), review("1", "second"));
        expect::idle(&world.shop.gateway).await;
    });
}

/// Whole answers without content pass as they came, each to its own caller, and are nobody's failure.
#[test]
fn an_answer_without_content_is_whole() {
    run(async {
        let world = World::open().await;
        for status in [204, 205] {
            world.shop.origin.on(Matcher::path("/r/1"), Answer::new(status));
            for _ in 0..2 {
                let answer = world.get("1").await;
                assert_eq!((answer.status(), answer.header("backstop")), (status, None));
                assert!(status != 204 || answer.header("content-length").is_none(), "RFC 9110 section 8.6");
            }
        }
        assert_eq!(world.shop.gateway.metrics().await.dependency_failures(), 0);
    });
}

/// By RFC 9110 section 15.1 and RFC 9111 section 3 no cache gives these to somebody else: each caller asks by itself.
#[test]
fn what_concerns_one_caller_reaches_no_follower() {
    run(async {
        let concerns_one = [
            201, 206, 302, 303, 307, 400, 401, 403, 406, 408, 409, 412, 413, 415, 416, 417, 421, 422, 425,
            426, 428, 429, 431,
        ];
        for status in concerns_one {
            assert_eq!(calls_of_two(status).await, 2, "{status}");
        }
    });
}

/// By RFC 9110 section 15.1 and RFC 7725 section 3 any cache may keep these and give them to others.
#[test]
fn what_any_cache_may_keep_is_one_read_for_all() {
    run(async {
        for status in [200, 203, 300, 301, 308, 404, 405, 410, 414, 451, 501] {
            assert_eq!(calls_of_two(status).await, 1, "{status}");
        }
    });
}

/// How often the dependency is asked when two ask the same at the same time, and both are answered with this status.
async fn calls_of_two(status: u16) -> u64 {
    let world = World::open().await;
    let gate = Gate::new();
    let answer = Answer::new(status).header("Content-Type", "application/json").body("{}");
    world.shop.origin.on(Matcher::path("/r/1"), answer.gate(&gate));
    let (one, other, ()) = tokio::join!(world.get("1"), world.get("1"), opened(&world, &gate, 1.0));
    assert_eq!((one.status(), other.status()), (status, status));
    world.calls()
}

/// Opens the gate once one read is behind it and so many follow.
async fn opened(world: &World, gate: &Gate, followers: f64) {
    gate.wait_for_waiting(1, BOUND).await.unwrap();
    let follow = |metrics: &Metrics| metrics.sum("backstop_fill_waiting", &[]) == followers;
    world.shop.gateway.metrics_until(follow).await;
    gate.open();
}

/// One of ten has fields that the origin finds too large. It is told so alone, and the nine others are one read, also while
/// they ask anew: the fault says nothing of what was asked for.
#[test]
fn a_fault_of_one_request_ends_no_sharing() {
    run(async {
        let world = World::open().await;
        let (first, second) = (Gate::new(), Gate::new());
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&second));
        world.shop.origin.on(Matcher::path("/r/1"), Answer::new(431).gate(&first).times(1));
        let asking = (0..10).map(|_| world.get("1"));
        let opening = async {
            opened(&world, &first, 9.0).await;
            opened(&world, &second, 8.0).await;
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), opening);
        let told = answers.iter().filter(|answer| answer.status() == 431).count();
        let answered = answers.iter().filter(|answer| answer.text() == review("1", "first")).count();
        assert_eq!((told, answered, world.calls()), (1, 9, 2));
        expect::idle(&world.shop.gateway).await;
    });
}

/// One place at the dependency, and another read has it. Who waits for that one waits for the dependency: 504. Who waits for a
/// read that still waits for the place waits for nobody but us: 503 (RFC 9110 sections 15.6.4 and 15.6.5).
#[test]
fn a_wait_for_a_read_that_was_never_sent_is_503() {
    run(async {
        let redis = Redis::start();
        let lines = route(&redis, "dependency = \"narrow\"\nlocal_copy =");
        let shop = Shop::with(|origin| {
            let narrow = "connections = 1\nqueue = \"299ms\"";
            Policy::shop(origin).dependency("narrow", origin, narrow).route("reviews.cached_read", &lines)
        })
        .await;
        let world = World { redis, shop };
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&gate));
        world.shop.origin.on(Matcher::path("/r/2"), Answer::json(review("2", "first")));
        let mut hand = world.shop.gateway.hand();
        let behind = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            tokio::join!(world.get("2"), world.get("2"), async {
                let follows = |metrics: &Metrics| metrics.sum("backstop_fill_waiting", &[]) == 1.0;
                world.shop.gateway.metrics_until(follows).await;
                // After the wait of 297 ms, and before the read itself gives up its own.
                hand.advance(Duration::from_millis(298));
            })
        };
        let (first, (leads, follows, ())) = tokio::join!(world.get("1"), behind);
        expect::refused(&first, 504, "outcome=failed, reason=read_timeout");
        for waited in [leads, follows] {
            expect::refused(&waited, 503, "outcome=rejected, reason=pool_timeout");
            let status = waited.header("proxy-status").unwrap_or_default();
            assert!(status.contains("proxy_internal_response"), "RFC 9209 section 2.3.30: {status}");
        }
        assert_eq!(world.calls(), 1);
        gate.open();
        expect::idle(&world.shop.gateway).await;
    });
}

/// An answer too large to be held back is only for whoever had it read. It has left: nobody takes the answer, and its call is
/// an abandoned one, as it would be without a cache.
#[test]
fn an_answer_that_whoever_had_it_read_does_not_take_is_an_abandoned_call() {
    run(async {
        let world = World::open().await;
        let gate = Gate::new();
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(large).gate(&gate));
        tokio::select! {
            _ = world.get("1") => panic!("answered behind a closed gate"),
            waiting = gate.wait_for_waiting(1, BOUND) => waiting.unwrap(),
        }
        world.shop.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 1).await;
        gate.open();
        let abandoned = |metrics: &Metrics| {
            metrics.sum("backstop_dependency_calls_total", &["result=\"abandoned\""]) == 1.0
        };
        world.shop.gateway.metrics_until(abandoned).await;
        expect::idle(&world.shop.gateway).await;
    });
}
