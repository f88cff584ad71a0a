//! The demo's page in a real browser: what a visitor sees who presses its buttons.

use serde_json::json;

use crate::hand::{Browser, DARK, LIGHT, LOOKS};
use crate::support::demo::{Demo, is_quiet};
use crate::support::{BOUND, run};

/// Waits until a part of the page has these words, without asking for it anew.
fn within(browser: &mut Browser, selector: &str, words: &str) {
    let loads = browser.say("words", json!({ "selector": selector, "words": words }));
    assert_eq!(loads, 1, "the page renews itself in place");
}

const PLAIN: &str = ".cell:nth-child(1)";
const BACKSTOP: &str = ".cell:nth-child(2)";

/// Each button is pressed, and the page shows the difference by itself. Pictures are kept where `BACKSTOP_DEMO_PICTURES` says.
#[test]
fn a_visitor_presses_each_button_and_sees_the_difference() {
    run(async {
        let demo = Demo::start(300);
        demo.until("everything works", BOUND, is_quiet).await;
        let mut browser = Browser::start();
        browser.open(&demo.url("/"), LIGHT);
        within(&mut browser, "#products", "Normal");
        picture(&mut browser, "before");
        let press = |browser: &mut Browser, button: &str| {
            browser.say("click", json!({ "selector": format!("#{button}") }));
        };

        press(&mut browser, "break-login");
        within(&mut browser, &format!("#account {PLAIN}"), "Error: 500");
        within(&mut browser, &format!("#account {BACKSTOP}"), "Refused: 503");
        within(&mut browser, &format!("#account {BACKSTOP}"), "Operations executed since login broke: 0");
        within(&mut browser, "#why", "[authorizer.sessions]");
        press(&mut browser, "break-login");
        within(&mut browser, &format!("#account {BACKSTOP}"), "Normal");

        press(&mut browser, "slow-recommendations");
        within(&mut browser, &format!("#recommendations {PLAIN}"), "No answer in 2 s");
        within(&mut browser, &format!("#recommendations {BACKSTOP}"), "General answer");

        press(&mut browser, "lose-payment");
        within(&mut browser, &format!("#payments {BACKSTOP}"), "in verification");
        within(&mut browser, &format!("#payments {BACKSTOP}"), "in verification \u{2192} paid; made once");
        within(&mut browser, &format!("#payments {PLAIN}"), "charged twice: 1");

        press(&mut browser, "break-catalog");
        within(&mut browser, &format!("#products {PLAIN}"), "Error: 502");
        within(&mut browser, &format!("#products {BACKSTOP}"), "Old copy, 3");
        let pressed = browser.say("all", json!({ "selector": "button[aria-pressed=true]" }));
        assert_eq!(pressed, json!(["Break catalog", "Slow recommendations"]));
        picture(&mut browser, "during");
        browser.is_clean(&demo.url(""), "during the incident");
        within(&mut browser, &format!("#products {BACKSTOP}"), "Refused: 503");

        press(&mut browser, "stop-cache");
        within(&mut browser, "#why", "[route.reviews.cached_read]");
        press(&mut browser, "heal");
        within(&mut browser, "#broken", "Nothing is broken.");
        within(&mut browser, "#database", "overloaded");
        within(&mut browser, &format!("#products {BACKSTOP}"), "Normal");
        picture(&mut browser, "after");
        browser.asked_nobody_else(&demo.url(""), "to the end");
    });
}

#[test]
fn the_demos_page_is_accessible_in_every_look() {
    run(async {
        let demo = Demo::start(120);
        demo.press("slow-recommendations", true).await;
        demo.press("break-login", true).await;
        demo.until("something is broken", BOUND, |state| !is_quiet(state)).await;
        let mut browser = Browser::start();
        for look in LOOKS {
            browser.open(&demo.url("/"), look);
            within(&mut browser, "#account", "Refused: 503");
            browser.is_clean(&demo.url(""), &format!("{look:?}"));
        }
        browser.open(&demo.url("/"), DARK);
        let order = browser.say("order", json!({}));
        let names: Vec<&str> =
            order.as_array().unwrap().iter().filter_map(|stop| stop["name"].as_str()).collect();
        for button in
            ["break-catalog", "slow-recommendations", "stop-cache", "break-login", "lose-payment", "heal"]
        {
            assert!(names.contains(&button), "the keyboard does not reach {button}: {names:?}");
        }
    });
}

#[test]
fn without_javascript_buttons_work_and_the_demos_page_renews_itself() {
    run(async {
        let demo = Demo::start(120);
        let mut browser = Browser::start();
        browser.say("open", json!({ "url": demo.url("/"), "scripts": false }));
        browser.say("click", json!({ "selector": "#break-login" }));
        browser.say("words", json!({ "selector": "#broken", "words": "Broken now: login." }));
        assert_eq!(demo.state().await["faults"][3]["is_broken"], true);
        browser.say("words", json!({ "selector": "#account", "words": "Refused: 503" }));
        browser.asked_nobody_else(&demo.url(""), "without JavaScript");
    });
}

fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("BACKSTOP_DEMO_PICTURES") {
        let file = std::path::Path::new(&folder).join(format!("{name}.png"));
        browser.say("shot", json!({ "file": file }));
    }
}
