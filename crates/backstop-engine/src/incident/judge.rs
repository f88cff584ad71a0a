//! What is not green now.
//!
//! Breakers, latency, ages of copies and effects are as the newest sample says. Ratios are taken over the last three
//! seconds, which tell at once, and over the last minute, which tells what is too thin to show in three seconds. After
//! three seconds that were out of bounds, the minute reaches back no further than to where they came back with enough
//! requests: what was lost before does not hide that it is over. In low traffic three seconds prove nothing, and the
//! whole minute speaks.

use crate::time::Mono;

use super::baseline::Baseline;
use super::begin::{HOLD_SECONDS, REQUESTS_MIN};
use super::bounds;
use super::sample::{DependencyState, Latency, Sample};
use super::signal::{Signal, Signals};
use super::window::{Window, sum};

/// Remembers where the last three seconds came back within bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judge {
    is_out: bool,
    back_since: Option<Mono>,
}

impl Judge {
    /// What is not green in the newest second.
    pub(super) fn signals(&mut self, window: &Window, baseline: &Baseline) -> Signals {
        let Some(newest) = window.newest() else { return Signals::GREEN };
        let breakers = breakers(&newest.sample);
        let last = || window.back().take(HOLD_SECONDS);
        let short = bounds::signals(last(), newest, baseline);
        if !breakers.and(short).is_green() {
            *self = Self { is_out: true, back_since: None };
        } else if self.is_out && sum(last()).requests() >= REQUESTS_MIN {
            *self = Self { is_out: false, back_since: Some(newest.at.mono) };
        }
        let minute = bounds::signals(window.since(self.back_since), newest, baseline);
        breakers.and(short).and(minute).and(gauges(&newest.sample))
    }
}

/// How the breakers stand.
pub(super) fn breakers(sample: &Sample) -> Signals {
    sample.dependencies.iter().fold(Signals::GREEN, |signals, dependency| match dependency.state {
        DependencyState::Closed => signals,
        DependencyState::Open => signals.with(Signal::BreakerOpen),
        DependencyState::HalfOpen | DependencyState::Ramp { .. } => signals.with(Signal::Returning),
        DependencyState::Forced => signals.with(Signal::Forced),
    })
}

fn gauges(sample: &Sample) -> Signals {
    let is_slow = sample.dependencies.iter().any(|dependency| dependency.latency != Latency::Green);
    let are_old = sample.copy_ages.is_some_and(|ages| ages.p99 > ages.refresh);
    let raised = [
        (is_slow, Signal::Latency),
        (are_old, Signal::CopyAges),
        (sample.untracked_effects > 0, Signal::UntrackedEffects),
    ];
    raised.into_iter().filter(|&(is_on, _)| is_on).fold(Signals::GREEN, |all, (_, signal)| all.with(signal))
}
