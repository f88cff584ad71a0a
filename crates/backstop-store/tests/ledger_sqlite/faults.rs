//! A disk that fails at any one call: what was acknowledged is there afterwards, and nothing else is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::operation::{NotExecuted, Schedule, State};
use backstop_store::ledger::sqlite::SqliteRows;
use backstop_store::ledger::{Begun, Ledger, LedgerError, LedgerOptions, Recorded, RowsError, ThreadLedger};
use backstop_store::testing::{ROUTE, forward, intent, kept, now, upkeep};

use super::faulty::Faulty;
use super::support::{FLUSH, Said, close};

fn failed() -> RowsError {
    RowsError::Failed("ledger.sqlite: disk I/O error".into())
}

/// What was acknowledged.
#[derive(Debug, Default)]
struct Seen {
    intents: Vec<u8>,
    outcomes: Vec<u8>,
    is_over: bool,
}

/// A few operations, one after the other, until something fails.
fn work(ledger: &ThreadLedger) -> Seen {
    let mut seen = Seen::default();
    let done = (|| -> Result<(), LedgerError> {
        for number in 1..=3 {
            if let Ok(Begun::New(intent)) = ledger.begin(intent(number), now(1)).wait()? {
                seen.intents.push(number);
                let forwarding = forward(intent, now(1));
                let report = match number {
                    1 => forwarding.succeeded(kept(201, Some(b"content"))),
                    2 => forwarding.never_sent(NotExecuted::Tls),
                    _ => forwarding
                        .unknown(backstop_engine::operation::Doubt::Reset, Schedule::default().draw(0)),
                };
                ledger.record(report, now(2)).wait()?;
                seen.outcomes.push(number);
            }
        }
        let _ = ledger.sweep(upkeep(), 1, now(3)).wait()?;
        for claim in ledger.claim(ROUTE, 9, Duration::from_secs(2), now(4)).wait()?.claims {
            let _ = ledger
                .record(claim.ask(now(4).mono).succeeded(Schedule::default().draw(0)), now(5))
                .wait()?;
        }
        Ok(())
    })();
    seen.is_over = done.is_ok();
    if let Err(error) = done {
        assert_eq!(error, LedgerError::Closed);
    }
    seen
}

/// At every call of the rows there is, before it is made and after: begin, look, write, commit.
#[test]
fn an_error_at_any_call_acknowledges_nothing_that_is_not_there() {
    let mut calls = 0;
    for is_after in [false, true] {
        for left in 0.. {
            let (folder, said) = (tempfile::tempdir().unwrap(), Said::default());
            let rows = SqliteRows::open(folder.path(), 0).unwrap();
            let rows = Faulty {
                rows,
                left,
                is_after,
                error: failed(),
                sync: Duration::ZERO,
                thread: Arc::default(),
            };
            let seen = match ThreadLedger::open(Box::new(rows), said.options(), 1, now(0)) {
                Err(error) => {
                    assert_eq!(error, failed());
                    Seen::default()
                }
                Ok(ledger) => {
                    let seen = work(&ledger);
                    assert!(ledger.close(FLUSH));
                    let standing = ledger.standing(now(9));
                    assert_eq!(standing.failed.is_some(), !seen.is_over, "{left}");
                    assert_eq!(said.all().len(), usize::from(!seen.is_over), "said once, {left}");
                    seen
                }
            };
            check(folder.path(), &seen);
            calls = calls.max(left);
            if seen.is_over {
                break;
            }
        }
    }
    assert!(calls > 40, "{calls} calls were made to fail");
}

fn check(folder: &std::path::Path, seen: &Seen) {
    let again = super::support::open(folder);
    for number in 1..=3 {
        let record = again.show(intent(number).id).wait().unwrap().map(|shown| shown.record);
        let state = record.as_ref().map(|record| record.progress.state());
        if seen.intents.contains(&number) {
            assert!(state.is_some(), "the intent of {number} was acknowledged");
        }
        if seen.outcomes.contains(&number) {
            let token = state.map(State::token).unwrap_or_default();
            match number {
                1 => assert_eq!(token, "succeeded"),
                2 => assert_eq!(token, "not_executed"),
                _ => assert!(["unknown", "succeeded"].contains(&token), "{token}"),
            }
        }
        // Whatever was forwarded or may have been is never begun again.
        if seen.intents.contains(&number) {
            assert!(matches!(again.begin(intent(number), now(9)).wait(), Ok(Ok(Begun::Again(_)))));
        }
    }
    close(&again);
}

/// Nobody who waits is left waiting, and nobody who comes later is served.
#[test]
fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    let (folder, said) = (tempfile::tempdir().unwrap(), Said::default());
    let rows = SqliteRows::open(folder.path(), 0).unwrap();
    let rows = Faulty {
        rows,
        left: 40,
        is_after: true,
        error: failed(),
        sync: Duration::ZERO,
        thread: Arc::default(),
    };
    let ledger = ThreadLedger::open(Box::new(rows), said.options(), 1, now(0)).unwrap();
    let waiting: Vec<_> = (1..200).map(|number| ledger.begin(intent(number), now(1))).collect();
    let acknowledged = waiting.into_iter().map(|begun| begun.wait()).filter(Result::is_ok).count();
    assert!(acknowledged < 199, "{acknowledged}");
    assert_eq!(ledger.begin(intent(201), now(1)).wait().unwrap_err(), LedgerError::Closed);
    assert_eq!(said.all(), ["ledger.sqlite: disk I/O error"]);
    let again = super::support::open(folder.path());
    let there = again.standing(now(1)).states.iter().map(|state| state.count).sum::<u64>();
    assert!(there >= acknowledged as u64);
    close(&again);
}

/// The default: the process ends. The child is this test, started again.
#[test]
fn a_failed_sync_ends_the_process() {
    const CHILD: &str = "BACKSTOP_LEDGER_ABORTS";
    let fail = || {
        let folder = tempfile::tempdir().unwrap();
        let rows = SqliteRows::open(folder.path(), 0).unwrap();
        let rows = Faulty {
            rows,
            left: 12,
            is_after: false,
            error: failed(),
            sync: Duration::ZERO,
            thread: Arc::default(),
        };
        let ledger = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 1, now(0)).unwrap();
        for number in 1..10 {
            let _ = ledger.begin(intent(number), now(1)).wait();
        }
    };
    if std::env::var_os(CHILD).is_some() {
        fail();
        return;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::a_failed_sync_ends_the_process"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{status}: SIGABRT");
}

/// An outcome that found its record changed is an answer, not an error.
#[test]
fn a_report_that_changes_nothing_is_no_fault_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = super::support::open(folder.path());
    let Ok(Ok(Begun::New(begun))) = ledger.begin(intent(1), now(1)).wait() else { panic!("new") };
    let forwarding = forward(begun, now(1));
    ledger.sweep(upkeep(), 1, now(100)).wait().unwrap();
    let recorded = ledger.record(forwarding.never_sent(NotExecuted::Dns), now(100)).wait();
    assert!(matches!(recorded, Ok(Recorded::Refused { .. })));
    assert_eq!(ledger.standing(now(100)).failed, None);
    close(&ledger);
}
