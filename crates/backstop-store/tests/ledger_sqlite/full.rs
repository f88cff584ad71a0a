//! A disk without room: new operations are refused, outcomes of what was forwarded are still recorded.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use backstop_engine::operation::NotExecuted;
use backstop_store::ledger::sqlite::{RESERVE_BYTES, SqliteRows};
use backstop_store::ledger::{Begun, Ledger, LedgerError, LedgerOptions, Recorded, RowsError, ThreadLedger};
use backstop_store::testing::{forward, kept, now, upkeep};

use super::faulty::Faulty;
use super::support::{Said, close, numbered, open};

/// Set where file systems cannot be mounted.
const WITHOUT_MOUNT: &str = "BACKSTOP_WITHOUT_MOUNT";

struct Small(tempfile::TempDir);

impl Small {
    fn mount(bytes: u64) -> Option<Self> {
        if std::env::var_os(WITHOUT_MOUNT).is_some() {
            println!("skipped: {WITHOUT_MOUNT} is set");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).status();
        assert!(mounted.unwrap().success(), "set {WITHOUT_MOUNT} where nothing can be mounted");
        Some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn begin(ledger: &ThreadLedger, number: u64) -> Result<Begun, LedgerError> {
    ledger.begin(numbered(number, 0), now(1)).wait().map(Result::unwrap)
}

/// Begins operations until the disk is full, 64 at once; what was begun, in order, and how many were refused.
fn fill(ledger: &ThreadLedger, most: u64) -> (Vec<backstop_engine::operation::DurableIntent>, u64) {
    let (mut intents, mut refused) = (Vec::new(), 0);
    for round in 0..most {
        let numbers = round * 64..(round + 1) * 64;
        let waiting: Vec<_> = numbers.map(|number| ledger.begin(numbered(number, 0), now(1))).collect();
        for begun in waiting {
            match begun.wait().map(Result::unwrap) {
                Ok(Begun::New(intent)) => intents.push(intent),
                Ok(other) => panic!("{other:?}"),
                Err(error) => {
                    assert_eq!(error, LedgerError::NoRoom);
                    refused += 1;
                }
            }
        }
        if refused > 0 {
            return (intents, refused);
        }
    }
    panic!("the disk never ran full")
}

/// A whole tmpfs: the reserve, and a few megabytes beside it.
#[test]
fn on_a_full_disk_outcomes_are_recorded_and_intents_refused() {
    let Some(disk) = Small::mount(RESERVE_BYTES + (6 << 20)) else { return };
    let said = Said::default();
    let ledger = backstop_store::ledger::sqlite::open(disk.path(), said.options(), 1, now(0)).unwrap();
    assert!(!ledger.standing(now(0)).is_full);
    let (intents, _) = fill(&ledger, 1000);
    assert!(intents.len() > 1000, "{} fitted", intents.len());
    assert!(ledger.standing(now(1)).is_full);
    assert!(matches!(begin(&ledger, u64::MAX), Err(LedgerError::NoRoom)), "at once, from now on");
    assert!(matches!(begin(&ledger, 0), Ok(Begun::Again(_))), "what is known is still told");
    let count = intents.len() as u64;
    for intent in intents {
        let report = forward(intent, now(1)).succeeded(kept(201, Some(&[b'x'; 500])));
        let recorded = ledger.record(report, now(2)).wait();
        assert!(matches!(recorded, Ok(Recorded::Changed { .. })), "{recorded:?}");
    }
    ledger.sweep(upkeep(), 1, now(3)).wait().unwrap();
    let standing = ledger.standing(now(3));
    assert!(standing.is_full, "there is no room for the reserve yet");
    assert_eq!((standing.states[2].count, standing.failed), (count, None));
    assert_eq!(said.all(), [""; 0], "a full disk ends nothing");
    close(&ledger);
    let again = open(disk.path());
    assert_eq!(again.standing(now(3)).states[2].count, count);
    close(&again);
}

/// Once there is room again new operations are taken.
#[test]
fn room_again_is_found_by_the_next_sweep() {
    let Some(disk) = Small::mount(RESERVE_BYTES + (24 << 20)) else { return };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 22 << 20]).unwrap();
    let ledger = open(disk.path());
    let (intents, _) = fill(&ledger, 1000);
    for intent in intents.into_iter().take(5) {
        ledger.record(intent.never_sent(NotExecuted::Pool), now(2)).wait().unwrap();
    }
    std::fs::remove_file(&ballast).unwrap();
    ledger.sweep(upkeep(), 1, now(3)).wait().unwrap();
    assert!(!ledger.standing(now(3)).is_full);
    assert!(matches!(begin(&ledger, u64::MAX), Ok(Begun::New(_))));
    close(&ledger);
}

/// Not even the reserve suffices: everybody is told, nothing ends, and what comes later is tried again.
#[test]
fn outcomes_that_do_not_fit_either_are_refused_and_the_ledger_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let rows = SqliteRows::open(folder.path(), 0).unwrap();
    let error = RowsError::Full("no room".into());
    let sync = std::time::Duration::ZERO;
    let rows = Faulty { rows, left: 30, is_after: false, error, sync, thread: Arc::default() };
    let said = Said::default();
    let ledger = ThreadLedger::open(Box::new(rows), said.options(), 1, now(0)).unwrap();
    let mut last = None;
    for number in 0..10 {
        match begin(&ledger, number) {
            Ok(Begun::New(intent)) => last = Some(intent),
            other => assert!(matches!(other, Err(LedgerError::NoRoom)), "{other:?}"),
        }
    }
    let report = last.unwrap().never_sent(NotExecuted::Pool);
    assert_eq!(ledger.record(report.clone(), now(2)).wait(), Err(LedgerError::NoRoom));
    assert_eq!(ledger.record(report, now(2)).wait(), Err(LedgerError::NoRoom), "it was tried");
    assert_eq!((said.all(), ledger.standing(now(2)).failed), (Vec::new(), None));
    close(&ledger);
}

/// The file may not grow: SQLite says so at any statement, and undoes the transaction or not.
#[test]
fn a_batch_that_does_not_fit_is_undone_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let rows = SqliteRows::open(folder.path(), 0).unwrap();
    rows.limit_pages(64);
    let said = Said::default();
    let options = LedgerOptions { ..said.options() };
    let ledger = ThreadLedger::open(Box::new(rows), options, 1, now(0)).unwrap();
    let (intents, refused) = fill(&ledger, 100);
    assert!(refused >= 1 && intents.len() >= 64, "{} fitted", intents.len());
    let there = intents.len() as u64;
    assert_eq!(ledger.standing(now(1)).states[0].count, there);
    close(&ledger);
    assert_eq!(said.all(), [""; 0]);
    let again = open(folder.path());
    assert_eq!(again.standing(now(1)).states[1].count, there, "nothing of the others");
    close(&again);
}
