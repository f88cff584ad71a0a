//! The ledger's system calls: nothing is acknowledged before its sync has returned, and an error of any one call ends the
//! process with everything that it acknowledged.
//!
//! The process that is traced is this test binary, started again. strace (<https://strace.io>) shows its calls and makes one of
//! them fail.
#![cfg(all(feature = "sqlite", target_os = "linux"))]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may fail, and says what it did"
)]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use backstop_engine::operation::State;
use backstop_store::ledger::sqlite::{OpenError, SqliteRows};
use backstop_store::ledger::{Begun, Ledger, LedgerOptions, ThreadLedger};
use backstop_store::testing::{forward, intent, kept, now};

const FOLDER: &str = "BACKSTOP_LEDGER_TRACE_FOLDER";
const OPERATIONS: u8 = 3;

/// Begins and ends a few operations, and says what was acknowledged.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let rows = SqliteRows::open(Path::new(&folder), 4096).unwrap();
    let ledger = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 1, now(0)).unwrap();
    let say = |text: String| std::io::stderr().write_all(text.as_bytes()).unwrap();
    for number in 1..=OPERATIONS {
        let Ok(Ok(Begun::New(intent))) = ledger.begin(intent(number), now(1)).wait() else { return };
        say(format!("intent {number}\n"));
        let report = forward(intent, now(1)).succeeded(kept(201, Some(b"content")));
        if ledger.record(report, now(2)).wait().is_err() {
            return;
        }
        say(format!("outcome {number}\n"));
    }
    ledger.close(Duration::from_secs(60));
}

/// Runs the child under strace.
fn traced(folder: &Path, options: &[&str]) -> Output {
    Command::new("strace")
        .args(["-f", "-y", "-s", "16", "-o"])
        .arg(folder.join("trace"))
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .output()
        .expect("strace, which scripts/test-servers installs")
}

fn said(output: &Output, what: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter_map(|line| line.strip_prefix(what)?.trim().parse().ok()).collect()
}

/// One client: whenever something is acknowledged, the last call on the WAL was a sync that had returned.
#[test]
fn nothing_is_acknowledged_before_its_sync_has_returned() {
    let folder = tempfile::tempdir().unwrap();
    let calls = "trace=pwrite64,pwritev,fsync,fdatasync,write";
    let output = traced(folder.path(), &["-e", calls]);
    assert!(output.status.success(), "{output:?}");
    let trace = std::fs::read_to_string(folder.path().join("trace")).unwrap();
    let (mut is_synced, mut acknowledged, mut written) = (true, 0, 0);
    for line in trace.lines() {
        if line.contains("ledger.sqlite-wal>") {
            let is_sync = line.contains(" fsync(") || line.contains(" fdatasync(");
            is_synced = is_sync && line.ends_with("= 0");
            written += usize::from(!is_sync);
        } else if line.contains("\"intent ") || line.contains("\"outcome ") {
            assert!(is_synced, "acknowledged before its sync: {line}");
            acknowledged += 1;
        }
    }
    assert_eq!(acknowledged, 2 * usize::from(OPERATIONS));
    assert!(written >= acknowledged, "{written} writes to the WAL");
}

/// Makes every `step`th call of a kind fail, one in each run, until one comes that is not made any more; how many did.
fn fail_each(call: &str, step: usize) -> usize {
    for (failed, number) in (1..).step_by(step).enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let injected = format!("inject={call}:error=EIO:when={number}");
        let output = traced(folder.path(), &["-e", &format!("trace={call}"), "-e", &injected]);
        let trace = std::fs::read_to_string(folder.path().join("trace")).unwrap();
        if !trace.contains("(INJECTED)") {
            println!("{failed} times {call} was made to fail");
            return failed;
        }
        let (intents, outcomes) = (said(&output, "intent "), said(&output, "outcome "));
        if outcomes.len() < usize::from(OPERATIONS) {
            // A start that fails says so; later the process ends. strace ends as what it traces does.
            let is_aborted = output.status.signal() == Some(6) || output.status.code() == Some(134);
            assert!(is_aborted || intents.is_empty(), "{call} {number}: {output:?}");
        }
        check(folder.path(), &intents, &outcomes);
    }
    unreachable!("there is always one call more")
}

/// strace counts in each thread by itself, so the same number meets the start of the process and its ledger's thread.
#[test]
fn an_error_of_any_sync_ends_the_process_with_what_it_acknowledged() {
    let (syncs, _) = (fail_each("fsync", 1), fail_each("ftruncate", 1));
    assert!(syncs >= 10, "{syncs}");
}

#[test]
fn an_error_of_any_write_ends_the_process_with_what_it_acknowledged() {
    let writes = fail_each("pwrite64", 1);
    assert!(writes >= 30, "{writes}");
}

#[test]
fn an_error_of_a_read_ends_the_process_with_what_it_acknowledged() {
    let reads = fail_each("pread64", 1);
    assert!(reads >= 10, "{reads}");
}

fn check(folder: &Path, intents: &[u8], outcomes: &[u8]) {
    let rows = loop {
        match SqliteRows::open(folder, 4096) {
            Ok(rows) => break rows,
            Err(error) => assert!(matches!(error, OpenError::Locked(_)), "{error}"),
        }
    };
    let ledger = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 1, now(0)).unwrap();
    let state = |number: u8| {
        let shown = ledger.show(intent(number).id).wait().unwrap();
        shown.map(|shown| shown.record.progress.state()).map(State::token)
    };
    for number in intents {
        assert!(state(*number).is_some(), "the intent of {number} was acknowledged");
    }
    for number in outcomes {
        assert_eq!(state(*number), Some("succeeded"), "{number}");
    }
    assert!(ledger.close(Duration::from_secs(60)));
}
