//! The share of reads that would be answered if the dependency failed now is told before the incident. It must be true.

use std::time::Duration;

use backstop_lab::load::{Kind, Plan, Summary};
use backstop_lab::origin::{Answer, Behaviour, Request};

use crate::support::shop::right_answer;
use crate::support::{Policy, Shop, run};

/// Five kinds of read: kept; kept in another language; never kept (a cookie is set); with a credential; without a language.
/// Seven of twelve can have a copy.
fn mixed(shop: &Shop, seconds: u64) -> Plan {
    let products = |prefix: &str| (0..10).map(|id| format!("/p/{prefix}{id}")).collect::<Vec<_>>();
    let kind = |name: &str, weight, targets: Vec<String>| {
        Kind::new(name, "GET", "/").targets(targets).weight(weight).header("X-Tenant", "a")
    };
    Plan::new(shop.gateway.addr, 200.0, Duration::from_secs(seconds))
        .kind(kind("kept", 4, products("")).header("Accept-Language", "es"))
        .kind(kind("kept too", 3, products("")).header("Accept-Language", "de"))
        .kind(kind("personal", 2, products("cookie-")).header("Accept-Language", "es"))
        .kind(
            kind("own", 2, products("")).header("Accept-Language", "es").header("Authorization", "Bearer x"),
        )
        .kind(kind("no language", 1, products("")))
}

fn answer(request: &Request) -> Answer {
    let answer = right_answer(request, "first");
    if request.path().contains("cookie") { answer.header("Set-Cookie", "id=7") } else { answer }
}

#[test]
fn coverage_agrees_with_what_an_outage_then_shows() {
    run(async {
        let mut shop = Shop::with(|origin| {
            let read = Policy::description("in_flight = 200\ndeadline = \"2s\"");
            Policy::shop(origin).replace_route("description.public_read", &read)
        })
        .await;
        shop.hand.go_on();
        shop.origin.default(Behaviour::from_fn(answer));
        let told = |summary: &Summary| {
            assert_eq!((summary.total.failed, summary.total.excess), (0, 0), "{summary:?}");
            summary.total.by_outcome.clone()
        };
        // The first reads find nothing yet. They leave the window after its 60 seconds, which pass by hand.
        told(&backstop_lab::load::run(mixed(&shop, 1)).await.unwrap());
        shop.pass(30.0);
        told(&backstop_lab::load::run(mixed(&shop, 1)).await.unwrap());
        shop.pass(31.0);
        let healthy = told(&backstop_lab::load::run(mixed(&shop, 3)).await.unwrap());
        assert_eq!(healthy.keys().collect::<Vec<_>>(), ["unmarked"]);

        let metrics = shop.gateway.metrics().await;
        let ratio = metrics.sum("backstop_fallback_coverage_ratio", &["route=\"description\""]);
        shop.goes_down().await;
        let outage = backstop_lab::load::run(mixed(&shop, 3)).await.unwrap();
        let by_outcome = told(&outage);
        let answered = by_outcome.get("fallback").copied().unwrap_or(0) as f64 / outage.total.answered as f64;
        assert!((ratio - answered).abs() <= 0.01, "told {ratio}, then {answered}: {by_outcome:?}");
        assert!((answered - 7.0 / 12.0).abs() <= 0.01, "{answered}");
        let live = by_outcome.get("unmarked");
        assert_eq!(live, None, "nobody reached the origin");
    });
}

/// Copies that are too old cover nothing: the ratio falls before anybody needs them. Without reads there is no ratio.
#[test]
fn old_copies_cover_nothing() {
    run(async {
        let mut shop = Shop::open().await;
        shop.get("1").await;
        let ratio = async |shop: &Shop| {
            let metrics = shop.gateway.metrics().await;
            metrics.sum("backstop_fallback_coverage_ratio", &["route=\"description\""])
        };
        shop.get("1").await;
        assert_eq!(ratio(&shop).await, 0.5, "the second of two reads had a copy");
        shop.origin.on(backstop_lab::origin::Matcher::any(), Answer::new(404));
        shop.pass(61.0);
        shop.gateway.get("/p/1", &crate::support::shop::SPANISH).await;
        assert_eq!(ratio(&shop).await, 0.0, "the gauge says so, it is not absent");
    });
}
