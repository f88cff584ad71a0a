//! What pays for retries.
//!
//! Every success adds a tenth of a retry, every retry that is made costs a whole one, and no more than ten can be saved: in an outage
//! nothing succeeds, so after what was saved (three at the beginning) nothing is retried, whatever the demand. Nothing
//! is added by time or by requests. A reserve of so many per second would be multiplied by the number of gateways, and
//! a share of the requests adds load just when there is too much.

use std::sync::Arc;

use crate::admission::{Excess, Limit, Permit, Turn};
use crate::sync::{AtomicU64, Ordering};

use super::NoRetry;

/// What a retry costs, in thousandths of a retry.
const RETRY: u64 = 1_000;

/// Retries under way are at most one in so many of the calls in flight.
pub const PLACES_SHARE: u32 = 5;

/// How many retries may be under way while so many calls are, retries included: a fifth, at least one.
pub const fn places(in_flight: u32) -> u32 {
    let share = in_flight / PLACES_SHARE;
    if share == 0 { 1 } else { share }
}

/// The numbers of a [`Budget`], in thousandths of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRules {
    /// What one success adds; no more than a whole retry.
    pub deposit_thousandths: u32,
    /// What can be saved.
    pub capacity_thousandths: u32,
    /// What there is at the beginning; no more than can be saved.
    pub initial_thousandths: u32,
}

impl Default for BudgetRules {
    fn default() -> Self {
        Self { deposit_thousandths: 100, capacity_thousandths: 10_000, initial_thousandths: 3_000 }
    }
}

/// The retries of one dependency: what they cost, and how many are under way.
#[derive(Debug)]
pub struct Budget {
    deposit: u64,
    capacity: u64,
    // Whole thousandths: tenths added as fractions would not sum up to whole retries.
    level: AtomicU64,
    in_flight: Arc<Limit>,
    spent: AtomicU64,
    made: AtomicU64,
    exhausted: AtomicU64,
}

impl Budget {
    /// A budget by these rules.
    pub fn new(rules: BudgetRules) -> Self {
        let capacity = u64::from(rules.capacity_thousandths);
        Self {
            deposit: u64::from(rules.deposit_thousandths).min(RETRY),
            capacity,
            level: AtomicU64::new(u64::from(rules.initial_thousandths).min(capacity)),
            in_flight: Arc::new(Limit::new(u32::MAX)),
            spent: AtomicU64::new(0),
            made: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
        }
    }

    /// A call succeeded.
    pub fn deposit(&self) {
        let _already_full = self.level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |level| {
            (level < self.capacity).then(|| (level + self.deposit).min(self.capacity))
        });
    }

    /// Pays for one retry, or for none.
    pub fn try_spend(&self) -> bool {
        let paid =
            self.level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |level| level.checked_sub(RETRY));
        let counter = if paid.is_ok() { &self.spent } else { &self.exhausted };
        counter.fetch_add(1, Ordering::Relaxed);
        paid.is_ok()
    }

    /// Begins a retry while `in_flight` calls are under way: takes its place and pays for it, both or neither. The
    /// permit is held until the retry has ended.
    ///
    /// # Errors
    /// [`NoRetry::InFlight`] or [`NoRetry::Budget`].
    pub fn start(&self, in_flight: u32) -> Result<Permit, NoRetry> {
        let place = self.in_flight.try_acquire_within(Turn::Newcomer, Excess::Refuse, places(in_flight));
        let permit = place.ok_or(NoRetry::InFlight)?;
        if self.try_spend() { Ok(permit) } else { Err(NoRetry::Budget) }
    }

    /// Whether one retry could be paid now.
    pub fn can_pay(&self) -> bool {
        self.level_thousandths() >= RETRY
    }

    /// A retry that was paid for was not made after all: its payment is saved again, and it is not counted as spent.
    pub fn give_back(&self) {
        let _always_updates = self.level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |level| {
            Some((level + RETRY).min(self.capacity))
        });
        self.spent.fetch_sub(1, Ordering::Relaxed);
    }

    /// A retry was made, and has ended.
    pub fn was_made(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// What is saved, in thousandths of a retry.
    pub fn level_thousandths(&self) -> u64 {
        self.level.load(Ordering::Relaxed)
    }

    /// Retries under way.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.in_flight()
    }

    /// Retries paid for so far, but for those whose payment was given back.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Retries that were made and have ended: a number that only grows, unlike [`spent`](Self::spent).
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Retries that could not be paid for so far.
    pub fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(BudgetRules::default())
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
