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

/// Whether an answer came later than what a ramp bears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) over_green: bool,
    pub(super) over_red: bool,
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
    pub(super) fn add(&self, generation: u32, failed: bool, late: Late) {
        let one = pack([true, failed, late.over_green, late.over_red]);
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

    /// Makes a failure of a call that was counted as answered in this tick; false if there is none.
    pub(super) fn turn_into_failure(&self, generation: u32) -> bool {
        let turned = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let results = of(word, generation);
            (results.failures < results.calls).then(|| word + pack([false, true, false, false]))
        });
        turned.is_ok()
    }

    pub(super) fn get(&self, generation: u32) -> Results {
        of(self.word.load(Ordering::Acquire), generation)
    }

    /// Takes what was counted; the next tick begins empty.
    pub(super) fn take(&self, generation: u32) -> Results {
        of(self.word.swap(u64::from(generation as u16) << TAG_AT, Ordering::AcqRel), generation)
    }
}

/// One of each part: calls, failures, over green, over red.
fn pack(parts: [bool; 4]) -> u64 {
    parts.into_iter().fold(0, |word, part| (word << BITS) | u64::from(part))
}

fn of(word: u64, generation: u32) -> Results {
    if word >> TAG_AT == u64::from(generation as u16) { unpack(word) } else { Results::default() }
}

fn unpack(word: u64) -> Results {
    let part = |n: u32| (word >> (n * BITS)) & MAX;
    Results { calls: part(3), failures: part(2), over_green: part(1), over_red: part(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_an_older_generation_never_count_in_a_newer_one() {
        let tally = Tally::new();
        tally.add(7, true, Late::default());
        tally.add(8, false, Late { over_green: true, over_red: true });
        tally.add(7, true, Late::default());
        assert_eq!(tally.get(7), Results::default());
        assert_eq!(tally.take(8), Results { calls: 1, failures: 0, over_green: 1, over_red: 1 });
        assert_eq!(tally.get(8), Results::default());
    }

    /// By hand: 12 bits hold 4095; further results change nothing, also not the parts.
    #[test]
    fn a_full_tally_stays_as_it_is() {
        let tally = Tally::new();
        for _ in 0..4095 {
            tally.add(1, false, Late::default());
        }
        tally.add(1, true, Late { over_green: true, over_red: true });
        assert_eq!(tally.get(1), Results { calls: 4095, ..Results::default() });
    }
}
