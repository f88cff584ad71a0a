//! The results of the tick that is under way, in one word: taken out as a whole, none lost and none counted twice.

use super::tagged::is_newer;
use crate::sync::{AtomicU64, Ordering};

const BITS: u32 = 12;
const MAX: u64 = (1 << BITS) - 1;
const TAG_AT: u32 = 4 * BITS;

/// The first 4095 results of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    pub(super) calls: u64,
    pub(super) failures: u64,
    /// Answers later than what is green.
    pub(super) over_green: u64,
    /// Answers later than what is not yet red.
    pub(super) over_red: u64,
}

pub(super) struct Tally {
    // Low 16 bits of the generation, then calls, failures, over green and over red, 12 bits each.
    word: AtomicU64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { word: AtomicU64::new(0) }
    }

    /// Counts one call of a generation; nothing if a newer one counts here already.
    pub(super) fn add(&self, generation: u32, failed: bool, over_green: bool, over_red: bool) {
        let added = [true, failed, over_green, over_red];
        let one = added.into_iter().fold(0, |word, part| (word << BITS) | u64::from(part));
        let tag = u64::from(generation as u16);
        let _newer = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let old = word >> TAG_AT;
            if old != tag {
                return (!is_newer(old as u16, generation as u16)).then_some((tag << TAG_AT) | one);
            }
            // No part is larger than the calls, so none runs over before they are full.
            (unpack(word).calls < MAX).then(|| word + one)
        });
    }

    pub(super) fn get(&self, generation: u32) -> Results {
        of(self.word.load(Ordering::Acquire), generation)
    }

    /// Takes what was counted; the next tick begins empty.
    pub(super) fn take(&self, generation: u32) -> Results {
        of(self.word.swap(u64::from(generation as u16) << TAG_AT, Ordering::AcqRel), generation)
    }
}

fn of(word: u64, generation: u32) -> Results {
    if word >> TAG_AT == u64::from(generation as u16) { unpack(word) } else { Results::default() }
}

fn unpack(word: u64) -> Results {
    let part = |n: u32| (word >> (n * BITS)) & MAX;
    Results { calls: part(3), failures: part(2), over_green: part(1), over_red: part(0) }
}
