//! What the operator accepted about failing and coming back, as plain data.

use std::time::Duration;

use crate::policy::Origin;

/// A share in thousandths; as a multiple, 1000 is once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerMille(pub u32);

impl PerMille {
    /// The whole.
    pub const WHOLE: PerMille = PerMille(1000);

    /// Whether `part` of `whole` is at least this share. Nothing is no share of anything.
    pub(super) fn is_reached(self, part: u64, whole: u64) -> bool {
        part > 0 && part.saturating_mul(1000) >= whole.saturating_mul(u64::from(self.0))
    }

    /// Whether `part` of `whole` is more than this share.
    pub(super) fn is_exceeded(self, part: u64, whole: u64) -> bool {
        part.saturating_mul(1000) > whole.saturating_mul(u64::from(self.0))
    }

    /// This multiple of a number of nanoseconds.
    pub(super) fn times(self, ns: u64) -> u64 {
        u64::try_from(u128::from(ns) * u128::from(self.0) / 1000).unwrap_or(u64::MAX)
    }
}

/// What a breaker is held at, whatever comes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Nothing is let through.
    Open,
    /// Everything is let through.
    Closed,
}

/// When a dependency is no longer asked, and when it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// How far back calls are counted, in ten equal parts of which the present one is under way.
    pub window: Duration,
    /// Fewer calls in the window decide nothing by their share.
    pub min_calls: u32,
    /// Failed calls that open it.
    pub failures: PerMille,
    /// A call that lasted longer is slow, whatever came of it.
    pub slow: Duration,
    /// Slow calls that open it.
    pub slow_share: PerMille,
    /// How long it is open after the first trip; twice as long after each further one.
    pub open: Duration,
    /// No longer than this, before the spread of a fifth to either side.
    pub open_max: Duration,
    /// Calls that try it at once, and successes that end the trial: 1 to 16.
    pub probes: u32,
    /// What it begins forced to, until it is released.
    pub forced: Option<Forced>,
    /// Where the rules were written.
    pub origin: Origin,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            min_calls: 20,
            failures: PerMille(500),
            slow: Duration::from_secs(1),
            slow_share: PerMille(600),
            open: Duration::from_secs(5),
            open_max: Duration::from_secs(30),
            probes: 3,
            forced: None,
            origin: Origin::NONE,
        }
    }
}

/// How much a dependency is given while it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRules {
    /// The first share of what it had before.
    pub start: PerMille,
    /// The multiple of a step up.
    pub up: PerMille,
    /// The multiple of a step back.
    pub back: PerMille,
    /// How often the share is judged, at most.
    pub tick: Duration,
    /// Up to these values, all of them, the share grows.
    pub green: Band,
    /// Above any of these it shrinks.
    pub red: Band,
    /// Where the rules were written.
    pub origin: Origin,
}

impl Default for RecoveryRules {
    fn default() -> Self {
        Self {
            start: PerMille(100),
            up: PerMille(1500),
            back: PerMille(700),
            tick: Duration::from_secs(1),
            green: Band {
                errors: PerMille(10),
                p95: PerMille(3000),
                db_wait: Duration::from_millis(5),
                in_use: PerMille(700),
                backlog: Duration::from_secs(1),
            },
            red: Band {
                errors: PerMille(50),
                p95: PerMille(7000),
                db_wait: Duration::from_millis(20),
                in_use: PerMille(900),
                backlog: Duration::from_secs(5),
            },
            origin: Origin::NONE,
        }
    }
}

/// One line through everything that is watched during a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Failed calls.
    pub errors: PerMille,
    /// The 95th percentile of the time to answer, as a multiple of what it was before the incident.
    pub p95: PerMille,
    /// Waiting for a database connection.
    pub db_wait: Duration,
    /// What is used of the resource's limit.
    pub in_use: PerMille,
    /// Work that waits, as the time that it takes.
    pub backlog: Duration,
}
