//! Another dependency stands in within what was verified, and not for what is broken by the same thing.

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Origin};

use crate::disk::warnings;
use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, down};
use crate::support::{BOUND, Gateway, Hand, Policy, expect, product, products, run};

const EVIDENCE: &str = "dependency = \"replica\"\nrate = \"20/s\"\nconcurrency = 8\np95 = \"20ms\"\nmeasured = 2026-01-01\nvalid_until = 2099-01-01\nload = \"50 orders/s\"\n";

struct Two {
    primary: Origin,
    replica: Origin,
    gateway: Gateway,
}

async fn two(evidence: Option<&str>, primary_uses: &str, replica_uses: &str) -> Two {
    with_places(evidence, primary_uses, replica_uses, 100).await
}

/// The database that they may use has so many places.
async fn with_places(evidence: Option<&str>, primary_uses: &str, replica_uses: &str, places: u32) -> Two {
    let (primary, replica) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    primary.default(products("primary"));
    replica.default(products("replica"));
    let read = "alternative = { dependency = \"replica\", verified = \"replica.toml\" }\nin_flight = 50";
    let policy = Policy::empty()
        .table("resource.db", &format!("concurrency = {places}"))
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

/// Two routes name one replica, and one of them says what it bears: that is no evidence for the other.
#[test]
fn a_route_without_evidence_gets_nothing_of_anothers() {
    run(async {
        let (primary, replica) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
        replica.default(products("replica"));
        let verified = "alternative = { dependency = \"replica\", verified = \"replica.toml\" }";
        let other = "match = \"GET /r/{id}\"\nalternative = { dependency = \"replica\" }";
        let policy = Policy::empty()
            .dependency("catalog", primary.addr(), "")
            .dependency("replica", replica.addr(), "")
            .route("description.public_read", &Policy::description(verified))
            .route("review.public_read", &Policy::description(other));
        let folder = folder();
        std::fs::write(folder.join("replica.toml"), EVIDENCE).unwrap();
        let gateway = Gateway::start_in(&folder, &policy);
        gateway.hand().say("sync on");
        down(&primary).await;
        let refused = gateway.get("/r/1", &SPANISH).await;
        expect::no_copy(&refused, "missing", "connect");
        assert_eq!(replica.count(), 0);
        assert_eq!(gateway.get("/p/1", &SPANISH).await.text(), product("1", "replica", "es"));
        assert_eq!(replica.count(), 1);
    });
}

/// A gateway that starts before its clock is set sees evidence of a day to come. Once the date is right, it counts.
#[test]
fn evidence_that_lay_ahead_at_the_start_counts_once_its_day_has_come() {
    run(async {
        // 2090-01-01 in UTC; whatever the date is today, it lies ahead.
        let ahead = EVIDENCE.replace("2026-01-01", "2090-01-01");
        let two = two(Some(&ahead), "", "").await;
        down(&two.primary).await;
        expect::no_copy(&two.gateway.get("/p/1", &SPANISH).await, "missing", "connect");
        assert_eq!(two.replica.count(), 0);
        let mut hand = two.gateway.hand();
        let to = |hand: &mut Hand, wall: i64| {
            let from = hand.reading().wall;
            hand.wall(wall - from);
        };
        // 3 786 912 000 s after 1970 is 2090-01-01T00:00:00Z.
        const FIRST_NS: i64 = 3_786_912_000 * 1_000_000_000;
        to(&mut hand, FIRST_NS - 1);
        two.gateway.get("/p/1", &SPANISH).await;
        assert_eq!(two.replica.count(), 0, "a nanosecond before that day");
        to(&mut hand, FIRST_NS);
        assert_eq!(two.gateway.get("/p/1", &SPANISH).await.text(), product("1", "replica", "es"));
        assert_eq!(two.replica.count(), 1);
        assert_eq!(warnings(&two.gateway).await, "[]");
        hand.say("sync off");
        let warned =
            "[\"nobody stands in for another: the clock is not synchronised, so no evidence can be dated\"]";
        assert_eq!(warnings(&two.gateway).await, warned);
        two.gateway.get("/p/1", &SPANISH).await;
        assert_eq!(two.replica.count(), 1, "a date that nobody vouches for");
    });
}

/// Who cannot stand in takes no time from the call: an answer after 290 of 300 ms is the answer (60 % of the 294 ms for calls
/// would be 176 ms). And the service's own 503 reaches whoever can have no copy.
#[test]
fn an_alternative_without_evidence_changes_nothing() {
    run(async {
        let expired = EVIDENCE.replace("2099-01-01", "2026-02-01");
        for evidence in [None, Some(expired.as_str())] {
            let two = two(evidence, "", "").await;
            let gate = Gate::new();
            two.primary.on(Matcher::any(), products("late").gate(&gate));
            let late = async {
                gate.wait_for_waiting(1, BOUND).await.unwrap();
                two.gateway.hand().advance(std::time::Duration::from_millis(290));
                gate.open();
            };
            let (answer, ()) = tokio::join!(two.gateway.get("/p/1", &SPANISH), late);
            expect::live(&answer, 200, &product("1", "late", "es"));
            two.primary.on(Matcher::any(), Answer::new(503).body(b"mine".to_vec()));
            let own = [SPANISH.as_slice(), &[("Authorization", "Bearer x")]].concat();
            let answer = two.gateway.get("/p/1", &own).await;
            assert_eq!((answer.status(), answer.text()), (503, "mine".to_owned()));
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

/// Eight at once were verified, and a rate that forbids none of them. While eight are under way the ninth is refused; when
/// one is over, one more is asked.
#[test]
fn a_stand_in_has_no_more_under_way_than_was_verified() {
    run(async {
        let two = two(Some(&EVIDENCE.replace("20/s", "4000/s")), "", "").await;
        down(&two.primary).await;
        let gate = Gate::new();
        two.replica.on(Matcher::any(), products("replica").gate(&gate));
        let address = two.gateway.addr;
        let ask = || tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() });
        let held: Vec<_> = (0..8).map(|_| ask()).collect();
        gate.wait_for_waiting(8, BOUND).await.unwrap();
        for _ in 0..20 {
            expect::no_copy(&two.gateway.get("/p/1", &SPANISH).await, "missing", "connect");
        }
        assert_eq!((two.replica.count(), two.replica.stats().peak_in_flight), (8, 8));
        gate.open();
        for answer in held {
            assert_eq!(answer.await.unwrap().text(), product("1", "replica", "es"));
        }
        let one_more = two.gateway.get("/p/1", &SPANISH).await;
        assert_eq!((one_more.text(), two.replica.count()), (product("1", "replica", "es"), 9));
    });
}

/// Both use one database, and it was heard within ten seconds that it is well: another thing is the cause. Then the
/// stand-in is used up to the verified rate, and not one request more, however many ask.
#[test]
fn what_is_not_the_cause_gets_the_verified_rate_exactly() {
    run(async {
        let uses = "uses = [\"db\"]";
        let two = two(Some(EVIDENCE), uses, uses).await;
        let says = |text: &str| Answer::json(product("1", text, "es")).header("Server-Timing", "db;dur=1");
        two.primary.default(says("primary"));
        two.replica.default(says("replica"));
        assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
        down(&two.primary).await;
        let mut hand = two.gateway.hand();
        let mut stood_in = 0;
        for _ in 0..200 {
            let answer = two.gateway.get("/p/1", &SPANISH).await;
            assert_eq!(answer.status(), 200);
            stood_in += u64::from(answer.header("backstop").unwrap().contains("source=alternative"));
            hand.advance(std::time::Duration::from_millis(5));
        }
        // One at once, and one for each 50 ms of the 995 that follow.
        assert_eq!((two.replica.count(), stood_in), (20, 20));
        let refused =
            two.gateway.metrics().await.sum("backstop_stand_in_refused_total", &["reason=\"rate\""]);
        assert_eq!(refused, 180.0);
    });
}

/// Its last word was good, and then it hangs: the first dependency answers too late, and no word comes any more. Nothing is
/// known of the database until a call that began later is answered, so not one call, while the calls fail and while the
/// breaker is open. A public report of what becomes of a database that is asked all the more:
/// <https://aws.amazon.com/message/5467D2/>.
#[test]
fn what_shares_a_database_that_hangs_is_not_asked() {
    run(async {
        let uses = "uses = [\"db\"]";
        let breaks = format!(
            "{uses}\nbreaker = {{ min_calls = 4, open = \"1s\" }}\nrecovery = {{ start = \"100%\" }}"
        );
        let two = two(Some(EVIDENCE), &breaks, uses).await;
        let says = Answer::json(product("1", "primary", "es")).header("Server-Timing", "db;dur=1");
        two.primary.default(says.clone());
        assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
        let mut hand = two.gateway.hand();
        two.primary.default(Behaviour::hang());
        let address = two.gateway.addr;
        for number in 2..=4 {
            hand.advance(std::time::Duration::from_millis(1));
            let hung = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() });
            two.primary.wait_for(number, BOUND).await.unwrap();
            hand.advance(std::time::Duration::from_millis(300));
            expect::marked_as_copy(&hung.await.unwrap(), 0, "read_timeout");
        }
        for _ in 0..20 {
            let copy = two.gateway.get("/p/1", &SPANISH).await;
            expect::copy_unasked(&copy, &product("1", "primary", "es"), 0, "breaker_open");
        }
        assert_eq!((two.primary.count(), two.replica.count()), (4, 0));
        // It answers again and says that it is well; then the first dependency alone is gone.
        two.primary.default(says);
        hand.advance(std::time::Duration::from_millis(1200));
        for _ in 0..3 {
            assert_eq!(two.gateway.get("/p/1", &SPANISH).await.header("backstop"), None);
        }
        down(&two.primary).await;
        assert_eq!(two.gateway.get("/p/1", &SPANISH).await.text(), product("1", "replica", "es"));
        assert_eq!(two.replica.count(), 1);
    });
}

/// The database is full of the first dependency's own calls: it is the cause, whatever it says of itself. Not one call.
#[test]
fn a_full_database_that_both_use_leads_nowhere() {
    run(async {
        let uses = "uses = [\"db\"]";
        let two = with_places(Some(EVIDENCE), uses, uses, 2).await;
        let says = Answer::json(product("1", "primary", "es")).header("Server-Timing", "db;dur=1");
        two.primary.default(says.clone());
        assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
        let gate = Gate::new();
        two.primary.default(says.gate(&gate));
        let address = two.gateway.addr;
        let held = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await.unwrap() });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        for _ in 0..40 {
            let copy = two.gateway.get("/p/1", &SPANISH).await;
            expect::copy_unasked(&copy, &product("1", "primary", "es"), 0, "resource_full");
        }
        assert_eq!((two.primary.count(), two.replica.count()), (2, 0));
        gate.open();
        assert_eq!(held.await.unwrap().status(), 200);
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
