//! Which status tells what. Public reports: an upstream timeout was shown as 500,
//! <https://github.com/spring-cloud/spring-cloud-gateway/pull/558>, or as 408,
//! <https://github.com/TykTechnologies/tyk/issues/1975>.

use backstop_lab::client::{self, Response};
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};
use std::time::Duration;
use tokio::task::JoinHandle;

use crate::support::{BOUND, Outcomes, Policy, Shop, expect, product, products, run};

fn asking(shop: &Shop, target: &'static str) -> JoinHandle<Response> {
    let address = shop.gateway.addr;
    tokio::spawn(async move { client::get(address, target, &crate::support::shop::SPANISH).await.unwrap() })
}

/// What hangs ends when the clock has come to the deadline.
async fn after_the_deadline(shop: &mut Shop, target: &'static str) -> Response {
    let before = shop.origin.count();
    let asking = asking(shop, target);
    shop.origin.wait_until(BOUND, |stats| stats.requests > before).await.unwrap();
    shop.hand.advance(Duration::from_millis(300));
    asking.await.unwrap()
}

/// No alternative on the route: 502 and 504 by what went wrong (RFC 9110 sections 15.6.3 to 15.6.5). All are failures.
#[test]
fn a_direct_route_says_what_went_wrong() {
    run(async {
        let mut shop = Shop::open().await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        let hung = after_the_deadline(&mut shop, "/other").await;
        expect::refused(&hung, 504, "outcome=failed, reason=read_timeout");
        assert_eq!(hung.header("proxy-status"), Some("edge; error=http_response_timeout"));

        shop.origin.on(Matcher::any(), Behaviour::garbage());
        let garbage = shop.gateway.get("/other", &[]).await;
        expect::refused(&garbage, 502, "outcome=failed, reason=protocol");
        assert_eq!(garbage.header("proxy-status"), Some("edge; error=http_protocol_error"));

        shop.goes_down().await;
        let refused = shop.gateway.get("/other", &[]).await;
        expect::refused(&refused, 502, "outcome=failed, reason=connect");
        assert_eq!(refused.header("proxy-status"), Some("edge; error=connection_refused"));
        expect::outcomes(&shop.gateway, Outcomes { failed: 3, ..Outcomes::default() }).await;
    });
}

/// The origin's own word passes unchanged, `Retry-After` included; nothing is invented.
#[test]
fn a_direct_route_passes_the_origins_own_errors() {
    run(async {
        let shop = Shop::open().await;
        let table = [(503, "unavailable"), (504, "unavailable"), (502, "unavailable"), (500, "server_error")];
        for (status, reason) in table {
            let body = format!("the origin's own {status}");
            shop.origin.on(
                Matcher::any(),
                Answer::new(status)
                    .header("Content-Type", "text/plain")
                    .header("Retry-After", "7")
                    .body(body.clone()),
            );
            let passed = shop.gateway.get("/other", &[]).await;
            expect::passed(
                &passed,
                status,
                &body,
                &format!("outcome=failed, source=primary, reason={reason}"),
            );
            assert_eq!(passed.header("retry-after"), Some("7"));
        }
        shop.origin.on(Matcher::any(), Answer::new(503));
        assert_eq!(shop.gateway.get("/other", &[]).await.header("retry-after"), None);
        expect::outcomes(&shop.gateway, Outcomes { failed: 5, ..Outcomes::default() }).await;
        assert_eq!(shop.origin.count(), 5);
    });
}

/// A read whose copy is missing: 503 by contract, whatever the cause, which is named; a 500 passes. Never 408.
#[test]
fn a_read_without_a_copy_is_503_by_contract() {
    run(async {
        let mut shop = Shop::open().await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        expect::no_copy(&after_the_deadline(&mut shop, "/p/1").await, "missing", "read_timeout");
        shop.origin.on(Matcher::any(), Behaviour::garbage());
        expect::no_copy(&shop.get("1").await, "missing", "protocol");
        for status in [502, 503, 504] {
            shop.origin.on(Matcher::any(), Answer::new(status));
            let refused = shop.get("1").await;
            expect::no_copy(&refused, "missing", "unavailable");
            let proxy = format!("edge; error=destination_unavailable; received-status={status}");
            assert_eq!(refused.header("proxy-status"), Some(proxy.as_str()));
        }
        shop.origin.on(Matcher::any(), Behaviour::status(500));
        let mark = "outcome=failed, source=primary, reason=server_error";
        expect::passed(&shop.get("1").await, 500, r#"{"status":500}"#, mark);
        shop.goes_down().await;
        expect::no_copy(&shop.get("1").await, "missing", "connect");
        expect::outcomes(&shop.gateway, Outcomes { rejected: 6, failed: 1, ..Outcomes::default() }).await;
    });
}

/// `unavailable_status = "cause"`: 504 for what did not answer in time, 502 for what could not be reached or understood.
#[test]
fn a_route_may_answer_by_the_cause() {
    run(async {
        let mut shop = Shop::with(|origin| {
            let read = Policy::description("unavailable_status = \"cause\"");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        shop.origin.on(Matcher::any(), Behaviour::hang());
        let hung = after_the_deadline(&mut shop, "/p/1").await;
        expect::refused(&hung, 504, "outcome=rejected, reason=missing, cause=read_timeout");
        shop.origin.on(Matcher::any(), Behaviour::garbage());
        expect::refused(&shop.get("1").await, 502, "outcome=rejected, reason=missing, cause=protocol");
        shop.goes_down().await;
        expect::refused(&shop.get("1").await, 502, "outcome=rejected, reason=missing, cause=connect");
    });
}

/// The route is full, and the copy that exists does not matter: a refusal at the route's own limit leads to no alternative.
/// The origin is not touched.
#[test]
fn a_full_route_refuses_at_once() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("held").gate(&gate));
        let held: Vec<_> = (0..4).map(|_| asking(&shop, "/p/1")).collect();
        gate.wait_for_waiting(4, BOUND).await.unwrap();
        let refused = shop.get("1").await;
        expect::refused(&refused, 503, "outcome=rejected, reason=capacity");
        assert_eq!(refused.header("proxy-status"), Some("edge; error=proxy_internal_response"));
        assert_eq!(shop.origin.count(), 5);
        gate.open();
        for answer in held {
            expect::live(&answer.await.unwrap(), 200, &product("1", "held", "es"));
        }
        expect::live(&shop.get("1").await, 200, &product("1", "held", "es"));
        expect::outcomes(&shop.gateway, Outcomes { normal: 6, rejected: 1, ..Outcomes::default() }).await;
    });
}

/// `fallback_in_flight` opens a limited lane in which copies are still served when the route is full.
#[test]
fn a_lane_for_copies_serves_them_when_the_route_is_full() {
    run(async {
        let shop = Shop::with(|origin| {
            let read = Policy::description("in_flight = 1\nfallback_in_flight = 1");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        shop.get("1").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("held").gate(&gate));
        let held = asking(&shop, "/p/1");
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        let saved = shop.get("1").await;
        assert_eq!((saved.status(), saved.text()), (200, product("1", "first", "es")));
        assert_eq!(
            saved.header("backstop"),
            Some("outcome=fallback, source=snapshot, age=0, reason=capacity")
        );
        assert_eq!(saved.header("cache-status"), Some("edge; hit; ttl=0; detail=capacity"));
        expect::refused(&shop.get("2").await, 503, "outcome=rejected, reason=capacity");
        assert_eq!(shop.origin.count(), 2);
        gate.open();
        held.await.unwrap();
    });
}

/// A stop refuses what is new at once and lets what is under way finish; then the process ends well.
#[test]
fn a_draining_gateway_refuses_and_finishes_what_it_has() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("held").gate(&gate));
        let held = asking(&shop, "/p/1");
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.gateway.signal("TERM");
        let draining = |log: &[String]| log.iter().any(|line| line.contains("stopping"));
        tokio::time::timeout(BOUND, async {
            while !draining(&shop.gateway.log()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .unwrap();
        let ready = client::get(shop.gateway.admin, "/readyz", &[]).await.unwrap();
        assert_eq!((ready.status(), ready.json().unwrap()["draining"].as_bool()), (503, Some(true)));
        expect::refused(&shop.get("1").await, 503, "outcome=rejected, reason=draining");
        assert_eq!(shop.origin.count(), 2);
        gate.open();
        expect::live(&held.await.unwrap(), 200, &product("1", "held", "es"));
        assert!(shop.gateway.wait().success());
    });
}

/// What no route answers is a 404 of the gateway's own, and nobody is asked.
#[test]
fn what_no_route_answers_is_404() {
    run(async {
        let shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "")
                .route("description.public_read", &Policy::description(""))
        })
        .await;
        let unmatched = shop.gateway.get("/nowhere", &[]).await;
        assert_eq!(unmatched.status(), 404);
        assert_eq!(unmatched.header("content-type"), Some("application/problem+json"));
        assert_eq!(shop.origin.count(), 0);
    });
}

/// A read that may be asked twice, without a copy, on a route that tells the cause: 504 for what did not come in time, 502
/// for what broke or was no HTTP, the service's own 5xx by its number. Once more is asked only what may have passed in a
/// moment, never what was too late, and never what says when to come back later than the deadline.
#[test]
fn a_read_that_may_be_asked_twice_keeps_the_status_of_its_cause() {
    run(async {
        let failures: [(Behaviour, u16, u64, &str); 8] = [
            (Behaviour::hang(), 504, 1, "read_timeout"),
            (Behaviour::garbage(), 502, 1, "protocol"),
            (Behaviour::truncated(600, 300), 502, 1, "incomplete"),
            (Behaviour::status(504), 504, 1, "unavailable"),
            (Answer::new(503).header("Retry-After", "7").into(), 503, 1, "unavailable"),
            (Behaviour::status(503), 503, 2, "unavailable"),
            (Behaviour::status(502), 502, 2, "unavailable"),
            (Behaviour::reset(), 502, 2, "reset"),
        ];
        let mut shop = Shop::with(|origin| {
            let read = "retry = { attempts = 2 }\nunavailable_status = \"cause\"";
            Policy::shop(origin).replace_route("description.public_read", &Policy::description(read))
        })
        .await;
        shop.hand.go_on();
        for (failure, status, calls, cause) in failures {
            shop.origin.forget();
            shop.origin.on(Matcher::any(), failure);
            let answer = shop.get("1").await;
            let mark = format!("outcome=rejected, reason=missing, cause={cause}");
            // Whatever the service said of when to come back: it is not ours to repeat.
            expect::refused(&answer, status, &mark);
            assert_eq!(shop.origin.count(), calls, "{cause} {status}");
        }
        shop.origin.on(Matcher::any(), Behaviour::status(500));
        let mark = "outcome=failed, source=primary, reason=server_error";
        expect::passed(&shop.get("1").await, 500, r#"{"status":500}"#, mark);
    });
}

pub mod timing {
    //! By the real clock: what is not asked is refused at once.

    use super::*;

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// 503 in less than 50 ms, by a read without a copy and by a route without an alternative, and the origin hears nothing.
    #[test]
    fn an_open_breaker_refuses_at_once() {
        run(async {
            let mut shop = Shop::with(|origin| {
                Policy::empty()
                    .dependency("catalog", origin, "breaker = { min_calls = 3 }")
                    .route("description.public_read", &Policy::description("retry = { attempts = 2 }"))
                    .route(
                        "rest.direct",
                        "match = \"*\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 4",
                    )
            })
            .await;
            shop.origin.on(Matcher::any(), Behaviour::hang());
            for number in 1..=3 {
                let hung = asking(&shop, "/p/1");
                shop.origin.wait_for(number, BOUND).await.unwrap();
                shop.hand.advance(Duration::from_millis(300));
                expect::no_copy(&hung.await.unwrap(), "missing", "read_timeout");
            }
            let refusals = [
                ("/p/1", "outcome=rejected, reason=missing, cause=breaker_open"),
                ("/other", "outcome=rejected, reason=breaker_open"),
            ];
            for (target, mark) in refusals {
                let mut times = Vec::new();
                for _ in 0..50 {
                    let refused = shop.gateway.get(target, &crate::support::shop::SPANISH).await;
                    expect::refused(&refused, 503, mark);
                    assert_eq!(refused.header("proxy-status"), Some("edge; error=destination_unavailable"));
                    times.push(refused.took);
                }
                let median = median(times);
                assert!(median < Duration::from_millis(50), "{target}: {median:?}");
            }
            assert_eq!(shop.origin.count(), 3);
            expect::outcomes(&shop.gateway, Outcomes { rejected: 103, ..Outcomes::default() }).await;
        });
    }
}
