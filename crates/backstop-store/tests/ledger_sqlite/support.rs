//! Ledgers and operations.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop_engine::operation::{ClientKey, Fingerprint, Intent, OperationId};
use backstop_engine::time::{Mono, Now, Wall};
use backstop_store::ledger::sqlite::{self, OpenError};
use backstop_store::ledger::{Ledger, LedgerOptions, ThreadLedger};
use backstop_store::testing::{intent, now};

/// Long enough for any disk.
pub(super) const FLUSH: Duration = Duration::from_secs(60);

/// What a ledger said when its disk failed, in place of the end of the process.
#[derive(Clone, Debug, Default)]
pub(super) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    pub(super) fn options(&self) -> LedgerOptions {
        let said = self.0.clone();
        let on_failed_disk = Arc::new(move |message: &str| said.lock().unwrap().push(message.to_owned()));
        LedgerOptions { on_failed_disk, ..LedgerOptions::default() }
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(super) fn open(folder: &Path) -> ThreadLedger {
    sqlite::open(folder, LedgerOptions::default(), 1, now(0)).unwrap()
}

pub(super) fn open_error(folder: &Path) -> OpenError {
    sqlite::open(folder, LedgerOptions::default(), 1, now(0)).unwrap_err()
}

pub(super) fn close(ledger: &ThreadLedger) {
    assert!(ledger.close(FLUSH));
}

/// One of many operations. `copy`: another client's attempt at the same.
pub(super) fn numbered(number: u64, copy: u8) -> Intent {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let mut id = [copy; 16];
    id[..8].copy_from_slice(&key[..8]);
    Intent {
        id: OperationId::from_bytes(id),
        key: ClientKey::from_bytes(key),
        fingerprint: Fingerprint::from_bytes(key),
        ..intent(0)
    }
}

/// The machine's own time.
pub(super) fn clock() -> Now {
    let mono = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let ns = mono.tv_sec as u64 * 1_000_000_000 + mono.tv_nsec as u64;
    Now { mono: Mono::from_ns(ns), wall: Wall::from_unix_ns(ns as i64), ..Now::default() }
}
