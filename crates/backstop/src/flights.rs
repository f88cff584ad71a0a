//! One read of the dependency for everybody who asks for the same at the same time.
//!
//! Whoever comes first for a key *leads*: it has the read made, on nobody's behalf. Whoever comes while it is under way
//! *follows*: it waits for what the read brings. The rules:
//!
//! - A read is under way once per key, over all threads, and it **lands** exactly once: with an answer that may be
//!   shared, without one, or, if whoever leads it is lost, as lost. Nobody waits for a read that does not exist any more.
//! - Nobody follows a read that began before a change which had ended when they came: it may bring what was before. They
//!   begin a new one; those who came before the change get what they waited for.
//! - No more than so many follow one read; who comes after them is told so at once.
//! - An answer that turns out to be one caller's own reaches nobody else. Its key is then kept *apart* for a while: those
//!   who ask for it make a call each instead of waiting for an answer that they may not have. So few keys are kept apart
//!   at a time that it costs little memory; a key that is forgotten is found out again.
//! - An answer to a fault of the leader's own request reaches nobody else either. It says nothing of the key: those who
//!   waited ask anew, and one of them leads.
//! - A failed read fails those who wait for it, and nobody who comes later.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::Account;
use backstop_engine::time::Mono;
use backstop_store::{CopyKey, StoredCopy};
use tokio::sync::Notify;

const SHARDS: usize = 64;
/// Keys that are kept apart in one shard.
const APART_PER_SHARD: usize = 256;
/// For how long a key is kept apart.
const APART: Duration = Duration::from_secs(10);

/// Every read under way.
#[derive(Debug)]
pub(crate) struct Flights {
    shards: [Mutex<Shard>; SHARDS],
    places: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    under_way: HashMap<CopyKey, Arc<Flight>>,
    apart: HashMap<CopyKey, Mono>,
}

/// One read under way.
#[derive(Debug)]
struct Flight {
    began: Mono,
    landed: OnceLock<Landed>,
    done: Notify,
    followers: AtomicU32,
    most: u32,
    /// Whether the dependency has been called for it.
    sent: AtomicBool,
}

/// What a read brought, as far as it concerns those who follow.
#[derive(Clone, Debug)]
pub(crate) enum Landed {
    /// An answer for everybody.
    Shared(Arc<StoredCopy>, Account),
    /// No answer.
    Failed(Cause),
    /// An answer that only whoever led may have.
    Apart,
    /// An answer about the request of whoever led: the others ask anew.
    Again,
}

/// Shows those who wait for a read, first of all whoever leads, how far it has come. Empty until they have a seat in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<OnceLock<Arc<Flight>>>);

impl Watch {
    /// Looks at the read in which this is a seat.
    pub(crate) fn look_at(&self, seat: &Seat) {
        if let Seat::Lead(Lead { flight, .. }) | Seat::Follow(Follow(flight)) = seat {
            let _only_one_seat = self.0.set(Arc::clone(flight));
        }
    }

    /// Whether the dependency has been called for it.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.get().is_some_and(|flight| flight.sent.load(Ordering::Relaxed))
    }
}

/// The part that a request has in a read.
#[derive(Debug)]
pub(crate) enum Seat {
    /// It has the read made.
    Lead(Lead),
    /// It waits for it.
    Follow(Follow),
    /// It makes a call of its own.
    Apart,
    /// As many wait already as may.
    Full,
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()), places: RandomState::new() }
    }

    /// A seat in the read of a key. No more than `most` follow. `is_outdated` says whether a read that began then may bring
    /// what is no longer so.
    pub(crate) fn join(
        self: &Arc<Self>,
        key: &CopyKey,
        now: Mono,
        most: u32,
        is_outdated: impl FnOnce(Mono) -> bool,
    ) -> Seat {
        let mut shard = self.shard(key);
        if let Some(flight) = shard.under_way.get(key).filter(|flight| !is_outdated(flight.began)) {
            // Under the shard's lock, so that no two take the last seat.
            if flight.followers.load(Ordering::Relaxed) >= flight.most {
                return Seat::Full;
            }
            flight.followers.fetch_add(1, Ordering::Relaxed);
            return Seat::Follow(Follow(Arc::clone(flight)));
        }
        match shard.apart.get(key) {
            Some(until) if now < *until => return Seat::Apart,
            Some(_) => drop(shard.apart.remove(key)),
            None => {}
        }
        let flight = Arc::new(Flight {
            began: now,
            landed: OnceLock::new(),
            done: Notify::new(),
            followers: AtomicU32::new(0),
            most,
            sent: AtomicBool::new(false),
        });
        shard.under_way.insert(key.clone(), Arc::clone(&flight));
        Seat::Lead(Lead { flights: Arc::clone(self), key: key.clone(), flight })
    }

    fn shard(&self, key: &CopyKey) -> MutexGuard<'_, Shard> {
        let place = usize::try_from(self.places.hash_one(key) % SHARDS as u64).unwrap_or(0);
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn keep_apart(&mut self, key: &CopyKey, now: Mono) {
        if self.apart.len() >= APART_PER_SHARD {
            self.apart.retain(|_, until| now < *until);
        }
        if self.apart.len() < APART_PER_SHARD {
            self.apart.insert(key.clone(), now.after(APART));
        }
    }
}

/// The duty to make a read, and to say what it brought.
#[derive(Debug)]
pub(crate) struct Lead {
    flights: Arc<Flights>,
    key: CopyKey,
    flight: Arc<Flight>,
}

impl Lead {
    /// What it is a read of.
    pub(crate) fn key(&self) -> &CopyKey {
        &self.key
    }

    /// Says that the dependency is called for it now.
    pub(crate) fn sent(&self) {
        self.flight.sent.store(true, Ordering::Relaxed);
    }

    /// Says what the read brought. Whoever comes from now on begins a new one.
    pub(crate) fn land(&self, landed: Landed, now: Mono) {
        let is_apart = matches!(landed, Landed::Apart);
        if self.flight.landed.set(landed).is_err() {
            return;
        }
        {
            let mut shard = self.flights.shard(&self.key);
            // A later read may have taken its place.
            if shard.under_way.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
                shard.under_way.remove(&self.key);
            }
            if is_apart {
                shard.keep_apart(&self.key, now);
            }
        }
        self.flight.done.notify_waiters();
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.land(Landed::Failed(LOST), Mono::from_ns(0));
    }
}

/// The read ended without a word: its own code panicked, or the thread that made it stopped.
pub(crate) const LOST: Cause = Cause::Failed(Failure::new(FailureKind::Reset, Phase::Head, Sent::Maybe));

/// A seat behind whoever leads.
#[derive(Debug)]
pub(crate) struct Follow(Arc<Flight>);

impl Follow {
    /// Waits for what the read brings.
    pub(crate) async fn landed(&self) -> Landed {
        loop {
            let mut done = pin!(self.0.done.notified());
            // Before the look: what lands between the two is then not missed.
            done.as_mut().enable();
            if let Some(landed) = self.0.landed.get() {
                return landed.clone();
            }
            done.await;
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "flights_tests.rs"]
mod tests;
