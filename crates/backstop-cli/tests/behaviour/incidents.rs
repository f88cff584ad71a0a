//! An outage is one incident: it begins with its first second, goes through its phases, and is over after five minutes in
//! which everything was green. What it cost each business function is what clients got.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_lab::client::Response;
use serde_json::Value;

use crate::support::shop::{HOST, SPANISH};
use crate::support::state::{current, file_of, file_until, page, phase, policy, saved, second};
use crate::support::{Gateway, Hand, Reading, Shop, products, run};

/// What clients got, by function and outcome.
#[derive(Default)]
struct Told(BTreeMap<(&'static str, String), u64>);

impl Told {
    fn note(&mut self, function: &'static str, answer: &Response) {
        let outcome = answer.mark().unwrap().map_or("normal".into(), |mark| mark.outcome);
        *self.0.entry((function, outcome)).or_default() += 1;
    }

    async fn browse(&mut self, gateway: &Gateway) {
        self.note("browse", &gateway.get("/p/1", &SPANISH).await);
    }

    async fn order(&mut self, gateway: &Gateway) {
        self.note("order", &gateway.request("PUT", "/orders/1", &[("Host", HOST)], b"{}").await);
    }

    fn count(&self, function: &'static str, outcome: &str) -> u64 {
        self.0.get(&(function, outcome.to_owned())).copied().unwrap_or_default()
    }

    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// Exactly this is in the record.
    fn is_recorded(&self, record: &Value) {
        let mut sums =
            BTreeMap::from(["normal", "fallback", "rejected", "failed"].map(|outcome| (outcome, 0)));
        for function in ["browse", "order"] {
            let line = record["functions"].as_array().unwrap().iter().find(|line| line["name"] == function);
            let line = line.expect("a line for each function");
            for (outcome, sum) in &mut sums {
                let count = self.count(function, outcome);
                assert_eq!(line[*outcome], count, "{function} {outcome}: {record:#}");
                *sum += count;
            }
            assert_eq!(line["completed"], self.count(function, "normal"));
            assert_eq!(line["reduced"], self.count(function, "fallback"));
            let lost = self.count(function, "rejected") + self.count(function, "failed");
            assert_eq!(line["not_completed"], lost);
        }
        for (outcome, sum) in sums {
            assert_eq!(record["requests"][outcome], sum, "{outcome}: {record:#}");
        }
    }
}

/// Waits until so many requests have been counted in this life of the gateway: the last byte may have come to the client
/// before it is.
async fn counted(gateway: &Gateway, requests: u64) {
    gateway.metrics_until(|metrics| metrics.sum("backstop_requests_total", &[]) as u64 == requests).await;
}

/// The phases in the record's timeline.
fn phases(record: &Value) -> Vec<&str> {
    let entries = record["timeline"]["first"].as_array().unwrap().iter();
    entries.filter_map(|entry| entry["phase"].as_str()).collect()
}

/// The whole record, as the operators' port shows it.
async fn record(gateway: &Gateway, id: &str) -> Value {
    page(gateway, &format!("/incidents/{id}")).await
}

/// Two good reads, then a second of 40 reads and 10 writes in which the origin answers 503.
async fn outage(told: &mut Told) -> (Shop, Reading) {
    let mut shop = Shop::with(policy).await;
    shop.get("1").await;
    shop.get("1").await;
    counted(&shop.gateway, 2).await;
    second(&shop.gateway, &mut shop.hand).await;
    assert_eq!(current(&shop.gateway).await, None);
    shop.is_unavailable();
    for _ in 0..40 {
        told.browse(&shop.gateway).await;
    }
    for _ in 0..10 {
        told.order(&shop.gateway).await;
    }
    counted(&shop.gateway, 2 + told.all()).await;
    assert_eq!((told.count("browse", "fallback"), told.count("order", "rejected")), (40, 10));
    let began = second(&shop.gateway, &mut shop.hand).await;
    (shop, began)
}

/// Eight reads a second until the incident has this phase.
async fn read_until(wanted: &str, told: &mut Told, gateway: &Gateway, hand: &mut Hand, before: u64) {
    for _ in 0..200 {
        if phase(gateway).await.as_deref() == Some(wanted) {
            return;
        }
        for _ in 0..8 {
            told.browse(gateway).await;
        }
        counted(gateway, before + told.all()).await;
        second(gateway, hand).await;
    }
    assert_eq!(phase(gateway).await.as_deref(), Some(wanted), "{:#?}", gateway.log());
}

/// By hand: it is over with the tick that comes 300 s after the first green one, and not with the one before.
async fn five_minutes(
    told: &mut Told,
    gateway: &Gateway,
    hand: &mut Hand,
    before: u64,
    green: i64,
) -> Reading {
    let last_but_one = green + 299_000_000_000;
    while hand.reading().mono < last_but_one {
        told.browse(gateway).await;
        counted(gateway, before + told.all()).await;
        second(gateway, hand).await;
    }
    assert_eq!((phase(gateway).await.as_deref(), hand.reading().mono), (Some("observing"), last_but_one));
    told.browse(gateway).await;
    counted(gateway, before + told.all()).await;
    let ended = second(gateway, hand).await;
    assert_eq!(phase(gateway).await, None);
    ended
}

#[test]
fn an_outage_is_recorded_from_its_first_second_to_its_end() {
    run(async {
        let mut told = Told::default();
        let (shop, began) = outage(&mut told).await;
        let (gateway, mut hand) = (&shop.gateway, shop.hand);
        let id = current(gateway).await.expect("an incident");
        let begun = record(gateway, &id).await;
        assert_eq!((&begun["phase"], phases(&begun)), (&Value::from("degraded"), vec!["degraded"]));
        assert_eq!(begun["began"]["boot_ns"], began.mono);
        assert_eq!(begun["signals"]["breaker_open"], 1);
        told.is_recorded(&begun);
        // On disk at once, while it goes on.
        let file = file_until(&file_of(gateway, &id), |file| file["phase"] == "degraded").await;
        assert_eq!(file, begun);
        let metrics = gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_incidents_open", &[]), 1.0);
        assert_eq!(metrics.sum("backstop_incident_phase", &["phase=\"degraded\""]), 1.0);

        shop.origin.reset();
        shop.origin.default(products("second"));
        read_until("observing", &mut told, gateway, &mut hand, 2).await;
        assert!(told.count("browse", "normal") > 0);
        let green = record(gateway, &id).await["first_green"]["boot_ns"].as_i64().unwrap();
        let ended = five_minutes(&mut told, gateway, &mut hand, 2, green).await;

        let whole = record(gateway, &id).await;
        assert_eq!(phases(&whole), ["degraded", "recovering", "observing", "ended"]);
        assert_eq!(
            (&whole["ended"]["boot_ns"], &whole["began"]),
            (&Value::from(ended.mono), &begun["began"])
        );
        let lasted = Duration::from_nanos((ended.mono - began.mono) as u64);
        assert_eq!(whole["seconds"]["to_end"], lasted.as_secs_f64());
        assert!(lasted > Duration::from_secs(300));
        told.is_recorded(&whole);
        assert_eq!(file_until(&file_of(gateway, &id), |file| file["phase"] == "ended").await, whole);
        let list = page(gateway, "/incidents").await;
        assert_eq!((list["ended"][0]["id"].as_str(), &list["current"]), (Some(&*id), &Value::Null));
        let metrics = gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_incidents_open", &[]), 0.0);
        assert_eq!(metrics.sum("backstop_incidents_total", &[]), 1.0);
        assert_eq!(metrics.sum("backstop_incident_phase", &[]), 1.0, "in one phase at a time");
        assert_eq!(metrics.sum("backstop_incident_phase", &["phase=\"none\""]), 1.0);
        for words in ["an incident began", "the incident has another phase", "the incident is over"] {
            assert!(gateway.log().iter().any(|line| line.contains(words)), "{words}: {:#?}", gateway.log());
        }
    });
}

/// Killed in the outage, and again while it is observed: one incident, with its gaps, and its five minutes begin anew.
#[test]
fn an_incident_goes_on_after_kill_9() {
    run(async {
        let mut told = Told::default();
        let (shop, began) = outage(&mut told).await;
        let id = current(&shop.gateway).await.expect("an incident");
        file_until(&file_of(&shop.gateway, &id), |file| file["phase"] == "degraded").await;
        saved(&shop.gateway, "open").await;
        let Shop { origin, gateway, .. } = shop;
        let later = began.after(Duration::from_secs(20));
        let gateway = restarted(gateway, origin.addr(), later);
        let mut hand = gateway.hand();

        assert_eq!(current(&gateway).await.as_deref(), Some(&*id), "the same one");
        let begun = record(&gateway, &id).await;
        assert_eq!((&begun["restarts"], &begun["phase"]), (&Value::from(1), &Value::from("degraded")));
        assert_eq!(missed(&begun), [20_000_000_000_u64], "nobody counted for 20 s");
        told.is_recorded(&begun);

        origin.reset();
        origin.default(products("second"));
        let before = told.all();
        let mut since = Told::default();
        read_until("observing", &mut since, &gateway, &mut hand, 0).await;
        for _ in 0..100 {
            second(&gateway, &mut hand).await;
        }
        file_until(&file_of(&gateway, &id), |file| file["phase"] == "observing").await;
        let later = hand.reading().after(Duration::from_secs(1));
        let counted_until = page(&gateway, "/incidents").await["counted_until"].clone();
        let on_disk = |file: &Value| file["counted_until"]["boot_ns"] == counted_until["boot_ns"];
        file_until(&file_of(&gateway, &id), on_disk).await;
        let gateway = restarted(gateway, origin.addr(), later);
        let mut hand = gateway.hand();
        assert_eq!(phase(&gateway).await.as_deref(), Some("observing"));
        let green = second(&gateway, &mut hand).await.mono;
        let mut last = Told::default();
        five_minutes(&mut last, &gateway, &mut hand, 0, green).await;

        let whole = record(&gateway, &id).await;
        assert_eq!((&whole["restarts"], &whole["began"]), (&Value::from(2), &begun["began"]));
        assert_eq!(missed(&whole), [20_000_000_000_u64, 1_000_000_000]);
        for (life, count) in since.0.into_iter().chain(last.0) {
            *told.0.entry(life).or_default() += count;
        }
        assert!(told.all() >= before + 300);
        told.is_recorded(&whole);
        assert_eq!(gateway.metrics().await.sum("backstop_incidents_total", &[]), 1.0);
    });
}

/// Ends it as `kill -9` does and starts it again, with its clock standing still.
fn restarted(gateway: Gateway, origin: std::net::SocketAddr, at: Reading) -> Gateway {
    let mut next = Gateway::start_with_clock(&gateway.kill(), &policy(origin), &at.as_start());
    HOST.clone_into(&mut next.host);
    next
}

/// For how long nobody counted, restart by restart.
fn missed(record: &Value) -> Vec<u64> {
    let entries = record["timeline"]["first"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["what"] == "restart")
        .map(|entry| entry["missed_ns"].as_u64().unwrap())
        .collect()
}

/// A minute without requests, and then one in which nothing is wrong.
#[test]
fn good_times_are_no_incident() {
    run(async {
        let mut shop = Shop::with(policy).await;
        for _ in 0..60 {
            shop.get("1").await;
            second(&shop.gateway, &mut shop.hand).await;
        }
        let list = page(&shop.gateway, "/incidents").await;
        assert_eq!((&list["current"], &list["ended"]), (&Value::Null, &Value::Array(Vec::new())));
    });
}

/// While one request is finished, twenty a second are refused: that is the operator's wish, and no incident.
#[test]
fn a_stop_is_no_incident() {
    run(async {
        let route = "match = \"GET /held\"\ndependency = \"catalog\"\ndeadline = \"60s\"\nin_flight = 4";
        let mut shop =
            Shop::with(|origin| policy(origin).gateway("drain = \"90s\"").route("held.direct", route)).await;
        let gate = backstop_lab::origin::Gate::new();
        shop.origin.default(products("first").gate(&gate));
        let held = tokio::spawn({
            let addr = shop.gateway.addr;
            async move { backstop_lab::client::get(addr, "/held", &[]).await }
        });
        gate.wait_for_waiting(1, crate::support::BOUND).await.unwrap();
        shop.gateway.signal("TERM");
        crate::disk::is_logged(&shop.gateway, "stopping").await;
        for _ in 0..5 {
            for _ in 0..20 {
                assert_eq!(shop.get("1").await.status(), 503);
            }
            shop.hand.pass(Duration::from_secs(1));
            shop.gateway.metrics().await;
        }
        assert_eq!(shop.gateway.metrics().await.outcome("rejected"), 100);
        gate.open();
        assert_eq!(held.await.unwrap().unwrap().status(), 200);
        assert!(shop.gateway.wait().success());
        assert!(!shop.gateway.folder().join("backstop-data/incidents").exists(), "{:#?}", shop.gateway.log());
        assert!(shop.gateway.folder().join("backstop-data/incidents.json").exists());
    });
}
