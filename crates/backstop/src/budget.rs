//! How much memory all answers together may take while they are held back.
//!
//! A route's own limit says how large one answer may be that is held back until it is complete. Many of them at once, or
//! clients that are slow to take them, are bounded here: once the budget is used up, an answer streams instead of being
//! held. What was held is returned when its body was sent or dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Held-back bytes unless somebody says otherwise: the default of the policy file's `buffer_memory`.
const DEFAULT_BYTES: u64 = 256 << 20;

/// What all answers share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Bytes>);

#[derive(Debug)]
struct Bytes {
    limit: AtomicU64,
    held: AtomicU64,
    refused: AtomicU64,
}

/// Bytes of one answer, or of a request that is held whole, until dropped.
#[derive(Debug)]
#[must_use = "bytes that are dropped are returned at once"]
pub struct Held {
    budget: Budget,
    bytes: u64,
}

/// What is held back now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Bytes of answers that are held back or, complete, on their way to a client.
    pub bytes: u64,
    /// Bytes there may be.
    pub limit_bytes: u64,
    /// Answers that streamed instead, because there was no room.
    pub refused: u64,
}

impl Default for Budget {
    fn default() -> Self {
        let (held, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Bytes { limit: AtomicU64::new(DEFAULT_BYTES), held, refused }))
    }
}

impl Budget {
    /// Changes how much there may be. What is held already stays.
    pub(crate) fn set(&self, limit_bytes: u64) {
        self.0.limit.store(limit_bytes, Ordering::Relaxed);
    }

    /// Begins an answer, with nothing held yet.
    pub(crate) fn hold(&self) -> Held {
        Held { budget: self.clone(), bytes: 0 }
    }

    pub(crate) fn now(&self) -> HeldBack {
        HeldBack {
            bytes: self.0.held.load(Ordering::Relaxed),
            limit_bytes: self.0.limit.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
        }
    }
}

impl Held {
    /// Holds more. `false` if there is no room: then nothing more is held than before.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let shared = &*self.budget.0;
        let limit = shared.limit.load(Ordering::Relaxed);
        let room = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        let grown = shared.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if grown {
            self.bytes += bytes;
        } else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        grown
    }

    /// Holds less.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.0.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes over what another answer holds.
    pub(crate) fn join(&mut self, mut other: Held) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_allowed_and_all_of_it_comes_back() {
        let budget = Budget::default();
        budget.set(100);
        let (mut first, mut second) = (budget.hold(), budget.hold());
        assert!(first.grow(60) && second.grow(40));
        assert!(!second.grow(1), "the budget is used up");
        assert_eq!(budget.now(), HeldBack { bytes: 100, limit_bytes: 100, refused: 1 });
        drop(first);
        assert!(second.grow(60));
        drop(second);
        assert_eq!(budget.now().bytes, 0);
    }

    #[test]
    fn what_is_joined_is_held_once_and_what_shrinks_comes_back() {
        let budget = Budget::default();
        let (mut first, mut second) = (budget.hold(), budget.hold());
        assert!(first.grow(60) && second.grow(40));
        first.join(second);
        assert_eq!(budget.now().bytes, 100);
        first.shrink(30);
        assert_eq!(budget.now().bytes, 70);
        first.shrink(1000);
        assert_eq!(budget.now().bytes, 0);
        drop(first);
        assert_eq!(budget.now().bytes, 0);
    }

    #[test]
    fn a_smaller_limit_takes_nothing_away() {
        let budget = Budget::default();
        let mut held = budget.hold();
        assert!(held.grow(50));
        budget.set(10);
        assert!(!held.grow(1));
        assert!(!budget.hold().grow(u64::MAX), "sums do not overflow");
        assert_eq!(budget.now().bytes, 50);
        drop(held);
        assert!(budget.hold().grow(10));
    }
}
