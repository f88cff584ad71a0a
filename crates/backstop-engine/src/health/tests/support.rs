//! One dependency in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::NotAsked;
use crate::health::{BreakerRules, Health, PerMille, Phase, RecoveryRules, Ticket};
use crate::time::Mono;

/// The middle of the spread: every open time is what it is called.
pub(super) const MIDDLE: u64 = 1 << 63;
pub(super) const FALLBACK_RATE: u64 = 100;

pub(super) struct World {
    pub(super) health: Arc<Health>,
    pub(super) now: Mono,
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn at(after_start: Duration) -> Mono {
    START.after(after_start)
}

/// A whole number of windows after boot, so that a window's tenths begin with whole seconds.
const START: Mono = Mono::from_ns(1_000_000_000_000);

impl World {
    pub(super) fn new(breaker: Option<BreakerRules>, recovery: Option<RecoveryRules>) -> Self {
        Self { health: Arc::new(Health::new(breaker, recovery, FALLBACK_RATE)), now: START }
    }

    /// The usual rules, without a recovery.
    pub(super) fn plain() -> Self {
        Self::new(Some(BreakerRules::default()), None)
    }

    /// The usual rules.
    pub(super) fn with_recovery() -> Self {
        Self::new(Some(BreakerRules::default()), Some(RecoveryRules::default()))
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    pub(super) fn wait_until(&mut self, after_start: Duration) {
        assert!(self.now <= at(after_start), "time does not run back");
        self.now = at(after_start);
    }

    pub(super) fn try_admit(&self) -> Result<Ticket, NotAsked> {
        self.health.admit(self.now, true, MIDDLE)
    }

    pub(super) fn admit(&self) -> Ticket {
        self.try_admit().expect("let through")
    }

    pub(super) fn answer(&self) {
        self.admit().answered(self.now);
    }

    pub(super) fn fail(&self) {
        self.admit().failed(self.now, MIDDLE);
    }

    /// A call that is answered after this time.
    pub(super) fn answer_after(&mut self, lasted: Duration) {
        let ticket = self.admit();
        self.wait(lasted);
        ticket.answered(self.now);
    }

    pub(super) fn phase(&self) -> Phase {
        self.health.phase(self.now)
    }

    /// Opens it with ten failures at this moment.
    pub(super) fn trip(&self) {
        for _ in 0..10 {
            self.fail();
        }
        assert!(matches!(self.phase(), Phase::Open { .. }), "{:?}", self.phase());
    }

    /// Opens it and waits until the first probe may go.
    pub(super) fn trip_and_wait(&mut self) {
        self.trip();
        self.now = self.health.known_up(self.now).expect("open");
    }

    /// Opens it, waits, and answers the probes.
    pub(super) fn trip_and_recover(&mut self) {
        self.trip_and_wait();
        for _ in 0..3 {
            self.answer();
        }
    }

    pub(super) fn share(&self) -> Option<PerMille> {
        match self.phase() {
            Phase::Ramp { share } => Some(share),
            _ => None,
        }
    }
}
