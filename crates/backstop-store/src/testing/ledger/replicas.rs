//! What two replicas of one ledger owe each other.

use std::time::Duration;

use backstop_engine::operation::{Doubt, Refused, Schedule, State};

use super::super::samples::now;
use super::{LedgerBackend, ROUTE, begin, forward, intent, kept, unknown, upkeep};
use crate::ledger::{Begun, Ledger, Recorded};

/// Each of 50 keys is begun at both at once.
pub(super) fn one_intent(backend: &mut dyn LedgerBackend) {
    let first = backend.fresh(now(0));
    let Some(second) = backend.beside() else { return };
    assert_eq!(first.epoch(), second.epoch(), "one life");
    let begin_all = |ledger: &dyn Ledger, replica: u8| {
        let begun = (1..=50).map(|number| {
            let mut intent = intent(number);
            let mut id = *intent.id.as_bytes();
            id[15] = 100 + replica;
            intent.id = backstop_engine::operation::OperationId::from_bytes(id);
            ledger.begin(intent, now(1))
        });
        let begun: Vec<_> = begun.collect();
        let new = begun.into_iter().map(|begun| match begun.wait() {
            Ok(Ok(Begun::New(_intent))) => 1,
            Ok(Ok(Begun::Again(_))) => 0,
            other => panic!("{other:?}"),
        });
        new.sum::<usize>()
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| begin_all(&*first, 1));
        let other = scope.spawn(|| begin_all(&*second, 2));
        (one.join().unwrap_or(99), other.join().unwrap_or(99))
    });
    assert_eq!(one + other, 50);
}

/// Whoever was overtaken by the other changes nothing, and nobody asks for what the other has claimed.
pub(super) fn leases_and_claims(backend: &mut dyn LedgerBackend) {
    let first = backend.fresh(now(0));
    let Some(second) = backend.beside() else { return };
    let paused = forward(begin(&*first, 1, now(1)), now(1));
    assert_eq!(second.sweep(upkeep(), 7, now(35)).wait().map(|swept| swept.lapsed), Ok(0));
    assert_eq!(second.sweep(upkeep(), 7, now(36)).wait().map(|swept| swept.lapsed), Ok(1));
    let late = first.record(paused.unknown(Doubt::Timeout, Schedule::default().draw(0)), now(37)).wait();
    assert!(matches!(late, Ok(Recorded::Refused { why: Refused::Stale, .. })), "{late:?}");
    for number in 2..=9 {
        unknown(&*first, number, now(1), Schedule::default().draw(0));
    }
    let claim = |ledger: &dyn Ledger, at| {
        ledger.claim(ROUTE, 5, Duration::from_secs(2), now(at)).wait().unwrap_or_default().claims
    };
    let (mine, yours) = (claim(&*first, 40), claim(&*second, 40));
    let names = |claims: &[backstop_engine::operation::Claim]| {
        claims.iter().map(|claim| claim.record().identity.id).collect::<Vec<_>>()
    };
    assert!(names(&mine).iter().all(|id| !names(&yours).contains(id)));
    assert_eq!((mine.len(), yours.len()), (5, 4), "eight and the one that lapsed");
    for claim in yours {
        let recorded =
            second.record(claim.ask(now(41).mono).succeeded(Schedule::default().draw(0)), now(41)).wait();
        assert!(matches!(recorded, Ok(Recorded::Changed { .. })));
    }
    // An outcome that one records is the other's answer.
    let report = forward(begin(&*second, 20, now(50)), now(50)).succeeded(kept(201, Some(b"content")));
    assert!(matches!(second.record(report, now(51)).wait(), Ok(Recorded::Changed { .. })));
    let Ok(Ok(Begun::Again(record))) = first.begin(intent(20), now(52)).wait() else { panic!("known") };
    assert!(matches!(record.progress.state(), State::Succeeded(_)));
}
