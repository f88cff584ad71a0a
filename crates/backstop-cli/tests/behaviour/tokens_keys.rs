//! The keys by which tokens are verified: an outage of the issuer is neither "forbidden" nor access, whatever it looks like, on
//! every class, and keys are never believed for longer than the policy says.

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, CutAt, Matcher, Origin, Then};

use super::tokens::{INVALID, is_refused};
use crate::support::issuer::{Key, Signed, now_s, set};
use crate::support::shop::{HOST, down};
use crate::support::state::order;
use crate::support::{Metrics, run};

/// 503 by Backstop itself, because of the keys.
#[track_caller]
pub fn is_outage(response: &Response, cause: &str, what: &str) {
    assert_eq!(response.status(), 503, "{what}: {:?}", response.head);
    let mark = format!("outcome=rejected, reason=authorizer{cause}");
    assert_eq!(response.header("backstop"), Some(mark.as_str()), "{what}");
    assert!(response.is_complete() && response.header("www-authenticate").is_none(), "{what}");
    let problem = response.json().expect("a problem document");
    assert!(problem["type"].as_str().unwrap().ends_with("authorizer-failed"), "{what}: {problem}");
}

/// What the issuer may do that brings no keys, and what caused it, where the request learns that.
fn failures(key: &Key) -> Vec<(&'static str, Behaviour, &'static str)> {
    let good = set(&[key]);
    let secret = "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"first\",\"k\":\"c2VjcmV0\"}]}";
    let twice = set(&[key, key]);
    let long = format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(300_000));
    let other_gateways =
        Answer::json(good.clone()).header("Backstop", "outcome=fallback, source=snapshot, age=9");
    vec![
        ("closes", Behaviour::close(), "reset"),
        ("resets", Behaviour::reset(), "reset"),
        ("500", Behaviour::status(500), ""),
        ("502", Behaviour::status(502), "unavailable"),
        ("503", Behaviour::status(503), "unavailable"),
        ("504", Behaviour::status(504), "unavailable"),
        ("404", Behaviour::status(404), ""),
        ("401", Behaviour::status(401), ""),
        ("redirect", Answer::new(302).header("Location", "/moved").into(), ""),
        ("garbage", Behaviour::raw("SSH-2.0-OpenSSH_9.2\r\n", Then::Close), "protocol"),
        ("page", Behaviour::html_200(), ""),
        ("empty 200", Behaviour::empty_200(), ""),
        ("204", Behaviour::status(204), ""),
        ("201 with keys", Answer::new(201).body(good.clone()).into(), ""),
        ("other JSON", Answer::json("{\"error\":\"try later\"}").into(), ""),
        ("no keys", Answer::json("{\"keys\":[]}").into(), ""),
        ("a shared secret", Answer::json(secret).into(), ""),
        ("one name twice", Answer::json(twice).into(), ""),
        ("too long", Answer::json(long).into(), ""),
        ("half", Answer::json(good.clone()).cut(CutAt::Body(40), Then::Close).into(), "incomplete"),
        (
            "half, then reset",
            Answer::json(good.clone()).cut(CutAt::Body(40), Then::Reset).into(),
            "incomplete",
        ),
        ("another gateway's", other_gateways.into(), ""),
        ("older than an hour", Answer::json(good).header("Age", "3600").into(), ""),
    ]
}

/// Each failure, once the keys are too old, on each class. A copy and prepared answers are there, and none of them is given.
#[test]
fn an_outage_of_the_keys_is_503_and_nothing_is_executed() {
    run(async {
        let mut shop = Signed::open().await;
        let token = shop.token("ana");
        for class in Signed::classes() {
            assert_eq!(shop.ask(class, &token).await.status(), 200, "{class}");
        }
        let failures = failures(&shop.key);
        let number = failures.len();
        let mut failed = 0;
        for (what, behaviour, cause) in failures {
            failed += u64::from(!cause.is_empty());
            let cause = if cause.is_empty() { String::new() } else { format!(", cause={cause}") };
            let executed = shop.origin.count();
            shop.says(behaviour);
            shop.pass_to_a_fetch(61_000).await;
            for class in Signed::classes() {
                let what = format!("{what} on {class}");
                is_outage(&shop.ask(class, &token).await, &cause, &what);
                // What no key could make valid is refused all the same.
                is_refused(&shop.shows(class, &[]).await, "", &what);
            }
            assert_eq!(shop.origin.count(), executed, "{what}");
            shop.publishes(&[&shop.key]);
            shop.pass_to_a_fetch(10_000).await;
            assert_eq!(shop.ask("guarded", &token).await.status(), 200, "{what}");
        }
        assert_eq!(shop.issuer.count_of("GET", "/moved"), 0, "a redirect is not followed");
        let classes = Signed::classes().count() as u64;
        assert_eq!(shop.counted("denied").await, number as u64 * classes, "only those who showed nothing");
        assert_eq!(shop.counted("failed").await, failed * classes);
        assert_eq!(shop.counted("unclear").await, (number as u64 - failed) * classes);
    });
}

/// The issuer hangs: who comes meanwhile waits for his 100 ms and no longer; once the fetch's 2 s are over, nobody waits.
#[test]
fn keys_that_hang_end_within_their_time() {
    run(async {
        let mut shop = Signed::open_on_one_thread().await;
        let token = shop.token("ana");
        let executed = shop.origin.count();
        shop.says(Behaviour::hang());
        shop.pass_to_a_fetch(61_000).await;
        let gateway = shop.gateway.addr;
        let bearer = format!("Bearer {token}");
        let asking = tokio::spawn(async move {
            let fields = [("Host", HOST), ("Authorization", bearer.as_str())];
            backstop_lab::client::request(gateway, "POST", "/guarded", &fields, b"").await.unwrap()
        });
        let waits = |metrics: &Metrics| {
            metrics.sum("backstop_in_flight", &["scope=\"route\"", "name=\"guarded\""]) == 1.0
        };
        shop.gateway.metrics_until(waits).await;
        shop.pass(99);
        // Its thread has noticed what time it is: it answers who came later.
        is_refused(&shop.shows("guarded", &[]).await, "", "who shows nothing");
        assert!(!asking.is_finished());
        shop.pass(1);
        is_outage(&asking.await.unwrap(), ", cause=read_timeout", "while it hangs");
        shop.pass(1_900);
        for class in Signed::classes() {
            let failed = |metrics: &Metrics| metrics.failures("read_timeout") == 1;
            shop.gateway.metrics_until(failed).await;
            is_outage(&shop.ask(class, &token).await, ", cause=read_timeout", class);
        }
        assert_eq!(shop.origin.count(), executed);
        shop.publishes(&[&shop.key]);
        shop.pass_to_a_fetch(1_000).await;
        assert_eq!(shop.ask("guarded", &token).await.status(), 200);
    });
}

/// An issuer that is down when the gateway starts: every class is shut, and open as soon as it is there.
#[test]
fn without_keys_at_the_start_nobody_comes_in() {
    run(async {
        let issuer = Origin::start().await.unwrap();
        let key = Key::new("first");
        issuer.default(Answer::json(set(&[&key])));
        down(&issuer).await;
        let mut shop = Signed::before(issuer, key).await;
        let token = shop.token("ana");
        for class in Signed::classes() {
            is_outage(&shop.ask(class, &token).await, ", cause=connect", class);
            is_refused(&shop.shows(class, &[]).await, "", class);
        }
        assert_eq!((shop.origin.count(), shop.issuer.count()), (0, 0));
        let metrics = format!("{:?}", shop.gateway.metrics().await);
        assert!(
            !metrics.contains("backstop_authorizer_keys_age_seconds"),
            "there are none that could have an age"
        );
        shop.issuer.accept_again().await.unwrap();
        shop.pass_to_a_fetch(10_000).await;
        for class in Signed::classes() {
            assert_eq!(shop.ask(class, &token).await.status(), 200, "{class}");
        }
    });
}

/// From the moment that they were asked for: 60 s, inclusive, and not a nanosecond longer. Until then nobody notices.
#[test]
fn keys_are_believed_through_an_outage_until_max_age() {
    run(async {
        let mut shop = Signed::open().await;
        let token = shop.token("ana");
        // Fetched under a clock that stands still, so that their age is known.
        shop.pass_to_a_fetch(15_000).await;
        assert_eq!(shop.ask("guarded", &token).await.status(), 200);
        let fetched = |metrics: &Metrics| {
            metrics
                .sum("backstop_dependency_calls_total", &["dependency=\"sessions\"", "result=\"answered\""])
                == 2.0
        };
        shop.gateway.metrics_until(fetched).await;
        down(&shop.issuer).await;
        shop.pass_to_a_fetch(60_000).await;
        for class in Signed::classes() {
            assert_eq!(shop.ask(class, &token).await.status(), 200, "{class}");
        }
        let age = shop
            .gateway
            .metrics()
            .await
            .sum("backstop_authorizer_keys_age_seconds", &["authorizer=\"sessions\""]);
        assert_eq!(age, 60.0);
        let executed = shop.origin.count();
        shop.hand.mono(1);
        for class in Signed::classes() {
            is_outage(&shop.ask(class, &token).await, ", cause=connect", class);
        }
        assert_eq!(shop.origin.count(), executed);
    });
}

/// The issuer signs with a new key: its first token has the keys fetched at once, and those of the old key end with it.
#[test]
fn a_new_key_is_fetched_when_it_is_first_shown() {
    run(async {
        let mut shop = Signed::open().await;
        let (old, second) = (shop.token("ana"), Key::new("second"));
        let new = second.token("ana", now_s() + 3600);
        shop.pass(11_000);
        shop.publishes(&[&second]);
        assert_eq!(shop.ask("guarded", &old).await.status(), 200, "a known key costs no fetch");
        assert_eq!(shop.fetches().await, 1);
        for class in Signed::classes() {
            assert_eq!(shop.ask(class, &new).await.status(), 200, "{class}");
        }
        assert_eq!(shop.fetches().await, 2);
        let executed = shop.origin.count();
        for class in Signed::classes() {
            is_refused(&shop.ask(class, &old).await, INVALID, class);
        }
        assert_eq!((shop.origin.count(), shop.fetches().await), (executed, 2));
    });
}

/// Tokens with made-up keys cost their sender nothing: one fetch in ten seconds, however many come.
#[test]
fn made_up_keys_fetch_once_in_ten_seconds() {
    run(async {
        let mut shop = Signed::open().await;
        let made_up = Key::new("made-up").token("ana", now_s() + 3600);
        shop.pass(11_000);
        for round in 2..4 {
            for _ in 0..20 {
                is_refused(&shop.ask("guarded", &made_up).await, INVALID, "made up");
            }
            assert_eq!(shop.fetches().await, round);
            shop.pass(10_000);
        }
        // Nobody can say now whether there is such a key; tokens with known ones go on.
        down(&shop.issuer).await;
        let executed = shop.origin.count();
        for class in Signed::classes() {
            is_outage(&shop.ask(class, &made_up).await, ", cause=connect", class);
        }
        assert_eq!((shop.fetches().await, shop.origin.count()), (4, executed));
        assert_eq!(shop.ask("guarded", &shop.token("ana")).await.status(), 200);
    });
}

/// What an operator holds open gets no call, an issuer neither; and once the keys are too old that shuts everybody out.
#[test]
fn an_issuer_that_is_held_back_is_not_asked() {
    run(async {
        let mut shop = Signed::open().await;
        let token = shop.token("ana");
        let held = order(&shop.gateway, "sessions", r#"{"state":"open","reason":"being moved"}"#).await;
        assert_eq!(held.status(), 200, "{}", held.text());
        shop.pass(15_000);
        let refused = |metrics: &Metrics| {
            let labels = ["dependency=\"sessions\"", "event=\"refused_open\""];
            metrics.sum("backstop_breaker_events_total", &labels) >= 1.0
        };
        shop.gateway.metrics_until(refused).await;
        assert_eq!(shop.ask("guarded", &token).await.status(), 200, "the keys are not too old");
        shop.pass(61_000);
        let executed = shop.origin.count();
        for class in Signed::classes() {
            is_outage(&shop.ask(class, &token).await, ", cause=breaker_open", class);
        }
        assert_eq!((shop.origin.count(), shop.issuer.count()), (executed, 1));
        let released = order(&shop.gateway, "sessions", r#"{"state":"release"}"#).await;
        assert_eq!(released.status(), 200, "{}", released.text());
        shop.pass_to_a_fetch(10_000).await;
        assert_eq!(shop.ask("guarded", &token).await.status(), 200);
    });
}

/// Two issuers' worth of noise in one set: what cannot be used is passed over (RFC 7517 section 5).
#[test]
fn a_set_may_hold_keys_that_are_not_understood() {
    run(async {
        let issuer = Origin::start().await.unwrap();
        let key = Key::new("first");
        let keys = format!(
            "{{\"keys\":[{{\"kty\":\"AKP\",\"kid\":\"later\",\"alg\":\"ML-DSA-44\"}},{{\"kty\":\"oct\",\"kid\":\"shared\",\"k\":\"c2VjcmV0\"}},{}]}}",
            key.jwk()
        );
        issuer.on(Matcher::any(), Answer::json(keys));
        let shop = Signed::before(issuer, key).await;
        assert_eq!(shop.ask("guarded", &shop.token("ana")).await.status(), 200);
        let later = Key::new("later").token("ana", now_s() + 3600);
        is_refused(&shop.ask("guarded", &later).await, INVALID, "a key that is passed over");
    });
}
