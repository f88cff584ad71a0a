//! How a store is opened, and what was found.

use std::path::PathBuf;
use std::time::Duration;

use backstop_engine::time::Wall;

use crate::health::DiskState;

const MIB: u64 = 1024 * 1024;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The folder that holds the file; created if it is missing.
    pub path: PathBuf,
    /// The most memory that bodies and fields of copies take, in bytes. Default 64 MiB.
    pub memory_bytes: u64,
    /// The most memory that the index of all copies takes, those that lie only on disk included, in bytes; about
    /// 400 bytes each. Default 96 MiB.
    pub index_bytes: u64,
    /// The largest file, in bytes; see the module `redb` for the tolerance. Default 1 GiB.
    pub disk_bytes: u64,
    /// The most copies that wait to be written; the newest is dropped and counted. Default 8192.
    pub queue_len: usize,
    /// The most bytes that wait to be written. Default 32 MiB.
    pub queue_bytes: u64,
    /// The most reads of the disk that wait; one more is unreadable at once. Default 1024.
    pub read_queue_len: usize,
    /// The largest copy that is kept, overhead included, in bytes. Default 8 MiB.
    pub copy_bytes: u64,
    /// How long a withdrawal is remembered against reads that began before it. A read that is older than what was
    /// forgotten is never stored. Longer than any read's deadline. However long, and however long the paths, what is
    /// remembered takes at most 26 MiB. Default 10 min.
    pub mark_lifetime: Duration,
    /// The longest time between two durable commits while copies are being written. Default 500 ms.
    pub commit_interval: Duration,
    /// How far the persisted high-water mark of the date may lag behind. Default 10 s.
    pub wall_interval: Duration,
    /// The shortest and the longest pause before a failed disk is tried again. Default 100 ms and 30 s.
    pub retry_pause: (Duration, Duration),
}

impl StoreOptions {
    /// The defaults, with the file below `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            memory_bytes: 64 * MIB,
            index_bytes: 96 * MIB,
            disk_bytes: 1024 * MIB,
            queue_len: 8192,
            queue_bytes: 32 * MIB,
            read_queue_len: 1024,
            copy_bytes: 8 * MIB,
            mark_lifetime: Duration::from_secs(600),
            commit_interval: Duration::from_millis(500),
            wall_interval: Duration::from_secs(10),
            retry_pause: (Duration::from_millis(100), Duration::from_secs(30)),
        }
    }
}

/// What was found when a store was opened. Opening never fails: what the disk does not give is done without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Copies found on disk, with their original dates.
    pub copies: u64,
    /// Damaged files that were found. Of one with any record that fails its checksum nothing is taken over.
    pub corrupt: u64,
    /// Where a damaged file was moved to; a new one was begun.
    pub set_aside: Option<PathBuf>,
    /// The latest date seen in earlier lives; the clock ran back if it now shows an earlier one.
    pub high_water_wall: Option<Wall>,
    /// The state of the disk.
    pub disk: DiskState,
}
