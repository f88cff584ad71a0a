//! Parts that the whole can do without: left out in time, or answered by something general; and what they may not take
//! from the main reads.

use std::net::SocketAddr;
use std::time::Duration;

use backstop_lab::client::{self, Response};
use backstop_lab::origin::{Behaviour, Gate, Matcher, Origin};
use tokio::task::JoinHandle;

use crate::support::gateway::{folder, output};
use crate::support::{BOUND, Gateway, Hand, Outcomes, Policy, expect, product, products, run};

const GENERAL: &str = r#"["7","8","9"]"#;
const LEFT_OUT: &str = "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";
const PREPARED: &str = "otherwise = { prepared = \"general.json\" }";
const BY_LANGUAGE: &str = r#"languages = ["es", "en"]
otherwise = { prepared = { es = "general.es.json", en = "general.en.json", default = "general.json" } }"#;
const SPANISH_GENERAL: &str = r#"["siete"]"#;
const ENGLISH_GENERAL: &str = r#"["seven"]"#;

/// The shop and its recommender, each with an origin of its own.
struct Both {
    catalog: Origin,
    recommender: Origin,
    gateway: Gateway,
    hand: Hand,
}

fn policy(catalog: SocketAddr, recommender: SocketAddr, otherwise: &str) -> Policy {
    let policy = Policy::shop(catalog)
        .replace_route("description.public_read", &Policy::description("in_flight = 100"));
    policy.dependency("recommender", recommender, "connections = 8").route(
        "recommendations.optional",
        &format!(
            "match = \"GET /p/{{id}}/recommendations\"\ndependency = \"recommender\"\ndeadline = \"80ms\"\nin_flight = 2\n{otherwise}"
        ),
    )
}

impl Both {
    async fn open(otherwise: &str) -> Self {
        Self::with(otherwise, |policy| policy).await
    }

    async fn with(otherwise: &str, change: impl FnOnce(Policy) -> Policy) -> Self {
        let (catalog, recommender) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        catalog.default(products("first"));
        recommender.default(Behaviour::json(r#"["1","2"]"#));
        let folder = folder();
        for (file, content) in [
            ("general.json", GENERAL),
            ("general.es.json", SPANISH_GENERAL),
            ("general.en.json", ENGLISH_GENERAL),
        ] {
            std::fs::write(folder.join(file), content).unwrap();
        }
        let policy = change(policy(catalog.addr(), recommender.addr(), otherwise));
        let mut gateway = Gateway::start_in(&folder, &policy);
        crate::support::shop::HOST.clone_into(&mut gateway.host);
        let mut hand = gateway.hand();
        hand.freeze();
        Self { catalog, recommender, gateway, hand }
    }

    async fn recommendations(&self) -> Response {
        self.gateway.get("/p/1/recommendations", &[]).await
    }

    fn asking(&self) -> JoinHandle<Response> {
        let address = self.gateway.addr;
        tokio::spawn(async move { client::get(address, "/p/1/recommendations", &[]).await.unwrap() })
    }
}

#[track_caller]
fn stood_in(response: &Response, body: &str, source: &str, reason: &str) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    let mark = format!("outcome=fallback, source={source}, reason={reason}");
    assert_eq!(response.header("backstop"), Some(mark.as_str()));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!((response.header("age"), response.header("cache-status")), (None, None));
}

/// Every failure of the closed list, and the stand-in for it; when the recommender works, its own answer.
#[test]
fn a_failing_part_is_left_out_or_answered_in_general() {
    run(async {
        for (otherwise, body, source) in [(LEFT_OUT, "[]", "omitted"), (PREPARED, GENERAL, "prepared")] {
            let both = Both::open(otherwise).await;
            expect::live(&both.recommendations().await, 200, r#"["1","2"]"#);
            let faults = [
                (Behaviour::status(503), "unavailable"),
                (Behaviour::reset(), "reset"),
                (Behaviour::garbage(), "protocol"),
                (Behaviour::truncated(600, 300), "incomplete"),
                (Behaviour::truncated_chunked(300), "incomplete"),
            ];
            let count = faults.len() as u64 + 1;
            for (fault, reason) in faults {
                both.recommender.on(Matcher::any(), fault);
                stood_in(&both.recommendations().await, body, source, reason);
            }
            crate::support::shop::down(&both.recommender).await;
            stood_in(&both.recommendations().await, body, source, "connect");
            let expected = Outcomes { normal: 1, fallback: count, ..Outcomes::default() };
            expect::outcomes(&both.gateway, expected).await;
            assert_eq!(both.catalog.count(), 0);
        }
    });
}

/// The recommender's own 404 is its answer, and a write is never answered by a stand-in.
#[test]
fn what_is_no_failure_passes() {
    run(async {
        let both = Both::open(LEFT_OUT).await;
        for status in [401, 403, 404, 422] {
            both.recommender.on(Matcher::any(), Behaviour::status(status));
            expect::live(&both.recommendations().await, status, &format!(r#"{{"status":{status}}}"#));
        }
    });
}

/// 80 ms: a recommender that hangs is left out then, not a moment later.
#[test]
fn a_hang_is_left_out_at_the_deadline() {
    run(async {
        let mut both = Both::open(LEFT_OUT).await;
        both.recommender.on(Matcher::any(), Behaviour::hang());
        let asking = both.asking();
        both.recommender.wait_for(1, BOUND).await.unwrap();
        both.hand.advance(Duration::from_millis(77));
        assert_eq!(both.gateway.metrics().await.outcome("fallback"), 0, "not before its time");
        both.hand.advance(Duration::from_millis(3));
        stood_in(&asking.await.unwrap(), "[]", "omitted", "read_timeout");
    });
}

/// Its own limit: two in flight, and the third is refused, by the rule that a full route leads to no alternative, without
/// touching the recommender. A lane of its own lets the stand-in through.
#[test]
fn its_own_limit_refuses_or_opens_a_lane() {
    run(async {
        for (lane, mark) in [
            ("", "outcome=rejected, reason=capacity"),
            ("\nfallback_in_flight = 5", "outcome=fallback, source=omitted, reason=capacity"),
        ] {
            let both = Both::open(&format!("{LEFT_OUT}{lane}")).await;
            let gate = Gate::new();
            both.recommender.on(Matcher::any(), Behaviour::json("[]").gate(&gate));
            let held = [both.asking(), both.asking()];
            gate.wait_for_waiting(2, BOUND).await.unwrap();
            let third = both.recommendations().await;
            assert_eq!(third.header("backstop"), Some(mark));
            assert_eq!(both.recommender.count(), 2);
            gate.open();
            for held in held {
                assert_eq!(held.await.unwrap().status(), 200);
            }
        }
    });
}

/// While the recommender hangs with all its places taken, every main read is live and complete.
#[test]
fn main_reads_never_wait_behind_a_hanging_part() {
    run(async {
        let both = Both::open(LEFT_OUT).await;
        both.recommender.on(Matcher::any(), Behaviour::hang());
        let held = [both.asking(), both.asking()];
        both.recommender.wait_for(2, BOUND).await.unwrap();
        for id in 1..=50 {
            let id = id.to_string();
            let live = both.gateway.get(&format!("/p/{id}"), &crate::support::shop::SPANISH).await;
            expect::live(&live, 200, &product(&id, "first", "es"));
            assert_eq!(both.recommendations().await.status(), 503, "the excess is refused at once");
        }
        assert_eq!((both.catalog.count(), both.recommender.count()), (50, 2));
        drop(held);
    });
}

/// The stand-in of the negotiated language (RFC 4647 section 3.4), and the general one for everybody else; the recommender is
/// asked for the same language.
#[test]
fn a_prepared_answer_is_in_the_negotiated_language() {
    run(async {
        let both = Both::open(BY_LANGUAGE).await;
        let table = [
            ("es-MX, en;q=0.8", "es", SPANISH_GENERAL, Some("es")),
            ("de, en;q=0.5, es;q=0.4", "en", ENGLISH_GENERAL, Some("en")),
            ("de", "de", GENERAL, None),
            ("es;q=0, en;q=0", "es;q=0, en;q=0", GENERAL, None),
        ];
        for (accepted, sent, body, language) in table {
            both.recommender.forget();
            let fields = [("Accept-Language", accepted)];
            let live = both.gateway.get("/p/1/recommendations", &fields).await;
            expect::live(&live, 200, r#"["1","2"]"#);
            both.recommender.on(Matcher::any(), Behaviour::reset().times(1));
            let general = both.gateway.get("/p/1/recommendations", &fields).await;
            stood_in(&general, body, "prepared", "reset");
            assert_eq!(general.header("content-language"), language, "{accepted}");
            assert_eq!(general.header("vary"), Some("accept-language"), "{accepted}");
            for asked in both.recommender.requests() {
                assert_eq!(asked.header("accept-language"), Some(sent));
            }
        }
        both.recommender.on(Matcher::any(), Behaviour::reset());
        let none = both.recommendations().await;
        stood_in(&none, GENERAL, "prepared", "reset");
        let head =
            both.gateway.request("HEAD", "/p/1/recommendations", &[("Accept-Language", "en")], b"").await;
        assert_eq!((head.status(), head.text().as_str()), (200, ""));
        assert_eq!(head.header("content-language"), Some("en"));
        assert_eq!(head.header("content-length"), Some(ENGLISH_GENERAL.len().to_string().as_str()));
    });
}

/// One answer for everybody depends on no field of the request.
#[test]
fn one_prepared_answer_varies_by_nothing() {
    run(async {
        let both = Both::open(PREPARED).await;
        both.recommender.on(Matcher::any(), Behaviour::reset());
        let general = both.gateway.get("/p/1/recommendations", &[("Accept-Language", "es")]).await;
        stood_in(&general, GENERAL, "prepared", "reset");
        assert_eq!((general.header("vary"), general.header("content-language")), (None, None));
    });
}

/// The whole policy is refused, by `check` and by `run`, with the line that names the file.
#[test]
fn a_language_file_that_cannot_be_used_refuses_the_policy() {
    let address = "127.0.0.1:9".parse().unwrap();
    let text = policy(address, address, BY_LANGUAGE).text();
    let line = text.lines().position(|line| line.contains("general.es.json")).unwrap() + 1;
    let column = text.lines().nth(line - 1).unwrap().find("\"general.es.json\"").unwrap() + 1;
    for (content, why) in [
        (None, "No such file"),
        (Some("[\"siete\"".to_owned()), "not exactly one JSON value"),
        (Some(format!("\"{}\"", "x".repeat(1 << 20))), "larger than 1 MiB"),
    ] {
        let folder = folder();
        std::fs::write(folder.join("policy.toml"), &text).unwrap();
        std::fs::write(folder.join("general.json"), GENERAL).unwrap();
        std::fs::write(folder.join("general.en.json"), ENGLISH_GENERAL).unwrap();
        if let Some(content) = content {
            std::fs::write(folder.join("general.es.json"), content).unwrap();
        }
        let (status, out, _) = output(&["check", "policy.toml"], &folder);
        assert_eq!(status.code(), Some(1), "{out}");
        assert!(out.contains("error[BS0220]") && out.contains(why), "{out}");
        assert!(out.contains(&format!("policy.toml:{line}:{column}")), "{out}");
        let (status, _, err) = output(&["run", "policy.toml"], &folder);
        assert_eq!(status.code(), Some(2), "{err}");
        assert!(!err.contains("listening on"), "{err}");
    }
}

/// Part and main reads share one dependency and a small process: the part has two places, hangs in both of them, and a crowd
/// asks for it. Eight connections and ten places leave six and eight to the main reads.
#[test]
fn a_part_on_the_same_dependency_takes_no_more_than_its_own_places() {
    run(async {
        let both = Both::with(LEFT_OUT, |policy| {
            let lines = "match = \"GET /p/{id}/recommendations\"\ndependency = \"catalog\"\ndeadline = \"80ms\"\nin_flight = 2";
            policy
                .gateway("in_flight = 10")
                .replace_table("dependency.catalog", |table| format!("{table}\nconnections = 8"))
                .replace_route("recommendations.optional", &format!("{lines}\n{LEFT_OUT}"))
        })
        .await;
        both.catalog.on(Matcher::path("/p/1/recommendations"), Behaviour::hang());
        let held = [both.asking(), both.asking()];
        both.catalog.wait_for(2, BOUND).await.unwrap();
        let crowd: Vec<_> = (0..100).map(|_| both.asking()).collect();
        for id in 1..=50 {
            let id = id.to_string();
            let live = both.gateway.get(&format!("/p/{id}"), &crate::support::shop::SPANISH).await;
            expect::live(&live, 200, &product(&id, "first", "es"));
        }
        for refused in crowd {
            assert_eq!(refused.await.unwrap().status(), 503, "at once: the clock stands still");
        }
        assert_eq!(both.catalog.count_of("GET", "/p/1/recommendations"), 2);
        drop(held);
    });
}
