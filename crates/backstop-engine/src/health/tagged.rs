//! A count that belongs to one generation and one moment, in one word.
//!
//! The tag and the count change in one step, so a count is emptied by the first who counts under a newer tag, and
//! nothing that is late can be added to what is newer.

use crate::sync::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 24;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const MOMENT_BITS: u32 = 24;
const MOMENT_MASK: u64 = (1 << MOMENT_BITS) - 1;
/// No thread is late by more moments than this: what seems to be is a later round of the moment's 24 bits.
const LATE_MAX: u64 = 1000;

/// Whether generation `new` comes after `old`, of which only the low 16 bits are kept. Whoever moves the state stamps
/// everything with the generation that begins, so that nothing is ever further apart than a few.
pub(super) fn is_newer(new: u16, old: u16) -> bool {
    let ahead = new.wrapping_sub(old);
    ahead != 0 && ahead < 0x8000
}

/// Low 16 bits of the generation, low 24 bits of the moment, 24 bits of count, saturating.
pub(super) struct TaggedCount(AtomicU64);

impl TaggedCount {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one under this tag. False if a newer generation, or a later moment of the same one, counts here: then
    /// nothing changes.
    pub(super) fn add(&self, generation: u32, moment: u64) -> bool {
        let tag = tag(generation, moment);
        let added = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let old_tag = word >> COUNT_BITS;
            if old_tag == tag {
                return Some(if word & COUNT_MAX < COUNT_MAX { word + 1 } else { word });
            }
            let old_generation = (old_tag >> MOMENT_BITS) as u16;
            let ahead = old_tag.wrapping_sub(tag) & MOMENT_MASK;
            // A count that has just begun belongs to no moment yet.
            let is_late = old_generation == generation as u16 && ahead <= LATE_MAX && word & COUNT_MAX > 0;
            (!is_late && !is_newer(old_generation, generation as u16)).then_some((tag << COUNT_BITS) | 1)
        });
        added.is_ok()
    }

    /// Nothing of this generation is counted yet, and nothing of an earlier one counts any more.
    pub(super) fn begin(&self, generation: u32) {
        // Swapped, not stored, so that it takes its place among the additions: an addition of before is seen as such.
        let _over = self.0.swap(tag(generation, 0) << COUNT_BITS, Ordering::AcqRel);
    }

    /// What was counted under this tag.
    pub(super) fn get(&self, generation: u32, moment: u64) -> u64 {
        let word = self.0.load(Ordering::Acquire);
        if word >> COUNT_BITS == tag(generation, moment) { word & COUNT_MAX } else { 0 }
    }
}

fn tag(generation: u32, moment: u64) -> u64 {
    (u64::from(generation as u16) << MOMENT_BITS) | (moment & MOMENT_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_generation_never_counts_where_a_newer_one_does() {
        let count = TaggedCount::new();
        assert!(count.add(7, 3) && count.add(8, 3));
        assert!(!count.add(7, 3) && !count.add(7, 4));
        assert_eq!((count.get(7, 3), count.get(8, 3)), (0, 1));
        assert!(count.add(8, 3) && count.add(8, 13));
        assert_eq!((count.get(8, 3), count.get(8, 13)), (0, 1), "a later moment begins anew");
    }

    /// A thread that was held up takes nothing away from what was counted meanwhile; a moment whose 24 bits have gone
    /// round once more is a later one (by hand: 2^24 moments later the bits are the same, here 2^24 - 2000 later).
    #[test]
    fn an_earlier_moment_never_counts_where_a_later_one_does() {
        let count = TaggedCount::new();
        count.begin(8);
        assert!(count.add(8, 13) && count.add(8, 13));
        assert!(!count.add(8, 3));
        assert_eq!((count.get(8, 3), count.get(8, 13)), (0, 2));
        assert!(count.add(8, 13 + (1 << MOMENT_BITS) - 2000));
        assert_eq!(count.get(8, 13), 0);
        assert!(count.add(9, 3), "a newer generation may count any moment");
    }

    /// By hand: 65 535 is followed by 65 536, of which 0 is kept.
    #[test]
    fn generations_are_told_apart_where_they_overflow() {
        assert!(is_newer(0, u16::MAX) && !is_newer(u16::MAX, 0) && !is_newer(5, 5));
        let count = TaggedCount::new();
        count.begin(65_534);
        assert!(count.add(65_535, 1) && count.add(65_536, 1) && !count.add(65_535, 1));
    }
}
