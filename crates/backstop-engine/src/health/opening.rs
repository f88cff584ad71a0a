//! How long a dependency is left alone.
//!
//! The first trip opens for the accepted time, each further one for twice as long as the one before it, never for more
//! than the accepted maximum. Each value is spread by a fifth to either side, so that many processes that saw the same
//! incident do not come back at the same moment. A moment that the dependency itself asked for (`Retry-After`) makes
//! it longer, never shorter, and is believed up to a minute ahead.

use std::time::Duration;

use super::rules::BreakerRules;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

/// How far ahead a dependency's own word is believed.
pub(super) const ASKED_MAX: Duration = Duration::from_secs(60);

pub(super) struct Opening {
    until: AtomicU64,
    asked: AtomicU64,
    trips: AtomicU32,
}

impl Opening {
    pub(super) fn new() -> Self {
        Self { until: AtomicU64::new(0), asked: AtomicU64::new(0), trips: AtomicU32::new(0) }
    }

    /// When the next probe may go.
    pub(super) fn until(&self) -> Mono {
        Mono::from_ns(self.until.load(Ordering::Acquire).max(self.asked.load(Ordering::Acquire)))
    }

    /// Trips in a row.
    pub(super) fn trips(&self) -> u32 {
        self.trips.load(Ordering::Acquire)
    }

    /// What the dependency asked for, heard at `now`.
    pub(super) fn ask(&self, now: Mono, until: Mono) {
        self.asked.fetch_max(until.min(now.after(ASKED_MAX)).as_ns(), Ordering::AcqRel);
    }

    /// One more trip. Only for whoever moves the state.
    pub(super) fn trip(&self, now: Mono, rules: &BreakerRules, entropy: u64) {
        let trips = self.trips().saturating_add(1);
        self.trips.store(trips, Ordering::Release);
        self.until.store(now.after(spread(nominal(rules, trips), entropy)).as_ns(), Ordering::Release);
    }

    /// What is left after a restart. Only for whoever moves the state.
    pub(super) fn restore(&self, until: Mono, trips: u32) {
        self.trips.store(trips, Ordering::Release);
        self.until.store(until.as_ns(), Ordering::Release);
    }

    /// What the dependency asked for is over: it answers again.
    pub(super) fn asks_no_more(&self) {
        self.asked.store(0, Ordering::Release);
    }

    /// The row of trips ends, unless another one came meanwhile.
    pub(super) fn forget_trips(&self, seen: u32) {
        let _another_trip = self.trips.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The time of the n-th trip in a row, before it is spread.
pub(super) fn nominal(rules: &BreakerRules, trips: u32) -> Duration {
    let doublings = trips.saturating_sub(1).min(63);
    let ns = u128::from(duration_ns(rules.open)) << doublings;
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).min(rules.open_max)
}

/// A value between four and six fifths, evenly.
pub(super) fn spread(nominal: Duration, entropy: u64) -> Duration {
    // Both below 2^64, so the product is below 2^128.
    let ns = u128::from(duration_ns(nominal));
    let ns = ns * 4 / 5 + ((ns * u128::from(entropy)) >> 64) * 2 / 5;
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 5, 10, 20, then 40 and all after it are capped to 30; trip 1100 overflows nothing.
    #[test]
    fn open_times_double_up_to_the_maximum() {
        let rules = BreakerRules::default();
        let seconds = [0, 1, 2, 3, 4, 5, 64, 65, 1100, u32::MAX].map(|n| nominal(&rules, n).as_secs());
        assert_eq!(seconds, [5, 5, 10, 20, 30, 30, 30, 30, 30, 30]);
        let endless = BreakerRules { open: Duration::MAX, open_max: Duration::MAX, ..rules };
        assert_eq!(nominal(&endless, 1100), Duration::from_nanos(u64::MAX));
        assert_eq!(
            nominal(&BreakerRules { open: Duration::ZERO, ..rules }, 1100),
            Duration::ZERO,
            "nothing doubled is nothing"
        );
    }

    /// By hand, of 10 s: 8 s without entropy, 10 s in the middle, just under 12 s at the end.
    #[test]
    fn open_times_are_spread_by_a_fifth() {
        let ten = Duration::from_secs(10);
        assert_eq!(spread(ten, 0), Duration::from_secs(8));
        assert_eq!(spread(ten, 1 << 63), ten);
        let most = spread(ten, u64::MAX);
        assert!(most < Duration::from_secs(12) && most > Duration::from_millis(11_999), "{most:?}");
        // By hand: six fifths of 2^64 cannot be named in nanoseconds, so the most that can is given.
        assert_eq!(spread(Duration::MAX, u64::MAX), Duration::from_nanos(u64::MAX));
    }
}
