//! A probe's slot, for as long as the dependency works for it.
//!
//! An answer gives the slot back at once. A client that leaves does not: the dependency does not know and goes on working,
//! and if clients leave fast enough, any number of probes would be at work in it. So the place is kept twice, by the call's
//! ticket and by whatever else the call takes up at its dependency, and comes back with the last of them. Until then it is
//! waited for as any other probe is, and one that never ends is a failed one.

use std::sync::Arc;

use super::Health;
use crate::sync::{AtomicU32, Ordering};
use crate::time::Mono;

const FREED: u32 = 1;

/// A probe's place, given back when the last of its holders is dropped.
#[derive(Clone)]
pub struct ProbePlace(Arc<Slot>);

struct Slot {
    health: Arc<Health>,
    generation: u32,
    slot: u32,
    admitted: Mono,
    // Another probe may have the same slot afterwards: it is given back once.
    freed: AtomicU32,
}

impl ProbePlace {
    pub(super) fn new(health: &Arc<Health>, generation: u32, slot: u32, admitted: Mono) -> Self {
        let health = Arc::clone(health);
        Self(Arc::new(Slot { health, generation, slot, admitted, freed: AtomicU32::new(0) }))
    }

    /// Gives it back now, whoever still holds it.
    pub(super) fn free(&self) {
        self.0.free();
    }

    /// The right to give the slot back together with something else. `None` if it is given back already.
    pub(super) fn take(&self) -> Option<u32> {
        self.0.take()
    }
}

impl Slot {
    fn take(&self) -> Option<u32> {
        if self.freed.swap(FREED, Ordering::AcqRel) == FREED {
            return None;
        }
        self.health.end_probe(self.generation, self.slot, self.admitted);
        Some(self.slot)
    }

    fn free(&self) {
        if let Some(slot) = self.take() {
            self.health.free_slot(self.generation, slot);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free();
    }
}

impl std::fmt::Debug for ProbePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbePlace")
            .field("generation", &self.0.generation)
            .field("slot", &self.0.slot)
            .finish_non_exhaustive()
    }
}
