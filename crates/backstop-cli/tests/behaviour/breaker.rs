//! A dependency that fails is not asked any more, and tried again with few calls.

use std::net::SocketAddr;
use std::time::Duration;

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Then};

use crate::support::shop::{HOST, SPANISH};
use crate::support::{BOUND, Outcomes, Policy, Shop, expect, product, products, run};

const BREAKER: &str = "breaker = { window = \"10s\", min_calls = 4, failures = \"50%\", open = \"5s\", probes = 2 }\nrecovery = { start = \"100%\" }";

async fn guarded() -> Shop {
    let shop = Shop::with(|origin| {
        Policy::empty()
            .dependency("catalog", origin, BREAKER)
            .route("description.public_read", &Policy::description(""))
            .route(
                "write.direct",
                "match = \"PUT /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4",
            )
    })
    .await;
    shop.get("1").await;
    shop
}

fn asked(shop: &Shop) -> u64 {
    shop.origin.count()
}

/// Four failures of five calls are more than half of at least four. From then on the origin hears nothing for the open time
/// (at least 4 s: 5 s less a fifth), however many ask, and every answer is the copy.
#[test]
fn an_outage_is_asked_a_few_times_and_then_left_alone() {
    run(async {
        let mut shop = guarded().await;
        shop.is_unavailable();
        let body = product("1", "first", "es");
        for _ in 0..3 {
            expect::copy(&shop.get("1").await, &body, 0, "unavailable");
        }
        let before = asked(&shop);
        for _ in 0..100 {
            let copy = shop.get("1").await;
            assert_eq!((copy.status(), copy.text()), (200, body.clone()));
            assert_eq!(
                copy.header("backstop"),
                Some("outcome=fallback, source=snapshot, age=0, reason=breaker_open")
            );
        }
        assert_eq!(asked(&shop), before);
        shop.hand.advance(Duration::from_millis(3_999));
        shop.get("1").await;
        assert_eq!(asked(&shop), before);
        // After the longest open time (5 s and a fifth) one call tries it, fails, and it is open again.
        shop.hand.advance(Duration::from_millis(2_001));
        for _ in 0..20 {
            shop.get("1").await;
        }
        assert_eq!(asked(&shop), before + 1);
    });
}

/// Of all that wait for it to come back, no more than the probes try it at once.
#[test]
fn no_more_than_the_probes_try_it_at_once() {
    run(async {
        let mut shop = guarded().await;
        shop.is_unavailable();
        for _ in 0..5 {
            shop.get("1").await;
        }
        shop.origin.reset();
        let gate = Gate::new();
        shop.origin.default(products("second").gate(&gate));
        shop.hand.advance(Duration::from_secs(6));
        let before = asked(&shop);
        let opened = async {
            gate.wait_for_waiting(2, crate::support::BOUND).await.unwrap();
            // The two that were not probes have their copies, as the five before; two more are refused as well.
            shop.gateway.metrics_until(|metrics| metrics.outcome("fallback") == 7).await;
            for _ in 0..2 {
                shop.gateway.get("/p/1", &SPANISH).await;
            }
            assert_eq!(asked(&shop), before + 2);
            gate.open();
        };
        let (one, two, three, four, ()) =
            tokio::join!(shop.get("1"), shop.get("1"), shop.get("1"), shop.get("1"), opened);
        let answers = [one, two, three, four];
        let live = answers.iter().filter(|answer| answer.header("backstop").is_none()).count();
        assert_eq!(live, 2, "{answers:#?}");
        // Two successes close it.
        expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
    });
}

/// A write is never a probe, and is refused at once.
#[test]
fn a_write_tries_nothing_out() {
    run(async {
        let mut shop = guarded().await;
        shop.is_unavailable();
        for _ in 0..5 {
            shop.get("1").await;
        }
        shop.hand.advance(Duration::from_secs(6));
        let refused = shop.gateway.request("PUT", "/p/1", &[("Host", HOST)], b"{}").await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.header("backstop"), Some("outcome=rejected, reason=breaker_open"));
        assert_eq!(shop.origin.count_of("PUT", "/p/1"), 0);
    });
}

/// Clients that leave, answers about the request and refusals of our own are no failures.
#[test]
fn what_is_nobodys_failure_opens_nothing() {
    run(async {
        // Answers about the request.
        let shop = guarded().await;
        shop.origin.on(Matcher::any(), Behaviour::status(404));
        for _ in 0..40 {
            assert_eq!(shop.get("9").await.status(), 404);
        }
        is_closed(&shop).await;

        // Clients that leave while the origin works.
        let shop = guarded().await;
        for number in 1..=40 {
            let gate = Gate::new();
            shop.origin.on(Matcher::any(), products("slow").gate(&gate));
            shop.client_leaves(&gate, 1).await;
            let left = Outcomes { normal: 1, abandoned: number, ..Outcomes::default() };
            expect::outcomes(&shop.gateway, left).await;
            gate.open();
        }
        is_closed(&shop).await;

        // Requests that the route's own limit refuses: four are held.
        let shop = guarded().await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("held").gate(&gate));
        let refused = async {
            gate.wait_for_waiting(4, BOUND).await.unwrap();
            for _ in 0..40 {
                expect::refused(&shop.get("1").await, 503, "outcome=rejected, reason=capacity");
            }
            gate.open();
        };
        let held = async { tokio::join!(shop.get("1"), shop.get("1"), shop.get("1"), shop.get("1")) };
        let ((one, two, three, four), ()) = tokio::join!(held, refused);
        for answer in [one, two, three, four] {
            expect::live(&answer, 200, &product("1", "held", "es"));
        }
        is_closed(&shop).await;
    });
}

/// The breaker has never opened, and the next request is asked.
async fn is_closed(shop: &Shop) {
    let metrics = shop.gateway.metrics().await;
    assert_eq!(metrics.sum("backstop_breaker_phase", &["phase=\"closed\""]), 1.0);
    assert_eq!(metrics.sum("backstop_breaker_events_total", &["event=\"trip\""]), 0.0);
    assert_eq!(metrics.dependency_failures(), 0);
    shop.origin.reset();
    shop.origin.default(products("second"));
    let before = asked(shop);
    expect::live(&shop.get("1").await, 200, &product("1", "second", "es"));
    assert_eq!(asked(shop), before + 1);
}

/// A gateway without a breaker goes on asking.
#[test]
fn without_a_breaker_every_request_asks() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        shop.is_unavailable();
        for _ in 0..30 {
            shop.get("1").await;
        }
        assert_eq!(asked(&shop), 31);
    });
}

/// A dependency that serves writes only is tried with a read of its own, and only while its breaker is open.
#[test]
fn a_dependency_of_writes_is_tried_with_its_probe() {
    run(async {
        let mut shop = Shop::with(|origin| {
            let probe = "probe = { path = \"/healthz\", interval = \"1s\", timeout = \"500ms\" }";
            Policy::empty().dependency("catalog", origin, &format!("{BREAKER}\n{probe}")).route(
                "write.direct",
                "match = \"PUT /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4",
            )
        })
        .await;
        let put =
            async |shop: &Shop| shop.gateway.request("PUT", "/p/1", &[("Host", HOST)], b"{}").await.status();
        assert_eq!(put(&shop).await, 200);
        for _ in 0..3 {
            shop.hand.advance(Duration::from_secs(1));
        }
        assert_eq!(shop.origin.count_of("GET", "/healthz"), 0, "in good times nobody asks");
        shop.is_unavailable();
        for _ in 0..4 {
            put(&shop).await;
        }
        assert_eq!(put(&shop).await, 503);
        assert_eq!(shop.origin.count_of("PUT", "/p/1"), 4, "three of four failed: open");
        assert_eq!(shop.origin.count_of("GET", "/healthz"), 0, "the clock stands still: no interval is over");
        shop.origin.reset();
        shop.origin.default(products("second"));
        let waiting = async {
            while put(&shop).await != 200 {
                shop.hand.advance(Duration::from_millis(500));
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(BOUND, waiting).await.expect("it closes again");
        assert!(shop.origin.count_of("GET", "/healthz") >= 2, "two successes close it");
    });
}

/// Before the outage it told how long its database kept it waiting, and in the recovery it tells no more. By hand: heard last
/// before the 6.1 s of the open time; 61 s into the ramp it has been missing for a minute.
#[test]
fn a_signal_that_is_missing_in_a_recovery_is_shown() {
    run(async {
        let rules =
            "breaker = { min_calls = 4, failures = \"50%\", open = \"5s\", probes = 2 }\nrecovery = {}";
        let mut shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, rules)
                .route("description.public_read", &Policy::description(""))
        })
        .await;
        let missing = async |shop: &Shop| {
            let metrics = shop.gateway.metrics().await;
            assert_eq!(metrics.sum("backstop_recovery_signal_missing", &["signal=\"in_use\""]), 0.0);
            metrics.sum("backstop_recovery_signal_missing", &["signal=\"db_wait\""])
        };
        let told = Answer::json(product("1", "first", "es")).header("Server-Timing", "db;dur=1");
        shop.origin.default(told);
        shop.get("1").await;
        shop.is_unavailable();
        for _ in 0..4 {
            shop.get("1").await;
        }
        shop.hand.advance(Duration::from_millis(6_100));
        shop.origin.reset();
        shop.origin.default(products("first"));
        for _ in 0..2 {
            shop.get("1").await;
        }
        let ramping = ["phase=\"ramp\""];
        assert_eq!(shop.gateway.metrics().await.sum("backstop_breaker_phase", &ramping), 1.0);
        assert_eq!(missing(&shop).await, 0.0);
        shop.hand.advance(Duration::from_secs(61));
        assert_eq!(missing(&shop).await, 1.0);
    });
}

const WRITE: &str = "match = \"PUT /p/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4";
const PROBE: &str = "probe = { path = \"/healthz\", interval = \"1s\", timeout = \"500ms\" }";

/// A dependency of writes whose breaker has just opened, with a probe.
async fn probed(policy: impl FnOnce(SocketAddr) -> Policy) -> Shop {
    let shop = Shop::with(|origin| policy(origin).route("write.direct", WRITE)).await;
    shop.is_unavailable();
    for _ in 0..4 {
        put(&shop).await;
    }
    assert_eq!(put(&shop).await, 503);
    assert_eq!(shop.origin.count_of("PUT", "/p/1"), 4, "open");
    shop
}

async fn put(shop: &Shop) -> u16 {
    shop.gateway.request("PUT", "/p/1", &[("Host", HOST)], b"{}").await.status()
}

/// Moves the clock by half a second at a time until something is so.
async fn passing(shop: &mut Shop, is_so: impl Fn(&Shop) -> bool) {
    let waiting = async {
        while !is_so(shop) {
            shop.hand.advance(Duration::from_millis(500));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::BOUND, waiting).await.expect("it comes");
}

/// An answer that begins well and does not end within `timeout` is no sign of health; nor is one that breaks off.
#[test]
fn a_probe_is_good_once_its_whole_answer_is_there() {
    run(async {
        let hangs = Behaviour::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Then::Hang);
        for bad in [hangs, Behaviour::truncated(100, 10)] {
            let with_probe =
                |origin| Policy::empty().dependency("catalog", origin, &format!("{BREAKER}\n{PROBE}"));
            let mut shop = probed(with_probe).await;
            shop.origin.reset();
            shop.origin.default(products("second"));
            shop.origin.on(Matcher::path("/healthz"), bad);
            passing(&mut shop, |shop| shop.origin.count_of("GET", "/healthz") >= 3).await;
            assert_eq!(put(&shop).await, 503, "it stays open");
            assert_eq!(shop.origin.count_of("PUT", "/p/1"), 0);
            shop.origin.default(products("second"));
            shop.origin.on(Matcher::path("/healthz"), products("well"));
            let closing = async {
                while put(&shop).await != 200 {
                    shop.hand.advance(Duration::from_millis(500));
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(BOUND, closing).await.expect("it closes again");
        }
    });
}

/// A probe takes its part of what its dependency uses, like any read: of two places one may be a read's, and while another
/// dependency's read has it, nothing is probed.
#[test]
fn a_probe_uses_nothing_that_is_full() {
    run(async {
        let gate = Gate::new();
        let mut shop = probed(|origin| {
            Policy::empty()
                .table("resource.db", "concurrency = 2")
                .dependency("catalog", origin, &format!("{BREAKER}\n{PROBE}\nuses = [\"db\"]"))
                .dependency("other", origin, "uses = [\"db\"]")
                .route(
                    "other.direct",
                    "match = \"GET /other\"\ndependency = \"other\"\ndeadline = \"9s\"\nin_flight = 4",
                )
        })
        .await;
        shop.origin.reset();
        shop.origin.default(products("second"));
        shop.origin.on(Matcher::path("/other"), products("held").gate(&gate));
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(b"GET /other HTTP/1.1\r\nHost: shop.example\r\n\r\n").await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        // 8.5 s: the breaker opens for 6 s at most, and probes are tried once a second then.
        for _ in 0..17 {
            shop.hand.advance(Duration::from_millis(500));
            // What the clock has woken has run before this is answered on the same threads.
            assert_eq!(put(&shop).await, 503);
        }
        assert_eq!(shop.origin.count_of("GET", "/healthz"), 0, "the place for reads is taken");
        gate.open();
        assert_eq!(client.read_response().await.unwrap().status(), 200);
        passing(&mut shop, |shop| shop.origin.count_of("GET", "/healthz") >= 2).await;
    });
}
