//! Limits on what is in flight: taken at once or refused at once, returned exactly once.
//!
//! A [`Limit`] counts; a [`Permit`] is one place in it and gives it back when dropped, on every path, cancellation and
//! panic included. The count is exact: it never exceeds the limit for a moment and never refuses while a place is free
//! that nobody waits for.
//!
//! A limit may have *waiters* (a bounded queue in front of a dependency). While there are any, newcomers do not
//! overtake them. The limit itself never waits: whoever waits is told by [`OnRelease`] and tries again.
//!
//! Not everybody may use all places: [`Limit::try_acquire_within`] admits only while fewer than so many are taken, by
//! whomever, and so keeps the rest for those who may use more. Nobody waits within a part: a free place that the first
//! waiter may not use would hold up everyone behind it.
//!
//! A permit carries the limit's *generation* at the moment it was taken. A result that arrives with an older generation
//! belongs to a past that has been closed (a policy reload, a breaker that moved on) and changes nothing newer.

use std::sync::{Arc, OnceLock};

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Told whenever a place may have become free.
pub trait OnRelease: Send + Sync + 'static {
    /// A permit came back, or the limit was raised, while somebody waited. Must not block.
    fn released(&self);
}

/// A number of places.
pub struct Limit {
    limit: AtomicU32,
    /// Waiters in the upper half, places taken in the lower. One word, so that every change of one half sees the other:
    /// with two, a release could miss the waiter that at the same moment misses the release, and sleep would follow.
    word: AtomicU64,
    generation: AtomicU64,
    refused: AtomicU64,
    on_release: OnceLock<Arc<dyn OnRelease>>,
}

const ONE_WAITER: u64 = 1 << 32;

const fn taken(word: u64) -> u32 {
    word as u32
}

const fn waiters(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Whether a full limit refuses or is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// A full limit refuses.
    Refuse,
    /// The place is given all the same; the refusal is counted.
    Count,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Has not waited: stands behind those who do.
    Newcomer,
    /// Has waited.
    Waiter,
}

impl Limit {
    /// A limit of this many places.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: AtomicU32::new(limit),
            word: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            on_release: OnceLock::new(),
        }
    }

    /// Takes a place now, or not at all.
    pub fn try_acquire(self: &Arc<Self>, turn: Turn, excess: Excess) -> Option<Permit> {
        self.try_acquire_within(turn, excess, u32::MAX)
    }

    /// Takes a place now if, with it, no more than `places` of the limit's places are taken, or not at all. Whose they
    /// are makes no difference; more `places` than the limit has mean all of them.
    pub fn try_acquire_within(self: &Arc<Self>, turn: Turn, excess: Excess, places: u32) -> Option<Permit> {
        self.take(turn, excess, places).0
    }

    /// The same, with the number of places that were taken at the very moment of the decision.
    pub(crate) fn take(self: &Arc<Self>, turn: Turn, excess: Excess, places: u32) -> (Option<Permit>, u32) {
        let limit = self.limit.load(Ordering::Relaxed).min(places);
        let places = if excess == Excess::Count { u32::MAX } else { limit };
        let behind_others = |word| turn == Turn::Newcomer && excess == Excess::Refuse && waiters(word) > 0;
        let admitted = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            (taken(word) < places && !behind_others(word)).then(|| word + 1)
        });
        let (Ok(before) | Err(before)) = admitted;
        if admitted.is_err() || taken(before) >= limit {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        let permit =
            || Permit { generation: self.generation.load(Ordering::Acquire), limit: Arc::clone(self) };
        (admitted.is_ok().then(permit), taken(before))
    }

    /// Announces a waiter; it counts until the guard is dropped.
    pub fn wait(self: &Arc<Self>) -> Waiting {
        let before = self.word.fetch_add(ONE_WAITER, Ordering::AcqRel);
        Waiting { limit: Arc::clone(self), is_first: waiters(before) == 0 }
    }

    /// Names who is told of free places. Only the first call counts.
    pub fn notify_with(&self, on_release: Arc<dyn OnRelease>) {
        let _already_named = self.on_release.set(on_release);
    }

    /// Places taken now.
    pub fn in_flight(&self) -> u32 {
        taken(self.word.load(Ordering::Relaxed))
    }

    /// Waiters now.
    pub fn waiting(&self) -> u32 {
        waiters(self.word.load(Ordering::Relaxed))
    }

    /// The number of places.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// How often a place was refused so far, or would have been.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The present generation.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Changes the number of places and begins a new generation. What is in flight stays counted; if it is more than
    /// the new limit, nothing is admitted until enough came back.
    pub fn reconfigure(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::AcqRel);
        // Changes nothing, but takes its turn among the changes: who marks itself as waiting later sees the new limit.
        self.tell_waiters(waiters(self.word.fetch_add(0, Ordering::AcqRel)));
    }

    fn release(&self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(taken(before) > 0, "a permit came back twice");
        self.tell_waiters(waiters(before));
    }

    fn tell_waiters(&self, waiters: u32) {
        if waiters > 0
            && let Some(on_release) = self.on_release.get()
        {
            on_release.released();
        }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limit")
            .field("limit", &self.limit())
            .field("in_flight", &self.in_flight())
            .field("waiting", &self.waiting())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

/// One place in a [`Limit`], given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    limit: Arc<Limit>,
    generation: u64,
}

impl Permit {
    /// The limit's generation when the place was taken.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the limit has since begun a newer generation.
    pub fn is_outdated(&self) -> bool {
        self.generation != self.limit.generation()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limit.release();
    }
}

/// A waiter's mark in a [`Limit`].
#[derive(Debug)]
#[must_use = "a waiter that is dropped no longer counts"]
pub struct Waiting {
    limit: Arc<Limit>,
    is_first: bool,
}

impl Waiting {
    /// Tries again, in turn.
    pub fn try_acquire(&self) -> Option<Permit> {
        self.limit.try_acquire(Turn::Waiter, Excess::Refuse)
    }

    /// Tries once more right after the mark was set. A place that came back between the refusal and the mark was
    /// announced to nobody, unless others waited already: then it is theirs, and whoever of them takes it or leaves
    /// hands the wake-up on.
    pub fn try_at_once(&self) -> Option<Permit> {
        if self.is_first { self.try_acquire() } else { None }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let before = self.limit.word.fetch_sub(ONE_WAITER, Ordering::AcqRel);
        // A wake-up meant for this waiter may have arrived as it left: hand it on, or the next one would sleep on
        // beside a free place.
        self.limit.tell_waiters(waiters(before) - 1);
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "admission/within_tests.rs"]
mod within_tests;
