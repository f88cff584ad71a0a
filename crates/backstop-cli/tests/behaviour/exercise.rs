//! What stands behind a route is tried while nobody needs it: what is broken is known before the outage, and no client
//! sees anything of it.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Origin};
use serde_json::Value;

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, durable, right_answer};
use crate::support::{BOUND, Gateway, Metrics, Policy, expect, product, products, run};

/// 4000 a second: 200 at once, of which exercises leave half.
const EVIDENCE: &str = "dependency = \"replica\"\nrate = \"4000/s\"\nconcurrency = 8\np95 = \"20ms\"\nmeasured = 2026-01-01\nvalid_until = 2099-01-01\nload = \"50 orders/s\"\n";

struct Two {
    primary: Origin,
    replica: Origin,
    gateway: Gateway,
}

/// A primary and its replica; `exercise` is a line of the route.
async fn two(exercise: &str, replica: &str) -> Two {
    let (primary, standby) = (Origin::start().await.unwrap(), Origin::start().await.unwrap());
    primary.default(products("primary"));
    standby.default(products("replica"));
    let read = format!(
        "in_flight = 50\nalternative = {{ dependency = \"replica\", verified = \"replica.toml\" }}\n{exercise}"
    );
    let policy = Policy::empty()
        .dependency("catalog", primary.addr(), "")
        .dependency("replica", standby.addr(), replica)
        .route("description.public_read", &Policy::description(&read))
        .route(
            "replica.direct",
            "match = \"GET /replica/{id}\"\ndependency = \"replica\"\ndeadline = \"5s\"\nin_flight = 4",
        );
    let folder = folder();
    std::fs::write(folder.join("replica.toml"), EVIDENCE).unwrap();
    let mut gateway = Gateway::start_in(&folder, &policy);
    HOST.clone_into(&mut gateway.host);
    let mut hand = gateway.hand();
    hand.freeze();
    hand.say("sync on");
    Two { primary, replica: standby, gateway }
}

/// What was counted of exercises with these labels.
fn counted(metrics: &Metrics, labels: &[&str]) -> u64 {
    metrics.sum_or_none("backstop_exercises_total", labels) as u64
}

const CALLS: &str = "alternative=\"alternative\"";
const COPIES: &str = "alternative=\"snapshot\"";

fn is_broken(metrics: &Metrics, alternative: &str) -> bool {
    metrics.sum("backstop_exercise_broken", &[alternative]) == 1.0
}

/// The lines about exercises, once there are so many.
async fn told(gateway: &Gateway, count: usize) -> Vec<Value> {
    let told = || -> Vec<Value> {
        let lines = gateway.log().into_iter().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        lines.filter(|line| line["target"] == "backstop::exercise").collect()
    };
    let waiting = async {
        while told().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _compared_below = tokio::time::timeout(BOUND, waiting).await;
    let told = told();
    assert_eq!(told.len(), count, "{:#?}", gateway.log());
    told
}

/// The client gets the primary's answer, unmarked, each time; the operator a number, a mark and one line.
#[test]
fn a_broken_replica_is_known_before_anybody_needs_it() {
    run(async {
        let two = two("exercise = \"100%\"", "").await;
        let ways: [(Behaviour, &str); 5] = [
            (Answer::new(503).into(), "unavailable"),
            (Answer::new(404).into(), "other_status"),
            (Answer::json("{\"id\":\"1\"}").into(), "incorrect"),
            (Answer::json("{\"id\":").into(), "incomplete"),
            (Answer::new(501).into(), "server_error"),
        ];
        let mut asked = 0;
        let mut turns = 0;
        for (broken, reason) in ways {
            two.replica.on(Matcher::any(), broken);
            for round in 1..=4 {
                expect::live(&two.gateway.get("/p/1", &SPANISH).await, 200, &product("1", "primary", "es"));
                asked += 1;
                let because = format!("reason=\"{reason}\"");
                let failed = [CALLS, "result=\"failed\"", &because];
                two.gateway.metrics_until(|metrics| counted(metrics, &failed) == round).await;
            }
            let metrics = two.gateway.metrics().await;
            assert!(is_broken(&metrics, CALLS) && !is_broken(&metrics, COPIES), "{reason}");
            turns += 1;
            let line = told(&two.gateway, turns).await.pop().unwrap();
            assert_eq!((&line["level"], &line["reason"]), (&"WARN".into(), &reason.into()), "told once");
            assert_eq!(
                (&line["route"], &line["alternative"]),
                (&"description".into(), &"alternative".into())
            );
            two.replica.on(Matcher::any(), products("replica"));
            let good = counted(&metrics, &[CALLS, "result=\"good\""]);
            for round in 1..=3 {
                expect::live(&two.gateway.get("/p/1", &SPANISH).await, 200, &product("1", "primary", "es"));
                asked += 1;
                let good_ones = [CALLS, "result=\"good\""];
                two.gateway.metrics_until(|metrics| counted(metrics, &good_ones) == good + round).await;
            }
            assert!(!is_broken(&two.gateway.metrics().await, CALLS));
            turns += 1;
            assert_eq!(told(&two.gateway, turns).await.pop().unwrap()["level"], "INFO");
        }
        // Nothing but the exercises' own numbers tells of them.
        let metrics = two.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        assert_eq!((two.primary.count(), two.replica.count()), (asked, asked), "one exercise each");
        assert_eq!((metrics.outcome("normal"), metrics.outcome("fallback")), (asked, 0));
        let of_replica = "dependency=\"replica\"";
        assert_eq!(metrics.sum("backstop_dependency_calls_total", &[of_replica]), 0.0);
        assert_eq!(metrics.dependency_failures(), 0);
        assert_eq!(metrics.sum("backstop_breaker_phase", &[of_replica, "phase=\"closed\""]), 1.0);
        assert_eq!(metrics.sum("backstop_copy_age_seconds_count", &[]), 0.0, "no copy was served");
        assert_eq!(metrics.sum("backstop_incidents_total", &[]), 0.0);
        // The first read had no copy yet, all others had one.
        assert_eq!(counted(&metrics, &[COPIES, "reason=\"missing\""]), 1);
        assert_eq!(counted(&metrics, &[COPIES, "result=\"good\""]), asked - 1);
        // Of n reads of the last minute n - 1 were covered: exercises are no reads.
        let coverage = metrics.sum("backstop_fallback_coverage_ratio", &[]);
        assert!((coverage - (asked - 1) as f64 / asked as f64).abs() < 1e-9, "{coverage}");
    });
}

/// A replica that hangs is asked no longer than it could be in an outage, and holds up nobody.
#[test]
fn a_replica_that_hangs_holds_up_nobody() {
    run(async {
        let two = two("exercise = \"100%\"", "").await;
        let gate = Gate::new();
        two.replica.on(Matcher::any(), products("late").gate(&gate));
        // The clock stands still: were the answer to wait for the replica, it would wait for ever.
        for _ in 0..3 {
            expect::live(&two.gateway.get("/p/1", &SPANISH).await, 200, &product("1", "primary", "es"));
        }
        gate.wait_for_waiting(3, BOUND).await.unwrap();
        // The deadline of 300 ms less 3 for the reply and 3 for the copy, and 4 tenths of that: 117.6 ms.
        two.gateway.hand().advance(Duration::from_millis(118));
        let late = [CALLS, "result=\"failed\"", "reason=\"read_timeout\""];
        let metrics = two.gateway.metrics_until(|metrics| counted(metrics, &late) == 3).await;
        assert!(is_broken(&metrics, CALLS));
        gate.open();
    });
}

/// 2000 reads, of which one in ten is drawn: 200 by the mean, and by the binomial distribution a standard deviation of
/// `sqrt(2000 * 0.1 * 0.9) = 13.4`; five of those are 67.
#[test]
fn the_replica_gets_the_share_that_is_written() {
    run(async {
        let two = two("exercise = \"10%\"", "").await;
        let mut hand = two.gateway.hand();
        for number in 0..2000 {
            assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
            if number % 20 == 0 {
                hand.advance(Duration::from_millis(10));
            }
        }
        let drawn = |metrics: &Metrics| counted(metrics, &[COPIES]);
        let metrics = two.gateway.metrics_until(|metrics| counted(metrics, &[CALLS]) == drawn(metrics)).await;
        let calls = two.replica.count();
        assert!((133..=267).contains(&drawn(&metrics)), "{metrics:#?}");
        assert_eq!(calls, counted(&metrics, &[CALLS, "result=\"good\""]));
        let missed = drawn(&metrics) - calls;
        assert_eq!(counted(&metrics, &[CALLS, "result=\"skipped\""]), missed, "each is accounted for");
        assert!(missed <= 20, "{missed} of {} found four under way", drawn(&metrics));
    });
}

/// Of three places one is taken: with an exercise there would be two, which is more than half.
#[test]
fn where_a_place_could_be_needed_nothing_is_tried() {
    run(async {
        let two = two("exercise = \"100%\"", "connections = 3").await;
        let gate = Gate::new();
        two.replica.on(Matcher::path("/replica/1"), products("held").gate(&gate));
        let address = two.gateway.addr;
        let held = tokio::spawn(async move { client::get(address, "/replica/1", &[("Host", HOST)]).await });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        for _ in 0..20 {
            assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
        }
        let busy = [CALLS, "result=\"skipped\"", "reason=\"busy\""];
        let metrics = two.gateway.metrics_until(|metrics| counted(metrics, &busy) == 20).await;
        assert_eq!(two.replica.count(), 1, "the one that a client asked for");
        assert!(!is_broken(&metrics, CALLS), "what was not tried says nothing");
        assert_eq!(counted(&metrics, &[COPIES, "result=\"good\""]), 19, "a copy takes no place there");
        gate.open();
        assert_eq!(held.await.unwrap().unwrap().status(), 200);
    });
}

/// Whoever wrote nothing finds their copies tried, and nobody called.
#[test]
fn nobody_is_called_whose_operator_wrote_nothing() {
    run(async {
        for (exercise, is_drawn) in [("", true), ("exercise = \"0%\"", false)] {
            let two = two(exercise, "").await;
            for _ in 0..1000 {
                assert_eq!(two.gateway.get("/p/1", &SPANISH).await.status(), 200);
            }
            let metrics = two.gateway.metrics().await;
            // Of a thousand at 1 %, none by a chance of 0.99^1000 = 0.00004.
            assert_eq!(counted(&metrics, &[COPIES]) > 0, is_drawn, "{exercise}");
            assert_eq!((two.replica.count(), counted(&metrics, &[CALLS])), (0, 0));
        }
    });
}

/// Somebody's own question, and what is no plain read, is put to nobody else.
#[test]
fn what_is_not_everybodys_is_not_tried() {
    run(async {
        let two = two("exercise = \"100%\"", "").await;
        let own = [SPANISH.as_slice(), &[("Authorization", "Bearer x")]].concat();
        assert_eq!(two.gateway.get("/p/1", &own).await.status(), 200);
        assert_eq!(two.gateway.request("HEAD", "/p/1", &SPANISH, b"").await.status(), 200);
        assert_eq!(two.gateway.get("/replica/1", &SPANISH).await.status(), 200);
        two.primary.on(Matcher::path("/p/2"), Answer::new(404));
        assert_eq!(two.gateway.get("/p/2", &SPANISH).await.status(), 404);
        let metrics = two.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        assert_eq!((counted(&metrics, &[]), two.replica.count()), (0, 1), "the one of its own route");
    });
}

/// Three copies of which the disk has lost a byte: found while the primary answers.
#[test]
fn a_copy_that_the_disk_has_damaged_is_known_before_anybody_needs_it() {
    run(async {
        let origin = Origin::start().await.unwrap();
        origin.default(products("undamaged"));
        let policy =
            Policy::shop(origin.addr()).store("snapshots = { memory = \"16 MiB\", disk = \"8 MiB\" }");
        let policy = policy
            .replace_table("route.description.public_read", |table| format!("{table}\nexercise = \"100%\""));
        let folder = {
            let gateway = Gateway::start(&policy);
            let mut hand = gateway.hand();
            hand.say("sync on");
            for id in ["1", "2", "3"] {
                assert_eq!(gateway.get(&format!("/p/{id}"), &SPANISH).await.status(), 200);
            }
            durable(&gateway, 3).await;
            gateway.stop()
        };
        let mut damaged = 0;
        for entry in std::fs::read_dir(folder.join("backstop-data")).unwrap() {
            let path = entry.unwrap().path();
            let Ok(mut bytes) = std::fs::read(&path) else { continue };
            let places: Vec<usize> = bytes
                .windows(9)
                .enumerate()
                .filter(|(_, found)| *found == b"undamaged")
                .map(|(at, _)| at)
                .collect();
            for at in places {
                bytes[at] ^= 1;
                damaged += 1;
            }
            std::fs::write(&path, bytes).unwrap();
        }
        assert!(damaged >= 3, "{damaged}");
        // An answer with somebody's cookie is not kept: the copy that is tried is not replaced before the disk has read it.
        origin.default(Behaviour::from_fn(|request| {
            right_answer(request, "undamaged").header("Set-Cookie", "somebody=1")
        }));
        let gateway = Gateway::start_in(&folder, &policy);
        gateway.hand().say("sync on");
        for id in ["1", "2", "3"] {
            let answer = gateway.get(&format!("/p/{id}"), &SPANISH).await;
            expect::live(&answer, 200, &product(id, "undamaged", "es"));
        }
        let unreadable = [COPIES, "result=\"failed\"", "reason=\"unreadable\""];
        let metrics = gateway.metrics_until(|metrics| counted(metrics, &unreadable) == 3).await;
        assert!(is_broken(&metrics, COPIES));
        assert_eq!(told(&gateway, 1).await[0]["reason"], "unreadable");
    });
}
