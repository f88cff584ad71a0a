//! The file below the database: as redb's own, but bounded, and never closed cleanly.
//!
//! It refuses to grow beyond its limit. Accounting keeps the file below the limit; this is the wall behind it, should
//! accounting ever be wrong.
//!
//! A clean close would trim the file to what it holds at that moment, and a full file that was trimmed can neither be
//! written in place nor doubled within its limit. So the file is frozen before the database lets go of it, and opening
//! always continues from the last durable commit, as after a crash, which costs nothing: the allocator's state is
//! part of that commit.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// What can be known and done from outside the database.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    length: Arc<AtomicU64>,
    frozen: Arc<AtomicBool>,
}

impl Outside {
    /// The file's length.
    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// From here on nothing is written.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }

    fn may_write(&self) -> io::Result<()> {
        if self.frozen.load(Ordering::SeqCst) { Err(io::Error::other("the file is frozen")) } else { Ok(()) }
    }
}

/// A file of bounded length.
#[derive(Debug)]
pub(super) struct BoundedFile {
    file: FileBackend,
    limit: u64,
    outside: Outside,
}

impl BoundedFile {
    pub(super) fn new(file: FileBackend, limit: u64, outside: Outside) -> io::Result<Self> {
        outside.length.store(file.len()?, Ordering::Relaxed);
        Ok(Self { file, limit, outside })
    }
}

impl StorageBackend for BoundedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.outside.may_write()?;
        if len > self.limit && len > self.file.len()? {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the limit of the file is reached"));
        }
        self.file.set_len(len)?;
        self.outside.length.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.outside.may_write()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.outside.may_write()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
