//! Ten failures in a row within five seconds: what opens a dependency with little traffic.
//!
//! Any answer ends the row. The moments of the last ten are kept, so that a row that began slowly counts from where it
//! became dense.

use std::time::Duration;

use super::tagged::is_newer;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// Failures in a row.
pub(super) const LENGTH: usize = 10;
/// From the first of them to the last.
pub(super) const WITHIN: Duration = Duration::from_secs(5);

const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

pub(super) struct Streak {
    // Low 16 bits of the generation, 48 bits of count.
    word: AtomicU64,
    moments: [AtomicU64; LENGTH],
}

impl Streak {
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(0), moments: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Nothing of this generation is counted yet.
    pub(super) fn begin(&self, generation: u32) {
        let _over = self.word.swap(u64::from(generation as u16) << COUNT_BITS, Ordering::AcqRel);
    }

    /// Counts a failure; whether the row is long and dense enough now. Another thread's moment that is not yet written
    /// reads as an old one: the row is then found with the next failure.
    pub(super) fn failed(&self, generation: u32, now: Mono) -> bool {
        let tag = u64::from(generation as u16);
        let counted = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let old = word >> COUNT_BITS;
            if old == tag {
                return Some(word + 1);
            }
            (!is_newer(old as u16, generation as u16)).then_some((tag << COUNT_BITS) | 1)
        });
        let Ok(before) = counted else { return false };
        let index = if before >> COUNT_BITS == tag { before & COUNT_MASK } else { 0 };
        let place = |index: u64| self.moments.get((index % LENGTH as u64) as usize);
        if let Some(moment) = place(index) {
            moment.store(now.as_ns(), Ordering::Release);
        }
        if index + 1 < LENGTH as u64 {
            return false;
        }
        // The place after the newest holds the tenth last.
        let first = place(index + 1).map_or(0, |moment| moment.load(Ordering::Acquire));
        Mono::from_ns(first).after(WITHIN) >= now
    }

    /// An answer came.
    pub(super) fn answered(&self, generation: u32) {
        let tag = u64::from(generation as u16);
        let word = self.word.load(Ordering::Acquire);
        if word >> COUNT_BITS == tag && word & COUNT_MASK > 0 {
            // A failure that is counted at this very moment comes after the answer, and is the first of its row or is
            // forgotten with it: either order is one that could have been.
            let _either =
                self.word.compare_exchange(word, tag << COUNT_BITS, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
