//! What time does, and what survives a process.

use std::time::Duration;

use backstop_engine::operation::{Attention, Doubt, NotExecuted, Schedule, State};
use backstop_engine::time::{Now, WallTrust};

use super::super::samples::{now, now_in_boot};
use super::{FLUSH, LedgerBackend, ROUTE, begin, forward, intent, kept, unknown, upkeep};
use crate::ledger::{Begun, Ledger, Recorded};

pub(super) fn state(ledger: &dyn Ledger, number: u8) -> Option<State> {
    let shown = ledger.show(intent(number).id).wait().ok().flatten()?;
    Some(shown.record.progress.state())
}

/// A deadline of 30 s and 5 s of grace: over exactly then.
pub(super) fn leases(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let _gone = begin(&*ledger, 1, now(0));
    let sweep = |at| ledger.sweep(upkeep(), 7, at).wait().map(|swept| swept.lapsed);
    let just_before = Now { mono: now(35).mono.before(Duration::from_nanos(1)), ..now(34) };
    assert_eq!(sweep(just_before), Ok(0));
    assert_eq!(state(&*ledger, 1), Some(State::Dispatching));
    assert_eq!(sweep(now(35)), Ok(1));
    assert_eq!(state(&*ledger, 1), Some(State::Unknown(Doubt::LeaseEnded)));
    assert_eq!(sweep(now(36)), Ok(0));
}

/// An hour from the beginning.
pub(super) fn deadlines(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    unknown(&*ledger, 1, now(0), Schedule::default().draw(0));
    let sweep = |at| ledger.sweep(upkeep(), 7, at).wait();
    assert_eq!(sweep(now(3599)).map(|swept| swept.overdue), Ok(0));
    assert_eq!(sweep(now(3600)).map(|swept| swept.overdue), Ok(1));
    assert_eq!(state(&*ledger, 1), Some(State::Attention(Attention::Deadline)));
    assert_eq!(ledger.standing(now(3600)).oldest_attention, Some(Duration::from_secs(3600)));
}

/// Content a day, tombstones 30 days, from the decision; what is open stays.
pub(super) fn retention(backend: &mut dyn LedgerBackend) {
    const DAY: u64 = 86_400;
    let ledger = backend.fresh(now(0));
    let report = forward(begin(&*ledger, 1, now(0)), now(0)).succeeded(kept(201, Some(b"content")));
    assert!(matches!(ledger.record(report, now(0)).wait(), Ok(Recorded::Changed { .. })));
    unknown(&*ledger, 2, now(0), Schedule::default().draw(0));
    let sweep = |at| {
        let swept = ledger.sweep(upkeep(), 7, at).wait();
        swept.map(|swept| (swept.emptied, swept.forgotten))
    };
    let answer = || ledger.show(intent(1).id).wait().ok().flatten().and_then(|shown| shown.record.answer);
    assert_eq!(sweep(now(DAY - 1)), Ok((0, 0)));
    let doubtful = Now { wall_trust: WallTrust::Unsynchronised, ..now(40 * DAY) };
    assert_eq!(sweep(doubtful), Ok((0, 0)), "a date that cannot be believed forgets nothing");
    assert_eq!(answer(), Some(kept(201, Some(b"content"))));
    assert_eq!(sweep(now(DAY)), Ok((1, 0)));
    assert_eq!(answer().map(|kept| (kept.status, kept.fields.len(), kept.body)), Some((201, 0, None)));
    assert_eq!(sweep(now(DAY)), Ok((0, 0)), "once");
    assert_eq!(sweep(now(30 * DAY - 1)), Ok((0, 0)));
    assert!(matches!(ledger.begin(intent(1), now(30 * DAY - 1)).wait(), Ok(Ok(Begun::Again(_)))));
    assert_eq!(sweep(now(30 * DAY)), Ok((0, 1)));
    assert_eq!(state(&*ledger, 1), None);
    assert_eq!(
        state(&*ledger, 2).map(State::token),
        Some("attention"),
        "what is not decided is never forgotten"
    );
    let counts = ledger.standing(now(30 * DAY)).states.map(|state| state.count);
    assert_eq!(counts, [0, 0, 0, 0, 0, 1]);
}

/// What was under way is unknown after a restart, what was decided is as it was, and queries are spread over 30 s.
pub(super) fn restart(backend: &mut dyn LedgerBackend) {
    let ledger = backend.fresh(now(0));
    let first = ledger.epoch();
    let lost: Vec<_> = (1..=40).map(|number| begin(&*ledger, number, now(1))).collect();
    let never = begin(&*ledger, 50, now(1)).never_sent(NotExecuted::Dns);
    assert!(matches!(ledger.record(never, now(2)).wait(), Ok(Recorded::Changed { .. })));
    drop(lost);
    assert!(ledger.close(FLUSH));
    // Another boot, whose clock begins anew.
    let start = now_in_boot(2, 5);
    let Some(ledger) = backend.again(start) else { return };
    assert!(ledger.epoch() > first);
    let counts = ledger.standing(start).states.map(|state| state.count);
    assert_eq!(counts, [0, 40, 0, 0, 1, 0]);
    assert_eq!(state(&*ledger, 1), Some(State::Unknown(Doubt::Restarted)));
    assert_eq!(state(&*ledger, 50), Some(State::NotExecuted(NotExecuted::Dns)));
    let claim = |at| {
        ledger.claim(ROUTE, 100, Duration::from_secs(2), at).wait().map_or(0, |claimed| claimed.claims.len())
    };
    let early = claim(now_in_boot(2, 20));
    assert!((5..=35).contains(&early), "{early} of 40 in the first half");
    assert_eq!(claim(now_in_boot(2, 35)), 40, "within 30 s; the first ones again, after their lease");
}
