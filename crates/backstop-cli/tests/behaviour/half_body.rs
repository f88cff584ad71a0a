//! A transfer that was cut must not become the good copy. Public reports: an upstream transfer was cut and the fragment
//! was stored and served as a valid 200, <https://github.com/caddyserver/cache-handler/issues/73>; the chunked form,
//! <https://github.com/squid-cache/squid/pull/528>.

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::shop::{GET_PRODUCT_1, SPANISH, written};
use crate::support::{Gateway, Outcomes, Policy, Shop, expect, product, run};

const DISK: &str = "snapshots = { memory = \"32 MiB\", disk = \"64 MiB\" }";
const FIVE_MB: usize = 5_000_000;

/// A right answer of exactly `length` bytes.
fn long_product(length: usize) -> String {
    let short = product("1", "", "es").len();
    product("1", &"x".repeat(length - short), "es")
}

fn policy(origin: std::net::SocketAddr, read: &str) -> Policy {
    Policy::shop(origin).store(DISK).replace_route("description.public_read", &Policy::description(read))
}

/// Version 1 is kept through two cut transfers, a part that nobody asked for, an outage and a restart, and its age counts
/// from when it was read.
#[test]
fn fragments_never_replace_the_copy() {
    run(async {
        let mut shop = Shop::with(|origin| policy(origin, "")).await;
        let at = shop.hand.reading();
        let version_1 = long_product(600);
        shop.origin.on(Matcher::any(), Behaviour::json(&version_1));
        expect::live(&shop.get("1").await, 200, &version_1);
        written(&shop.gateway, 1).await;
        shop.pass(1.0);
        shop.origin.on(Matcher::any(), Behaviour::truncated(600, 300));
        expect::copy(&shop.get("1").await, &version_1, 1, "incomplete");
        shop.origin.on(Matcher::any(), Behaviour::truncated_chunked(300));
        expect::copy(&shop.get("1").await, &version_1, 1, "incomplete");
        let part = Answer::new(206)
            .header("Content-Type", "application/json")
            .header("Content-Range", "bytes 0-299/600")
            .body(product("1", "part", "es"));
        shop.origin.on(Matcher::any(), part);
        assert_eq!(shop.get("1").await.status(), 206);
        shop.is_unavailable();
        shop.pass(1.0);
        expect::copy(&shop.get("1").await, &version_1, 2, "unavailable");
        let metrics = shop.gateway.metrics().await;
        assert_eq!((metrics.failures("incomplete"), metrics.failures("unavailable")), (2, 1));

        let policy = policy(shop.origin.addr(), "");
        let start = at.after(std::time::Duration::from_secs(3)).as_start();
        let gateway = Gateway::start_with_clock(&shop.gateway.stop(), &policy, &start);
        expect::copy(&gateway.get("/p/1", &SPANISH).await, &version_1, 3, "unavailable");
    });
}

/// Reads 1 KB of an answer and resets.
async fn leave_after_1_kb(shop: &Shop) {
    let mut client = Connection::open(shop.gateway.addr).await.unwrap();
    client.send(GET_PRODUCT_1).await.unwrap();
    client.read_at_least(1024).await.unwrap();
    client.reset().unwrap();
    shop.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
}

/// With room to hold 5 MB back, the answer was complete before the client saw a byte: it is the copy, all of it.
#[test]
fn a_client_that_resets_after_1_kb_leaves_a_whole_copy() {
    run(async {
        let shop = Shop::with(|origin| policy(origin, "buffer = \"6 MiB\"\ndeadline = \"5s\"")).await;
        let long = long_product(FIVE_MB);
        shop.origin.on(Matcher::any(), Behaviour::json(&long));
        leave_after_1_kb(&shop).await;
        shop.is_unavailable();
        let saved = shop.get("1").await;
        assert_eq!(saved.body.len(), FIVE_MB);
        assert!(saved.text() == long);
        expect::marked_as_copy(&saved, 0, "unavailable");
    });
}

/// Without that room the answer streams, and a stream is never kept: no copy instead of a fragment.
#[test]
fn a_stream_that_the_client_resets_leaves_no_copy() {
    run(async {
        let shop = Shop::with(|origin| policy(origin, "deadline = \"5s\"")).await;
        shop.origin.on(Matcher::any(), Behaviour::json(&long_product(FIVE_MB)));
        leave_after_1_kb(&shop).await;
        expect::outcomes(&shop.gateway, Outcomes { abandoned: 1, ..Outcomes::default() }).await;
        shop.is_unavailable();
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
        assert_eq!(shop.gateway.metrics().await.failures("incomplete"), 0);
    });
}

/// Larger than `buffer`, so its first bytes have gone to the client when it breaks: the client sees that it broke.
#[test]
fn a_stream_that_breaks_is_cut_visibly() {
    run(async {
        let shop = Shop::with(|origin| policy(origin, "deadline = \"5s\"")).await;
        for fault in [Behaviour::truncated(FIVE_MB, FIVE_MB / 2), Behaviour::truncated_chunked(FIVE_MB)] {
            shop.origin.on(Matcher::any(), fault);
            let answer = shop.get("1").await;
            assert_eq!(answer.status(), 200);
            assert!(!answer.is_complete(), "{} bytes that look whole", answer.body.len());
        }
        expect::outcomes(&shop.gateway, Outcomes { failed: 2, ..Outcomes::default() }).await;
        assert_eq!(shop.gateway.metrics().await.failures("incomplete"), 2);
        shop.is_unavailable();
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
    });
}
