//! Every state that two replicas, an upstream and a client can reach with one operation, searched breadth first, with the real
//! transitions.
//!
//! Two replicas share a ledger. Either may be killed, or pause past its lease and go on as if nothing had been; requests
//! arrive late, twice answered for by nobody, or never; the status shows an effect later than it exists; the client repeats
//! its request at any replica. Bounds: 4 submissions by the client, 3 kills, 6 claims. A second search has one process whose
//! ledger is its own, which recovers when it starts again.
//!
//! In no state may there be two effects, two forwards, a success without an effect, a failure or "not executed" with one, an
//! answer weaker than an earlier success, or a verdict that evidence contradicts; and from every state one must be reachable in
//! which the operation is decided or a person is called.
//!
//! A third has a `settle` that was declared too short: there "not executed" may be wrong, and from every state in which it is one
//! must be reachable in which a person was called.
//!
//! A search that finds nothing proves nothing unless it finds what is wrong: each of nine protocols that are wrong in one thing
//! must be caught. They are what is common in practice. Every wrong one departs from the real code at one marked place.

mod bridge;
mod search;
mod steps;
mod world;

use search::{Found, search};
use world::{Variant, Wrong};

fn holds(name: &str, variant: &Variant) -> usize {
    let found = search(variant);
    found.print(name);
    match found {
        Found::Holds { states, most_forwards, stuck } => {
            assert_eq!((most_forwards, stuck), (1, 0), "{name}");
            states
        }
        Found::Violated { why, .. } => panic!("{name}: {why}"),
    }
}

fn caught(name: &str, wrong: &[Wrong]) -> (&'static str, usize) {
    let found = search(&Variant { wrong: wrong.to_vec(), ..Variant::default() });
    found.print(name);
    match found {
        Found::Violated { why, trace, .. } => (why, trace.len()),
        Found::Holds { states, .. } => panic!("{name}: nothing is found in {states} states"),
    }
}

#[test]
fn two_replicas_forward_once_and_never_say_what_is_not_so() {
    let states = holds("two replicas", &Variant::default());
    assert!(states > 1_000_000, "the search is as large as it was: {states}");
}

#[test]
fn one_process_that_restarts_forwards_once_and_never_says_what_is_not_so() {
    let states = holds("one process that restarts", &Variant { is_embedded: true, ..Variant::default() });
    assert!(states > 20_000, "the search is as large as it was: {states}");
}

/// The default: however often an upstream says that it does not know the operation, and however wrong it is about when that
/// may be believed.
#[test]
fn without_a_rule_of_absence_no_absence_is_ever_proof() {
    let variant = Variant { has_rule: false, wrong: vec![Wrong::SettleTooShort], ..Variant::default() };
    holds("no rule of absence", &variant);
}

/// Where `settle` was declared too short: what the upstream executes after "not executed" is seen in the end, and a person is
/// called. Without a second look there are worlds from which no way leads there.
#[test]
fn a_late_arrival_after_not_executed_calls_a_person() {
    use Wrong::{LooksNoMore, SettleTooShort};
    let late = |wrong, is_embedded| Variant { wrong, is_embedded, forgives_late: true, ..Variant::default() };
    holds("late arrivals, one process", &late(vec![SettleTooShort], true));
    holds("late arrivals, two replicas", &late(vec![SettleTooShort], false));
    let found = search(&late(vec![SettleTooShort, LooksNoMore], true));
    found.print("late arrivals, no second look");
    assert!(matches!(found, Found::Holds { most_forwards: 1, stuck: 1.., .. }));
}

/// What is found, and after how many steps, as the protocol's first model in another language found it, too.
#[test]
fn every_wrong_protocol_is_caught() {
    use Wrong::*;
    let cases: [(&str, &[Wrong], &str); 9] = [
        ("lease expiry executes again", &[LeaseExecutesAgain], "more than one effect"),
        (
            "lease expiry executes again, the upstream recognises it",
            &[LeaseExecutesAgain, UpstreamRecognises],
            "failure told, effect exists",
        ),
        ("key released on timeout or 5xx", &[KeyReleased], "more than one effect"),
        ("404 means not executed at once", &[AbsentAtOnce], "not executed in the ledger, effect exists"),
        ("settle declared too short", &[SettleTooShort], "not executed in the ledger, effect exists"),
        ("intent not durable before the forward", &[IntentNotDurable], "more than one effect"),
        ("no comparison before a record is set", &[NoComparison], "answer weaker than an earlier success"),
        ("5xx recorded as failure", &[ServerErrorFails], "failure told, effect exists"),
        ("reply before the outcome is durable", &[ReplyFirst], "answer weaker than an earlier success"),
    ];
    for (name, wrong, expected) in cases {
        let (why, steps) = caught(name, wrong);
        assert_eq!(why, expected, "{name}");
        assert!((4..=11).contains(&steps), "{name}: {steps} steps");
    }
}
