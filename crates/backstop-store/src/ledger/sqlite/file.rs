//! Opening the file, with everything that durability needs.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::lock::{failed, private};
use super::schema::{APPLICATION_ID, FORMAT, INDEXES, TABLES};
use super::{FILE_NAME, OpenError};

/// What is asked for.
const SETTINGS: [&str; 8] = [
    "synchronous = FULL",
    "journal_mode = WAL",
    "mmap_size = 0",
    "wal_autocheckpoint = 0",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "temp_store = MEMORY",
    // How long one attempt waits for an operator's shell that holds the file; see `SqliteRows::begin`.
    "busy_timeout = 1000",
];

/// What has to be read back: the setting, as it is then, and as it is written.
const NEEDED: [(&str, &str, &str); 3] = [
    ("journal_mode", "wal", "WAL"),
    // 2 is FULL, 3 is EXTRA.
    ("synchronous", "2", "FULL"),
    ("mmap_size", "0", "0"),
];

pub(super) fn open(folder: &Path) -> Result<(Connection, PathBuf), OpenError> {
    let path = folder.join(FILE_NAME);
    drop(private(&path).map_err(|error| failed(&path, &error))?);
    let said = |error: rusqlite::Error| open_error(&path, &error);
    // One connection, used by one thread: SQLite's own locks are not needed.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(said)?;
    let (application, format) = (pragma(&connection, "application_id"), pragma(&connection, "user_version"));
    let (application, format) = (application.map_err(said)?, format.map_err(said)?);
    // A process that died while it made one left nothing in it: that is done in one transaction.
    let is_new = application == "0" && is_empty(&connection).map_err(said)?;
    if !is_new && application != APPLICATION_ID.to_string() {
        return Err(OpenError::NotALedger(path));
    }
    let found = format.parse().unwrap_or(i64::MAX);
    if found > FORMAT {
        return Err(OpenError::Later { path, found, known: FORMAT });
    }
    for setting in SETTINGS {
        to_the_end(&connection, setting).map_err(said)?;
    }
    for (setting, value, needed) in NEEDED {
        let found = pragma(&connection, setting).map_err(said)?;
        if found != value {
            return Err(OpenError::NotDurable { path, setting, found, needed });
        }
    }
    if is_new {
        create(&connection).map_err(said)?;
        // The names of new files are as durable as what is in them.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, &error))?;
    }
    match pragma(&connection, "quick_check") {
        Ok(checked) if checked == "ok" => {}
        Ok(message) => return Err(OpenError::Damaged { path, message }),
        Err(error) => return Err(open_error(&path, &error)),
    }
    // They write nothing where they are there.
    connection.execute_batch(INDEXES).map_err(said)?;
    Ok((connection, path))
}

fn create(connection: &Connection) -> Result<(), rusqlite::Error> {
    // The header says what it is in the same transaction that makes it so.
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} {INDEXES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
    ))
}

fn is_empty(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// Runs a pragma until it is done. One that writes, as the change to WAL does, may give a row first and fail to commit then.
fn to_the_end(connection: &Connection, setting: &str) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA {setting}"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// The first value that a pragma gives, as text.
pub(super) fn pragma(connection: &Connection, name: &str) -> Result<String, rusqlite::Error> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| {
        Ok(match row.get_ref(0)? {
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            value => value.as_str()?.to_owned(),
        })
    })
}

fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    use rusqlite::ErrorCode;
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotALedger(path),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, message: error.to_string() },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked(path),
        _ => OpenError::Failed(format!("{}: {error}", path.display())),
    }
}
