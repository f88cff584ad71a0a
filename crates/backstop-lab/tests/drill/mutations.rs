//! Each ready drill: it holds as it should, and it finds the one thing that is broken.

use std::collections::BTreeSet;

use backstop_lab::drill::Verdict;

use crate::{
    standin::Flaw,
    world::{World, failed, words},
};

/// Plays the drill against a stand-in that keeps every promise, and against one for each flaw, side by side. What may not hold
/// with a flaw is what is named, all of it and nothing else.
async fn held_and_found(name: &str, flaws: &[(Flaw, &[&str])]) {
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

macro_rules! drills {
    ($($test:ident = $name:literal, [$(($flaw:ident, [$($expected:literal),*])),*];)*) => {
        $(#[tokio::test]
        async fn $test() {
            held_and_found($name, &[$((Flaw::$flaw, &[$($expected),*])),*]).await;
        })*

        #[test]
        fn no_ready_drill_is_left_out() {
            let tested: BTreeSet<&str> = [$($name),*].into();
            let all: BTreeSet<&str> = backstop_lab::drill::ready::ALL.iter().map(|ready| ready.name).collect();
            assert_eq!(tested, all, "each ready drill is shown to be able to fail");
        }
    };
}

drills! {
    no_copy = "no-copy", [(Invents, ["own", "refused"])];
    age_limit = "age-limit", [(Forever, ["age", "refused"]), (Unmarked, ["copies", "own"])];
    other_key = "other-key", [(TenantMissing, ["keys"])];
    future_date = "future-date", [
        (BelievesDate, ["age", "clock-ran-back", "future-date"]),
        (IgnoresAge, ["age", "age-received"]),
        (ServesFuture, ["age", "clock-ran-back"])
    ];
    saturation = "saturation", [(NoLimit, ["in-flight", "saturated"])];
    pool_exhausted = "pool-exhausted", [(NoPool, ["connections", "exhausted"])];
    slow_dependency = "slow-dependency", [(NoDeadline, ["deadline"])];
    broken_answers = "broken-answers", [(PassesCut, ["own"]), (RetriesForEver, ["retries"])];
    unclassified_errors = "unclassified-errors", [(CopyForErrors, ["passes-through", "unchanged"])];
    cache_down = "cache-down", [(UnlimitedDetour, ["calls"])];
    both_down = "both-down", [(Invents, ["both-down", "own", "refused"]), (Unmarked, ["both-down", "own"])];
    recovery = "recovery", [(NeverBack, ["recovered"])];
    retries_at_once = "retries-at-once-on-recovery", [(Flood, ["ramp"])];
    authorizer_down = "authorizer-down", [
        (FailOpen, ["authorized", "calls", "temporary"]),
        (FailForbidden, ["authorized", "denied", "temporary"])
    ];
    write_once = "write-once", [(RetriesWrites, ["writes-once"])];
}
