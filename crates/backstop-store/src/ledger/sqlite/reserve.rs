//! Room that is held for outcomes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::lock::private;

const RESERVE_NAME: &str = "ledger.reserve";

/// A file that is there to be deleted.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
}

impl Reserve {
    pub(super) fn new(folder: &Path, bytes: u64) -> Self {
        Self { path: folder.join(RESERVE_NAME), bytes }
    }

    /// Takes the room. `false` if there is too little, or if it cannot be had.
    pub(super) fn take(&self) -> bool {
        if self.bytes == 0 || fs::metadata(&self.path).is_ok_and(|file| file.len() == self.bytes) {
            return true;
        }
        let is_taken = private(&self.path).and_then(|file| self.fill(file)).is_ok();
        if !is_taken {
            self.release();
        }
        is_taken
    }

    fn fill(&self, mut file: File) -> io::Result<()> {
        match fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            Ok(()) => {}
            // Not every file system can: then it is written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                static PIECE: [u8; 64 * 1024] = [0; 64 * 1024];
                let mut left = self.bytes;
                while left > 0 {
                    let piece = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE.len());
                    file.write_all(PIECE.get(..piece).unwrap_or(&PIECE))?;
                    left -= piece as u64;
                }
            }
            Err(error) => return Err(error.into()),
        }
        file.sync_all()
    }

    /// Gives the room up. `false` if there was none.
    pub(super) fn release(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}
