//! Who may follow a read behind a cache, and what of its answer is theirs.

use std::time::Duration;

use backstop_lab::origin::{Answer, Gate, Matcher};

use super::cached_read::{World, read, review};
use crate::support::{BOUND, Metrics, expect, run};

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
        for status in [201, 206, 302, 303, 307, 401, 403, 429] {
            let world = World::open().await;
            let gate = Gate::new();
            let answer = Answer::new(status).header("Content-Type", "application/json").body("{}");
            world.shop.origin.on(Matcher::path("/r/1"), answer.gate(&gate));
            let opening = async {
                gate.wait_for_waiting(1, BOUND).await.unwrap();
                let follows = |metrics: &Metrics| metrics.sum("backstop_fill_waiting", &[]) == 1.0;
                world.shop.gateway.metrics_until(follows).await;
                gate.open();
            };
            let (one, other, ()) = tokio::join!(world.get("1"), world.get("1"), opening);
            assert_eq!((one.status(), other.status()), (status, status));
            assert_eq!(world.calls(), 2, "{status}");
        }
    });
}
