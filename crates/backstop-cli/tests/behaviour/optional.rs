//! Parts that the whole can do without: left out in time, or answered by something general; and what they may not take
//! from the main reads.

use std::net::SocketAddr;
use std::time::Duration;

use backstop_lab::client::{self, Response};
use backstop_lab::origin::{Behaviour, Gate, Matcher, Origin};
use tokio::task::JoinHandle;

use crate::support::gateway::folder;
use crate::support::{BOUND, Gateway, Hand, Outcomes, Policy, expect, product, products, run};

const GENERAL: &str = r#"["7","8","9"]"#;
const LEFT_OUT: &str = "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";
const PREPARED: &str = "otherwise = { prepared = \"general.json\" }";

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
        let (catalog, recommender) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        catalog.default(products("first"));
        recommender.default(Behaviour::json(r#"["1","2"]"#));
        let folder = folder();
        std::fs::write(folder.join("general.json"), GENERAL).unwrap();
        let mut gateway = Gateway::start_in(&folder, &policy(catalog.addr(), recommender.addr(), otherwise));
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
