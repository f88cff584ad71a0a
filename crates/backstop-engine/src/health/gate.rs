//! Calls per second, in one word: the moment at which the next call would be due if all came evenly (GCRA).
//!
//! A burst holds a tenth of a second's calls and at least one. Nothing is owed for time in which nobody came, and
//! nothing can run out for ever: a gate that gave all it had gives the next call when it is due.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

const BURST: Duration = Duration::from_millis(100);
/// One call per second is always given: with less, a recovery would never have seen enough to go on.
pub(super) const MIN_MILLI: u64 = 1000;

pub(super) struct Gate {
    due: AtomicU64,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { due: AtomicU64::new(0) }
    }

    /// Begins anew, with a full burst.
    pub(super) fn reset(&self) {
        self.due.store(0, Ordering::Release);
    }

    /// Whether a call would pass.
    pub(super) fn is_open(&self, now: Mono, interval_ns: u64) -> bool {
        next(self.due.load(Ordering::Acquire), now, interval_ns).is_some()
    }

    /// Takes a call's place.
    pub(super) fn pass(&self, now: Mono, interval_ns: u64) -> bool {
        let passed =
            self.due.fetch_update(Ordering::AcqRel, Ordering::Acquire, |due| next(due, now, interval_ns));
        passed.is_ok()
    }

    /// Gives back the place of a call that was not made.
    pub(super) fn give_back(&self, interval_ns: u64) {
        let given = |due: u64| Some(due.saturating_sub(interval_ns));
        let _always_updates = self.due.fetch_update(Ordering::AcqRel, Ordering::Acquire, given);
    }
}

fn next(due: u64, now: Mono, interval_ns: u64) -> Option<u64> {
    let next = due.max(now.as_ns()).saturating_add(interval_ns);
    let latest = now.as_ns().saturating_add(interval_ns.max(duration_ns(BURST)));
    (next <= latest).then_some(next)
}

/// Nanoseconds between two calls at this many thousandths of a call per second.
pub(super) fn interval_ns(milli: u64) -> u64 {
    (1_000_000_000_000 / milli.max(MIN_MILLI)).max(1)
}

/// Calls in this time, one interval apart.
pub(super) fn calls_in(time: Duration, interval_ns: u64) -> u64 {
    duration_ns(time) / interval_ns.max(1)
}

/// The most that pass in this time: those, and a burst.
pub(super) fn most_in(time: Duration, interval_ns: u64) -> u64 {
    duration_ns(time).saturating_add(interval_ns.max(duration_ns(BURST))) / interval_ns.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Mono {
        Mono::from_ns(ms * 1_000_000)
    }

    fn passed(gate: &Gate, milli: u64, at: impl Iterator<Item = u64>) -> usize {
        at.filter(|&ms| gate.pass(at_ms(ms), interval_ns(milli))).count()
    }

    /// By hand: 10 per second, asked every millisecond for a second from 5 s on: at 5.0, 5.1, ... 5.9.
    #[test]
    fn a_steady_rate_is_kept() {
        assert_eq!(passed(&Gate::new(), 10_000, 5000..6000), 10);
    }

    /// By hand: 200 per second are one per 5 ms, of which a tenth of a second holds 20; then one per 5 ms.
    #[test]
    fn a_burst_is_a_tenth_of_a_second() {
        let gate = Gate::new();
        assert_eq!(passed(&gate, 200_000, [5000; 100].into_iter()), 20);
        assert_eq!(passed(&gate, 200_000, 5004..5005), 0);
        assert_eq!(passed(&gate, 200_000, 5005..5006), 1);
    }

    /// By hand: nothing per second is still one.
    #[test]
    fn one_call_per_second_is_always_given() {
        let gate = Gate::new();
        assert_eq!(passed(&gate, 0, [5000; 100].into_iter()), 1);
        assert_eq!(passed(&gate, 0, 5001..8000), 2);
        assert_eq!(passed(&gate, 0, 8000..8001), 1);
    }

    #[test]
    fn a_place_given_back_is_free_at_once() {
        let gate = Gate::new();
        assert!(gate.pass(at_ms(5000), interval_ns(1000)));
        assert!(!gate.is_open(at_ms(5000), interval_ns(1000)));
        gate.give_back(interval_ns(1000));
        assert!(gate.is_open(at_ms(5000), interval_ns(1000)));
    }
}
