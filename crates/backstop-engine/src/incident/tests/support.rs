//! A world that ticks once a second.

use std::time::Duration;

use crate::incident::{
    Change, Counts, DependencySample, DependencyState, Incidents, Names, Phase, Record, Sample, Signal,
};
use crate::time::{BootId, Mono, Now, Wall, WallTrust};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const BOOT_A: BootId = BootId([1; 16]);
pub(super) const BOOT_B: BootId = BootId([2; 16]);
/// 2026-03-01T00:00:00Z.
const START_WALL: i64 = 1_772_323_200 * 1_000_000_000;
const START_MONO: u64 = 1000 * 1_000_000_000;

pub(super) struct World {
    pub(super) incidents: Incidents,
    pub(super) names: Names,
    pub(super) now: Now,
}

impl World {
    /// Second 0; the first tick is at second 1.
    pub(super) fn new() -> Self {
        let now = Now {
            mono: Mono::from_ns(START_MONO),
            wall: Wall::from_unix_ns(START_WALL),
            boot: BOOT_A,
            wall_trust: WallTrust::Synchronised,
        };
        Self {
            incidents: Incidents::new(),
            names: Names::new(&["browse", "buy"], &["catalog", "stock"]),
            now,
        }
    }

    /// A second passes in which this happens.
    pub(super) fn tick(&mut self, sample: &Sample) -> Option<Change> {
        self.tick_after(SECOND, sample)
    }

    pub(super) fn tick_after(&mut self, step: Duration, sample: &Sample) -> Option<Change> {
        self.now.mono = self.now.mono.after(step);
        self.now.wall = self.now.wall.after(step);
        self.incidents.tick(self.now, sample, &self.names)
    }

    /// The same for some seconds, in which nothing changes.
    pub(super) fn quiet(&mut self, seconds: u64, sample: &Sample) {
        for _ in 0..seconds {
            assert_eq!(self.tick(sample), None, "at second {}", self.second());
        }
    }

    pub(super) fn second(&self) -> u64 {
        (self.now.mono.as_ns() - START_MONO) / 1_000_000_000
    }

    pub(super) fn record(&self) -> &Record {
        self.incidents.current().expect("an incident")
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.incidents.current().map(|record| record.phase)
    }

    pub(super) fn last_ended(&self) -> &Record {
        self.incidents.ended().next_back().expect("an ended incident")
    }

    /// An outage of the first dependency's breaker, up to the first green second.
    pub(super) fn open_and_close(&mut self) {
        assert!(matches!(self.tick(&open()), Some(Change::Began { .. })));
        assert_eq!(to_phase(self.tick(&normal(100))), Some(Phase::Recovering));
        assert_eq!(to_phase(self.tick(&normal(100))), Some(Phase::Observing));
    }
}

pub(super) fn to_phase(change: Option<Change>) -> Option<Phase> {
    match change? {
        Change::PhaseChanged { to, .. } => Some(to),
        Change::Ended { .. } => Some(Phase::Ended),
        Change::Began { .. } => None,
    }
}

pub(super) fn began_with(change: Option<Change>) -> Option<Vec<Signal>> {
    match change? {
        Change::Began { signals, .. } => Some(signals.iter().collect()),
        Change::PhaseChanged { .. } | Change::Ended { .. } => None,
    }
}

pub(super) fn counts(normal: u64, fallback: u64, rejected: u64, failed: u64) -> Counts {
    Counts { normal, fallback, rejected, failed, abandoned: 0 }
}

/// A second of these requests, with both dependencies closed.
pub(super) fn mixed(normal: u64, fallback: u64, rejected: u64, failed: u64) -> Sample {
    let counts = counts(normal, fallback, rejected, failed);
    Sample { counts, dependencies: vec![DependencySample::default(); 2], ..Sample::default() }
}

pub(super) fn normal(requests: u64) -> Sample {
    mixed(requests, 0, 0, 0)
}

/// The same with the first dependency in this state.
pub(super) fn with(state: DependencyState, mut sample: Sample) -> Sample {
    sample.dependencies[0].state = state;
    sample
}

/// A second without requests and with an open breaker.
pub(super) fn open() -> Sample {
    with(DependencyState::Open, mixed(0, 0, 0, 0))
}
