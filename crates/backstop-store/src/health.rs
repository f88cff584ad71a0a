//! What can be said about the store at any moment: counters since it was opened, levels now, the state of the disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use backstop_engine::time::Mono;

/// The state of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DiskState {
    /// There is none: memory only.
    #[default]
    Off,
    /// Copies are written and read.
    Ok,
    /// No room is left on the device.
    Full(DiskTrouble),
    /// It cannot be opened, written or read; it is tried again with a growing pause.
    Failed(DiskTrouble),
}

/// Since when the disk is in trouble, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskTrouble {
    /// When it was first noticed, as far as the store was told the time.
    pub since: Mono,
    /// What the system said.
    pub message: String,
}

/// The state of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// Copies in the index: in memory, on disk or both.
    pub entries: u64,
    /// Memory taken by copies, in bytes.
    pub memory_bytes: u64,
    /// Memory taken by the index, in bytes.
    pub index_bytes: u64,
    /// The size of the file, in bytes.
    pub disk_bytes: u64,
    /// Copies that left memory because it was full.
    pub memory_evictions: u64,
    /// Copies that left the index because it was full.
    pub index_evictions: u64,
    /// Copies that left the disk because it was full.
    pub disk_evictions: u64,
    /// Copies that wait to be written.
    pub writes_queued: u64,
    /// Copies written.
    pub writes_done: u64,
    /// Copies that were not queued because the queue was full.
    pub writes_dropped: u64,
    /// Copies lost to a failed write.
    pub writes_failed: u64,
    /// Reads refused because the queue was full, or that failed.
    pub reads_failed: u64,
    /// Withdrawals that the disk has not confirmed yet.
    pub withdrawals_unconfirmed: u64,
    /// Records that failed their checksum or could not be understood.
    pub corrupt: u64,
    /// The state of the disk.
    pub disk: DiskState,
}

/// The counters behind [`StoreHealth`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) entries: AtomicU64,
    pub(crate) index_bytes: AtomicU64,
    pub(crate) disk_bytes: AtomicU64,
    pub(crate) memory_evictions: AtomicU64,
    pub(crate) index_evictions: AtomicU64,
    pub(crate) disk_evictions: AtomicU64,
    pub(crate) writes_done: AtomicU64,
    pub(crate) writes_dropped: AtomicU64,
    pub(crate) writes_failed: AtomicU64,
    pub(crate) reads_failed: AtomicU64,
    pub(crate) corrupt: AtomicU64,
    disk: Mutex<DiskState>,
}

impl Counters {
    /// What the counters say; levels kept elsewhere are left at zero.
    pub(crate) fn read(&self) -> StoreHealth {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreHealth {
            entries: get(&self.entries),
            index_bytes: get(&self.index_bytes),
            disk_bytes: get(&self.disk_bytes),
            memory_evictions: get(&self.memory_evictions),
            index_evictions: get(&self.index_evictions),
            disk_evictions: get(&self.disk_evictions),
            writes_done: get(&self.writes_done),
            writes_dropped: get(&self.writes_dropped),
            writes_failed: get(&self.writes_failed),
            reads_failed: get(&self.reads_failed),
            corrupt: get(&self.corrupt),
            disk: self.disk(),
            ..StoreHealth::default()
        }
    }

    /// The state of the disk.
    pub(crate) fn disk(&self) -> DiskState {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the state of the disk. While it stays in trouble, the first moment is kept.
    pub(crate) fn set_disk(&self, new: DiskState) {
        let mut state = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*state {
            DiskState::Full(trouble) | DiskState::Failed(trouble) => Some(trouble.since),
            DiskState::Off | DiskState::Ok => None,
        };
        *state = match (new, since) {
            (DiskState::Full(trouble), Some(since)) => DiskState::Full(DiskTrouble { since, ..trouble }),
            (DiskState::Failed(trouble), Some(since)) => DiskState::Failed(DiskTrouble { since, ..trouble }),
            (new, _) => new,
        };
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
