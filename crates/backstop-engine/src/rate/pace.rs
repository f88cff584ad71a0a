//! How far apart admissions are, in whole nanoseconds, and how many may come at once.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::duration_ns;

use super::LATEST_NS;

/// The interval of a rate of zero.
pub(super) const NEVER: u64 = u64::MAX;
/// The interval of a rate that has no limit.
pub(super) const AT_ONCE: u64 = 0;

/// The share of a second's admissions that may come at once where no burst is named.
const USUAL_BURST: Duration = Duration::from_millis(50);

/// How far apart admissions are, and how many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) interval_ns: u64,
    pub(super) burst: u64,
}

impl Pace {
    pub(super) const NEVER: Self = Self { interval_ns: NEVER, burst: 0 };
    pub(super) const AT_ONCE: Self = Self { interval_ns: AT_ONCE, burst: 0 };

    pub(super) fn new(count: u64, period: Duration, burst: Option<u64>) -> Self {
        let period_ns = duration_ns(period).max(1);
        let count = count.min(period_ns);
        let interval_ns = period_ns.div_ceil(count.max(1));
        if count == 0 || interval_ns > LATEST_NS {
            return Self::NEVER;
        }
        let usual = || scaled(duration_ns(USUAL_BURST), count, period_ns).max(1);
        Self { interval_ns, burst: burst.unwrap_or_else(usual) }
    }

    /// The burst as time: so far may the theoretical arrival time lie ahead.
    pub(super) const fn burst_ns(self) -> u64 {
        match self.interval_ns {
            NEVER => 0,
            interval_ns => self.burst.saturating_mul(interval_ns),
        }
    }
}

/// A pace that may change.
#[derive(Debug)]
pub(super) struct PaceCell {
    interval_ns: AtomicU64,
    burst: AtomicU64,
}

impl PaceCell {
    pub(super) fn new(pace: Pace) -> Self {
        Self { interval_ns: AtomicU64::new(pace.interval_ns), burst: AtomicU64::new(pace.burst) }
    }

    // What is read in the middle of a change belongs to a slot that the word does not name any more: whoever reckons
    // with it finds the word changed and begins again.
    pub(super) fn load(&self) -> Pace {
        Pace {
            interval_ns: self.interval_ns.load(Ordering::Relaxed),
            burst: self.burst.load(Ordering::Relaxed),
        }
    }

    pub(super) fn store(&self, pace: Pace) {
        self.interval_ns.store(pace.interval_ns, Ordering::Relaxed);
        self.burst.store(pace.burst, Ordering::Relaxed);
    }
}

/// `value * by / of`.
pub(super) fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
