//! What is counted of the reconciler, for whoever shows it. One thread writes, any reads; nothing is reset.

use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::Said;

/// What there was so far.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Of each route, in the order of the policy.
    pub(crate) routes: Box<[RouteCounts]>,
    /// Of all routes that the policy does not name any more.
    pub(crate) gone: RouteCounts,
    /// Turns in which all was looked after.
    pub(crate) turns: AtomicU64,
    /// Turns that the ledger ended early.
    pub(crate) turns_failed: AtomicU64,
    /// How often it panicked and was started again.
    pub(crate) restarts: AtomicU64,
    /// Operations that came to need a person.
    pub(crate) raised: AtomicU64,
    /// Of those, not told to the webhook because too many waited.
    pub(crate) webhook_left_out: AtomicU64,
    /// Told to the webhook, which confirmed it.
    pub(crate) webhook_delivered: AtomicU64,
    /// Tries to tell the webhook that failed.
    pub(crate) webhook_failed: AtomicU64,
    /// Given up after so many tries.
    pub(crate) webhook_given_up: AtomicU64,
}

/// What there was of one route.
#[derive(Debug)]
pub(crate) struct RouteCounts {
    /// The route, by its name; empty for those that are gone.
    pub(crate) route: Box<str>,
    /// Queries about operations by what they came to, in the order of [`RouteCounts::WORDS`].
    pub(crate) queries: [AtomicU64; Said::TOKENS.len()],
    /// Queries about known successes.
    pub(crate) sample_queries: AtomicU64,
    /// Queries about operations that were decided by absence.
    pub(crate) second_looks: AtomicU64,
    /// Of those, how many said that it was executed after all.
    pub(crate) executed_late: AtomicU64,
    /// Claims that could not be asked for and were put back.
    pub(crate) put_back: AtomicU64,
    /// How often the breaker opened.
    pub(crate) breaker_opened: AtomicU64,
    /// 1 while the breaker is not closed.
    pub(crate) breaker_is_open: AtomicU64,
    /// Operations for which there is no status query.
    pub(crate) not_askable: AtomicU64,
    /// Reports that somebody else was faster than, or that the ledger did not take.
    pub(crate) not_recorded: AtomicU64,
    /// Absences that did not count because the credentials were not known to be good or known successes were not shown.
    pub(crate) absences_suspended: AtomicU64,
    /// Known successes that were shown in time.
    pub(crate) samples_seen: AtomicU64,
    /// Known successes that were not.
    pub(crate) samples_not_seen: AtomicU64,
    /// Known successes that were not asked for because enough were.
    pub(crate) samples_left_out: AtomicU64,
    /// 1 while no absence counts because the last known success was not shown in time.
    pub(crate) calibration_is_failing: AtomicU64,
}

impl Counts {
    pub(crate) fn of<'a>(routes: impl IntoIterator<Item = &'a str>) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            routes: routes.into_iter().map(RouteCounts::of).collect(),
            gone: RouteCounts::of(""),
            turns: zero(),
            turns_failed: zero(),
            restarts: zero(),
            raised: zero(),
            webhook_left_out: zero(),
            webhook_delivered: zero(),
            webhook_failed: zero(),
            webhook_given_up: zero(),
        }
    }
}

impl RouteCounts {
    /// What a query may come to, as words.
    pub(crate) const WORDS: [&'static str; Said::TOKENS.len()] = Said::TOKENS;

    pub(super) fn of(route: &str) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            route: route.into(),
            queries: std::array::from_fn(|_| zero()),
            sample_queries: zero(),
            second_looks: zero(),
            executed_late: zero(),
            put_back: zero(),
            breaker_opened: zero(),
            breaker_is_open: zero(),
            not_askable: zero(),
            not_recorded: zero(),
            absences_suspended: zero(),
            samples_seen: zero(),
            samples_not_seen: zero(),
            samples_left_out: zero(),
            calibration_is_failing: zero(),
        }
    }

    pub(super) fn query(&self, said: Said) {
        if let Some(count) = self.queries.get(said.index()) {
            add(count);
        }
    }
}

pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn set(state: &AtomicU64, is_so: bool) {
    state.store(u64::from(is_so), Ordering::Relaxed);
}
