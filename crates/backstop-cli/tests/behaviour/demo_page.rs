//! The demo's page without a browser: what it counts while each button is pressed, and who may press one.

use std::time::Duration;

use backstop_lab::client;
use serde_json::Value;

use crate::support::demo::Demo;
use crate::support::run;

/// A page of another site cannot press a button, nor read anything under a name that was made to lead here.
#[test]
fn only_the_demos_own_page_presses_its_buttons() {
    run(async {
        let demo = Demo::start(60);
        let own = demo.url("");
        let foreign: [&[(&str, &str)]; 4] = [
            &[("Origin", "http://evil.example")],
            &[("Origin", "null")],
            &[("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
            &[("Sec-Fetch-Site", "same-site")],
        ];
        for fields in foreign {
            assert_eq!(demo.press_as("break-catalog", true, fields).await.status(), 403, "{fields:?}");
        }
        for (method, path) in [("GET", "/"), ("GET", "/state.json"), ("POST", "/press")] {
            let fields = [("Host", "evil.example"), ("Content-Type", "application/x-www-form-urlencoded")];
            let body = if method == "POST" { &b"button=break-catalog&broken=true"[..] } else { b"" };
            let answer = client::request(demo.page, method, path, &fields, body).await.unwrap();
            assert_eq!(answer.status(), 421, "{method} {path}");
        }
        assert_eq!(
            client::get(demo.page, "/press", &[]).await.unwrap().status(),
            405,
            "a link presses nothing"
        );
        assert_eq!(demo.press_as("no-such-button", true, &[]).await.status(), 404);
        assert_eq!(demo.state().await["faults"][0]["is_broken"], false);
        let browsers = [("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")];
        assert_eq!(demo.press_as("break-catalog", true, &browsers).await.status(), 303);
        assert_eq!(demo.state().await["faults"][0]["is_broken"], true);
    });
}

/// The page is whole by itself: every button with what to type for it on both sides, and the policy's lines by their numbers.
#[test]
fn the_page_shows_commands_that_work_and_lines_that_are_in_the_policy() {
    run(async {
        let demo = Demo::start(60);
        let page = demo.get("/").await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        let html = page.text();
        for (button, path) in [
            ("break-catalog", "/products/1"),
            ("slow-recommendations", "/recommendations/1"),
            ("stop-cache", "/reviews/1"),
        ] {
            assert!(html.contains(&format!("<button id=\"{button}\"")), "{button}");
            for side in [demo.plain, demo.backstop] {
                assert!(html.contains(&format!("http://{side}{path}</pre>")), "{path} of {side}");
                assert_eq!(client::get(side, path, &[]).await.unwrap().status(), 200, "{path} of {side}");
            }
        }
        // What is shown stands so, at that line, in the policy that is served beside it.
        let served = demo.get("/demo.toml").await.text();
        let mut seen = 0;
        for shown in html.split("<span class=\"number\">").skip(1) {
            let (number, rest) = shown.split_once("</span> ").unwrap();
            let text = rest
                .lines()
                .next()
                .unwrap()
                .replace("&#34;", "\"")
                .replace("&#62;", ">")
                .replace("&#38;", "&");
            let line = served.lines().nth(number.parse::<usize>().unwrap() - 1).unwrap();
            assert_eq!(text, line, "line {number}");
            seen += 1;
        }
        assert!(seen > 20, "{seen} lines of six buttons");
        for line in [
            "max_age    = \"6s\"",
            "otherwise  = {",
            "local_copy = {",
            "authorizer = \"sessions\"",
            "verify ",
        ] {
            assert!(served.contains(line), "{line}");
        }
    });
}

#[test]
fn the_demo_ends_with_a_signal_and_by_itself() {
    let demo = Demo::start(3600);
    demo.signal("TERM");
    assert_eq!(demo.ended(), 0);
    assert_eq!(Demo::start(1).ended(), 0);
}

mod timing {
    use super::*;
    use crate::support::demo::{is_now, is_quiet, now};

    const BOUND: Duration = Duration::from_secs(15);
    /// Until a database that collapsed has worked off what it began.
    const RECOVERY: Duration = Duration::from_secs(60);

    /// One shop, twice, and every promise of a button in what both sides counted.
    #[test]
    fn each_button_makes_the_promised_difference_in_counted_figures() {
        run(async {
            let demo = Demo::start(300);
            demo.until("everything works", BOUND, |state| {
                is_quiet(state) && state["backstop"]["in_all"]["answers"].as_u64() > Some(150)
            })
            .await;
            login(&demo).await;
            recommendations(&demo).await;
            payment(&demo).await;
            cache(&demo).await;
            catalog(&demo).await;
        });
    }

    async fn login(demo: &Demo) {
        demo.press("break-login", true).await;
        let state = demo
            .until("500 against 503", BOUND, |state| {
                is_now(state, "plain", "account", "error", Some(500))
                    && is_now(state, "backstop", "account", "refused", Some(503))
            })
            .await;
        for side in ["plain", "backstop"] {
            assert_eq!(state[side]["account"]["executed_while_broken"], 0, "{side}");
            assert_eq!(state[side]["account"]["without_a_yes"], 0, "{side}");
        }
        demo.press("break-login", false).await;
        demo.until("login works", BOUND, is_quiet).await;
    }

    async fn recommendations(demo: &Demo) {
        demo.press("slow-recommendations", true).await;
        let state = demo
            .until("a general answer against none", BOUND, |state| {
                is_now(state, "plain", "recommendations", "nothing", None)
                    && is_now(state, "backstop", "recommendations", "prepared", Some(200))
            })
            .await;
        // Nothing else waits behind it.
        assert!(is_now(&state, "backstop", "products", "normal", Some(200)), "{state:#}");
        demo.press("slow-recommendations", false).await;
        demo.until("recommendations are there", BOUND, is_quiet).await;
    }

    async fn payment(demo: &Demo) {
        demo.press("lose-payment", true).await;
        // It goes on for three seconds; meanwhile Backstop's client is told so.
        let verifying = demo
            .until("in verification", BOUND, |state| {
                let states = state["backstop"]["payments"]["lost"]["states"].as_array();
                states.and_then(|states| states.last()).is_some_and(|last| last == "in_verification")
            })
            .await;
        assert_eq!(verifying["backstop"]["payments"]["lost"]["heard"][0], 502);
        let state = demo
            .until("paid", BOUND, |state| {
                let states = state["backstop"]["payments"]["lost"]["states"].as_array();
                states.and_then(|states| states.last()).is_some_and(|last| last == "paid")
                    && state["plain"]["payments"]["lost"]["made"] == 2
            })
            .await;
        let (plain, backstop) = (&state["plain"]["payments"], &state["backstop"]["payments"]);
        assert_eq!(plain["lost"]["heard"], serde_json::json!([502, 201]));
        assert_eq!((plain["charged_twice"].as_u64(), backstop["charged_twice"].as_u64()), (Some(1), Some(0)));
        assert_eq!(backstop["lost"]["made"], 1);
        assert_eq!(plain["lost"]["key"], backstop["lost"]["key"], "the same payment");
        assert!(backstop["made"].as_u64() <= backstop["wanted"].as_u64());
    }

    async fn cache(demo: &Demo) {
        demo.press("stop-cache", true).await;
        let mut most_at_backstop = 0;
        demo.until("the database behind the plain proxy is overrun", BOUND, |state| {
            let (plain, backstop) = (&state["plain"]["database"], &state["backstop"]["database"]);
            most_at_backstop = most_at_backstop.max(backstop["under_way"].as_u64().unwrap());
            plain["under_way"].as_u64() > Some(2 * plain["capacity"].as_u64().unwrap())
                && now(state, "plain", "products")["verdict"] != "normal"
        })
        .await;
        let state = demo.state().await;
        let capacity = state["backstop"]["database"]["capacity"].as_u64().unwrap();
        assert!(most_at_backstop <= capacity, "{most_at_backstop} at once");
        assert!(is_now(&state, "backstop", "products", "normal", Some(200)), "{state:#}");
        let reviews = &now(&state, "backstop", "reviews")["verdict"];
        assert!(reviews == "normal" || reviews == "copy", "{reviews}");
        demo.press("heal", true).await;
        demo.until("everything works again", RECOVERY, is_quiet).await;
    }

    async fn catalog(demo: &Demo) {
        let limit = demo.state().await["max_age_s"].as_f64().unwrap();
        assert!((limit - 6.0).abs() < 1e-9, "the policy's `max_age` is six seconds");
        demo.press("break-catalog", true).await;
        demo.until("502 at once", Duration::from_secs(3), |state| {
            is_now(state, "plain", "products", "error", Some(502))
        })
        .await;
        let mut oldest = 0.0_f64;
        demo.until("copies until they are too old, then refusals", BOUND, |state| {
            let now = now(state, "backstop", "products");
            if now["verdict"] == "copy" {
                oldest = oldest.max(now["age_s"].as_f64().unwrap());
            }
            is_now(state, "backstop", "products", "refused", Some(503))
        })
        .await;
        // Judged at the gateway, seen by the client a moment later.
        assert!(oldest > 3.0 && oldest < limit + 0.5, "{oldest} s");
        demo.press("heal", true).await;
        // Slow and missing answers are the database's: while it was down there were errors and refusals at once.
        let collapses = |state: &Value, side: &str| {
            let verdict = &now(state, side, "products")["verdict"];
            verdict == "slow" || verdict == "nothing"
        };
        let (mut most_plain, mut most_backstop, mut has_collapsed) = (0, 0, false);
        demo.until("a second collapse against a ramp", RECOVERY, |state| {
            let under_way = |side: &str| state[side]["database"]["under_way"].as_u64().unwrap();
            most_plain = most_plain.max(under_way("plain"));
            most_backstop = most_backstop.max(under_way("backstop"));
            has_collapsed |= collapses(state, "plain");
            assert!(!collapses(state, "backstop"), "{state:#}");
            has_collapsed && is_now(state, "backstop", "products", "normal", Some(200))
        })
        .await;
        assert!(most_backstop <= 6, "the load comes back in steps: {most_backstop} at once");
        assert!(most_plain > 12, "it comes back at once: {most_plain} at once");
    }
}
