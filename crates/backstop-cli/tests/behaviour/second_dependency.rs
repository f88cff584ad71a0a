//! Another dependency stands in within what was verified, and not for what is broken by the same thing.

use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, down};
use crate::support::{Gateway, Policy, expect, product, products, run};

const EVIDENCE: &str = "dependency = \"replica\"\nrate = \"20/s\"\nconcurrency = 8\np95 = \"20ms\"\nmeasured = 2026-01-01\nvalid_until = 2099-01-01\nload = \"50 orders/s\"\n";

struct Two {
    primary: Origin,
    replica: Origin,
    gateway: Gateway,
}

async fn two(evidence: Option<&str>, primary_uses: &str, replica_uses: &str) -> Two {
    let (primary, replica) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    primary.default(products("primary"));
    replica.default(products("replica"));
    let read = "alternative = { dependency = \"replica\", verified = \"replica.toml\" }\nin_flight = 50";
    let policy = Policy::empty()
        .table("resource.db", "concurrency = 100")
        .dependency("catalog", primary.addr(), primary_uses)
        .dependency("replica", replica.addr(), replica_uses)
        .route("description.public_read", &Policy::description(read));
    let folder = folder();
    if let Some(evidence) = evidence {
        std::fs::write(folder.join("replica.toml"), evidence).unwrap();
    }
    let mut gateway = Gateway::start_in(&folder, &policy);
    HOST.clone_into(&mut gateway.host);
    let mut hand = gateway.hand();
    hand.freeze();
    hand.say("sync on");
    Two { primary, replica, gateway }
}

/// Its answer is marked as what it is, and never becomes the copy.
#[test]
fn a_verified_stand_in_answers_and_is_marked() {
    run(async {
        let two = two(Some(EVIDENCE), "", "").await;
        expect::live(&two.gateway.get("/p/1", &SPANISH).await, 200, &product("1", "primary", "es"));
        down(&two.primary).await;
        let answer = two.gateway.get("/p/1", &SPANISH).await;
        assert_eq!((answer.status(), answer.text()), (200, product("1", "replica", "es")));
        assert_eq!(answer.header("backstop"), Some("outcome=fallback, source=alternative, reason=connect"));
        down(&two.replica).await;
        expect::copy(&two.gateway.get("/p/1", &SPANISH).await, &product("1", "primary", "es"), 0, "connect");
    });
}

/// No evidence, evidence of yesterday, or of something else: not one call.
#[test]
fn without_evidence_that_counts_nothing_stands_in() {
    run(async {
        let expired = EVIDENCE.replace("2099-01-01", "2026-02-01");
        let other = EVIDENCE.replace("\"replica\"", "\"catalog\"");
        for evidence in [None, Some(expired.as_str()), Some(other.as_str())] {
            let two = two(evidence, "", "").await;
            down(&two.primary).await;
            expect::no_copy(&two.gateway.get("/p/1", &SPANISH).await, "missing", "connect");
            assert_eq!(two.replica.count(), 0);
        }
    });
}

/// Twenty a second were verified, in bursts of what 50 ms of that are: one. Not one request more.
#[test]
fn a_stand_in_gets_no_more_than_was_verified() {
    run(async {
        let two = two(Some(EVIDENCE), "", "").await;
        down(&two.primary).await;
        let mut hand = two.gateway.hand();
        for _ in 0..100 {
            two.gateway.get("/p/1", &SPANISH).await;
            hand.advance(std::time::Duration::from_millis(10));
        }
        // One at once, and one for each 50 ms of the 990 that follow.
        assert_eq!(two.replica.count(), 20);
    });
}

/// Both use one database. Nothing is known of it: not one call. It says that it is well: it is used. It says that it is
/// not: not one call more.
#[test]
fn what_shares_the_cause_never_stands_in() {
    run(async {
        let uses = "uses = [\"db\"]";
        let two = two(Some(EVIDENCE), uses, uses).await;
        down(&two.primary).await;
        two.gateway.get("/p/1", &SPANISH).await;
        assert_eq!(two.replica.count(), 0, "nothing is known of the database");
        two.primary.accept_again().await.unwrap();
        let says = |wait: &str| Answer::json(product("1", "primary", "es")).header("Server-Timing", wait);
        for (wait, expected) in [("db;dur=1", 1), ("db;dur=50", 1)] {
            let mut hand = two.gateway.hand();
            hand.advance(std::time::Duration::from_secs(1));
            two.primary.reset();
            two.primary.default(says(wait));
            assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
            two.primary.on(Matcher::any(), Behaviour::status(503));
            two.gateway.get("/p/1", &SPANISH).await;
            assert_eq!(two.replica.count(), expected, "{wait}");
        }
    });
}
