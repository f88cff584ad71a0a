//! What outlives a restart.
//!
//! Open stays open for what is left of its time. Whoever was being tried is tried again: half open and ramp come back
//! as open with nothing left, so that the next safe call is a probe. A watch goes on for what is left of it. Orders
//! hold until they are released. Counters start empty.

use std::time::Duration;

use super::word::Kind;
use super::{Health, WATCH, opening};
use crate::sync::Ordering;
use crate::time::{Mono, duration_ns};

/// A [`Phase`](super::Phase) without its moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SavedPhase {
    /// In order.
    #[default]
    Closed,
    /// Not asked.
    Open,
    /// Tried with a few calls.
    HalfOpen,
    /// Given a share.
    Ramp,
    /// Given everything, and watched.
    Watch,
    /// Not asked, by order.
    ForcedOpen,
    /// Asked whatever comes of it, by order.
    ForcedClosed,
}

/// What is written down, in plain values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// What it was in.
    pub phase: SavedPhase,
    /// What was left of it: for open and watch, else zero.
    pub rest: Duration,
    /// Trips in a row.
    pub trips: u32,
    /// Calls per second of good times in thousandths; zero is unknown.
    pub rate_milli: u64,
    /// The 95th percentile of the time to answer in good times; zero is unknown.
    pub p95: Duration,
}

impl Health {
    /// What is to be written down.
    pub fn save(&self, now: Mono) -> Saved {
        use super::Phase;
        let (phase, rest) = match self.phase(now) {
            Phase::Closed => (SavedPhase::Closed, Duration::ZERO),
            Phase::Open { until } => (SavedPhase::Open, now.until(until)),
            Phase::HalfOpen => (SavedPhase::HalfOpen, Duration::ZERO),
            Phase::Ramp { .. } => (SavedPhase::Ramp, Duration::ZERO),
            Phase::Watch { until } => (SavedPhase::Watch, now.until(until)),
            Phase::ForcedOpen => (SavedPhase::ForcedOpen, Duration::ZERO),
            Phase::ForcedClosed => (SavedPhase::ForcedClosed, Duration::ZERO),
        };
        Saved {
            phase,
            rest,
            trips: self.opening.trips(),
            rate_milli: self.rate.frozen_milli().unwrap_or(0),
            p95: Duration::from_nanos(self.latency.frozen_ns().unwrap_or(0)),
        }
    }

    /// Takes up what was written down `elapsed` ago. Without rules for the breaker only orders are taken up. Meant for
    /// before the first call; if another change is under way, that one stands.
    pub fn restore(&self, now: Mono, saved: Saved, elapsed: Duration) {
        self.see(now);
        let rest = saved.rest.saturating_sub(elapsed);
        let kind = match saved.phase {
            SavedPhase::ForcedOpen => Kind::ForcedOpen,
            SavedPhase::ForcedClosed => Kind::ForcedClosed,
            _ if !self.is_breaking => return,
            SavedPhase::Open | SavedPhase::HalfOpen | SavedPhase::Ramp => Kind::Open,
            SavedPhase::Watch if rest > Duration::ZERO && self.recovery.is_some() => Kind::Watch,
            SavedPhase::Watch | SavedPhase::Closed => Kind::Closed,
        };
        if !self.state.take(self.state.load().generation()) {
            return;
        }
        let rest = if saved.phase == SavedPhase::Open { rest } else { Duration::ZERO };
        // What was written down may be damaged: it opens for no longer than a live breaker could.
        let rest_max = opening::spread(self.rules.open_max, u64::MAX).max(opening::ASKED_MAX);
        self.opening.restore(now.after(rest.min(rest_max)), saved.trips);
        self.rate.set_frozen(saved.rate_milli);
        self.latency.restore(duration_ns(saved.p95));
        let watch = saved.rest.saturating_sub(elapsed).min(WATCH);
        self.watch_until.store(now.after(watch).as_ns(), Ordering::Release);
        self.green_since.store(now.as_ns(), Ordering::Release);
        self.publish(kind, now);
    }
}
