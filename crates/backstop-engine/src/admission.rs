//! Limits on what is in flight: taken at once or refused at once, returned exactly once.
//!
//! A [`Limit`] counts; a [`Permit`] is one place in it and gives it back when dropped, on every path, cancellation and
//! panic included. The count is exact: it never exceeds the limit for a moment and never refuses while a place is free
//! that nobody waits for.
//!
//! Not everybody may use all places. Each [class](ClassShare) is admitted only while fewer than its share are taken, by
//! whomever, so that what matters less never takes the last ones ([`Limit::try_acquire_as`]). Nobody borrows: what is
//! free above a class's share is kept for those who may go further.
//!
//! A limit may have *waiters* (a bounded queue in front of a dependency). Newcomers do not overtake those of their own
//! class or of a higher one; a lower one they pass, because a place that is kept for them must not stay empty while
//! somebody waits who may not use it. The limit itself never waits: whoever waits is told by [`OnRelease`] and tries
//! again. A free place is announced to the highest class that waits, and whoever takes it or leaves hands the word on.
//!
//! A permit carries the limit's *generation* at the moment it was taken. A result that arrives with an older generation
//! belongs to a past that has been closed (a policy reload, a breaker that moved on) and changes nothing newer.

mod share;

use std::sync::{Arc, OnceLock};

use crate::sync::{AtomicU32, AtomicU64, Ordering};

pub use share::ClassShare;

/// Told whenever a place may have become free.
pub trait OnRelease: Send + Sync + 'static {
    /// A permit came back, or the limit was raised, while somebody of this class waited, and nobody of a higher one.
    /// Must not block.
    fn released(&self, class: ClassShare);
}

/// A number of places.
pub struct Limit {
    limit: AtomicU32,
    /// Places taken in the lowest bits, and above them the waiters of each class, the highest class on top. One word, so
    /// that every change of one part sees the others: with two, a release could miss the waiter that at the same moment
    /// misses the release, and sleep would follow.
    word: AtomicU64,
    generation: AtomicU64,
    refused: AtomicU64,
    kept: AtomicU64,
    on_release: OnceLock<Arc<dyn OnRelease>>,
}

const TAKEN_BITS: u32 = 24;
/// Places that can be taken at all: 16 777 215.
const TAKEN_MOST: u32 = (1 << TAKEN_BITS) - 1;
const WAITER_BITS: u32 = 10;
/// So many of one class may wait at once; one more is refused.
pub const WAITERS_MOST: u32 = (1 << WAITER_BITS) - 1;

const fn taken(word: u64) -> u32 {
    word as u32 & TAKEN_MOST
}

const fn shift(class: ClassShare) -> u32 {
    TAKEN_BITS + WAITER_BITS * class as u32
}

const fn waiters(word: u64, class: ClassShare) -> u32 {
    (word >> shift(class)) as u32 & WAITERS_MOST
}

/// Whether anybody of this class or of a higher one waits.
const fn is_waited_for(word: u64, class: ClassShare) -> bool {
    word >> shift(class) > 0
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoPlace {
    /// All are taken, or somebody waits for the one that is free.
    Full,
    /// Those that are free are kept for higher classes.
    Kept,
}

impl NoPlace {
    /// The reason as one word, as in metrics.
    pub const fn token(self) -> &'static str {
        match self {
            NoPlace::Full => "full",
            NoPlace::Kept => "share",
        }
    }
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
            kept: AtomicU64::new(0),
            on_release: OnceLock::new(),
        }
    }

    /// Takes a place now, or not at all. All places may be used.
    pub fn try_acquire(self: &Arc<Self>, turn: Turn, excess: Excess) -> Option<Permit> {
        self.try_acquire_within(turn, excess, u32::MAX)
    }

    /// Takes a place now if, with it, no more than `places` of the limit's places are taken, or not at all. Whose they
    /// are makes no difference; more `places` than the limit has mean all of them.
    pub fn try_acquire_within(self: &Arc<Self>, turn: Turn, excess: Excess, places: u32) -> Option<Permit> {
        self.take(ClassShare::Effect, places, turn, excess).0
    }

    /// Takes a place of the class's share now, or not at all.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_acquire_as(
        self: &Arc<Self>,
        class: ClassShare,
        turn: Turn,
        excess: Excess,
    ) -> Result<Permit, NoPlace> {
        let (permit, refusal) = self.take_as(class, turn, excess);
        permit.ok_or(refusal.unwrap_or(NoPlace::Full))
    }

    /// The same; beside the place, what refused or, where excess is only counted, would have.
    pub(crate) fn take_as(
        self: &Arc<Self>,
        class: ClassShare,
        turn: Turn,
        excess: Excess,
    ) -> (Option<Permit>, Option<NoPlace>) {
        self.take(class, class.places(self.limit()), turn, excess)
    }

    fn take(
        self: &Arc<Self>,
        class: ClassShare,
        places: u32,
        turn: Turn,
        excess: Excess,
    ) -> (Option<Permit>, Option<NoPlace>) {
        let limit = self.limit();
        let share = limit.min(places);
        let most = if excess == Excess::Count { TAKEN_MOST } else { share.min(TAKEN_MOST) };
        let behind_others =
            |word| turn == Turn::Newcomer && excess == Excess::Refuse && is_waited_for(word, class);
        let admitted = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            (taken(word) < most && !behind_others(word)).then(|| word + 1)
        });
        let (Ok(before) | Err(before)) = admitted;
        let mut refusal = None;
        if admitted.is_err() || taken(before) >= share {
            let is_kept = (share..limit).contains(&taken(before));
            self.refused.fetch_add(1, Ordering::Relaxed);
            self.kept.fetch_add(u64::from(is_kept), Ordering::Relaxed);
            refusal = Some(if is_kept { NoPlace::Kept } else { NoPlace::Full });
        }
        let permit =
            || Permit { generation: self.generation.load(Ordering::Acquire), limit: Arc::clone(self) };
        (admitted.is_ok().then(permit), refusal)
    }

    /// Announces a waiter of this class; it counts until the guard is dropped. `None` if [`WAITERS_MOST`] of the class
    /// wait already.
    pub fn wait_as(self: &Arc<Self>, class: ClassShare) -> Option<Waiting> {
        let marked = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            (waiters(word, class) < WAITERS_MOST).then(|| word + (1 << shift(class)))
        });
        let before = marked.ok()?;
        Some(Waiting { limit: Arc::clone(self), class, is_first: !is_waited_for(before, class) })
    }

    /// Names who is told of free places. Only the first call counts.
    pub fn notify_with(&self, on_release: Arc<dyn OnRelease>) {
        let _already_named = self.on_release.set(on_release);
    }

    /// Places taken now.
    pub fn in_flight(&self) -> u32 {
        taken(self.word.load(Ordering::Relaxed))
    }

    /// Waiters now, of all classes.
    pub fn waiting(&self) -> u32 {
        let word = self.word.load(Ordering::Relaxed);
        ClassShare::ALL.into_iter().map(|class| waiters(word, class)).sum()
    }

    /// The number of places.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// How often a place was refused so far, or would have been.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How many of those were refused, or would have been, although places were free: they are kept for higher classes.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
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
        self.tell_waiters(self.word.fetch_add(0, Ordering::AcqRel));
    }

    fn release(&self) {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(taken(before) > 0, "a permit came back twice");
        self.tell_waiters(before);
    }

    fn tell_waiters(&self, word: u64) {
        if !is_waited_for(word, ClassShare::Optional) {
            return;
        }
        let highest = ClassShare::ALL.into_iter().rev().find(|&class| waiters(word, class) > 0);
        if let Some(class) = highest
            && let Some(on_release) = self.on_release.get()
        {
            on_release.released(class);
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
    class: ClassShare,
    /// Of its class and those above.
    is_first: bool,
}

impl Waiting {
    /// Tries again, in turn.
    pub fn try_acquire(&self) -> Option<Permit> {
        self.limit.try_acquire_as(self.class, Turn::Waiter, Excess::Refuse).ok()
    }

    /// The class that it was announced as.
    pub const fn class(&self) -> ClassShare {
        self.class
    }

    /// Tries once more right after the mark was set. A place that came back between the refusal and the mark was
    /// announced to nobody, or to a lower class that may not use it, unless others of its class or a higher one waited
    /// already: then it is theirs, and whoever of them takes it or leaves hands the wake-up on.
    pub fn try_at_once(&self) -> Option<Permit> {
        if self.is_first { self.try_acquire() } else { None }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mark = 1 << shift(self.class);
        let before = self.limit.word.fetch_sub(mark, Ordering::AcqRel);
        // A wake-up meant for this waiter may have arrived as it left: hand it on, or the next one would sleep on
        // beside a free place.
        self.limit.tell_waiters(before - mark);
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "admission/within_tests.rs"]
mod within_tests;

#[cfg(test)]
#[path = "admission/classes_tests.rs"]
mod classes_tests;
