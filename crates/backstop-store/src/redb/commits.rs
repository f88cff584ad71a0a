//! How far the file has come, told beside it.
//!
//! redb keeps two commits in its file and goes back to the older one if the newer looks damaged. That brings back what was
//! withdrawn in between, without a sign of it. So every withdrawal has a number, which its commit carries inside the file
//! and which is written here, and synced, before the withdrawal is confirmed. A file that is behind this number has gone
//! back.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Number and CRC-32 of it, big-endian.
const BYTES: usize = 12;

/// The file beside the file of copies.
#[derive(Debug)]
pub(super) struct Commits {
    file: File,
}

impl Commits {
    /// Where it lies.
    pub(super) fn beside(copies: &Path) -> PathBuf {
        copies.with_extension("commits")
    }

    /// Begins anew, beside a new file of copies.
    pub(super) fn create(copies: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(Self::beside(copies))?;
        let commits = Self { file };
        commits.tell(0)?;
        Ok(commits)
    }

    /// Opens it and reads its number.
    ///
    /// # Errors
    /// `InvalidData` if it is damaged or missing.
    pub(super) fn open(copies: &Path) -> io::Result<(Self, u64)> {
        let opened = OpenOptions::new().read(true).write(true).open(Self::beside(copies));
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => io::Error::new(ErrorKind::InvalidData, "the file of commits is missing"),
            _ => error,
        })?;
        let mut bytes = [0; BYTES];
        file.read_exact_at(&mut bytes, 0).map_err(|_| damaged())?;
        let number = bytes.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
        if encoded(number) != bytes {
            return Err(damaged());
        }
        Ok((Self { file }, number))
    }

    /// Tells a number, durably.
    pub(super) fn tell(&self, number: u64) -> io::Result<()> {
        self.file.write_all_at(&encoded(number), 0)?;
        self.file.sync_data()
    }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file of commits is damaged")
}

fn encoded(number: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (digits, checksum) = bytes.split_at_mut(8);
    digits.copy_from_slice(&number.to_be_bytes());
    checksum.copy_from_slice(&crc32fast::hash(digits).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_once_and_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let copies = folder.path().join("copies.redb");
        assert!(Commits::open(&copies).is_err(), "missing");
        let commits = Commits::create(&copies).unwrap();
        assert_eq!(Commits::open(&copies).unwrap().1, 0);
        commits.tell(7).unwrap();
        commits.tell(8).unwrap();
        assert_eq!(Commits::open(&copies).unwrap().1, 8);
    }

    #[test]
    fn every_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let copies = folder.path().join("copies.redb");
        Commits::create(&copies).unwrap().tell(300).unwrap();
        let whole = std::fs::read(Commits::beside(&copies)).unwrap();
        assert_eq!(whole.len(), BYTES);
        for bit in 0..BYTES * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(Commits::beside(&copies), bytes).unwrap();
            assert!(Commits::open(&copies).is_err(), "{bit}");
        }
        std::fs::write(Commits::beside(&copies), &whole[..BYTES - 1]).unwrap();
        assert!(Commits::open(&copies).is_err());
    }
}
