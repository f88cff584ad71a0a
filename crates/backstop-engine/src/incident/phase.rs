//! The phases of an incident and what leads from one to the next.
//!
//! | from | to | when |
//! |---|---|---|
//! | degraded | recovering | no dependency is cut off, and one returns, or the ratios are within bounds or improving |
//! | recovering | degraded | none of that holds any more |
//! | recovering | observing | everything is green |
//! | observing | degraded, recovering | a breaker is not closed, or something is not green for more than 10 s |
//! | observing | ended | everything has been green for 5 min without a break |
//!
//! At most one of these steps is taken in a tick. *Improving* means that the share of requests short of full quality in
//! the last ten seconds is at most half of the worst ten seconds; it is over above three quarters of it, so that a share
//! at the edge does not swing. Ten seconds with few requests change nothing.
//!
//! A state counts from the tick that told it first. A break of ten seconds or less leaves the phase as it is, but the
//! five minutes begin anew: they are meant to be unbroken.
//!
//! Fewer hits than usual, and nothing else, for five minutes without a break are what is usual from then on: a service may
//! have come back with another use of its cache, and a bound that is never kept again would keep the incident for ever.

use std::time::Duration;

use crate::time::Mono;

use super::begin::REQUESTS_MIN;
use super::signal::{Signal, Signals};
use super::window::{Window, sum};

/// How long everything must have been green, without a break.
pub const GREEN_TO_END: Duration = Duration::from_secs(300);
/// How long something may be amber without leaving the phase.
pub const AMBER_TOLERATED: Duration = Duration::from_secs(10);

const TREND_SECONDS: usize = 10;

/// Where an incident stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It is as bad as it was.
    Degraded,
    /// It gets better.
    Recovering,
    /// Everything is green, but not for long enough yet.
    Observing,
    /// It is over.
    Ended,
}

impl Phase {
    /// The phase as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Phase::Degraded => "degraded",
            Phase::Recovering => "recovering",
            Phase::Observing => "observing",
            Phase::Ended => "ended",
        }
    }
}

/// How long things have been as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    green_since: Option<Mono>,
    amber_since: Option<Mono>,
    /// Since when there are fewer hits than usual and nothing else is wrong.
    hits_alone_since: Option<Mono>,
    worst_share: f64,
}

impl Progress {
    /// Nothing is known of the time since the last tick: what lasted until then lasts no longer.
    pub(super) fn interrupt(&mut self) {
        self.green_since = None;
        self.amber_since = None;
        self.hits_alone_since = None;
    }

    /// Whether fewer hits than usual have been all that is wrong for so long that they are usual now.
    pub(super) fn fewer_hits_are_usual(&mut self, signals: Signals, now: Mono) -> bool {
        let are_alone = signals == Signals::GREEN.with(Signal::HitRatio);
        self.hits_alone_since = are_alone.then(|| self.hits_alone_since.unwrap_or(now));
        self.hits_alone_since.and_then(|since| now.since(since)).is_some_and(|lasted| lasted >= GREEN_TO_END)
    }

    /// The phase after this tick.
    pub(super) fn next(&mut self, phase: Phase, signals: Signals, window: &Window, now: Mono) -> Phase {
        let is_green = signals.is_green();
        self.green_since = is_green.then(|| self.green_since.unwrap_or(now));
        self.amber_since = (!is_green).then(|| self.amber_since.unwrap_or(now));
        let back =
            if self.is_recovering(phase, signals, window) { Phase::Recovering } else { Phase::Degraded };
        let lasted = |since: Option<Mono>| since.and_then(|since| now.since(since)).unwrap_or_default();
        match phase {
            Phase::Degraded => back,
            Phase::Recovering if is_green => Phase::Observing,
            Phase::Recovering => back,
            Phase::Observing if lasted(self.green_since) >= GREEN_TO_END => Phase::Ended,
            Phase::Observing if signals.any_of(Signals::BREAKERS) => back,
            Phase::Observing if lasted(self.amber_since) > AMBER_TOLERATED => back,
            Phase::Observing => Phase::Observing,
            Phase::Ended => Phase::Ended,
        }
    }

    fn is_recovering(&mut self, phase: Phase, signals: Signals, window: &Window) -> bool {
        let counts = sum(window.back().take(TREND_SECONDS));
        let share = (counts.requests() >= REQUESTS_MIN)
            .then(|| counts.short_of_normal() as f64 / counts.requests() as f64);
        self.worst_share = self.worst_share.max(share.unwrap_or_default());
        if signals.any_of(Signals::CUT_OFF) {
            return false;
        }
        if signals.contains(Signal::Returning) || !signals.any_of(Signals::RATIOS) {
            return true;
        }
        match (share, phase) {
            (Some(share), Phase::Degraded) => share <= self.worst_share * 0.5,
            (Some(share), _) => share <= self.worst_share * 0.75,
            (None, _) => phase != Phase::Degraded,
        }
    }
}
