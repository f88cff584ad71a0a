//! How much room records take, and how much there is.

use crate::codec::{EntryPeek, peek_entry};

/// Page size of redb.
pub(super) const PAGE: u64 = 4096;
/// Two pieces with their keys and offsets fill one page: `4 + 2 * (12 + 4 + PIECE) <= 4096`.
pub(super) const PIECE: usize = 2030;
/// How far a file may exceed its limit.
pub(super) const TOLERANCE: u64 = 64 * 1024;
/// What a small row takes beside what it holds, in either table of entries.
const ROW: u64 = 32;
/// The smallest limit that makes a usable file.
pub(super) const MIN_LIMIT: u64 = 1024 * 1024;
/// From here on redb adds regions instead of doubling.
const REGION: u64 = 4 << 30;

/// What bounds the records of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The limit of the file, in bytes.
    pub(super) limit: u64,
    /// What records may take at most because the device was full before that.
    pub(super) device: Option<u64>,
}

impl Bounds {
    /// What records may take in a file that is `length` bytes long now: 13/16 of what it can grow to.
    pub(super) fn budget(self, length: u64) -> u64 {
        let budget = reachable(length, self.limit) / 16 * 13;
        self.device.map_or(budget, |device| budget.min(device))
    }
}

/// The length that a file of `length` bytes can reach within `limit`.
pub(super) fn reachable(length: u64, limit: u64) -> u64 {
    let limit = limit.saturating_add(TOLERANCE);
    let mut length = length.max(PAGE);
    loop {
        let next = if length >= REGION { length.saturating_add(REGION) } else { length.saturating_mul(2) };
        if next > limit {
            return length;
        }
        length = next;
    }
}

/// What one entry and its copy take at most on average. Whole pieces fill their half page; entries and last pieces
/// share pages that are at least half full.
pub(super) fn cost(entry_bytes: usize, record_bytes: u64) -> u64 {
    let piece = PIECE as u64;
    let tail = record_bytes % piece;
    let tail = if tail == 0 { 0 } else { (2 * (tail + 16)).min(PAGE / 2) };
    record_bytes / piece * (PAGE / 2) + tail + 2 * (entry_bytes as u64 + ROW) + ROW
}

/// As [`cost`], of a stored entry; its bytes were not checked.
pub(super) fn cost_of(entry: &[u8], limit: u64) -> u64 {
    let record_bytes = peek_entry(entry).map_or(0, |EntryPeek { record_bytes, .. }| record_bytes);
    cost(entry.len(), record_bytes.min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_doubles_up_to_its_limit() {
        assert!(reachable(69_632, 1 << 30) <= (1 << 30) + TOLERANCE);
        assert!(reachable(69_632, 1 << 30) > 1 << 29);
        assert_eq!(reachable(REGION, 3 * REGION), 3 * REGION);
        assert_eq!(reachable(1 << 20, 0), 1 << 20);
    }
}
