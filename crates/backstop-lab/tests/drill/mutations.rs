//! Each ready drill: it holds as it should, and it finds the one thing that is broken.

use std::collections::BTreeSet;

use backstop_lab::drill::Verdict;

use crate::{
    standin::Flaw,
    world::{World, failed, words},
};

/// Plays the drill against a stand-in that keeps every promise, and against one for each flaw, side by side. What may not hold
/// with a flaw is what is named, all of it and nothing else.
async fn held_and_found(name: &str) {
    let (_, flaws) = TABLE.iter().find(|(known, _)| *known == name).unwrap();
    let world = World::new().await;
    let scenario = world.scenario(name);
    let others = flaws.iter().map(|(flaw, expected)| {
        let (world, scenario) = (&world, &scenario);
        async move { (*flaw, *expected, world.play(scenario, Some(*flaw)).await) }
    });
    let (sound, flawed) = tokio::join!(world.play(&scenario, None), futures_util::future::join_all(others));
    assert_eq!(sound.verdict, Verdict::Held, "`{name}` fails although nothing is broken\n{}", words(&sound));
    for (flaw, expected, report) in flawed {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(failed(&report), expected, "`{name}` with {flaw:?}\n{}", words(&report));
    }
}

/// A ready drill, with each flaw that it is about and the checks that find it.
type Row = (&'static str, &'static [(Flaw, &'static [&'static str])]);

const TABLE: [Row; 15] = [
    ("no-copy", &[(Flaw::Invents, &["own", "refused"])]),
    ("age-limit", &[(Flaw::Forever, &["age", "refused"]), (Flaw::Unmarked, &["copies", "own"])]),
    ("other-key", &[(Flaw::TenantMissing, &["keys"])]),
    (
        "future-date",
        &[
            (Flaw::BelievesDate, &["age", "clock-ran-back", "future-date"]),
            (Flaw::IgnoresAge, &["age", "age-received"]),
            (Flaw::ServesFuture, &["age", "clock-ran-back"]),
        ],
    ),
    ("saturation", &[(Flaw::NoLimit, &["in-flight", "saturated"])]),
    ("pool-exhausted", &[(Flaw::NoPool, &["connections", "exhausted"])]),
    ("slow-dependency", &[(Flaw::NoDeadline, &["deadline"])]),
    ("broken-answers", &[(Flaw::PassesCut, &["own"]), (Flaw::RetriesForEver, &["retries"])]),
    ("unclassified-errors", &[(Flaw::CopyForErrors, &["passes-through", "unchanged"])]),
    ("cache-down", &[(Flaw::UnlimitedDetour, &["calls"])]),
    (
        "both-down",
        &[(Flaw::Invents, &["both-down", "own", "refused"]), (Flaw::Unmarked, &["both-down", "own"])],
    ),
    ("recovery", &[(Flaw::NeverBack, &["recovered"])]),
    ("retries-at-once-on-recovery", &[(Flaw::Flood, &["ramp"])]),
    (
        "authorizer-down",
        &[
            (Flaw::FailOpen, &["authorized", "calls", "temporary"]),
            (Flaw::FailForbidden, &["authorized", "denied", "temporary"]),
        ],
    ),
    ("write-once", &[(Flaw::RetriesWrites, &["writes-once"])]),
];

#[tokio::test]
async fn no_copy() {
    held_and_found("no-copy").await;
}

#[tokio::test]
async fn age_limit() {
    held_and_found("age-limit").await;
}

#[tokio::test]
async fn other_key() {
    held_and_found("other-key").await;
}

#[tokio::test]
async fn future_date() {
    held_and_found("future-date").await;
}

#[tokio::test]
async fn saturation() {
    held_and_found("saturation").await;
}

#[tokio::test]
async fn pool_exhausted() {
    held_and_found("pool-exhausted").await;
}

#[tokio::test]
async fn slow_dependency() {
    held_and_found("slow-dependency").await;
}

#[tokio::test]
async fn broken_answers() {
    held_and_found("broken-answers").await;
}

#[tokio::test]
async fn unclassified_errors() {
    held_and_found("unclassified-errors").await;
}

#[tokio::test]
async fn cache_down() {
    held_and_found("cache-down").await;
}

#[tokio::test]
async fn both_down() {
    held_and_found("both-down").await;
}

#[tokio::test]
async fn recovery() {
    held_and_found("recovery").await;
}

#[tokio::test]
async fn retries_at_once() {
    held_and_found("retries-at-once-on-recovery").await;
}

#[tokio::test]
async fn authorizer_down() {
    held_and_found("authorizer-down").await;
}

#[tokio::test]
async fn write_once() {
    held_and_found("write-once").await;
}

#[test]
fn no_ready_drill_is_left_out() {
    let tested: BTreeSet<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    let all: BTreeSet<&str> = backstop_lab::drill::ready::ALL.iter().map(|ready| ready.name).collect();
    assert_eq!(tested, all, "each ready drill is shown to be able to fail");
    assert!(TABLE.iter().all(|(_, flaws)| !flaws.is_empty()));
}
