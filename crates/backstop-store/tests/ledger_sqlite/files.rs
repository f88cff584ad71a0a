//! What lies on the disk, and what is not opened.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use backstop_store::ledger::redact::Keep;
use backstop_store::ledger::sqlite::{FILE_NAME, OpenError, SqliteRows};
use backstop_store::ledger::{Begun, Ledger, LedgerOptions, Recorded, ThreadLedger};
use backstop_store::testing::{forward, intent, now};
use http::HeaderMap;

use super::faulty::Faulty;
use super::support::{FLUSH, clock, close, numbered, open, open_error};

#[test]
fn one_process_has_a_ledger_open() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let error = open_error(folder.path());
    assert!(matches!(error, OpenError::Locked(_)));
    assert!(error.to_string().ends_with("another process has this ledger open"), "{error}");
    close(&ledger);
    close(&open(folder.path()));
}

#[test]
fn a_ledgers_files_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let _ = ledger.begin(intent(1), now(1)).wait();
    for file in fs::read_dir(folder.path()).unwrap().flatten() {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
    close(&ledger);
}

/// How often a thread went to sleep by itself (`proc_pid_status(5)`).
fn naps(thread: &Path) -> u64 {
    let status = fs::read_to_string(thread.join("status")).unwrap();
    let naps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    naps.unwrap().trim().parse().unwrap()
}

/// An operator's shell may hold the file for longer than one attempt waits, and may read it at any time. Within the second of an
/// attempt SQLite looks 20 times, with naps of 1 to 100 ms between (`sqliteDefaultBusyCallback` in its `main.c`): who has napped 25
/// times since is in the next one.
#[test]
fn a_shell_that_holds_the_file_delays_the_ledger_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Faulty::slow(SqliteRows::open(folder.path(), 0).unwrap(), Duration::ZERO);
    let thread = rows.thread.clone();
    let ledger = ThreadLedger::open(Box::new(rows), LedgerOptions::default(), 1, now(0)).unwrap();
    let shell = rusqlite::Connection::open(folder.path().join(FILE_NAME)).unwrap();
    let count =
        || -> i64 { shell.query_row("SELECT count(*) FROM operations", [], |row| row.get(0)).unwrap() };
    assert!(matches!(ledger.begin(intent(1), now(1)).wait(), Ok(Ok(Begun::New(_)))));
    assert_eq!(count(), 1);
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    // That of the first operation: the ledger's own.
    let thread = thread.lock().unwrap().clone();
    let before = naps(&thread);
    let delayed = ledger.begin(intent(2), now(1));
    let end = clock().mono.after(FLUSH);
    while naps(&thread) < before + 25 {
        assert!(clock().mono < end, "it is not tried again");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(count(), 1);
    shell.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(delayed.wait(), Ok(Ok(Begun::New(_)))));
    assert_eq!((count(), ledger.standing(now(1)).failed), (2, None));
    close(&ledger);
}

#[test]
fn each_life_has_a_number_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for life in 1..5 {
        let ledger = open(folder.path());
        assert_eq!(ledger.epoch().number(), life);
        close(&ledger);
    }
}

#[test]
fn what_is_no_ledger_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE_NAME);
    fs::write(&file, "not a database, but long enough to have a header".repeat(100)).unwrap();
    assert_eq!(open_error(folder.path()), OpenError::NotALedger(file.clone()));
    fs::remove_file(&file).unwrap();
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert_eq!(open_error(folder.path()), OpenError::NotALedger(file));
}

#[test]
fn the_format_of_a_later_version_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    close(&open(folder.path()));
    let path = folder.path().join(FILE_NAME);
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    assert_eq!(open_error(folder.path()), OpenError::Later { path, found: 2, known: 1 });
}

/// A path below a regular file cannot be written, whoever runs this.
#[test]
fn a_path_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open_error(&file.join("ledger"));
    assert!(matches!(&error, OpenError::Failed(message) if message.contains("file")), "{error}");
}

/// Pages in the middle of the file are overwritten, one after the other: each is found, or holds nothing.
#[test]
fn a_damaged_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let waiting: Vec<_> = (0..2000).map(|number| ledger.begin(numbered(number, 0), now(1))).collect();
    waiting.into_iter().for_each(|begun| assert!(begun.wait().is_ok()));
    close(&ledger);
    drop(ledger);
    let path = folder.path().join(FILE_NAME);
    // Everything lies in the file itself once another connection has ended its WAL.
    let shell = rusqlite::Connection::open(&path).unwrap();
    shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(shell);
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    let pages = whole.len() / 4096;
    for page in (1..pages).step_by(pages / 20) {
        let mut damaged = whole.clone();
        damaged[page * 4096..page * 4096 + 4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let error = open_error(folder.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "page {page}: {error}");
        found += 1;
    }
    assert!(found >= 15, "{found}");
}

/// What was written of a batch that was never acknowledged is left out; what was acknowledged is there.
#[test]
fn a_torn_end_of_the_wal_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    for number in 0..20 {
        assert!(matches!(ledger.begin(numbered(number, 0), now(1)).wait(), Ok(Ok(Begun::New(_)))));
    }
    // As it is at a crash: the files, while they are open.
    let copy = tempfile::tempdir().unwrap();
    let wal = format!("{FILE_NAME}-wal");
    fs::copy(folder.path().join(FILE_NAME), copy.path().join(FILE_NAME)).unwrap();
    fs::copy(folder.path().join(&wal), copy.path().join(&wal)).unwrap();
    close(&ledger);
    let torn = copy.path().join(&wal);
    fs::OpenOptions::new().append(true).open(&torn).unwrap().write_all(&[0x5a; 3000]).unwrap();
    let again = open(copy.path());
    assert_eq!(again.standing(now(1)).states[1].count, 20, "all that was acknowledged");
    close(&again);
}

/// No content of a request, no credential, no key; and of an answer what may be kept.
#[test]
fn no_secret_is_in_any_file() {
    const CANARY: &str = "4111111111111111";
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut headers = HeaderMap::new();
    for name in ["set-cookie", "authorization", "x-card"] {
        headers.insert(name, http::HeaderValue::from_static(CANARY));
    }
    let body = format!(r#"{{"id":"visible-in-the-file","card":{{"number":"{CANARY}"}}}}"#);
    let routes = [Keep::without(["/card/number"]).unwrap(), Keep::status(), Keep::fields()];
    for (number, keep) in (1..).zip(&routes) {
        let Ok(Ok(Begun::New(intent))) = ledger.begin(intent(number), now(1)).wait() else { panic!("new") };
        let answer = keep.of(201, &headers, Some(body.as_bytes()));
        let recorded = ledger.record(forward(intent, now(1)).succeeded(answer), now(2)).wait();
        assert!(matches!(recorded, Ok(Recorded::Changed { .. })));
    }
    let holds = |text: &str| {
        let files = fs::read_dir(folder.path()).unwrap().flatten();
        let found = files
            .map(|file| fs::read(file.path()).unwrap())
            .filter(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()));
        found.count()
    };
    assert!(holds("visible-in-the-file") > 0, "the search finds what is there");
    assert_eq!(holds(CANARY), 0);
    close(&ledger);
    assert_eq!(holds(CANARY), 0);
}
