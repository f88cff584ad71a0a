//! How much was admitted per second of late.
//!
//! One word per second: the second above, the count below. A word of another second is emptied by the first who counts
//! in it, so no timer is needed.

use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

/// Whole seconds that are looked at.
const LOOK_BACK: u64 = 5;
/// More than are looked at, so that the present second never empties one that still is.
const BUCKETS: u64 = 8;
const COUNT_BITS: u32 = 32;

#[derive(Debug)]
pub(super) struct Admitted {
    seconds: [AtomicU64; BUCKETS as usize],
}

impl Admitted {
    pub(super) fn new() -> Self {
        Self { seconds: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    pub(super) fn record(&self, now: Mono) {
        let second = second_of(now);
        let Some(bucket) = self.bucket(second) else { return };
        let _later_or_full = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let (counted, count) = (word >> COUNT_BITS, word as u32);
            match counted.cmp(&second) {
                std::cmp::Ordering::Less => Some((second << COUNT_BITS) | 1),
                std::cmp::Ordering::Equal => count.checked_add(1).map(|_| word + 1),
                std::cmp::Ordering::Greater => None,
            }
        });
    }

    /// What was recorded at this moment was not one. A second that is over keeps it.
    pub(super) fn take_back(&self, now: Mono) {
        let second = second_of(now);
        let Some(bucket) = self.bucket(second) else { return };
        let _over = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            (word >> COUNT_BITS == second && word as u32 > 0).then(|| word - 1)
        });
    }

    /// The mean of the last whole seconds, the present one left out.
    pub(super) fn per_second(&self, now: Mono) -> f64 {
        let present = second_of(now);
        let count_of = |second: u64| {
            let word = self.bucket(second).map_or(0, |bucket| bucket.load(Ordering::Relaxed));
            if word >> COUNT_BITS == second { word & u64::from(u32::MAX) } else { 0 }
        };
        let sum: u64 = (1..=LOOK_BACK).filter_map(|back| present.checked_sub(back)).map(count_of).sum();
        sum as f64 / LOOK_BACK as f64
    }

    fn bucket(&self, second: u64) -> Option<&AtomicU64> {
        self.seconds.get((second % BUCKETS) as usize)
    }
}

// From 1, so that an untouched word is no second's; 136 years fit.
fn second_of(now: Mono) -> u64 {
    (now.as_ns() / 1_000_000_000 + 1) & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Mono {
        Mono::from_ns(ms * 1_000_000)
    }

    /// By hand: 10 in second 0 and 20 in second 3 are 30 in five seconds, 6 per second; at second 6 only the 20 are
    /// left, 4 per second; at second 9 nothing.
    #[test]
    fn the_last_five_whole_seconds_count() {
        let admitted = Admitted::new();
        for _ in 0..10 {
            admitted.record(at_ms(999));
        }
        assert_eq!(admitted.per_second(at_ms(999)), 0.0, "the present second is not whole");
        assert_eq!(admitted.per_second(at_ms(1_000)), 2.0);
        for _ in 0..20 {
            admitted.record(at_ms(3_500));
        }
        let over_time = [4_000, 5_999, 6_000, 8_999, 9_000].map(|ms| admitted.per_second(at_ms(ms)));
        assert_eq!(over_time, [6.0, 6.0, 4.0, 4.0, 0.0]);
    }

    /// A thread that was held up for eight seconds does not empty the second that is there now.
    #[test]
    fn a_late_count_takes_nothing_away() {
        let admitted = Admitted::new();
        admitted.record(at_ms(8_000));
        admitted.record(at_ms(0));
        assert_eq!(admitted.per_second(at_ms(9_000)), 0.2);
    }
}
