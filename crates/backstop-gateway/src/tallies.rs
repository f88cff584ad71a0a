//! What happened to requests about which the engine was never asked.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::strict::Fault;

/// Plain counters.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    refused: [AtomicU64; Fault::ALL.len()],
    malformed: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
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

    /// A connection was accepted.
    pub(crate) fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// It ended.
    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn accepted_count(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn open_count(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}
