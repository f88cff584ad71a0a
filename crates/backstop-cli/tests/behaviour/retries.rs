//! A read that failed for a moment is asked once more; nothing else is.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Behaviour, Gate, Matcher, Then};

use crate::support::shop::HOST;
use crate::support::{BOUND, Policy, Shop, expect, product, run};

async fn retrying(more: &str) -> Shop {
    Shop::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, "")
            .route(
                "description.public_read",
                &Policy::description(&format!("retry = {{ attempts = 2 }}\n{more}")),
            )
            .route(
                "write.direct",
                "match = \"PUT /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4",
            )
    })
    .await
}

/// The wait is drawn up to 25 ms, and the clock stands still until it is moved.
async fn get_and_wait(shop: &mut Shop) -> backstop_lab::client::Response {
    let Shop { gateway, hand, .. } = shop;
    let moving = async {
        loop {
            hand.advance(std::time::Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = gateway.get("/p/1", &crate::support::shop::SPANISH) => answer,
        () = moving => unreachable!("it goes on without end"),
    }
}

/// The second attempt says that it is one, and nothing tells the client.
#[test]
fn a_read_that_failed_for_a_moment_is_asked_once_more() {
    run(async {
        for fault in [Behaviour::reset(), Behaviour::status(503), Behaviour::status(502), Behaviour::close()]
        {
            let mut shop = retrying("").await;
            shop.origin.script(Matcher::any(), [fault]);
            let answer = get_and_wait(&mut shop).await;
            expect::live(&answer, 200, &product("1", "first", "es"));
            let requests = shop.origin.requests();
            assert_eq!(requests.len(), 2);
            let tells: Vec<_> = requests.iter().map(|request| request.header("backstop-attempt")).collect();
            assert_eq!(tells, [None, Some("2")]);
        }
    });
}

/// Two attempts, and one connection for both.
async fn one_connection() -> Shop {
    Shop::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, "connections = 1")
            .route("description.public_read", &Policy::description("retry = { attempts = 2 }"))
    })
    .await
}

/// The failed answer gives its connection back before the second attempt: one connection is enough for both.
#[test]
fn one_connection_is_enough_for_both_attempts() {
    run(async {
        let mut shop = one_connection().await;
        shop.origin.script(Matcher::any(), [Behaviour::status(503)]);
        // The wait is at most 25 ms, and time stands still until the place is free.
        let Shop { gateway, hand, .. } = &mut shop;
        let moved = async {
            let is_free = |metrics: &crate::support::Metrics| {
                metrics.sum("backstop_dependency_failures_total", &["kind=\"unavailable\""]) == 1.0
                    && metrics.sum("backstop_in_flight", &["scope=\"dependency\""]) == 0.0
            };
            gateway.metrics_until(is_free).await;
            hand.advance(std::time::Duration::from_millis(26));
        };
        let (answer, ()) = tokio::join!(gateway.get("/p/1", &crate::support::shop::SPANISH), moved);
        expect::live(&answer, 200, &product("1", "first", "es"));
        assert_eq!((shop.origin.count(), shop.origin.connections_accepted()), (2, 1));
    });
}

/// A failed answer that does not end goes on occupying the only place: the call is not made again, and the failure stays.
#[test]
fn a_failed_answer_that_does_not_end_leaves_no_place_for_a_second_attempt() {
    run(async {
        let mut shop = one_connection().await;
        let half = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nhalf";
        shop.origin.on(Matcher::any(), Behaviour::raw(half, Then::Hang));
        let answer = get_and_wait(&mut shop).await;
        expect::no_copy(&answer, "missing", "unavailable");
        assert_eq!((shop.origin.count(), shop.origin.peak_connections()), (1, 1));
    });
}

/// 504 reports a timeout, a declared status is the same a moment later, and a body that broke off was answered.
#[test]
fn what_a_second_call_would_only_double_is_not_asked_again() {
    run(async {
        for fault in [Behaviour::status(504), Behaviour::status(500), Behaviour::truncated(100, 10)] {
            let mut shop = retrying("declared = [500]").await;
            shop.origin.on(Matcher::any(), fault);
            let answer = get_and_wait(&mut shop).await;
            assert_eq!(answer.status(), 503);
            assert_eq!(shop.origin.count(), 1);
        }
    });
}

/// 160 of the 300 ms are over when the first attempt fails, and the second hangs: it gets what is left, not as much again. A
/// public report: a limit of 30 s kept a caller waiting for 91 s, <https://github.com/openai/openai-python/issues/3828>.
#[test]
fn both_attempts_share_one_deadline() {
    run(async {
        let mut shop = retrying("").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), Behaviour::hang());
        shop.origin.script(Matcher::any(), [Behaviour::status(503).gate(&gate)]);
        let address = shop.gateway.addr;
        let asked = tokio::spawn(async move {
            client::get(address, "/p/1", &crate::support::shop::SPANISH).await.unwrap()
        });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.hand.advance(Duration::from_millis(160));
        gate.open();
        shop.gateway.metrics_until(|metrics| metrics.dependency_failures() == 1).await;
        // The wait before the second attempt is drawn up to 25 ms.
        shop.hand.advance(Duration::from_millis(25));
        shop.origin.wait_for(2, BOUND).await.unwrap();
        shop.hand.advance(Duration::from_millis(300 - 160 - 25));
        expect::no_copy(&asked.await.unwrap(), "missing", "read_timeout");
        assert_eq!(shop.origin.count(), 2);
    });
}

/// A write is sent once, whatever becomes of it; and whoever calls has tried already.
#[test]
fn writes_and_second_attempts_of_others_are_sent_once() {
    run(async {
        let shop = retrying("").await;
        shop.origin.on(Matcher::any(), Behaviour::reset());
        assert_eq!(shop.gateway.request("PUT", "/p/1", &[("Host", HOST)], b"{}").await.status(), 502);
        assert_eq!(shop.origin.count(), 1);
        let again = [("Host", HOST), ("Accept-Language", "es"), ("X-Tenant", "a"), ("Backstop-Attempt", "2")];
        assert_eq!(shop.gateway.get("/p/1", &again).await.status(), 503);
        assert_eq!(shop.origin.count(), 2);
        assert_eq!(shop.origin.requests()[1].header("backstop-attempt"), Some("2"));
    });
}

/// Three retries are paid in advance; then ten successes pay for one.
#[test]
fn an_outage_is_not_asked_twice_for_long() {
    run(async {
        let mut shop = retrying("in_flight = 50").await;
        shop.origin.on(Matcher::any(), Behaviour::status(503));
        for _ in 0..50 {
            get_and_wait(&mut shop).await;
        }
        assert_eq!(shop.origin.count(), 50 + 3);
    });
}
