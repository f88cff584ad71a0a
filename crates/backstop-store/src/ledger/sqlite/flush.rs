//! What the disk itself takes.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use backstop_engine::time::Now;

use super::lock::private;

const FILE_NAME: &str = "ledger.bench";
const PAGE: [u8; 4096] = [0x5a; 4096];

/// The median time in which one page of 4 KiB is appended and synced, in the folder of a ledger, of so many. Above 20 ms one
/// client gets through fewer than 25 operations in a second, whatever the ledger does. `clock` tells the time.
///
/// # Errors
/// If the folder cannot be written.
pub fn flush_time(folder: &Path, rounds: usize, clock: &dyn Fn() -> Now) -> io::Result<Duration> {
    let path = folder.join(FILE_NAME);
    let mut file = private(&path)?;
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begun = clock().mono;
        file.write_all(&PAGE)?;
        file.sync_data()?;
        times.push(clock().mono.since(begun).unwrap_or_default());
    }
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
