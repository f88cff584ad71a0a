//! Many at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_engine::operation::NotExecuted;
use backstop_store::ledger::sqlite::SqliteRows;
use backstop_store::ledger::{Begun, Ledger, LedgerError, LedgerOptions, Recorded, ThreadLedger};
use backstop_store::testing::{block_on, now};

use super::faulty::Faulty;
use super::support::{close, numbered, open};

/// 10 000 keys, each begun by eight at once.
#[test]
fn of_eight_that_begin_at_once_one_gets_the_intent() {
    const KEYS: u64 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let (new, again) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for copy in 0..8 {
            let (ledger, new, again) = (&ledger, &new, &again);
            scope.spawn(move || {
                let keys: Vec<u64> = (0..KEYS).collect();
                for keys in keys.chunks(100) {
                    let begun: Vec<_> =
                        keys.iter().map(|key| ledger.begin(numbered(*key, copy), now(1))).collect();
                    for begun in begun {
                        match begun.wait().unwrap().unwrap() {
                            Begun::New(_intent) => new.fetch_add(1, Ordering::Relaxed),
                            Begun::Again(_) => again.fetch_add(1, Ordering::Relaxed),
                            Begun::OtherRequest => panic!("it is the same request"),
                        };
                    }
                }
            });
        }
    });
    assert_eq!((new.into_inner(), again.into_inner()), (KEYS, 7 * KEYS));
    let standing = ledger.standing(now(2));
    assert_eq!(standing.states[0].count, KEYS);
    assert!(standing.commits < 8 * KEYS / 8, "{} commits: many share one", standing.commits);
    close(&ledger);
}

/// 64 threads; one of every eight operations is a duplicate. Nobody else's operation fails because of it.
#[test]
fn a_duplicate_in_a_batch_fails_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    std::thread::scope(|scope| {
        for thread in 0..64_u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                for round in 0..20_u64 {
                    let _ = ledger.begin(numbered(round, 99), now(1)).wait().unwrap().unwrap();
                    let own = 1000 + thread * 1000 + round;
                    let Begun::New(intent) = ledger.begin(numbered(own, 0), now(1)).wait().unwrap().unwrap()
                    else {
                        panic!("{own} is new")
                    };
                    let report = intent.never_sent(NotExecuted::Pool);
                    let recorded = ledger.record(report, now(2)).wait();
                    assert!(matches!(recorded, Ok(Recorded::Changed { .. })));
                }
            });
        }
    });
    let states = ledger.standing(now(3)).states;
    assert_eq!((states[0].count, states[4].count), (20, 64 * 20));
    close(&ledger);
}

/// Ten may wait. One more is refused at once; outcomes never are.
#[test]
fn a_full_queue_refuses_intents_and_takes_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let options = LedgerOptions { queue_len: 10, ..LedgerOptions::default() };
    let rows = Faulty::slow(SqliteRows::open(folder.path(), 0).unwrap(), Duration::from_millis(300));
    let ledger = ThreadLedger::open(Box::new(rows), options, 1, now(0)).unwrap();
    let begin = |number| ledger.begin(numbered(number, 0), now(1));
    let intents: Vec<_> = (0..10).map(begin).collect();
    let intents = intents.into_iter().map(|begun| match block_on(begun) {
        Ok(Ok(Begun::New(intent))) => intent,
        other => panic!("{other:?}"),
    });
    let intents: Vec<_> = intents.collect();
    // While the next one is synced, ten wait.
    let busy = begin(10);
    while ledger.standing(now(1)).waiting > 0 {
        std::thread::yield_now();
    }
    let waiting: Vec<_> = (11..21).map(begin).collect();
    assert_eq!(begin(21).wait().unwrap_err(), LedgerError::QueueFull);
    assert_eq!(ledger.standing(now(1)).queue_full, 1);
    let outcomes: Vec<_> = intents
        .into_iter()
        .map(|intent| ledger.record(intent.never_sent(NotExecuted::Pool), now(2)))
        .collect();
    for recorded in outcomes {
        assert!(matches!(recorded.wait(), Ok(Recorded::Changed { .. })));
    }
    assert!(waiting.into_iter().chain([busy]).all(|begun| matches!(begun.wait(), Ok(Ok(Begun::New(_))))));
    close(&ledger);
}

#[test]
fn what_waits_is_finished_before_a_ledger_closes() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let waiting: Vec<_> = (0..500).map(|number| ledger.begin(numbered(number, 0), now(1))).collect();
    close(&ledger);
    assert!(waiting.into_iter().all(|begun| matches!(begun.wait(), Ok(Ok(Begun::New(_))))));
    assert_eq!(ledger.begin(numbered(501, 0), now(1)).wait().unwrap_err(), LedgerError::Closed);
    let again = open(folder.path());
    assert_eq!(again.standing(now(1)).states[1].count, 500);
    close(&again);
}
