//! Killed at any moment, a ledger comes back with every intent and every outcome that it acknowledged.
//!
//! The process that is killed is this test binary, started again with a folder in its environment. A kill does not test the
//! sync, because what was written lies in the memory of the system, which goes on.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use backstop_engine::operation::{ClientKey, Intent, NotExecuted, OperationId, State};
use backstop_store::ledger::{Begun, Ledger, LedgerOptions, ThreadLedger, sqlite};
use backstop_store::testing::{forward, intent, kept, now};

const FOLDER: &str = "BACKSTOP_LEDGER_KILL_FOLDER";
const FIRST: &str = "BACKSTOP_LEDGER_KILL_FIRST";
/// So many at once, so that commits hold several.
const CLIENTS: u64 = 8;

fn open(folder: &Path) -> ThreadLedger {
    sqlite::open(folder, LedgerOptions::default(), 1, now(0)).unwrap()
}

fn id(number: u64) -> OperationId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    OperationId::from_bytes(bytes)
}

fn numbered(number: u64) -> Intent {
    let mut key = [0; 32];
    key[24..].copy_from_slice(&number.to_be_bytes());
    Intent { id: id(number), key: ClientKey::from_bytes(key), ..intent(0) }
}

/// Begins and ends operations until it is killed, and says what was acknowledged.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let ledger = open(Path::new(&folder));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in (first + client..).step_by(CLIENTS as usize) {
                    let Ok(Ok(Begun::New(intent))) = ledger.begin(numbered(number), now(1)).wait() else {
                        return;
                    };
                    writeln!(std::io::stderr(), "intent {number}").unwrap();
                    let report = if number % 3 == 0 {
                        intent.never_sent(NotExecuted::Connect)
                    } else {
                        forward(intent, now(1)).succeeded(kept(201, Some(b"content")))
                    };
                    if ledger.record(report, now(2)).wait().is_err() {
                        return;
                    }
                    writeln!(std::io::stderr(), "outcome {number}").unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_process_leaves_every_intent_and_every_outcome_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let kills: u64 = std::env::var("BACKSTOP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let (mut intents, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
    for life in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env(FIRST, (1 + life * 1_000_000).to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let moment = 30 + (life * 2_654_435_761 % 211) as usize;
        let mut said: Vec<String> = lines.by_ref().take(moment).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(lines.map_while(Result::ok));
        assert!(said.len() >= moment, "the process ended by itself: {said:?}");
        // The last line may have been cut.
        for line in &said[..said.len() - 1] {
            match line.split_once(' ').map(|(what, number)| (what, number.parse::<u64>())) {
                Some(("intent", Ok(number))) => intents.insert(number),
                Some(("outcome", Ok(number))) => outcomes.insert(number),
                _ => false,
            };
        }
        check(&open(folder.path()), &intents, &outcomes);
    }
    assert!(!outcomes.is_empty());
}

fn check(ledger: &ThreadLedger, intents: &BTreeSet<u64>, outcomes: &BTreeSet<u64>) {
    for number in intents {
        let shown = ledger.show(id(*number)).wait().unwrap();
        let state = shown.map(|shown| shown.record.progress.state()).map(State::token);
        let is_right = match (outcomes.contains(number), number % 3) {
            (true, 0) => state == Some("not_executed"),
            (true, _) => state == Some("succeeded"),
            // Its outcome may have become durable without anybody hearing of it.
            (false, _) => matches!(state, Some("unknown" | "succeeded" | "not_executed")),
        };
        assert!(is_right, "{number} is {state:?}");
        assert!(matches!(ledger.begin(numbered(*number), now(9)).wait(), Ok(Ok(Begun::Again(_)))));
    }
    assert!(ledger.close(Duration::from_secs(60)));
}
