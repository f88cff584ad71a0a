//! Reads for what a shared cache does not have: how much of them a route may make, and what they came to.
//!
//! A **fill** reads the dependency for everybody who asks for the same at the same time, and what it brings is kept for
//! those who come later. So it belongs to nobody: it takes no place at the process or the route, and whoever waits for
//! it may leave without ending it. What bounds it is the route's fill budget, beside everything that bounds any call of
//! the dependency (its places, its breaker and ramp, its resources). Whoever finds the budget used up is refused at
//! once: a cache that comes back empty is filled at the rate that was accepted, whatever is asked.
//!
//! Reads of the route that cannot be shared (a HEAD, somebody's own) take from the same budget.

use std::sync::Arc;
use std::time::Duration;

use crate::flow::CopyAction;
use crate::outcome::Outcome;
use crate::policy::{FillRules, Origin};
use crate::resource::{Resource, ResourceRules};
use crate::sync::{AtomicU64, Ordering};

/// The fills of one route.
#[derive(Debug)]
pub struct Fills {
    /// What they may take: places and a rate.
    pub budget: Arc<Resource>,
    rate: Option<u64>,
    ended: [AtomicU64; FillEnd::ALL.len()],
    waiting: AtomicU64,
    joined: AtomicU64,
    not_joined: AtomicU64,
}

/// What a fill came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillEnd {
    /// Its answer is kept.
    Stored,
    /// There is an answer, and it is not kept.
    Answered,
    /// The dependency failed.
    Failed,
    /// The dependency was not asked.
    Refused,
    /// It was dropped unfinished.
    Dropped,
}

impl FillEnd {
    /// Every end, in declaration order.
    pub const ALL: [FillEnd; 5] =
        [FillEnd::Stored, FillEnd::Answered, FillEnd::Failed, FillEnd::Refused, FillEnd::Dropped];

    /// It as one word.
    pub const fn token(self) -> &'static str {
        match self {
            FillEnd::Stored => "stored",
            FillEnd::Answered => "answered",
            FillEnd::Failed => "failed",
            FillEnd::Refused => "refused",
            FillEnd::Dropped => "dropped",
        }
    }

    pub(crate) const fn of(outcome: Outcome, copy: CopyAction) -> Self {
        match (outcome, copy) {
            (Outcome::Normal, CopyAction::Store) => FillEnd::Stored,
            (Outcome::Normal | Outcome::Fallback, _) => FillEnd::Answered,
            (Outcome::Failed, _) => FillEnd::Failed,
            (Outcome::Rejected, _) => FillEnd::Refused,
            (Outcome::Abandoned, _) => FillEnd::Dropped,
        }
    }
}

impl Fills {
    /// None under way.
    pub fn new(route: &str, rules: &FillRules) -> Self {
        let budget = ResourceRules {
            name: route.into(),
            concurrency: Some(rules.concurrency),
            rate: rules.rate,
            origin: rules.origin,
        };
        Self {
            budget: Arc::new(Resource::new(budget)),
            rate: rules.rate,
            ended: std::array::from_fn(|_| AtomicU64::new(0)),
            waiting: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            not_joined: AtomicU64::new(0),
        }
    }

    /// Where the budget was written.
    pub fn origin(&self) -> Origin {
        self.budget.origin()
    }

    /// How long the budget's rate takes for the keys that are being read now; `None` without a rate.
    pub fn backlog(&self) -> Option<Duration> {
        let rate = self.rate.filter(|rate| *rate > 0)?;
        Some(
            Duration::from_secs(1).saturating_mul(self.budget.in_use())
                / u32::try_from(rate).unwrap_or(u32::MAX),
        )
    }

    /// A fill has ended.
    pub fn ended(&self, end: FillEnd) {
        if let Some(counter) = self.ended.get(end as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many have ended so.
    pub fn ended_count(&self, end: FillEnd) -> u64 {
        self.ended.get(end as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// A request waits for the fill that another one began, for as long as the guard is kept.
    pub fn join(self: &Arc<Self>) -> Joined {
        self.joined.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Joined(Arc::clone(self))
    }

    /// A request found as many waiting as may wait, and was refused.
    pub fn refuse_to_join(&self) {
        self.not_joined.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that wait now for a fill that another one began.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Requests that have waited so, those that wait now included.
    pub fn joined_count(&self) -> u64 {
        self.joined.load(Ordering::Relaxed)
    }

    /// Requests that were refused because as many waited as may.
    pub fn not_joined_count(&self) -> u64 {
        self.not_joined.load(Ordering::Relaxed)
    }
}

/// A request that waits for a fill.
#[derive(Debug)]
#[must_use = "a waiter that is dropped no longer waits"]
pub struct Joined(Arc<Fills>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Excess;
    use crate::resource::ClassShare;
    use crate::time::Mono;

    fn fills(rate: Option<u64>) -> Arc<Fills> {
        let rules = FillRules {
            concurrency: 10,
            rate,
            deadline: Duration::from_secs(2),
            waiters: 100,
            origin: Origin::NONE,
        };
        Arc::new(Fills::new("reviews", &rules))
    }

    /// By hand: 6 keys at 4 per second are 1.5 s of work. Without a rate nobody knows.
    #[test]
    fn the_backlog_is_what_the_rate_takes_for_the_keys_under_way() {
        let (with, without) = (fills(Some(4)), fills(None));
        let held: Vec<_> = (0..6)
            .map(|second| {
                let now = Mono::from_ns(second * 1_000_000_000);
                (
                    with.budget.try_acquire(now, ClassShare::Effect, Excess::Refuse).unwrap(),
                    without.budget.try_acquire(now, ClassShare::Effect, Excess::Refuse).unwrap(),
                )
            })
            .collect();
        assert_eq!(with.backlog(), Some(Duration::from_millis(1500)));
        assert_eq!(without.backlog(), None);
        drop(held);
        assert_eq!(with.backlog(), Some(Duration::ZERO));
    }

    #[test]
    fn whoever_waits_counts_until_it_leaves() {
        let fills = fills(None);
        let waiting = [fills.join(), fills.join()];
        assert_eq!((fills.waiting(), fills.joined_count()), (2, 2));
        drop(waiting);
        assert_eq!((fills.waiting(), fills.joined_count()), (0, 2));
    }
}
