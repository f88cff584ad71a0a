//! What a breaker is in survives a restart: what was open stays open for the rest of its time, and not a call longer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::disk::is_logged;
use crate::support::shop::{HOST, SPANISH};
use crate::support::state::{BREAKER, DISK, page, policy, saved, second};
use crate::support::{Gateway, Policy, Reading, Shop, product, products, run};
use backstop_lab::origin::Origin;

/// Any boot that is not this machine's present one.
const ANOTHER_BOOT: &str = "; boot 00112233445566778899aabbccddeeff";

struct Opened {
    origin: Origin,
    gateway: Gateway,
    /// When it opened, and for how long.
    at: Reading,
    open: Duration,
}

/// A product that was read, and a breaker that opened just now. It is on disk.
async fn opened() -> Opened {
    let mut shop = Shop::with(policy).await;
    shop.get("1").await;
    shop.is_unavailable();
    for _ in 0..10 {
        shop.get("1").await;
    }
    let at = shop.hand.reading();
    second(&shop.gateway, &mut shop.hand).await;
    saved(&shop.gateway, "open").await;
    let file = state(&shop.gateway);
    // One second less than it was, when it was written: 5 s, give or take a fifth.
    let rest = Duration::from_nanos(file["dependencies"][0]["rest_ns"].as_u64().unwrap());
    let open = rest + Duration::from_nanos((file["written"]["boot_ns"].as_i64().unwrap() - at.mono) as u64);
    assert!((4000..6000).contains(&open.as_millis()), "{open:?}");
    shop.origin.reset();
    shop.origin.default(products("second"));
    shop.origin.forget();
    Opened { origin: shop.origin, gateway: shop.gateway, at, open }
}

fn state(gateway: &Gateway) -> Value {
    let text = std::fs::read_to_string(gateway.folder().join("backstop-data/breakers.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn start(folder: &std::path::Path, policy: &Policy, clock: &str) -> Gateway {
    let mut gateway = Gateway::start_with_clock(folder, policy, clock);
    HOST.clone_into(&mut gateway.host);
    gateway
}

async fn phase(gateway: &Gateway) -> Value {
    page(gateway, "/dependencies/catalog/breaker").await["phase"].clone()
}

/// Ten reads and a write: none of them comes to the origin.
async fn is_left_alone(origin: &Origin, gateway: &Gateway) {
    for _ in 0..10 {
        // Whether the copy outlived the process is another promise.
        let answer = gateway.get("/p/1", &SPANISH).await;
        assert!(answer.header("backstop").is_some_and(|mark| mark.contains("breaker_open")), "{answer:?}");
    }
    let write = gateway.request("PUT", "/orders/1", &[("Host", HOST)], b"{}").await;
    assert_eq!(write.header("backstop"), Some("outcome=rejected, reason=breaker_open"));
    assert_eq!(origin.count(), 0);
}

/// A write tries nothing out; a read does.
async fn is_tried(origin: &Origin, gateway: &Gateway) {
    let write = gateway.request("PUT", "/orders/1", &[("Host", HOST)], b"{}").await;
    assert_eq!(write.header("backstop"), Some("outcome=rejected, reason=breaker_open"));
    assert_eq!(origin.count(), 0);
    assert_eq!(gateway.get("/p/1", &SPANISH).await.text(), product("1", "second", "es"));
    assert_eq!(origin.count(), 1);
}

/// Restarted two seconds after it opened: no call until the last nanosecond of its time, and then one may try it.
async fn stays_open(end: impl FnOnce(Gateway) -> std::path::PathBuf) {
    let Opened { origin, gateway, at, open } = opened().await;
    let folder = end(gateway);
    let gateway = start(&folder, &policy(origin.addr()), &at.after(Duration::from_secs(2)).as_start());
    let mut hand = gateway.hand();
    is_left_alone(&origin, &gateway).await;
    hand.pass(open - Duration::from_secs(2) - Duration::from_nanos(1));
    is_left_alone(&origin, &gateway).await;
    hand.pass(Duration::from_nanos(1));
    is_tried(&origin, &gateway).await;
}

#[test]
fn an_open_breaker_stays_open_after_a_stop() {
    run(stays_open(Gateway::stop));
}

#[test]
fn an_open_breaker_stays_open_after_kill_9() {
    run(stays_open(Gateway::kill));
}

/// By hand: one failure of two calls before and one of two after it would be half of four together, and open it.
#[test]
fn counters_begin_empty() {
    run(async {
        let shop = Shop::with(policy).await;
        shop.get("1").await;
        shop.is_unavailable();
        shop.get("1").await;
        let at = shop.gateway.hand().reading();
        let Shop { origin, gateway, .. } = shop;
        let gateway = start(&gateway.stop(), &policy(origin.addr()), &at.as_start());
        gateway.get("/p/1", &SPANISH).await;
        assert_eq!(origin.count(), 3);
        origin.reset();
        origin.default(products("second"));
        gateway.get("/p/1", &SPANISH).await;
        assert_eq!((phase(&gateway).await, origin.count()), (json!("closed"), 1));
    });
}

/// What was tried is tried again, from the beginning.
#[test]
fn what_was_being_tried_is_tried_again() {
    run(async {
        let Opened { origin, gateway, at, .. } = opened().await;
        let mut hand = gateway.hand();
        hand.pass(Duration::from_secs(6));
        // One success of two: half open.
        gateway.get("/p/1", &SPANISH).await;
        assert_eq!(phase(&gateway).await, "half_open");
        second(&gateway, &mut hand).await;
        saved(&gateway, "half_open").await;
        let folder = gateway.kill();
        let gateway = start(&folder, &policy(origin.addr()), &at.after(Duration::from_secs(8)).as_start());
        assert_eq!(phase(&gateway).await, "open");
        origin.forget();
        is_tried(&origin, &gateway).await;
    });
}

/// Under another boot only the date is left. One that says less, or that nobody vouches for, leaves the whole rest and no
/// more.
#[test]
fn another_boot_goes_by_the_date_and_is_never_open_for_longer() {
    run(async {
        for (wall_ns, sync, passed) in
            [(2_000_000_000, "on", 2_u64), (-3_600_000_000_000, "on", 0), (3_600_000_000_000, "off", 0)]
        {
            let Opened { origin, gateway, .. } = opened().await;
            let folder = gateway.kill();
            let file = state_in(&folder);
            let written = Reading {
                mono: file["written"]["boot_ns"].as_i64().unwrap(),
                wall: file["written"]["unix_ns"].as_i64().unwrap(),
            };
            let rest = Duration::from_nanos(file["dependencies"][0]["rest_ns"].as_u64().unwrap());
            let then = Reading { mono: written.mono / 2, wall: written.wall + wall_ns };
            let clock = format!("{}{ANOTHER_BOOT}; sync {sync}", then.as_start());
            let gateway = start(&folder, &policy(origin.addr()), &clock);
            let mut hand = gateway.hand();
            hand.pass(rest - Duration::from_secs(passed) - Duration::from_nanos(1));
            gateway.get("/p/1", &SPANISH).await;
            assert_eq!(origin.count(), 0, "{wall_ns} {sync}");
            hand.pass(Duration::from_nanos(1));
            gateway.get("/p/1", &SPANISH).await;
            assert_eq!(origin.count(), 1, "{wall_ns} {sync}");
        }
    });
}

fn state_in(folder: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(folder.join("backstop-data/breakers.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A rest that no breaker of this policy has: a minute is the most that even a dependency's own word can ask for.
#[test]
fn a_rest_beyond_every_measure_is_cut() {
    run(async {
        let Opened { origin, gateway, at, .. } = opened().await;
        let folder = gateway.kill();
        let mut file = state_in(&folder);
        file["dependencies"][0]["rest_ns"] = json!(u64::MAX);
        std::fs::write(folder.join("backstop-data/breakers.json"), file.to_string()).unwrap();
        let gateway = start(&folder, &policy(origin.addr()), &at.after(Duration::from_secs(2)).as_start());
        gateway.hand().pass(Duration::from_secs(60));
        gateway.get("/p/1", &SPANISH).await;
        assert_eq!(origin.count(), 1);
    });
}

/// Lost, cut short, or of another form: closed, with the limits in force, and said.
#[test]
fn without_what_was_written_it_is_closed() {
    run(async {
        for (damage, is_said) in [
            ("", true),
            ("{\"version\":1,\"dependencies\":[", true),
            ("{\"version\":2}", true),
            ("lost", false),
        ] {
            let Opened { origin, gateway, at, .. } = opened().await;
            let folder = gateway.kill();
            let file = folder.join("backstop-data/breakers.json");
            if damage == "lost" {
                std::fs::remove_file(&file).unwrap();
            } else {
                std::fs::write(&file, damage).unwrap();
            }
            let gateway =
                start(&folder, &policy(origin.addr()), &at.after(Duration::from_secs(2)).as_start());
            assert_eq!(phase(&gateway).await, "closed", "{damage}");
            assert_eq!(gateway.get("/p/1", &SPANISH).await.text(), product("1", "second", "es"));
            if is_said {
                is_logged(&gateway, "breakers.json.damaged").await;
            }
            assert_eq!(file.with_added_extension("damaged").exists(), is_said);
        }
    });
}

/// Another name or another address is another dependency.
#[test]
fn another_dependency_inherits_nothing() {
    run(async {
        let other = Origin::start().await.unwrap();
        other.default(products("second"));
        let Opened { origin, gateway, at, .. } = opened().await;
        let clock = at.after(Duration::from_secs(2)).as_start();
        let gateway = start(&gateway.kill(), &policy(other.addr()), &clock);
        assert_eq!(phase(&gateway).await, "closed");
        is_logged(&gateway, "is at another address now").await;
        assert_eq!(gateway.get("/p/1", &SPANISH).await.text(), product("1", "second", "es"));
        assert_eq!((other.count(), origin.count()), (1, 0));

        let Opened { origin, gateway, at, .. } = opened().await;
        let of_products = |lines: &str| lines.replace("catalog", "products");
        let renamed = Policy::empty()
            .store(DISK)
            .dependency("products", origin.addr(), BREAKER)
            .route("description.public_read", &of_products(&Policy::description("")));
        let gateway = start(&gateway.kill(), &renamed, &at.after(Duration::from_secs(2)).as_start());
        let shown = page(&gateway, "/dependencies/products/breaker").await;
        assert_eq!(shown["phase"], "closed");
    });
}
