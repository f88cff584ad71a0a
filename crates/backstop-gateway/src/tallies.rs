//! What happened to requests about which the engine was never asked.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::strict::Fault;

/// Plain counters.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    refused: [AtomicU64; Fault::ALL.len()],
    malformed: AtomicU64,
    connections: AtomicU64,
    connections_refused: AtomicU64,
    accept_failures: AtomicU64,
    open: AtomicU64,
    /// Those of them that came before the stop began. Counted by itself: a difference of two counts would be wrong between
    /// the changes of one and of the other, and a stop that saw none left would cut the last.
    open_early: AtomicU64,
}

impl Tallies {
    /// A request was refused before it came to a route.
    pub(crate) fn refused(&self, fault: Fault) {
        if let Some(counter) = self.refused.get(fault as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn refused_count(&self, fault: Fault) -> u64 {
        self.refused.get(fault as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// A connection ended because its bytes were no HTTP.
    pub(crate) fn malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn malformed_count(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// A connection came. Whether it may stay: no more than `most` are open at a time.
    pub(crate) fn open(&self, most: u64, late: bool) -> bool {
        let open = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < most).then_some(open.saturating_add(1))
        });
        if open.is_err() {
            self.connections_refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        if !late {
            self.open_early.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// It ended.
    pub(crate) fn closed(&self, late: bool) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        if !late {
            self.open_early.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The system could not hand out the next connection.
    pub(crate) fn accept_failed(&self) {
        self.accept_failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn accept_failures_count(&self) -> u64 {
        self.accept_failures.load(Ordering::Relaxed)
    }

    pub(crate) fn connections_refused_count(&self) -> u64 {
        self.connections_refused.load(Ordering::Relaxed)
    }

    /// Open connections that were there before the stop began.
    pub(crate) fn open_early_count(&self) -> u64 {
        self.open_early.load(Ordering::Relaxed)
    }

    pub(crate) fn accepted_count(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn open_count(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// One connection from before the stop is open all the time, while others come and go: it is never overlooked.
    #[test]
    fn connections_that_come_late_never_hide_one_that_came_early() {
        let tallies = Tallies::default();
        assert!(tallies.open(100, false));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    assert!(tallies.open(100, true));
                    tallies.closed(true);
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                assert_eq!(tallies.open_early_count(), 1);
            }
        });
        tallies.closed(false);
        assert_eq!((tallies.open_early_count(), tallies.open_count()), (0, 0));
    }
}
