//! How a ledger stands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backstop_engine::operation::{Refused, State};
use backstop_engine::time::{Now, Wall};

/// How many operations are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// The state, as a word.
    pub state: &'static str,
    /// How many.
    pub count: u64,
}

/// How a ledger stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerStanding {
    /// Operations by state, in the order of [`State::TOKENS`].
    pub states: [StateCount; 6],
    /// How old the oldest unknown operation is, by date, as of the last sweep.
    pub oldest_unknown: Option<Duration>,
    /// How old the oldest one is that needs a person, by date, as of the last sweep.
    pub oldest_attention: Option<Duration>,
    /// Reports that changed nothing, by reason, in the order of [`Refused::ALL`].
    pub refused: [u64; Refused::ALL.len()],
    /// Decisions that evidence contradicted. Each is a reason to call somebody.
    pub contradicted: u64,
    /// Transactions that were made durable.
    pub commits: u64,
    /// What they held in all.
    pub committed: u64,
    /// What was refused because too much waited.
    pub queue_full: u64,
    /// What was refused because the disk had no room.
    pub no_room: u64,
    /// Whether new operations are refused because the disk has no room.
    pub is_full: bool,
    /// What waits.
    pub waiting: u64,
    /// Why the ledger ended, if it did.
    pub failed: Option<String>,
}

/// What a ledger counts.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) states: [AtomicU64; 6],
    pub(super) refused: [AtomicU64; Refused::ALL.len()],
    pub(super) contradicted: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) committed: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) no_room: AtomicU64,
    pub(super) is_full: AtomicU64,
    oldest: Mutex<[Option<Wall>; 2]>,
    failed: Mutex<Option<String>>,
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn set_states(&self, counts: [u64; 6]) {
        for (counter, count) in self.states.iter().zip(counts) {
            counter.store(count, Ordering::Relaxed);
        }
    }

    pub(super) fn refuse(&self, why: Refused) {
        if let Some(counter) =
            Refused::ALL.iter().position(|one| *one == why).and_then(|at| self.refused.get(at))
        {
            add(counter, 1);
        }
    }

    pub(super) fn set_oldest(&self, unknown: Option<Wall>, attention: Option<Wall>) {
        *self.oldest.lock().unwrap_or_else(PoisonError::into_inner) = [unknown, attention];
    }

    pub(super) fn fail(&self, message: &str) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| message.to_owned());
    }

    pub(super) fn standing(&self, waiting: u64, now: &Now) -> LedgerStanding {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [unknown, attention] = *self.oldest.lock().unwrap_or_else(PoisonError::into_inner);
        // A date that lies ahead is no age.
        let age = |since: Option<Wall>| since.map(|since| now.wall.since(since).unwrap_or_default());
        let mut states = State::TOKENS.map(|state| StateCount { state, count: 0 });
        for (state, counter) in states.iter_mut().zip(&self.states) {
            state.count = get(counter);
        }
        LedgerStanding {
            states,
            oldest_unknown: age(unknown),
            oldest_attention: age(attention),
            refused: std::array::from_fn(|at| self.refused.get(at).map_or(0, get)),
            contradicted: get(&self.contradicted),
            commits: get(&self.commits),
            committed: get(&self.committed),
            queue_full: get(&self.queue_full),
            no_room: get(&self.no_room),
            is_full: get(&self.is_full) != 0,
            waiting,
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
