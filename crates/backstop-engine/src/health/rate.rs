//! What a dependency is given per second in good times: the measure of its recovery.
//!
//! Admitted calls are counted per whole second while it is closed. The first sixty seconds are a plain mean, from then
//! on each second counts for a sixtieth. Seconds without calls count; the second in which counting begins, being only
//! part of one, does not, nor does the time in which the dependency is not closed. Less than ten seconds say nothing.

use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// Seconds that the mean remembers.
const MEMORY: u64 = 60;
/// Seconds before the mean says anything.
const KNOWN_AFTER: u64 = 10;
/// After so many seconds without a call nothing is left of the mean: (59/60)^600 is 0.00004.
const FORGOTTEN_AFTER: u64 = 600;

const COUNT_BITS: u32 = 32;
const SECONDS_BITS: u32 = 8;

pub(super) struct Rate {
    // The second that is counted (32 bits) and its calls (32 bits). Zero: nothing is counted yet.
    present: AtomicU64,
    // Millionths of a call per second (56 bits) and the seconds behind them (8 bits).
    mean: AtomicU64,
    // The mean when the last incident began, or what its recovery showed to be wanted since, in thousandths; zero while
    // it is unknown.
    frozen: AtomicU64,
}

impl Rate {
    pub(super) fn new() -> Self {
        Self { present: AtomicU64::new(0), mean: AtomicU64::new(0), frozen: AtomicU64::new(0) }
    }

    /// Counts an admitted call.
    pub(super) fn count(&self, now: Mono) {
        let second = second_of(now);
        let word = self.present.load(Ordering::Relaxed);
        let counted = word >> COUNT_BITS;
        if word == 0 {
            // Counting begins with the next whole second.
            let _other_began = self.swap(word, (second + 1) << COUNT_BITS);
            return;
        }
        if second == counted {
            self.present.fetch_add(1, Ordering::Relaxed);
        } else if second > counted && self.swap(word, (second << COUNT_BITS) | 1) {
            self.fold(word & u64::from(u32::MAX), second - counted - 1);
        }
    }

    /// Takes back a call that was not made. A second that is over keeps it.
    pub(super) fn uncount(&self, admitted: Mono) {
        let second = second_of(admitted);
        let _over = self.present.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            (word >> COUNT_BITS == second && word as u32 > 0).then(|| word - 1)
        });
    }

    /// Goes on after a pause that does not count.
    pub(super) fn resume(&self, now: Mono) {
        self.present.store((second_of(now) + 1) << COUNT_BITS, Ordering::Relaxed);
    }

    /// Keeps the mean as it is now, if it says anything; else what was known before stays.
    pub(super) fn freeze(&self) {
        let word = self.mean.load(Ordering::Relaxed);
        if word & seconds_mask() >= KNOWN_AFTER {
            // Next to nothing is known all the same, and zero is not.
            self.frozen.store((((word >> SECONDS_BITS) + 500) / 1000).max(1), Ordering::Relaxed);
        }
    }

    /// Sets what is known from elsewhere, in thousandths of a call per second.
    pub(super) fn set_frozen(&self, milli: u64) {
        self.frozen.store(milli, Ordering::Relaxed);
    }

    /// Thousandths of a call per second before the incident, or what is known to be wanted since.
    pub(super) fn frozen_milli(&self) -> Option<u64> {
        Some(self.frozen.load(Ordering::Relaxed)).filter(|&milli| milli > 0)
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        self.present.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Adds a finished second and those after it in which nothing came.
    fn fold(&self, calls: u64, empty: u64) {
        let _always_updates = self.mean.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let mut word = with_second(word, calls);
            for _ in 0..empty.min(FORGOTTEN_AFTER) {
                word = with_second(word, 0);
            }
            Some(word)
        });
    }
}

fn with_second(word: u64, calls: u64) -> u64 {
    let (mean, seconds) = (word >> SECONDS_BITS, word & seconds_mask());
    let seconds = (seconds + 1).min(MEMORY);
    let sum = mean * (seconds - 1) + calls * 1_000_000;
    ((sum / seconds) << SECONDS_BITS) | seconds
}

const fn seconds_mask() -> u64 {
    (1 << SECONDS_BITS) - 1
}

fn second_of(now: Mono) -> u64 {
    (now.as_ns() / 1_000_000_000).min(u64::from(u32::MAX) - 1)
}
