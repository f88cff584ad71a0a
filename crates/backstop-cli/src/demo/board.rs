//! What clients got, counted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop_lab::load::Sample;

use super::script::{self, PHASES};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Product,
    Recommendations,
}

/// The counts of both ways, over all and for each phase.
#[derive(Debug)]
pub(super) struct Board {
    max_age: Duration,
    /// One for each phase; a request counts for the phase in which it was due.
    phases: Mutex<Vec<Counts>>,
}

/// What came of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) backstop: ThroughBackstop,
    pub(super) direct: Directly,
}

/// Answers of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThroughBackstop {
    pub(super) live: u64,
    pub(super) copies: u64,
    pub(super) prepared: u64,
    pub(super) refused: u64,
    /// What the policy forbids: wrong content, too old, unmarked, or none at all.
    pub(super) forbidden: u64,
    /// The oldest copy, by its `Age` field.
    pub(super) oldest_s: u64,
    pub(super) slowest: Duration,
}

/// Answers of the services themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directly {
    pub(super) right: u64,
    /// Whole 200 answers with half a document in them.
    pub(super) broken: u64,
    pub(super) errors: u64,
    pub(super) slowest: Duration,
}

impl ThroughBackstop {
    pub(super) fn total(&self) -> u64 {
        self.live + self.copies + self.prepared + self.refused + self.forbidden
    }

    fn add(&mut self, other: &Self) {
        self.live += other.live;
        self.copies += other.copies;
        self.prepared += other.prepared;
        self.refused += other.refused;
        self.forbidden += other.forbidden;
        self.oldest_s = self.oldest_s.max(other.oldest_s);
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl Directly {
    pub(super) fn total(&self) -> u64 {
        self.right + self.broken + self.errors
    }

    fn add(&mut self, other: &Self) {
        self.right += other.right;
        self.broken += other.broken;
        self.errors += other.errors;
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl Board {
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, phases: Mutex::new(vec![Counts::default(); PHASES.len()]) }
    }

    /// The oldest copy that the policy accepts.
    pub(super) fn max_age(&self) -> Duration {
        self.max_age
    }

    pub(super) fn phase(&self, phase: usize) -> Counts {
        self.lock().get(phase).cloned().unwrap_or_default()
    }

    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.lock().iter() {
            total.backstop.add(&counts.backstop);
            total.direct.add(&counts.direct);
        }
        total
    }

    /// One answer of the gateway.
    pub(super) fn through_backstop(&self, face: Face, sample: &Sample) {
        self.count(sample, |counts| {
            let counts = &mut counts.backstop;
            counts.slowest = counts.slowest.max(sample.latency);
            let outcome = sample.outcome.as_deref();
            let source = sample.source.as_deref();
            let kind = match (sample.right, outcome, source, face) {
                (Some(true), None, _, _) if sample.status == Some(200) => &mut counts.live,
                (Some(true), Some("fallback"), Some("snapshot"), Face::Product) => &mut counts.copies,
                (Some(true), Some("fallback"), Some("prepared"), Face::Recommendations) => {
                    &mut counts.prepared
                }
                (Some(true), Some("rejected" | "failed"), _, _) if sample.status != Some(200) => {
                    &mut counts.refused
                }
                _ => &mut counts.forbidden,
            };
            *kind += 1;
            let age = sample.headers.iter().find(|(name, _)| name == "age");
            let age = age.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0);
            counts.oldest_s = counts.oldest_s.max(age);
        });
    }

    /// One answer of a service itself.
    pub(super) fn direct(&self, _face: Face, sample: &Sample) {
        self.count(sample, |counts| {
            let counts = &mut counts.direct;
            counts.slowest = counts.slowest.max(sample.latency);
            match (sample.status, sample.right, sample.failure) {
                (Some(200), Some(true), None) => counts.right += 1,
                (Some(200), Some(false), None) => counts.broken += 1,
                _ => counts.errors += 1,
            }
        });
    }

    fn count(&self, sample: &Sample, count: impl FnOnce(&mut Counts)) {
        if let Some(counts) = self.lock().get_mut(script::due_in(sample.intended)) {
            count(counts);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Counts>> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
