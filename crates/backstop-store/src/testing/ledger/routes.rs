//! What routes of one ledger owe each other, and what of them a person hears.
#![expect(clippy::panic, reason = "what a test needs and does not get stops it")]

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::operation::{
    Attention, Claim, Decision, Doubt, Draw, Forwarding, NotExecuted, Retention, Schedule, State,
};
use backstop_engine::time::Now;

use super::super::samples::now;
use super::lifetimes::state;
use super::{LedgerBackend, ROUTE, begin, forward, intent, kept, unknown, upkeep};
use crate::ledger::{Begun, Ledger, Raised, Recorded, Resolution, Upkeep};

const OTHER: &str = "refund";
const TIMEOUT: Duration = Duration::from_secs(2);

fn forward_other(ledger: &dyn Ledger, number: u8, now: Now) -> Forwarding {
    let intent = backstop_engine::operation::Intent { route: OTHER.into(), ..intent(number) };
    match ledger.begin(intent, now).wait() {
        Ok(Ok(Begun::New(intent))) => forward(intent, now),
        other => panic!("{number}: {other:?}"),
    }
}

/// As [`unknown`], of another route.
fn unknown_other(ledger: &dyn Ledger, number: u8, now: Now, first: Draw) {
    let report = forward_other(ledger, number, now).unknown(Doubt::Timeout, first);
    assert!(matches!(ledger.record(report, now).wait(), Ok(Recorded::Changed { .. })));
}

fn numbers(claims: &[Claim]) -> Vec<u8> {
    claims.iter().map(|claim| claim.record().identity.id.as_bytes()[0]).collect()
}

/// However much is due of one route, another one's is claimed; and when the next is due is known of each.
pub(super) fn claims(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    for number in 1..=5 {
        unknown(&*ledger, number, now(1), Schedule::default().draw(0));
    }
    unknown_other(&*ledger, 9, now(2), Schedule::default().draw(0));
    let claim = |route: &str, most| ledger.claim(route, most, TIMEOUT, now(10)).wait().unwrap_or_default();
    let other = claim(OTHER, 10);
    assert_eq!(numbers(&other.claims), [9]);
    assert_eq!(other.oldest_due, Some(now(17).mono), "after its lease of 2 s and 5 s of grace");
    let none = claim(ROUTE, 0);
    assert_eq!((none.claims.len(), none.oldest_due), (0, Some(now(1).mono)));
    let some = claim(ROUTE, 2);
    assert_eq!((numbers(&some.claims), some.oldest_due), (vec![1, 2], Some(now(1).mono)));
    let unheard = claim("nobody", 10);
    assert_eq!((unheard.claims.len(), unheard.oldest_due), (0, None));
    assert_eq!(ledger.routes().wait(), Ok(vec![ROUTE.into(), OTHER.into()]));
}

/// Each is kept for as long as its own route says; one that is not named is kept.
pub(super) fn retention(backend: &mut dyn LedgerBackend) {
    const HOUR: Duration = Duration::from_secs(3600);
    let ledger = backend.fresh(now(0));
    let first = forward(begin(&*ledger, 1, now(0)), now(0));
    for forwarding in [first, forward_other(&*ledger, 2, now(0))] {
        let recorded = ledger.record(forwarding.succeeded(kept(201, Some(b"content"))), now(0)).wait();
        assert!(matches!(recorded, Ok(Recorded::Changed { .. })));
    }
    let short = |route: &str| Upkeep {
        route: route.into(),
        retention: Retention { content: HOUR, tombstone: HOUR * 2 },
        schedule: Schedule::default(),
    };
    let sweep = |upkeep: Arc<[Upkeep]>, at| {
        let swept = ledger.sweep(upkeep, 7, now(at)).wait();
        swept.map(|swept| (swept.emptied, swept.forgotten))
    };
    assert_eq!(sweep(Arc::new([short(OTHER)]), 3600), Ok((1, 0)));
    assert_eq!(sweep(Arc::new([short(OTHER)]), 7200), Ok((0, 1)));
    assert_eq!(sweep(Arc::default(), 400 * 86_400), Ok((0, 0)), "nobody says how long");
    assert_eq!(ledger.routes().wait(), Ok(vec![ROUTE.into()]));
    assert_eq!(sweep(Arc::new([short(ROUTE), short(OTHER)]), 7200), Ok((0, 1)));
}

/// What time alone makes of an operation is asked for by its own route's waits.
pub(super) fn schedules(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    drop((begin(&*ledger, 1, now(0)), forward_other(&*ledger, 2, now(0))));
    let wait = Duration::from_secs(100);
    let long = Schedule { first: wait, most: wait, ..Schedule::default() };
    let at_once = Schedule { first: Duration::ZERO, ..Schedule::default() };
    let of =
        |route: &str, schedule| Upkeep { route: route.into(), retention: Retention::default(), schedule };
    let swept = ledger.sweep(Arc::new([of(ROUTE, at_once), of(OTHER, long)]), u64::MAX, now(35)).wait();
    assert_eq!(swept.map(|swept| swept.lapsed), Ok(2));
    let oldest = |route: &str| ledger.claim(route, 0, TIMEOUT, now(35)).wait().unwrap_or_default().oldest_due;
    assert_eq!(oldest(ROUTE), Some(now(35).mono));
    let later = oldest(OTHER);
    // Drawn evenly from 100 s, and not from the second of other routes: below that once in a hundred names.
    assert!(later.is_some_and(|due| due > now(36).mono && due <= now(135).mono), "{later:?}");
}

/// Whatever calls a person is told by one sweep, once, in order: a deadline, a query, a contradiction.
pub(super) fn raised(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let sweep = |at| {
        let swept = ledger.sweep(upkeep(), 7, now(at)).wait().unwrap_or_default();
        (swept.raised, swept.raised_left_out)
    };
    let raised = |number, why, since| Raised {
        id: intent(number).id,
        route: ROUTE.into(),
        why,
        created: now(0).wall,
        since: now(since).wall,
    };
    unknown(&*ledger, 1, now(0), Schedule::default().draw(0));
    let paused = forward(begin(&*ledger, 2, now(0)), now(0));
    assert_eq!(sweep(40), (vec![], 0));
    let claims = ledger.claim(ROUTE, 1, TIMEOUT, now(41)).wait().unwrap_or_default().claims;
    assert_eq!(numbers(&claims), [1]);
    for claim in claims {
        let report = claim.ask(now(41).mono).mismatch(Schedule::default().draw(0));
        assert!(matches!(ledger.record(report, now(42)).wait(), Ok(Recorded::Changed { .. })));
    }
    assert_eq!(sweep(43), (vec![raised(1, Attention::Mismatch, 42)], 0));
    assert_eq!(sweep(44), (vec![], 0), "once");
    // Another reason for the same call is none for a second one.
    for claim in ledger.claim(ROUTE, 2, TIMEOUT, now(500)).wait().unwrap_or_default().claims {
        let draw = Schedule::default().draw(0);
        let is_first = claim.record().identity.id == intent(1).id;
        let report =
            if is_first { claim.ask(now(500).mono).several_matches(draw) } else { claim.put_back(draw) };
        assert!(matches!(ledger.record(report, now(501)).wait(), Ok(Recorded::Changed { .. })));
    }
    assert_eq!(state(&*ledger, 1), Some(State::Attention(Attention::SeveralMatches)));
    assert_eq!(sweep(502), (vec![], 0));
    assert_eq!(sweep(3600), (vec![raised(2, Attention::Deadline, 3600)], 0));
    let Ok(by) = Resolution::new("ada", "the bank says no") else { panic!("a name and a reason") };
    let resolved = ledger.resolve(intent(2).id, Decision::NotExecuted, by, now(3601)).wait();
    assert!(matches!(resolved, Ok(Recorded::Changed { .. })));
    let recorded = ledger.record(paused.succeeded(kept(201, None)), now(3602)).wait();
    let from = State::NotExecuted(NotExecuted::Person);
    assert!(matches!(recorded, Ok(Recorded::Changed { from: was, .. }) if was == from));
    assert_eq!(sweep(3603), (vec![raised(2, Attention::Contradicted, 3602)], 0));
}

/// 256 at once; a sweep that did so many says that there may be more.
pub(super) fn large(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    (0..=255).for_each(|number| drop(begin(&*ledger, number, now(0))));
    let sweep = |at| {
        let swept = ledger.sweep(upkeep(), 7, now(at)).wait().unwrap_or_default();
        (swept.lapsed, swept.overdue, swept.has_more)
    };
    assert_eq!(sweep(100), (256, 0, true));
    assert_eq!(sweep(100), (0, 0, false));
    assert_eq!(sweep(3600), (0, 256, true));
    assert_eq!(sweep(3600), (0, 0, false));
}
