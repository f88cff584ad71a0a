//! The real gateway holds in every ready drill.

use backstop_lab::origin::{Answer, Framing};

use crate::services::{Place, drills, said};
use crate::support::{Redis, run};

const CALL: [&str; 4] = ["--sample", "product=1,2", "--header", "authorization: Bearer drill"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &CALL].concat()
}

/// The policy of the demonstration and of the examples, with copies of a tenth of their age.
#[test]
fn all_ready_drills_hold_on_the_examples_shop() {
    run(async {
        let policy = include_str!("../../../../examples/shop.toml").replace("\"6s\"", "\"600ms\"");
        let place = Place::new(2, &policy).await;
        let output = place.drill(&with(&["--html", "report.html", "--junit", "report.xml"]));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let report = place.report();
        assert_eq!(report["held"], true, "{}", said(&output));
        let held = drills(&report, "held");
        assert!(held.len() >= 10, "{held:?}");
        let skipped = report["skipped"].as_array().map_or(0, Vec::len);
        assert_eq!(held.len() + skipped, 15, "what concerns no route is told");
        let page = std::fs::read_to_string(place.folder.join("report.html")).expect("the page");
        assert!(page.contains("<svg") && !page.contains("http://www.") || page.contains("xmlns"), "pictures");
        let junit = std::fs::read_to_string(place.folder.join("report.xml")).expect("the file");
        assert!(junit.contains("testsuites") && !junit.contains("<failure"), "{junit}");
    });
}

async fn everything() -> (Place, Redis) {
    let redis = Redis::start();
    let policy = include_str!("everything.toml").replace("redis://127.0.0.1:6379", &redis.url());
    (Place::new(6, &policy).await, redis)
}

fn hold(place: &Place, names: &[&str]) {
    let words: Vec<&str> = names.iter().flat_map(|name| ["--ready", name]).collect();
    let output = place.drill(&with(&words));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(drills(&place.report(), "held"), names, "{}", said(&output));
}

#[test]
fn copies_hold_on_routes_of_every_class() {
    run(async {
        let (place, _redis) = everything().await;
        hold(&place, &["no-copy", "age-limit", "other-key", "future-date", "both-down", "cache-down"]);
    });
}

#[test]
fn limits_and_faults_hold_on_routes_of_every_class() {
    run(async {
        let (place, _redis) = everything().await;
        let names =
            ["saturation", "pool-exhausted", "slow-dependency", "broken-answers", "unclassified-errors"];
        hold(&place, &names);
        hold(&place, &["authorizer-down", "write-once"]);
    });
}

#[test]
fn a_recovery_holds_on_routes_of_every_class() {
    run(async {
        let (place, _redis) = everything().await;
        hold(&place, &["recovery"]);
    });
}

#[test]
fn retries_at_once_hold_on_routes_of_every_class() {
    run(async {
        let (place, _redis) = everything().await;
        hold(&place, &["retries-at-once-on-recovery"]);
    });
}

#[test]
fn the_list_says_what_concerns_whom() {
    run(async {
        let place = Place::new(2, include_str!("../../../../examples/shop.toml")).await;
        let output = place.drill(&["--list"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("age-limit: copies are served up to their age"), "{said}");
        // A copy of six seconds takes a little more than that to be seen refused.
        assert!(said.contains("about 8 s"), "{said}");
        assert!(said.contains("not recommendations: it keeps no copies"), "{said}");
        assert!(said.contains("authorizer-down: concerns no route"), "{said}");
        assert!(place.services.iter().all(|service| service.count() == 0), "nothing is called");
    });
}

/// Its cache works and has everything that was asked for before: only what is new shows what the dependency does.
#[test]
fn a_broken_dependency_behind_a_working_cache_is_seen() {
    run(async {
        let redis = Redis::start();
        let policy = include_str!("../../../../examples/reviews.toml");
        let place = Place::new(1, &policy.replace("redis://127.0.0.1:6379", &redis.url())).await;
        hold(&place, &["slow-dependency", "broken-answers"]);
    });
}

/// Services whose answers have no body, or one that only the end of the connection ends: nothing of them can be cut.
#[test]
fn answers_that_cannot_be_cut_are_no_fault_of_the_gateway() {
    run(async {
        let shop = include_str!("../../../../examples/shop.toml");
        let until_close =
            Answer::new(200).header("Content-Type", "text/plain").framing(Framing::CloseDelimited);
        let answers = [Answer::new(204), Answer::new(200).body(""), until_close.body("text ".repeat(20))];
        for answer in answers {
            let policy = shop.split("[route.").next().expect("its head").to_owned();
            let route = "[route.rest.direct]\nmatch = \"*\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 40\n";
            let place = Place::new(2, &format!("{policy}{route}")).await;
            place.services[0].default(answer);
            hold(&place, &["broken-answers"]);
        }
    });
}
