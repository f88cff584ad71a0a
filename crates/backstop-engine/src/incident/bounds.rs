//! The bounds between green and not, and how much must have happened before a ratio says anything.
//!
//! | signal | out of bounds | of |
//! |---|---|---|
//! | quality | more than 1 % without full quality | requests |
//! | fallback | more than the larger of 0.5 % and the usual share + 0.1 percentage points | requests |
//! | refusals | more than 0.1 % refused | requests |
//! | errors | more than 1 % without an acceptable answer | requests |
//! | attempts | more than 1.02 calls for one | requests at one dependency |
//! | hit ratio | fewer hits than 95 % of the usual ratio | look-ups |
//!
//! A bound itself is within bounds. Fewer than [`BAD_MIN`] bad ones are nobody's signal, whatever their share: one
//! refusal among ten requests is 10 % and means nothing.

use super::baseline::Baseline;
use super::sample::{Counts, DependencySample, Lookups};
use super::signal::{Signal, Signals};
use super::window::Second;

/// Bad ones below which a ratio says nothing.
pub(super) const BAD_MIN: u64 = 5;

/// What is judged by its share of all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ratio {
    Quality,
    Fallback,
    Refusals,
    Errors,
}

impl Ratio {
    pub(super) const ALL: [Ratio; 4] = [Ratio::Quality, Ratio::Fallback, Ratio::Refusals, Ratio::Errors];

    pub(super) const fn signal(self) -> Signal {
        match self {
            Ratio::Quality => Signal::Quality,
            Ratio::Fallback => Signal::Fallback,
            Ratio::Refusals => Signal::Refusals,
            Ratio::Errors => Signal::Errors,
        }
    }

    /// The requests that this ratio counts as bad.
    pub(super) const fn bad(self, counts: &Counts) -> u64 {
        match self {
            Ratio::Quality => counts.short_of_normal(),
            Ratio::Fallback => counts.fallback,
            Ratio::Refusals => counts.rejected,
            Ratio::Errors => counts.failed,
        }
    }

    /// Whether the share is out of bounds, however few they are.
    pub(super) fn is_out(self, counts: &Counts, baseline: &Baseline) -> bool {
        let (bad, all) = (self.bad(counts), counts.requests());
        match self {
            Ratio::Quality | Ratio::Errors => exceeds(bad, 10, all),
            Ratio::Refusals => exceeds(bad, 1, all),
            Ratio::Fallback => {
                exceeds(bad, 5, all) && bad as f64 > (baseline.fallback_ratio() + 0.001) * all as f64
            }
        }
    }

    /// Whether the share is out of bounds and enough of them are bad.
    pub(super) fn is_signal(self, counts: &Counts, baseline: &Baseline) -> bool {
        self.bad(counts) >= BAD_MIN && self.is_out(counts, baseline)
    }
}

/// Whether `bad` is more than `per_mille` of `all`, exactly.
fn exceeds(bad: u64, per_mille: u64, all: u64) -> bool {
    u128::from(bad) * 1000 > u128::from(all) * u128::from(per_mille)
}

/// What these seconds together have out of bounds. Dependencies are those of `newest`.
pub(super) fn signals<'a>(
    seconds: impl Iterator<Item = &'a Second> + Clone,
    newest: &Second,
    baseline: &Baseline,
) -> Signals {
    let mut signals = Signals::GREEN;
    let counts = super::window::sum(seconds.clone());
    for ratio in Ratio::ALL {
        if ratio.is_signal(&counts, baseline) {
            signals = signals.with(ratio.signal());
        }
    }
    for index in 0..newest.sample.dependencies.len() {
        let name = newest.names.dependency(index);
        if repeats_too_much(seconds.clone().filter_map(|second| second.dependency(index, name))) {
            signals = signals.with(Signal::Attempts);
        }
    }
    if misses_too_much(seconds.filter_map(|second| second.sample.lookups), baseline) {
        signals = signals.with(Signal::HitRatio);
    }
    signals
}

fn repeats_too_much<'a>(calls: impl Iterator<Item = &'a DependencySample>) -> bool {
    let (mut requests, mut attempts) = (0_u64, 0_u64);
    for call in calls {
        requests = requests.saturating_add(call.requests);
        attempts = attempts.saturating_add(call.attempts);
    }
    let repeated = attempts.saturating_sub(requests);
    repeated >= BAD_MIN && exceeds(repeated, 20, requests)
}

fn misses_too_much(lookups: impl Iterator<Item = Lookups>, baseline: &Baseline) -> bool {
    let (mut hits, mut total) = (0_u64, 0_u64);
    for some in lookups {
        hits = hits.saturating_add(some.hits);
        total = total.saturating_add(some.total);
    }
    let too_few = |usual: f64| 20.0 * (hits as f64) < 19.0 * usual * total as f64;
    total.saturating_sub(hits) >= BAD_MIN && baseline.hit_ratio().is_some_and(too_few)
}
