//! Calls of the recent past, in ten parts of which the present one is under way.
//!
//! Calls are counted when they end: what hangs does not make the rest look better. A window belongs to one generation;
//! the next one finds it empty.

use std::time::Duration;

use super::tagged::TaggedCount;
use crate::time::{Mono, duration_ns};

/// Fewer while every interleaving is tried: each part is a further place where threads can meet.
const BUCKETS: usize = if cfg!(loom) { 2 } else { 10 };

/// What the window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCount {
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that lasted longer than accepted.
    pub slow: u64,
}

struct Bucket {
    calls: TaggedCount,
    failures: TaggedCount,
    slow: TaggedCount,
}

pub(super) struct Window {
    bucket_ns: u64,
    buckets: [Bucket; BUCKETS],
}

impl Window {
    pub(super) fn new(length: Duration) -> Self {
        let bucket =
            |_| Bucket { calls: TaggedCount::new(), failures: TaggedCount::new(), slow: TaggedCount::new() };
        Self {
            bucket_ns: (duration_ns(length) / BUCKETS as u64).max(1),
            buckets: std::array::from_fn(bucket),
        }
    }

    /// Begins empty for this generation.
    pub(super) fn begin(&self, generation: u32) {
        for bucket in &self.buckets {
            for count in [&bucket.calls, &bucket.failures, &bucket.slow] {
                count.begin(generation);
            }
        }
    }

    // Moments are counted from 1, so that an untouched word is never taken for moment 0 of generation 0.
    fn moment(&self, now: Mono) -> u64 {
        (now.as_ns() / self.bucket_ns).saturating_add(1)
    }

    fn bucket(&self, moment: u64) -> Option<&Bucket> {
        self.buckets.get((moment % BUCKETS as u64) as usize)
    }

    /// Counts one call. The call first: a failure is never seen without its call.
    pub(super) fn record(&self, generation: u32, now: Mono, failed: bool, slow: bool) {
        let moment = self.moment(now);
        let Some(bucket) = self.bucket(moment) else { return };
        if !bucket.calls.add(generation, moment) {
            return;
        }
        if failed {
            bucket.failures.add(generation, moment);
        }
        if slow {
            bucket.slow.add(generation, moment);
        }
    }

    /// A call that was counted at `counted` has failed: the same call, as long as the window has it. After that it is a
    /// further one, or if it was a bad one already (`is_further` is false) nothing more.
    pub(super) fn turn_into_failure(&self, generation: u32, counted: Mono, now: Mono, is_further: bool) {
        let moment = self.moment(counted);
        let is_inside = self.moment(now).saturating_sub(moment) < BUCKETS as u64;
        let bucket = self.bucket(moment).filter(|_| is_inside);
        let turned = bucket.is_some_and(|bucket| bucket.failures.add(generation, moment));
        if !turned && is_further {
            self.record(generation, now, true, false);
        }
    }

    pub(super) fn count(&self, generation: u32, now: Mono) -> WindowCount {
        let present = self.moment(now);
        let mut sum = WindowCount::default();
        for back in 0..(BUCKETS as u64).min(present) {
            let moment = present - back;
            if let Some(bucket) = self.bucket(moment) {
                sum.failures += bucket.failures.get(generation, moment);
                sum.slow += bucket.slow.get(generation, moment);
                sum.calls += bucket.calls.get(generation, moment);
            }
        }
        sum
    }
}
