//! An incident from its first second to the way back, as people see it. The walkthrough's pictures are taken here.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::hand::{Browser, LIGHT, LOOKS, Look};
use crate::support::run;
use crate::town::Town;

/// The pictures of `docs/walkthrough.md`: written there if `UPDATE_PICTURES` is set, else beside what the tests build.
fn picture(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = match std::env::var_os("UPDATE_PICTURES") {
        Some(_) => root.join("docs/images"),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
    };
    folder.join(format!("status-{name}.png"))
}

const PICTURE: Look = Look { scheme: "light", width: 1000, height: 1120 };

/// Takes a picture in a page of its own. It holds no more than 150 KiB.
fn shoot(browser: &mut Browser, town: &Town, name: &str, look: Look) {
    browser.open(&town.url("/"), look);
    let file = picture(name);
    browser.say("shot", json!({ "file": file }));
    let bytes = std::fs::metadata(&file).unwrap().len();
    assert!(bytes < 150 * 1024, "{}: {bytes} bytes", file.display());
}

fn one<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {list:#}"))
}

/// Before, during and on the way back: the page follows without being loaded again, and says what the counters say.
#[test]
fn the_page_follows_an_incident_and_agrees_with_the_counters() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(60).await;
        let mut browser = Browser::start();
        browser.open(&town.url("/"), LIGHT);
        assert_eq!(browser.text("#sentence"), "3 of 4 routes answer normally, the others are not asked for.");

        town.breaks().await;
        town.seconds(5).await;
        assert_eq!(browser.words("answers from copies"), 1, "the page was loaded once");
        // By hand: the clock stood at 14:01:00 when it broke.
        let sentence = browser.text("#sentence");
        assert!(
            sentence.starts_with(
                "Route order refuses requests and route description answers from copies (the oldest "
            ),
            "{sentence}"
        );
        assert!(sentence.contains(", accepted up to 60 s old) since 14:01:00 because catalog"), "{sentence}");
        assert!(
            sentence.contains("refused connections (connect), and is not asked at present"),
            "{sentence}"
        );
        for look in LOOKS {
            browser.open(&town.url("/"), look);
            browser.words("in use now");
            browser.is_clean(&town.url(""), &format!("in an incident, {look:?}"));
        }

        // By hand: 55 good seconds of the last minute with two orders each, and five bad ones. Every copy ever served is in it.
        let status = town.status().await;
        let (orders, reads) = (one(&status["routes"], "order"), one(&status["routes"], "description"));
        assert_eq!(orders["last_minute"]["normal"], 110);
        let lost = ["rejected", "failed"].map(|outcome| orders["last_minute"][outcome].as_u64().unwrap());
        assert_eq!(lost.iter().sum::<u64>(), 10);
        let copies = town.gateway.metrics().await.sum("backstop_requests_total", &["source=\"snapshot\""]);
        assert_eq!(reads["last_minute"]["fallback"].as_f64(), Some(copies));
        assert_eq!(copies, 40.0);

        // The copies are as old as the last good read of the same product: the second before it broke.
        let status = town.status().await;
        let route = one(&status["routes"], "description");
        assert_eq!((&route["state"], &route["rung"]), (&json!("degraded"), &json!("copy")));
        assert_eq!(route["copy_ages"]["oldest_seconds"], 5.0);
        browser.open(&town.url("/"), LIGHT);
        let ages = browser.text("article:has(#r-description)");
        assert!(ages.contains("the oldest 5.0 s"), "{ages}");
        assert!(browser.text("article:has(#d-catalog)").contains("open since"), "its breaker is open");

        town.heals().await;
        town.seconds(22).await;
        browser.words("catalog has been recovering since");
        let given = one(&town.status().await["dependencies"], "catalog")["share"].as_f64().unwrap();
        assert!(given > 0.0 && given < 1.0, "{given}");
        browser.open(&town.url("/"), LIGHT);
        browser.is_clean(&town.url(""), "on the way back");
    });
}

#[test]
fn three_moments_are_pictured() {
    run(async {
        let mut town = Town::open().await;
        let mut browser = Browser::start();
        town.seconds(240).await;
        shoot(&mut browser, &town, "before", PICTURE);
        town.breaks().await;
        town.seconds(15).await;
        shoot(&mut browser, &town, "during", PICTURE);
        shoot(&mut browser, &town, "during-dark", Look { scheme: "dark", ..PICTURE });
        shoot(&mut browser, &town, "during-phone", Look { width: 360, height: 780, ..PICTURE });
        town.heals().await;
        let mut waited = 0;
        while one(&town.status().await["dependencies"], "catalog")["phase"] != "ramp" {
            town.seconds(1).await;
            waited += 1;
            assert!(waited < 120, "it never recovers");
        }
        town.seconds(12).await;
        shoot(&mut browser, &town, "recovering", PICTURE);
        let sentence = browser.text("#sentence");
        assert!(sentence.to_lowercase().contains("catalog has been recovering since"), "{sentence}");
    });
}

/// A report that was saved is whole without the gateway and without a network.
#[test]
fn a_saved_report_is_whole_by_itself() {
    run(async {
        let mut town = Town::open().await;
        town.seconds(20).await;
        town.breaks().await;
        town.seconds(12).await;
        let id = crate::support::state::current(&town.gateway).await.expect("an incident");
        let path = format!("/incidents/{id}.html");
        let answer = backstop_lab::client::get(town.gateway.admin, &path, &[]).await.unwrap();
        assert_eq!((answer.status(), answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let file = town.gateway.folder().join("report.html");
        std::fs::write(&file, answer.text()).unwrap();
        let url = format!("file://{}", file.display());
        let mut browser = Browser::start();
        for scheme in ["light", "dark"] {
            browser.say("open", json!({ "url": url, "scheme": scheme, "offline": true, "scripts": true }));
            browser.is_clean("file://", scheme);
        }
        let text = browser.text("body");
        // By hand: twelve seconds with two orders each are not completed, and eight reads each are answered from copies.
        for wanted in [
            "order\t0\t0\t24",
            "browse\t24\t96\t0",
            "96 alternatives were served, 96 of them copies; the oldest was",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(text.contains("catalog refuses connections (connect)"), "{text}");
    });
}
