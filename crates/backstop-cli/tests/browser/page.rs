//! What holds for the page at any time.

use serde_json::json;

use crate::hand::{Browser, LIGHT, LOOKS, PHONE};
use crate::support::run;
use crate::support::state::order;
use crate::town::Town;

#[test]
fn a_quiet_page_is_accessible_in_every_look_and_asks_nobody_else() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(12).await;
        let mut browser = Browser::start();
        for look in LOOKS {
            let title = browser.open(&town.url("/"), look);
            assert_eq!(title, "Normal \u{b7} shop-edge \u{b7} Backstop");
            // The script has asked at least once more before the page is judged.
            browser.words("3 of 4 routes answer normally");
            browser.is_clean(&town.url(""), &format!("{look:?}"));
        }
    });
}

#[test]
fn without_javascript_the_page_is_whole_and_renews_itself() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(3).await;
        let mut browser = Browser::start();
        browser.say("open", json!({ "url": town.url("/status"), "scripts": false }));
        assert!(browser.text("#sentence").contains("answer normally"));
        town.breaks().await;
        town.seconds(2).await;
        browser.say("reloaded", json!({}));
        let sentence = browser.text("#sentence");
        assert!(sentence.contains("answers from copies") && sentence.contains("catalog"), "{sentence}");
        assert!(browser.text("#worst").contains("in use now"));
        browser.asked_nobody_else(&town.url(""), "without JavaScript");
    });
}

#[test]
fn the_page_says_when_the_gateway_is_gone() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(2).await;
        let mut browser = Browser::start();
        browser.open(&town.url("/"), LIGHT);
        town.gateway.signal("KILL");
        browser.words("Connection to the gateway lost since");
        assert!(browser.text("#lost").ends_with("What is below is from before."));
        assert!(browser.text("#sentence").contains("answer normally"), "what was known stays");
    });
}

/// A person who reads or operates the page is not disturbed by its renewal.
#[test]
fn focus_scroll_and_folds_survive_a_renewal() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(5).await;
        town.breaks().await;
        town.seconds(3).await;
        let mut browser = Browser::start();
        browser.open(&town.url("/"), PHONE);
        browser.words("answers from copies");
        browser.say("click", json!({ "selector": "#routes-summary" }));
        assert_eq!(browser.say("is_open", json!({ "selector": "#routes-fold" })), false);
        let link = "#incidents a";
        browser.say("focus", json!({ "selector": link }));
        let focused = browser.say("focused", json!({}));
        assert!(focused.as_str().unwrap().starts_with("i-2026"), "{focused}");
        browser.say("scroll", json!({ "to": 300 }));
        let cost = town.status().await["incidents"][0]["requests"]["fallback"].as_u64().unwrap();
        town.seconds(1).await;
        let more = town.status().await["incidents"][0]["requests"]["fallback"].as_u64().unwrap();
        assert!(more > cost);
        assert_eq!(browser.words(&format!("{more} reduced")), 1, "never loaded again");
        assert_eq!(browser.say("focused", json!({})), focused);
        assert_eq!(browser.say("is_open", json!({ "selector": "#routes-fold" })), false);
        assert_eq!(browser.say("scrolled", json!({})), 300);
    });
}

/// The order of the tabulator is that of the page, and where it stands can be seen.
#[test]
fn the_keyboard_reaches_everything_in_the_pages_order() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(3).await;
        town.breaks().await;
        town.seconds(3).await;
        let mut browser = Browser::start();
        browser.open(&town.url("/"), LIGHT);
        browser.words("answers from copies");
        let order = browser.say("order", json!({}));
        let stops = order.as_array().unwrap();
        let names: Vec<&str> = stops.iter().filter_map(|stop| stop["name"].as_str()).collect();
        for wanted in ["routes-summary", "/status.json", "/operations"] {
            assert!(names.contains(&wanted), "{wanted}: {names:?}");
        }
        assert!(names.iter().any(|name| name.starts_with("i-2026")), "the incident's report: {names:?}");
        let tops: Vec<i64> = stops.iter().filter_map(|stop| stop["top"].as_i64()).collect();
        assert!(tops.is_sorted(), "{order:#}");
        assert!(stops.iter().all(|stop| stop["outline"] != "none"), "{order:#}");
    });
}

/// An operator's reason is the only free text on the page.
#[test]
fn what_somebody_wrote_stays_text() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(2).await;
        let reason = "<script>document.title='owned'</script><img src=http://127.0.0.1:1/x onerror=alert(1)>";
        let body = json!({ "state": "open", "reason": reason }).to_string();
        assert_eq!(order(&town.gateway, "recommender", &body).await.status(), 200);
        town.seconds(1).await;
        let mut browser = Browser::start();
        let title = browser.open(&town.url("/"), LIGHT);
        assert!(title.ends_with("shop-edge \u{b7} Backstop"), "{title}");
        browser.words("Held by operator");
        assert!(browser.text("#dependencies").contains(reason));
        assert_eq!(browser.say("all", json!({ "selector": "img" })), json!([]));
        browser.is_clean(&town.url(""), "an order with a reason");
    });
}
