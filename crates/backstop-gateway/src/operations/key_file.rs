//! The secret of a ledger, in a file beside it.
//!
//! `ledger.key` holds 32 random bytes, readable for its owner alone, made together with the ledger and synced before the
//! first operation. It is not in the ledger, so that whoever gets a copy of that cannot try out keys and callers. Without it every
//! key would be a new one: a ledger whose key is gone is not opened.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use backstop::operation::secret::Secret;
use backstop_store::ledger::sqlite;

/// The file's name below the ledger's folder.
pub(crate) const FILE_NAME: &str = "ledger.key";
const BYTES: usize = 32;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The ledger is there and its key is not.
    #[error(
        "{}: missing, and the ledger beside it cannot be used without it: under another key every operation in it would be \
         executed again; restore both from one backup, or move the ledger away to begin a new one",
        .0.display()
    )]
    Missing(PathBuf),
    /// It is another ledger's.
    #[error(
        "{}: not the key that the ledger beside it was written with, so every operation in it would be executed again; restore \
         both from one backup, or move the ledger away to begin a new one",
        .0.display()
    )]
    OfAnother(PathBuf),
    /// It is not what was written.
    #[error("{}: not {BYTES} bytes long; restore it from the backup that the ledger is from", .0.display())]
    Damaged(PathBuf),
    /// It cannot be read or made.
    #[error("{}: cannot be read or made", .0.display())]
    Failed(PathBuf, #[source] io::Error),
}

/// The secret of the ledger below a folder. It is made where there is no ledger yet.
pub(crate) fn secret(folder: &Path) -> Result<Secret, KeyError> {
    let path = folder.join(FILE_NAME);
    let failed = |error| KeyError::Failed(path.clone(), error);
    match read(&path) {
        Ok(Some(secret)) => return Ok(secret),
        Ok(None) => return Err(KeyError::Damaged(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    if folder.join(sqlite::FILE_NAME).exists() {
        return Err(KeyError::Missing(path));
    }
    make(folder, &path).map_err(failed)
}

/// `None` if it has not the length of one.
fn read(path: &Path) -> io::Result<Option<Secret>> {
    let mut bytes = Vec::with_capacity(BYTES + 1);
    File::open(path)?.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(<[u8; BYTES]>::try_from(bytes).ok().map(Secret::from_bytes))
}

/// Under another name first: a process that dies here leaves no half of a key.
fn make(folder: &Path, path: &Path) -> io::Result<Secret> {
    let bytes: [u8; BYTES] = random()?;
    let beside = folder.join(format!("{FILE_NAME}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    File::open(folder)?.sync_all()?;
    Ok(Secret::from_bytes(bytes))
}

/// Bytes that nobody can guess.
pub(super) fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Up to 256 bytes come whole (getrandom(2)).
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if length == LENGTH { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn digest(secret: &Secret) -> [u8; 32] {
        secret.digest("test", [])
    }

    #[test]
    fn a_secret_is_made_once_and_stays_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let first = secret(folder.path()).unwrap();
        assert_eq!(digest(&secret(folder.path()).unwrap()), digest(&first));
        let mode = std::fs::metadata(folder.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(digest(&secret(other.path()).unwrap()), digest(&first));
    }

    #[test]
    fn a_ledger_without_its_key_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(sqlite::FILE_NAME), b"").unwrap();
        let error = secret(folder.path()).unwrap_err();
        assert!(matches!(&error, KeyError::Missing(path) if path.ends_with(FILE_NAME)), "{error}");
        assert!(!folder.path().join(FILE_NAME).exists());
    }

    #[test]
    fn half_a_key_is_none() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in [&[1; 31][..], &[1; 33], &[]] {
            std::fs::write(folder.path().join(FILE_NAME), wrong).unwrap();
            assert!(matches!(secret(folder.path()), Err(KeyError::Damaged(_))), "{}", wrong.len());
        }
    }
}
