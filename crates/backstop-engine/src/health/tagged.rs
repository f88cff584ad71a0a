//! A count that belongs to one generation and one moment, in one word.
//!
//! The tag and the count change in one step, so a count is emptied by the first who counts under a newer tag, and
//! nothing that is late can be added to what is newer.

use crate::sync::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 24;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const MOMENT_BITS: u32 = 24;
const MOMENT_MASK: u64 = (1 << MOMENT_BITS) - 1;

/// Whether generation `new` comes after `old`, of which only the low 16 bits are kept. What was left alone for 32768
/// changes of state would be taken for newer; each of them takes as long as a trip or an operator.
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

    /// Counts one under this tag. False if a newer generation counts here: then nothing changes.
    pub(super) fn add(&self, generation: u32, moment: u64) -> bool {
        let tag = tag(generation, moment);
        let added = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let old_tag = word >> COUNT_BITS;
            if old_tag == tag {
                return Some(if word & COUNT_MAX < COUNT_MAX { word + 1 } else { word });
            }
            let old_generation = (old_tag >> MOMENT_BITS) as u16;
            (!is_newer(old_generation, generation as u16)).then_some((tag << COUNT_BITS) | 1)
        });
        added.is_ok()
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
