//! Opening the file, and moving a damaged one out of the way.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{Builder, DatabaseError, StorageError};

use super::backend::{BoundedFile, Outside};
use super::file::{RedbFile, storage_error};
use super::room::{Bounds, MIN_LIMIT, TOLERANCE};
use crate::disk::{Disk, DiskError, Medium};
use crate::options::StoreOptions;

/// The file's name below the store's folder.
pub(super) const FILE_NAME: &str = "copies.redb";
/// Damaged files that are kept.
const KEPT_ASIDE: u32 = 4;
/// What redb may cache of the file; the store has its own memory in front.
const CACHE: usize = 16 * 1024 * 1024;

/// A redb file below a folder.
#[derive(Debug)]
pub struct RedbMedium {
    folder: PathBuf,
    bounds: Bounds,
    /// What records take in the file that was opened last.
    used: Arc<AtomicU64>,
}

impl RedbMedium {
    /// The file below `options.path`, of at most `options.disk_bytes`.
    pub fn new(options: &StoreOptions) -> Self {
        let bounds = Bounds::new(options.disk_bytes);
        Self { folder: options.path.clone(), bounds, used: Arc::default() }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }
}

impl Medium for RedbMedium {
    fn open(&mut self) -> Result<Box<dyn Disk>, DiskError> {
        if self.bounds.limit < MIN_LIMIT {
            return Err(DiskError::Failed(format!(
                "a disk limit below {MIN_LIMIT} bytes is not enough for a file"
            )));
        }
        let path = self.file();
        let said = |error: io::Error| io_error(&error, &path);
        fs::create_dir_all(&self.folder).map_err(said)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(said)?;
        let outside = Outside::default();
        let backend = FileBackend::new(file).map_err(|error| open_error(error, &path))?;
        let limit = self.bounds.limit.saturating_add(TOLERANCE);
        let backend = BoundedFile::new(backend, limit, outside.clone()).map_err(said)?;
        let database = Builder::new()
            .set_cache_size(CACHE)
            .create_with_backend(backend)
            .map_err(|error| open_error(error, &path))?;
        let file = RedbFile::new(database, path, self.bounds.clone(), outside)?;
        self.used = file.used_handle();
        Ok(Box::new(file))
    }

    fn set_aside(&mut self) -> Result<PathBuf, DiskError> {
        let path = self.file();
        let said = |error: io::Error| io_error(&error, &path);
        let name = |number: u32| self.folder.join(format!("{FILE_NAME}.corrupt-{number}"));
        let number = last_aside(&self.folder).saturating_add(1);
        let aside = name(number);
        fs::rename(&path, &aside).map_err(said)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(said)?;
        if let Some(old) = number.checked_sub(KEPT_ASIDE).filter(|old| *old > 0) {
            // One damaged file too many is no reason to fail.
            let _ = fs::remove_file(name(old));
        }
        Ok(aside)
    }

    fn may_hold_copies(&self) -> bool {
        match fs::symlink_metadata(self.file()) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        }
    }

    fn keep_less(&mut self) {
        self.bounds.keep_less(self.used.load(Ordering::Relaxed));
    }
}

/// The highest number of a file set aside.
fn last_aside(folder: &Path) -> u32 {
    let prefix = format!("{FILE_NAME}.corrupt-");
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    files
        .flatten()
        .filter_map(|file| file.file_name().to_str()?.strip_prefix(&prefix)?.parse().ok())
        .max()
        .unwrap_or(0)
}

/// An error of the file, with its path.
pub(super) fn io_error(error: &io::Error, path: &Path) -> DiskError {
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full(message),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => DiskError::Corrupt(message),
        _ => DiskError::Failed(message),
    }
}

fn open_error(error: DatabaseError, path: &Path) -> DiskError {
    match error {
        DatabaseError::Storage(error) => storage_error(error, path),
        DatabaseError::UpgradeRequired(_) | DatabaseError::RepairAborted => {
            storage_error(StorageError::Corrupted(error.to_string()), path)
        }
        other => DiskError::Failed(format!("{}: {other}", path.display())),
    }
}
