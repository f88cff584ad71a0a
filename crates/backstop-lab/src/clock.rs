//! The one clock that records are stamped with.
//!
//! Stamps are nanoseconds of `CLOCK_MONOTONIC`. They may be compared between processes of one machine and one
//! boot, never between boots, and no step of the wall clock moves them.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of the monotonic clock.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::monotonic_ns;

    #[test]
    fn never_runs_back() {
        let first = monotonic_ns();
        let second = monotonic_ns();
        assert!(first > 0);
        assert!(second >= first);
    }
}
