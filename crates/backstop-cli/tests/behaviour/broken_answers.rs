//! Answers that are not whole: never kept, never passed on as a short 200. The earlier copy is served, else a refusal.

use std::time::Duration;

use backstop_lab::origin::{Answer, Behaviour, CutAt, Date, Framing, Matcher, Then};

use crate::support::{Outcomes, Policy, Shop, expect, product, run};

/// Each fault with the failure that it is.
fn faults() -> Vec<(&'static str, Behaviour, &'static str)> {
    let half = r#"{"id":"1","text":"half a descri"#;
    let whole = product("1", "second", "es");
    let cut = |answer: Answer| answer.cut(CutAt::LastChunk, Then::Close);
    vec![
        ("empty, Content-Length: 0", Behaviour::empty_200(), "incomplete"),
        ("empty, chunked", Answer::json("").chunked(16).into(), "incomplete"),
        ("empty, until the close", Answer::json("").framing(Framing::CloseDelimited).into(), "incomplete"),
        ("half JSON with its own length", Answer::json(half).into(), "incomplete"),
        ("half JSON in whole chunks", Answer::json(half).chunked(7).into(), "incomplete"),
        ("half JSON until the close", Behaviour::half_json_close_delimited(), "incomplete"),
        ("two JSON values", Answer::json(format!("{whole}{whole}")).into(), "incomplete"),
        ("cut by length", Behaviour::truncated(600, 300), "incomplete"),
        ("cut by length, reset", Behaviour::reset_mid_body(600, 300), "incomplete"),
        ("a whole value, but shorter than its length", short_of_its_length(&whole), "incomplete"),
        ("cut chunks", Behaviour::truncated_chunked(300), "incomplete"),
        (
            "a whole value without the last chunk",
            cut(Answer::json(whole.clone()).chunked(8)).into(),
            "incomplete",
        ),
        ("reset after the head", Behaviour::reset_after_head(), "incomplete"),
        ("half a head", Behaviour::half_head(200), "reset"),
        ("closed without a byte", Behaviour::close(), "reset"),
        ("reset without a byte", Behaviour::reset(), "reset"),
        ("no HTTP", Behaviour::garbage(), "protocol"),
    ]
}

/// All of the JSON value comes, but the answer said that there was more.
fn short_of_its_length(whole: &str) -> Behaviour {
    let length = whole.len() + 2;
    Answer::json(format!("{whole}  ")).cut(CutAt::Body(length - 2), Then::Close).into()
}

#[test]
fn the_earlier_copy_is_served_and_kept() {
    run(async {
        let mut shop = Shop::open().await;
        let saved = product("1", "first", "es");
        shop.get("1").await;
        shop.pass(7.0);
        let faults = faults();
        let count = faults.len() as u64;
        for (name, fault, failure) in faults {
            let before = shop.gateway.metrics().await.failures(failure);
            shop.origin.on(Matcher::any(), fault);
            let answer = shop.get("1").await;
            assert_eq!(answer.status(), 200, "{name}: {:?} {}", answer.head, answer.text());
            expect::copy(&answer, &saved, 7, failure);
            assert_eq!(shop.gateway.metrics().await.failures(failure), before + 1, "{name}");
        }
        shop.is_unavailable();
        shop.pass(53.0);
        expect::copy(&shop.get("1").await, &saved, 60, "unavailable");
        expect::outcomes(&shop.gateway, Outcomes { normal: 1, fallback: count + 1, ..Outcomes::default() })
            .await;
        assert_eq!(shop.origin.count(), count + 2, "nothing was asked twice");
    });
}

#[test]
fn without_a_copy_it_is_a_refusal_and_nothing_is_kept() {
    run(async {
        let shop = Shop::open().await;
        let faults = faults();
        let count = faults.len() as u64;
        for (name, fault, failure) in faults {
            shop.origin.on(Matcher::any(), fault);
            let answer = shop.get("1").await;
            assert_eq!(answer.status(), 503, "{name}: {:?} {}", answer.head, answer.text());
            expect::no_copy(&answer, "missing", failure);
        }
        shop.is_unavailable();
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
        expect::outcomes(&shop.gateway, Outcomes { rejected: count + 1, ..Outcomes::default() }).await;
    });
}

/// Nobody asked for a part, so a part with the form of the whole is not the whole (RFC 9110 section 15.3.7).
#[test]
fn a_part_that_nobody_asked_for_is_never_kept() {
    run(async {
        let shop = Shop::open().await;
        let body = product("1", "part", "es");
        let part = Answer::new(206)
            .header("Content-Type", "application/json")
            .header("Content-Range", "bytes 0-299/600")
            .body(body);
        shop.origin.on(Matcher::any(), part);
        let passed = shop.get("1").await;
        assert_eq!(passed.status(), 206);
        shop.is_unavailable();
        expect::no_copy(&shop.get("1").await, "missing", "unavailable");
    });
}

/// The age is taken from our own clock, never from what an origin believes the date to be: a `Date` an hour ahead makes a
/// copy neither young for longer nor one from the future.
#[test]
fn a_date_from_the_future_changes_no_age() {
    run(async {
        let mut shop = Shop::open().await;
        let body = product("1", "first", "es");
        let ahead = Answer::json(body.clone()).date(Date::Ahead(Duration::from_secs(3600)));
        shop.origin.on(Matcher::any(), ahead);
        expect::live(&shop.get("1").await, 200, &body);
        shop.is_unavailable();
        shop.pass(60.0);
        expect::copy(&shop.get("1").await, &body, 60, "unavailable");
        shop.hand.advance(Duration::from_nanos(1));
        expect::no_copy(&shop.get("1").await, "age", "unavailable");
    });
}

/// A route without an alternative has nothing to stand in: 502, or a transfer that the client sees break.
#[test]
fn a_direct_route_fails_visibly() {
    run(async {
        let shop = Shop::with(Policy::shop).await;
        for (name, fault, failure) in [
            ("closed without a byte", Behaviour::close(), "reset"),
            ("reset without a byte", Behaviour::reset(), "reset"),
            ("half a head", Behaviour::half_head(200), "reset"),
            ("no HTTP", Behaviour::garbage(), "protocol"),
        ] {
            shop.origin.on(Matcher::any(), fault);
            let answer = shop.gateway.get("/other", &[]).await;
            assert_eq!(answer.status(), 502, "{name}");
            expect::refused(&answer, 502, &format!("outcome=failed, reason={failure}"));
        }
        for (name, fault) in [
            ("cut by length", Behaviour::truncated(600, 300)),
            ("cut by length, reset", Behaviour::reset_mid_body(600, 300)),
            ("cut chunks", Behaviour::truncated_chunked(300)),
        ] {
            shop.origin.on(Matcher::any(), fault);
            match shop.gateway.try_get("/other", &[]).await {
                Ok(answer) => {
                    assert!(!answer.is_complete(), "{name}: a short answer that looks whole: {answer:?}")
                }
                Err(error) => assert!(error.ending().is_some(), "{name}: {error:?}"),
            }
        }
        expect::outcomes(&shop.gateway, Outcomes { failed: 7, ..Outcomes::default() }).await;
        expect::idle(&shop.gateway).await;
        assert_eq!(shop.gateway.metrics().await.failures("incomplete"), 3);
        assert_eq!(shop.origin.count(), 7);
    });
}
