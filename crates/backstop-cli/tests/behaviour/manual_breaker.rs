//! An operator holds a breaker open or closed, and releases it: on the operators' port, or in the policy.

use std::time::Duration;

use backstop_lab::client;
use serde_json::{Value, json};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH};
use crate::support::state::{BREAKER, DISK, ORDERS, current, order, page, policy, second};
use crate::support::{Gateway, Policy, Shop, expect, product, products, run};
use backstop_lab::origin::Origin;

const OPEN: &str = r#"{"state":"open","reason":"the catalog is being moved"}"#;
const CLOSED: &str = r#"{"state":"closed","reason":"we know better"}"#;
const RELEASE: &str = r#"{"state":"release"}"#;

/// Orders it, and expects these phases before and after.
async fn ordered(gateway: &Gateway, body: &str, before: &str, after: &str) -> Value {
    let answer = order(gateway, "catalog", body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let said = answer.json().unwrap();
    assert_eq!((&said["before"], &said["after"]), (&json!(before), &json!(after)));
    said
}

async fn shown(gateway: &Gateway) -> Value {
    page(gateway, "/dependencies/catalog/breaker").await
}

/// Nothing is sent, for as long as it takes, until it is released.
#[test]
fn what_is_held_open_gets_no_call() {
    run(async {
        let mut shop = Shop::with(policy).await;
        shop.get("1").await;
        let said = ordered(&shop.gateway, OPEN, "closed", "forced_open").await;
        assert_eq!(said["reason"], "the catalog is being moved");
        let asked = shop.origin.count();
        for _ in 0..10 {
            let copy = shop.get("1").await;
            assert_eq!(copy.text(), product("1", "first", "es"));
            assert_eq!(copy.mark().unwrap().unwrap().reason.as_deref(), Some("breaker_open"));
            shop.hand.pass(Duration::from_secs(4));
        }
        let write = shop.gateway.request("PUT", "/orders/1", &[("Host", HOST)], b"{}").await;
        assert_eq!(write.header("backstop"), Some("outcome=rejected, reason=breaker_open"));
        assert_eq!(shop.origin.count(), asked);

        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_breaker_phase", &["phase=\"forced_open\""]), 1.0);
        assert_eq!(metrics.sum("backstop_breaker_phase", &[]), 1.0, "in one phase at a time");
        let held = shown(&shop.gateway).await;
        assert_eq!((&held["phase"], &held["held"]["by"]), (&json!("forced_open"), &json!("operator")));
        assert_eq!(held["held"]["reason"], "the catalog is being moved");
        let logged = |word: &str| shop.gateway.log().iter().any(|line| line.contains(word));
        assert!(logged("an operator's order") && logged("the catalog is being moved"));
        second(&shop.gateway, &mut shop.hand).await;
        assert!(current(&shop.gateway).await.is_some(), "a dependency that is cut off is an incident");

        ordered(&shop.gateway, RELEASE, "forced_open", "closed").await;
        assert_eq!(shown(&shop.gateway).await["held"], Value::Null);
        expect::live(&shop.get("1").await, 200, &product("1", "first", "es"));
        // Nothing is held any more: a release of that changes nothing.
        ordered(&shop.gateway, RELEASE, "closed", "closed").await;
    });
}

/// It is asked whatever comes of it, until it is released; then what comes of it decides.
#[test]
fn what_is_held_closed_is_always_asked() {
    run(async {
        let shop = Shop::with(policy).await;
        shop.get("1").await;
        ordered(&shop.gateway, CLOSED, "closed", "forced_closed").await;
        shop.is_unavailable();
        let asked = shop.origin.count();
        for _ in 0..30 {
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "unavailable");
        }
        assert_eq!(shop.origin.count(), asked + 30);
        ordered(&shop.gateway, RELEASE, "forced_closed", "closed").await;
        for _ in 0..30 {
            shop.get("1").await;
        }
        assert_eq!(shop.origin.count(), asked + 34, "four calls, all failed");
        ordered(&shop.gateway, CLOSED, "open", "forced_closed").await;
        ordered(&shop.gateway, OPEN, "forced_closed", "forced_open").await;
    });
}

/// Through a stop and through `kill -9` right after the answer.
#[test]
fn an_order_survives_a_restart() {
    run(async {
        let shop = Shop::with(policy).await;
        let Shop { origin, gateway, .. } = shop;
        let policy = policy(origin.addr());
        let said = ordered(&gateway, OPEN, "closed", "forced_open").await;
        assert_eq!(said["survives_restart"], true);
        let since = shown(&gateway).await["held"].clone();
        let gateway = gateway.restart_after_kill(&policy);
        assert_eq!(shown(&gateway).await["phase"], "forced_open");
        assert_eq!(shown(&gateway).await["held"], since, "with its reason and its date");
        gateway.get("/p/1", &SPANISH).await;
        assert_eq!(origin.count(), 0);
        ordered(&gateway, CLOSED, "forced_open", "forced_closed").await;
        let gateway = gateway.restart(&policy);
        assert_eq!(shown(&gateway).await["phase"], "forced_closed");
        ordered(&gateway, RELEASE, "forced_closed", "closed").await;
        let gateway = gateway.restart_after_kill(&policy);
        assert_eq!(
            shown(&gateway).await,
            json!({ "dependency": "catalog", "phase": "closed", "held": null })
        );
    });
}

/// Where nothing is kept on disk, the answer says so.
#[test]
fn without_a_disk_an_order_ends_with_the_process() {
    run(async {
        let shop =
            Shop::with(|origin| policy(origin).store("snapshots = { memory = \"1 MiB\", disk = \"0 B\" }"));
        let Shop { origin, gateway, .. } = shop.await;
        let said = ordered(&gateway, OPEN, "closed", "forced_open").await;
        assert_eq!(said["survives_restart"], false);
        let gateway = gateway.restart(&policy(origin.addr()));
        assert_eq!(shown(&gateway).await["phase"], "closed");
    });
}

fn held_by_policy(origin: std::net::SocketAddr, state: &str) -> Policy {
    let breaker = BREAKER.replace("probes = 2", &format!("probes = 2, state = \"{state}\""));
    Policy::empty()
        .store(DISK)
        .dependency("catalog", origin, &breaker)
        .route("description.public_read", &Policy::description(""))
        .route("order.direct", ORDERS)
}

/// From the first request on; an operator's word holds until the next start. What the policy held ends with the line in the
/// policy.
#[test]
fn the_policy_holds_a_breaker_from_the_start() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("first"));
        let open = held_by_policy(origin.addr(), "open");
        let gateway = Gateway::start_in(&folder(), &open);
        assert_eq!(gateway.get("/p/1", &SPANISH).await.status(), 503);
        assert_eq!(origin.count(), 0);
        let held = shown(&gateway).await;
        assert_eq!((&held["phase"], &held["held"]["by"]), (&json!("forced_open"), &json!("policy")));
        ordered(&gateway, RELEASE, "forced_open", "closed").await;
        assert_eq!(gateway.get("/p/1", &SPANISH).await.status(), 200);
        let gateway = gateway.restart(&open);
        assert_eq!(shown(&gateway).await["phase"], "forced_open");
        let gateway = gateway.restart(&policy(origin.addr()));
        assert_eq!(shown(&gateway).await["phase"], "closed");
        let gateway = gateway.restart(&held_by_policy(origin.addr(), "closed"));
        assert_eq!(shown(&gateway).await["phase"], "forced_closed");
    });
}

/// Method, path, fields, body and the status that answers them.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16);

/// A page of another site that is open in an operator's browser, and whatever is no order.
#[test]
fn whatever_is_no_operators_order_changes_nothing() {
    run(async {
        let shop = Shop::with(policy).await;
        let admin = shop.gateway.admin;
        let host = admin.to_string();
        let own = format!("http://{host}");
        let json = ("Content-Type", "application/json");
        let catalog = "/dependencies/catalog/breaker";
        let long = format!(r#"{{"state":"open","reason":"{}"}}"#, "x".repeat(5000));
        let table: [Row<'_>; 14] = [
            ("POST", catalog, &[json, ("Origin", "http://evil.example")], OPEN, 403),
            ("POST", catalog, &[json, ("Origin", "null")], OPEN, 403),
            (
                "POST",
                catalog,
                &[json, ("Origin", "http://evil.example"), ("Host", "evil.example")],
                OPEN,
                403,
            ),
            ("POST", catalog, &[("Content-Type", "text/plain")], OPEN, 415),
            ("POST", catalog, &[("Content-Type", "application/x-www-form-urlencoded")], OPEN, 415),
            ("POST", catalog, &[], OPEN, 415),
            ("OPTIONS", catalog, &[("Origin", "http://evil.example")], "", 405),
            ("PUT", catalog, &[json], OPEN, 405),
            ("POST", catalog, &[json], r#"{"state":"open"}"#, 400),
            ("POST", catalog, &[json], r#"{"state":"ajar","reason":"r"}"#, 400),
            ("POST", catalog, &[json], "", 400),
            ("POST", catalog, &[json], &long, 413),
            ("POST", "/dependencies/catalogue/breaker", &[json], OPEN, 404),
            ("POST", "/dependencies/catalog", &[json], OPEN, 405),
        ];
        for (method, path, fields, body, status) in table {
            let answer = client::request(admin, method, path, fields, body.as_bytes()).await.unwrap();
            assert_eq!(answer.status(), status, "{method} {path} {fields:?} {body:.80}: {}", answer.text());
            assert_eq!(answer.header("access-control-allow-origin"), None);
            assert_eq!(shown(&shop.gateway).await["phase"], "closed");
        }
        let fields = [json, ("Origin", own.as_str()), ("Host", host.as_str())];
        let answer = client::request(admin, "POST", catalog, &fields, OPEN.as_bytes()).await.unwrap();
        assert_eq!(answer.status(), 200, "its own page may: {}", answer.text());
    });
}
