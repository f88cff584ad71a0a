//! How long answers take in good times.
//!
//! Answers that were not slow are counted in buckets of an eighth of an octave, over two halves of thirty seconds that
//! take turns. The 95th percentile is that of the better half: what has just begun to fail has spoilt one at most.
//! A half with fewer than twenty answers says nothing.

use std::time::Duration;

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

const HALF: Duration = Duration::from_secs(30);
const MIN_ANSWERS: u64 = 20;
/// Eight buckets per octave of microseconds: none is wider than an eighth of what it counts. The last is 134 s and all
/// above.
const PER_OCTAVE_BITS: u32 = 3;
const BUCKETS: usize = if cfg!(loom) { 2 } else { 200 };

pub(super) struct Latency {
    half: AtomicU64,
    halves: [[AtomicU32; BUCKETS]; 2],
    // Nanoseconds when the last incident began; zero while it is unknown.
    frozen_ns: AtomicU64,
}

impl Latency {
    pub(super) fn new() -> Self {
        let empty = |_| std::array::from_fn(|_| AtomicU32::new(0));
        Self { half: AtomicU64::new(0), halves: std::array::from_fn(empty), frozen_ns: AtomicU64::new(0) }
    }

    /// Counts one answer.
    pub(super) fn record(&self, now: Mono, lasted: Duration) {
        let half = now.as_ns() / duration_ns(HALF);
        self.turn_to(half);
        let index = bucket_of(lasted.as_micros().try_into().unwrap_or(u64::MAX));
        if let Some(bucket) = self.buckets(half).get(index) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn buckets(&self, half: u64) -> &[AtomicU32; BUCKETS] {
        let [even, odd] = &self.halves;
        if half.is_multiple_of(2) { even } else { odd }
    }

    /// Empties what is older than a minute. A count that is added meanwhile may be lost: it is one of many.
    fn turn_to(&self, half: u64) {
        let before = self.half.load(Ordering::Relaxed);
        if half <= before
            || self.half.compare_exchange(before, half, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let stale = if half - before == 1 { half..=half } else { half - 1..=half };
        for bucket in stale.flat_map(|half| self.buckets(half)) {
            bucket.store(0, Ordering::Relaxed);
        }
    }

    fn p95_ns(&self) -> Option<u64> {
        self.halves.iter().filter_map(p95_of).min()
    }

    /// Keeps the percentile as it is now, if there is one; else what was known before stays.
    pub(super) fn freeze(&self) {
        if let Some(ns) = self.p95_ns() {
            self.frozen_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// Sets what was known before.
    pub(super) fn restore(&self, ns: u64) {
        self.frozen_ns.store(ns, Ordering::Relaxed);
    }

    /// Nanoseconds before the incident, if known.
    pub(super) fn frozen_ns(&self) -> Option<u64> {
        Some(self.frozen_ns.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }
}

fn p95_of(half: &[AtomicU32; BUCKETS]) -> Option<u64> {
    let count = |bucket: &AtomicU32| u64::from(bucket.load(Ordering::Relaxed));
    let answers: u64 = half.iter().map(count).sum();
    if answers < MIN_ANSWERS {
        return None;
    }
    let rank = (answers * 95).div_ceil(100);
    let mut below = 0;
    let index = half.iter().position(|bucket| {
        below += count(bucket);
        below >= rank
    })?;
    // The end of the bucket: a percentile is never said to be better than it was.
    Some(start_of(index + 1).saturating_mul(1000))
}

fn bucket_of(us: u64) -> usize {
    let octave = us.max(1).ilog2();
    if octave < PER_OCTAVE_BITS {
        return us as usize;
    }
    let shift = octave - PER_OCTAVE_BITS;
    let index = (u64::from(shift) << PER_OCTAVE_BITS) + (us >> shift);
    (index as usize).min(BUCKETS - 1)
}

/// The least number of microseconds in a bucket.
fn start_of(index: usize) -> u64 {
    let first = 1 << PER_OCTAVE_BITS;
    let index = index as u64;
    if index < 2 * first {
        return index;
    }
    let shift = index / first - 1;
    (index - shift * first) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// By hand: each bucket begins where the one before it ends.
    #[test]
    fn buckets_are_told_from_their_neighbours() {
        for (us, index) in [(0, 0), (7, 7), (8, 8), (15, 15), (16, 16), (17, 16), (18, 17), (32, 24)] {
            assert_eq!(bucket_of(us), index, "{us}");
        }
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(start_of(index)), index);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    /// By hand: of 100 answers 95 take 10 ms. 10 000 us lie in octave 13 (8192), whose eighths are 1024 us wide: the
    /// bucket from 9216 to 10 240.
    #[test]
    fn the_percentile_is_the_end_of_its_bucket() {
        let latency = Latency::new();
        for n in 0..100 {
            latency.record(Mono::from_ns(1), if n < 95 { ms(10) } else { ms(800) });
        }
        latency.freeze();
        assert_eq!(latency.frozen_ns(), Some(10_240_000));
    }

    #[test]
    fn nineteen_answers_say_nothing() {
        let latency = Latency::new();
        for _ in 0..19 {
            latency.record(Mono::from_ns(1), ms(10));
        }
        latency.freeze();
        assert_eq!(latency.frozen_ns(), None);
        latency.record(Mono::from_ns(1), ms(10));
        latency.freeze();
        assert_eq!(latency.frozen_ns(), Some(10_240_000));
    }

    /// The half in which it got bad does not hide the half in which it was good, until that one is over a minute old.
    #[test]
    fn the_better_half_counts() {
        let latency = Latency::new();
        let at = |seconds: u64| Mono::from_ns(seconds * 1_000_000_000);
        for _ in 0..20 {
            latency.record(at(29), ms(10));
            latency.record(at(31), ms(800));
        }
        latency.freeze();
        assert_eq!(latency.frozen_ns(), Some(10_240_000));
        for _ in 0..20 {
            latency.record(at(61), ms(900));
        }
        latency.freeze();
        // 800 000 us: octave 19 (524 288), eighths of 65 536: from 786 432 to 851 968.
        assert_eq!(latency.frozen_ns(), Some(851_968_000));
    }
}
