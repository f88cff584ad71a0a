//! How much room records take, and how much there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What bounds the records of a file. Clones share what is known of the device.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The limit of the file, in bytes.
    pub(super) limit: u64,
    /// What records may take at most because the device was full before that; all bits set if it never was.
    device: Arc<AtomicU64>,
}

impl Bounds {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, device: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// What records may take in a file that is `length` bytes long now: 13/16 of what it can grow to.
    pub(super) fn budget(&self, length: u64) -> u64 {
        (reachable(length, self.limit) / 16 * 13).min(self.device.load(Ordering::Relaxed))
    }

    /// The device was full when records took `used`: from here on they take an eighth less.
    pub(super) fn keep_less(&self, used: u64) {
        let most = self.device.load(Ordering::Relaxed).min(used);
        self.device.store((most / 8 * 7).max(MIN_LIMIT / 4), Ordering::Relaxed);
    }

    /// Whether the device was full.
    pub(super) fn was_full(&self) -> bool {
        self.device.load(Ordering::Relaxed) != u64::MAX
    }

    /// The device that was full has `free` bytes now. Half of that may be used. Less than an eighth of what records may
    /// take is nothing new: so much was freed by keeping less.
    pub(super) fn keep_more(&self, free: u64) {
        let most = self.device.load(Ordering::Relaxed);
        if free > most / 8 + TOLERANCE {
            let more = Some(most.saturating_add(free / 2)).filter(|more| *more < self.limit);
            self.device.store(more.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
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

    #[test]
    fn a_full_device_takes_less_until_it_has_room_again() {
        const MIB: u64 = 1 << 20;
        let bounds = Bounds::new(64 * MIB);
        // 64 MiB and the tolerance, of which a file of 64 MiB can use all: 13/16 are 52 MiB.
        assert_eq!((bounds.budget(64 * MIB), bounds.was_full()), (52 * MIB, false));
        bounds.keep_less(16 * MIB);
        assert_eq!((bounds.budget(64 * MIB), bounds.was_full()), (14 * MIB, true));
        bounds.keep_more(MIB);
        assert_eq!(bounds.budget(64 * MIB), 14 * MIB, "no more than was freed by keeping less");
        bounds.keep_more(4 * MIB);
        assert_eq!(bounds.budget(64 * MIB), 16 * MIB, "half of what is free");
        bounds.keep_more(100 * MIB);
        assert_eq!((bounds.budget(64 * MIB), bounds.was_full()), (52 * MIB, false));
        bounds.keep_less(0);
        assert_eq!(bounds.budget(64 * MIB), MIB / 4, "never nothing");
    }
}
