//! What came of everything so far, as plain numbers.

use crate::sync::{AtomicU64, Ordering};

/// Counted since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Times it was opened, failed trials included; an operator's order is none.
    pub trips: u64,
    /// Calls let through to try it.
    pub probes: u64,
    /// Calls refused while it was open.
    pub refused_open: u64,
    /// Calls refused beyond its share.
    pub refused_ramping: u64,
    /// Shares that grew.
    pub step_ups: u64,
    /// Shares that shrank.
    pub step_backs: u64,
}

pub(super) struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct Counters {
    pub(super) trips: Counter,
    pub(super) probes: Counter,
    pub(super) refused_open: Counter,
    pub(super) refused_ramping: Counter,
    pub(super) step_ups: Counter,
    pub(super) step_backs: Counter,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            trips: Counter::new(),
            probes: Counter::new(),
            refused_open: Counter::new(),
            refused_ramping: Counter::new(),
            step_ups: Counter::new(),
            step_backs: Counter::new(),
        }
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            trips: self.trips.get(),
            probes: self.probes.get(),
            refused_open: self.refused_open.get(),
            refused_ramping: self.refused_ramping.get(),
            step_ups: self.step_ups.get(),
            step_backs: self.step_backs.get(),
        }
    }
}
