//! Copies in one redb file.
//!
//! # Layout
//! Entries by identity, their identities in the order in which they were written, copies by identity cut into pieces,
//! withdrawn routes, and the date: a table each. Pieces are just small enough that two fill one page of 4 KiB. So all pages are alike, a freed page fits whatever comes next, and
//! the file does not grow by fragmentation, as it does with values of mixed sizes.
//!
//! # Size
//! The file never becomes longer than the limit plus 64 KiB: the file itself refuses to grow beyond it. redb doubles a
//! file that is full (above 4 GiB it adds 4 GiB), so a new file is first brought to a length from which doubling comes
//! close to the limit. It stops between half of the limit and the limit: above 85 % as a rule, less once the file was
//! nearly emptied, because redb then takes back a part of its end. 13/16 of that length is filled with records, each
//! counted with the pages that it takes; the rest is left for the trees and for pages that wait for the next durable
//! commit. A copy of more than 1/16 of that is not written. A limit below 1 MiB is not enough for a file.
//!
//! # What is dropped
//! Before a batch would exceed that, entries are dropped in the order in which they were last written, so copies that
//! are read or renewed often stay. Dates do not decide it: a clock that once showed a wrong date must not make copies
//! stay forever.
//!
//! A device that runs full before the limit is reached makes records take an eighth less; once it has room again, half of
//! that is used.
//!
//! # Damage
//! The file is not read as a whole when it is opened, so redb notices damage only where it reads. Entries, copies and
//! withdrawals carry checksums of their own; an entry or a withdrawal that fails it, or lies out of order, has the whole
//! file set aside, because in a damaged tree a deletion may miss. A damaged copy costs that copy. A file that went back to
//! an earlier commit is known by the number of its last withdrawal, which is written beside it (`commits`).
//!
//! # Crashes
//! Batches are applied by transactions; a durable one is synced twice and carries the allocator's state, so that
//! opening a file after a crash takes no time whatever its size. A crash goes back to the last durable commit.

mod backend;
mod commits;
mod file;
mod medium;
mod presize;
mod room;

use std::path::PathBuf;

use backstop_engine::time::Now;

use crate::copies::Copies;
use crate::options::{OpenReport, StoreOptions};

pub use medium::RedbMedium;

impl Copies {
    /// Opens a store whose copies survive a restart, in a redb file below `options.path`. Never fails: a file that
    /// cannot be used is reported, tried again, and done without.
    pub fn open(options: StoreOptions, now: Now) -> (Self, OpenReport) {
        Self::open_on(Box::new(RedbMedium::new(&options)), options, now)
    }

    /// The file of a store below this folder.
    pub fn file_below(path: impl Into<PathBuf>) -> PathBuf {
        path.into().join(medium::FILE_NAME)
    }
}
