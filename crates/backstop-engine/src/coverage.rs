//! What share of reads would be answered if the dependency failed now.
//!
//! At every read the engine learns whether a usable copy exists, whether or not it is needed. The last 60 whole seconds
//! of that are kept, in one-second buckets; the answer is an exact quotient, not a moving average, so it can be compared
//! with what is then really answered.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// Seconds that are kept.
pub const WINDOW: Duration = Duration::from_secs(BUCKETS as u64);

const BUCKETS: usize = 60;
const COUNT_BITS: u32 = 20;
/// What is kept of the second: enough that a bucket left alone passes for another second only after years.
const TAG_MASK: u64 = (1 << (64 - 2 * COUNT_BITS)) - 1;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// No thread is late by more seconds than this: what seems to be is a later round of the second's 24 bits.
const LATE_MAX: u64 = 1000;

/// A sliding count of reads with and without a usable copy.
pub struct Coverage {
    // One word per second: the low 24 bits of the second, then usable and total, 20 bits each, saturating. One word, so
    // that a bucket is emptied and counted in one step and no lock is needed.
    buckets: [AtomicU64; BUCKETS],
}

/// What the window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoverageCount {
    /// Reads for which a usable copy existed.
    pub usable: u64,
    /// All reads.
    pub total: u64,
}

impl CoverageCount {
    /// The share of reads with a usable copy, or `None` without any read.
    pub fn ratio(self) -> Option<f64> {
        (self.total > 0).then(|| self.usable as f64 / self.total as f64)
    }
}

impl Coverage {
    /// An empty window.
    pub fn new() -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Counts one read.
    pub fn record(&self, now: Mono, usable: bool) {
        let second = second_of(now);
        let Some(bucket) = self.buckets.get((second % BUCKETS as u64) as usize) else { return };
        let tag = second & TAG_MASK;
        let _late = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let (old_tag, mut count) = unpack(word);
            if old_tag != tag {
                // A thread that was held up for a minute takes nothing away from the second that is there now.
                if count.total > 0 && old_tag.wrapping_sub(tag) & TAG_MASK <= LATE_MAX {
                    return None;
                }
                count = CoverageCount::default();
            }
            if count.total < COUNT_MAX {
                count.total += 1;
                count.usable += u64::from(usable);
            }
            Some(pack(tag, count))
        });
    }

    /// What the last 60 seconds hold, the present one included.
    pub fn count(&self, now: Mono) -> CoverageCount {
        let present = second_of(now);
        let mut sum = CoverageCount::default();
        for back in 0..(BUCKETS as u64).min(present + 1) {
            let second = present - back;
            if let Some(bucket) = self.buckets.get((second % BUCKETS as u64) as usize) {
                let (tag, count) = unpack(bucket.load(Ordering::Relaxed));
                if tag == second & TAG_MASK {
                    sum.usable += count.usable;
                    sum.total += count.total;
                }
            }
        }
        sum
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coverage").finish_non_exhaustive()
    }
}

// Seconds are counted from 1 so that an untouched word (tag 0, nothing counted) is never taken for second 0.
fn second_of(now: Mono) -> u64 {
    now.as_ns() / 1_000_000_000 + 1
}

fn pack(tag: u64, count: CoverageCount) -> u64 {
    (tag << (2 * COUNT_BITS)) | (count.usable << COUNT_BITS) | count.total
}

fn unpack(word: u64) -> (u64, CoverageCount) {
    let count = CoverageCount { usable: (word >> COUNT_BITS) & COUNT_MAX, total: word & COUNT_MAX };
    (word >> (2 * COUNT_BITS), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_ns(seconds * 1_000_000_000)
    }

    /// By hand: 3 of 4 reads in second 10; they leave the window at second 70.
    #[test]
    fn reads_leave_after_sixty_seconds() {
        let coverage = Coverage::new();
        assert_eq!(coverage.count(at(0)).ratio(), None);
        for usable in [true, true, true, false] {
            coverage.record(at(10), usable);
        }
        assert_eq!(coverage.count(at(69)), CoverageCount { usable: 3, total: 4 });
        assert_eq!(coverage.count(at(70)), CoverageCount::default());
        coverage.record(at(70), false);
        assert_eq!(coverage.count(at(70)), CoverageCount { usable: 0, total: 1 });
    }

    #[test]
    fn a_late_read_takes_nothing_away() {
        let coverage = Coverage::new();
        coverage.record(at(70), true);
        coverage.record(at(10), false);
        assert_eq!(coverage.count(at(70)), CoverageCount { usable: 1, total: 1 });
    }

    #[test]
    fn a_window_agrees_with_a_plain_list() {
        let coverage = Coverage::new();
        let mut reads = Vec::new();
        for step in 0..5000_u64 {
            let now = at(step / 7 + (step * step) % 3);
            let usable = step % 5 != 0;
            coverage.record(now, usable);
            reads.push((now.as_ns() / 1_000_000_000, usable));
        }
        let present = 5000 / 7 + 3;
        let inside = reads.iter().filter(|(second, _)| present - second < 60);
        let expected = CoverageCount {
            usable: inside.clone().filter(|(_, usable)| *usable).count() as u64,
            total: inside.count() as u64,
        };
        // Seconds here may run back by up to 2; a bucket that was already reused loses those few counts.
        let counted = coverage.count(at(present));
        assert_eq!(counted, expected);
    }
}
