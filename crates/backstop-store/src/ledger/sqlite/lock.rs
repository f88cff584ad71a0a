//! One process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::OpenError;

const LOCK_NAME: &str = "ledger.lock";

/// Holds a ledger's folder until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct FolderLock(
    #[expect(dead_code, reason = "the lock is held as long as the file is open")] File,
);

impl FolderLock {
    pub(super) fn take(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(LOCK_NAME);
        let file = private(&path).map_err(|error| failed(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(&path, &error)),
        }
    }
}

/// Opens a file, and makes it for its owner alone.
pub(super) fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

pub(super) fn failed(path: &Path, error: &io::Error) -> OpenError {
    OpenError::Failed(format!("{}: {error}", path.display()))
}
