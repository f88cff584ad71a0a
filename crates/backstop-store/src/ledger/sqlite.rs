//! The ledger in one SQLite file.
//!
//! # Durability
//! WAL with `synchronous = FULL`: a commit returns after its frames are synced (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
//! What was asked for is read back, and a file that would be less durable is not opened. Memory maps are off, so that a
//! failed read is an error and not a signal. Checkpoints are made by the writing thread, not by SQLite behind a commit, because
//! an error of their sync must not go unheard.
//!
//! # Files
//! Below one folder: `ledger.sqlite` with its `-wal` and `-shm`, readable with any SQLite shell; `ledger.lock`, which one process
//! holds; `ledger.reserve`, room that is given up when the disk is full, so that outcomes of what was forwarded can still be
//! written. All are made readable for their owner alone.
//!
//! # Damage
//! At the start the file is checked (`quick_check`). One that fails it is not opened: an operator decides what becomes of a
//! ledger, because without it keys that were used are new again. The end of a WAL that was not written whole is left out by
//! SQLite's own checksums: it was never acknowledged.

mod encode;
mod file;
mod flush;
mod lock;
mod reserve;
mod rows;
mod schema;
mod statements;

use std::path::{Path, PathBuf};

use backstop_engine::time::Now;

use super::options::LedgerOptions;
use super::rows::RowsError;
use super::thread::ThreadLedger;

pub use flush::flush_time;
pub use rows::SqliteRows;

/// The file's name below the ledger's folder.
pub const FILE_NAME: &str = "ledger.sqlite";
/// How much room is held for outcomes, in bytes.
pub const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// Why a ledger cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{0}: another process has this ledger open")]
    Locked(PathBuf),
    /// It is a SQLite file of something else.
    #[error("{0}: this is not a ledger of Backstop")]
    NotALedger(PathBuf),
    /// It was written by a later version.
    #[error("{path}: the ledger has format {found}, and this version knows formats up to {known}")]
    Later {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The latest format that is known here.
        known: i64,
    },
    /// It is damaged.
    #[error("{path}: the ledger is damaged: {message}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the check says.
        message: String,
    },
    /// It would be less durable than it has to be.
    #[error("{path}: `{setting}` is {found}, and a ledger needs {needed}")]
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        needed: &'static str,
    },
    /// It cannot be read or written.
    #[error("{0}")]
    Failed(String),
}

impl From<RowsError> for OpenError {
    fn from(error: RowsError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Opens the ledger below a folder, and makes it if there is none. `entropy`: 64 random bits.
///
/// # Errors
/// If it cannot be opened, or not as durable as it has to be. Then no operation may be forwarded.
pub fn open(
    folder: &Path,
    options: LedgerOptions,
    entropy: u64,
    now: Now,
) -> Result<ThreadLedger, OpenError> {
    let rows = SqliteRows::open(folder, RESERVE_BYTES)?;
    Ok(ThreadLedger::open(Box::new(rows), options, entropy, now)?)
}
