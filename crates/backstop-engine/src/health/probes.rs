//! When each probe began, so that one that never answers is not waited for.
//!
//! A slot's moment belongs to its generation: what an earlier one left there is nobody's.

use std::time::Duration;

use super::word::{SLOTS, Word};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

/// A probe is waited for at least this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

const US_BITS: u32 = 48;
const US_MASK: u64 = (1 << US_BITS) - 1;

pub(super) struct Probes {
    patience: Duration,
    // Low 16 bits of the generation, 48 bits of microseconds since boot (nine years), rounded up: never too early.
    began: [AtomicU64; SLOTS as usize],
}

impl Probes {
    pub(super) fn new(slow: Duration) -> Self {
        Self {
            patience: slow.saturating_mul(2).max(PATIENCE),
            began: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// A probe has taken this slot.
    pub(super) fn begin(&self, generation: u32, slot: u32, now: Mono) {
        if let Some(began) = self.began.get(slot as usize) {
            began.store(pack(generation, now), Ordering::Release);
        }
    }

    /// A probe is about to leave its slot. Another generation's is left alone.
    pub(super) fn end(&self, generation: u32, slot: u32, began_at: Mono) {
        if let Some(began) = self.began.get(slot as usize) {
            let own = pack(generation, began_at);
            let _other = began.compare_exchange(own, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Whether a probe of this state has been waited for long enough.
    pub(super) fn is_one_overdue(&self, word: Word, now: Mono) -> bool {
        let taken = word.slots();
        self.began.iter().enumerate().filter(|(slot, _)| taken & (1 << slot) != 0).any(|(_, began)| {
            let began = began.load(Ordering::Acquire);
            let is_own = began >> US_BITS == u64::from(word.generation() as u16) && began & US_MASK > 0;
            let since_us = (now.as_ns() / 1000).saturating_sub(began & US_MASK);
            is_own && since_us >= duration_ns(self.patience) / 1000
        })
    }
}

fn pack(generation: u32, now: Mono) -> u64 {
    let us = now.as_ns().div_ceil(1000).clamp(1, US_MASK);
    (u64::from(generation as u16) << US_BITS) | us
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::word::Kind;

    fn at(seconds: u64) -> Mono {
        Mono::from_ns(seconds * 1_000_000_000)
    }

    /// A slot may be seen taken before its probe has written when it began.
    #[test]
    fn what_an_earlier_probe_left_is_nobodys() {
        let probes = Probes::new(Duration::from_secs(1));
        let taken = |generation| Word::new(generation, Kind::HalfOpen).with_slot(2);
        assert!(!probes.is_one_overdue(taken(1), at(100)), "nothing was written");
        probes.begin(1, 2, at(5));
        assert!(!probes.is_one_overdue(taken(1), at(14)) && probes.is_one_overdue(taken(1), at(15)));
        assert!(!probes.is_one_overdue(taken(2), at(100)), "another generation's");
        assert!(!probes.is_one_overdue(Word::new(1, Kind::HalfOpen), at(100)), "a slot that is free");
        probes.end(2, 2, at(5));
        assert!(probes.is_one_overdue(taken(1), at(15)), "ended by another generation's");
        probes.end(1, 2, at(5));
        assert!(!probes.is_one_overdue(taken(1), at(100)), "an earlier probe's");
    }
}
