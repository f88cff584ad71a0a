//! What one second came to: plain numbers, handed in by whoever keeps house.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::FailureKind;
use crate::outcome::{Outcome, Reason};
use crate::tally::AGE_BUCKETS_SECONDS;

/// The name under which everything is counted that has no name or no place of its own. No policy can have it.
pub const OTHER: &str = "(other)";

/// What has a name in the running policy; a [`Sample`] has its functions and dependencies in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Business functions.
    pub functions: Arc<[Box<str>]>,
    /// Dependencies.
    pub dependencies: Arc<[Box<str>]>,
}

impl Names {
    /// The names in the policy's order.
    pub fn new(functions: &[&str], dependencies: &[&str]) -> Self {
        let shared = |names: &[&str]| names.iter().map(|&name| Box::from(name)).collect();
        Self { functions: shared(functions), dependencies: shared(dependencies) }
    }

    pub(super) fn function(&self, index: usize) -> &str {
        self.functions.get(index).map_or(OTHER, |name| name)
    }

    pub(super) fn dependency(&self, index: usize) -> &str {
        self.dependencies.get(index).map_or(OTHER, |name| name)
    }
}

/// Finished requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answered by the dependency: the function is completed.
    pub normal: u64,
    /// Answered by an accepted alternative: the function is reduced.
    pub fallback: u64,
    /// Refused: not completed.
    pub rejected: u64,
    /// Without an acceptable answer: not completed.
    pub failed: u64,
    /// Ended by the client. Counted apart: it says nothing about the service.
    pub abandoned: u64,
}

impl Counts {
    /// Adds finished requests, with the reason's word. A refusal for the client's own fault belongs to those that the
    /// client ended: whoever sends too much or too slowly must not be able to begin an incident.
    pub fn add(&mut self, outcome: Outcome, reason: &str, count: u64) {
        let is_clients_fault =
            [Reason::ClientSlow, Reason::ClientTooLarge].iter().any(|fault| fault.token() == reason);
        let counter = match outcome {
            _ if is_clients_fault => &mut self.abandoned,
            Outcome::Normal => &mut self.normal,
            Outcome::Fallback => &mut self.fallback,
            Outcome::Rejected => &mut self.rejected,
            Outcome::Failed => &mut self.failed,
            Outcome::Abandoned => &mut self.abandoned,
        };
        *counter = counter.saturating_add(count);
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Counts) {
        self.normal = self.normal.saturating_add(other.normal);
        self.fallback = self.fallback.saturating_add(other.fallback);
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.failed = self.failed.saturating_add(other.failed);
        self.abandoned = self.abandoned.saturating_add(other.abandoned);
    }

    /// All but those that the client ended: what ratios are taken of.
    pub const fn requests(&self) -> u64 {
        self.normal.saturating_add(self.short_of_normal())
    }

    /// Requests without full quality.
    pub const fn short_of_normal(&self) -> u64 {
        self.fallback.saturating_add(self.not_completed())
    }

    /// Requests whose function was completed.
    pub const fn completed(&self) -> u64 {
        self.normal
    }

    /// Requests whose function was reduced.
    pub const fn reduced(&self) -> u64 {
        self.fallback
    }

    /// Requests whose function was not completed.
    pub const fn not_completed(&self) -> u64 {
        self.rejected.saturating_add(self.failed)
    }
}

/// How a dependency stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DependencyState {
    /// Its breaker is closed and nothing holds its traffic back.
    #[default]
    Closed,
    /// Its breaker is open.
    Open,
    /// Single probes are sent.
    HalfOpen,
    /// Its traffic comes back in steps.
    Ramp {
        /// The present step, in per cent of the rate before.
        percent: u8,
    },
    /// Held open by hand.
    Forced,
}

impl DependencyState {
    /// The state as one word.
    pub const fn token(self) -> &'static str {
        match self {
            DependencyState::Closed => "closed",
            DependencyState::Open => "open",
            DependencyState::HalfOpen => "half_open",
            DependencyState::Ramp { .. } => "ramp",
            DependencyState::Forced => "forced",
        }
    }
}

/// A dependency's 95th percentile against what it was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Latency {
    /// As it should be, or not watched.
    #[default]
    Green,
    /// Raised; also a signal that is configured and does not come.
    Amber,
    /// Far too high.
    Red,
}

/// One dependency in this second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DependencySample {
    /// Requests that called it.
    pub requests: u64,
    /// Calls made for them, first ones and repeated ones. Probes and refills on nobody's behalf are not among them.
    pub attempts: u64,
    /// Failed calls per kind, in the order of [`FailureKind::TOKENS`].
    pub failures: [u64; FailureKind::TOKENS.len()],
    /// How it stands now.
    pub state: DependencyState,
    /// How fast it answers now.
    pub latency: Latency,
}

/// Look-ups in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Those that found what they looked for.
    pub hits: u64,
    /// All.
    pub total: u64,
}

/// How old copies are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyAges {
    /// The 99th percentile of their ages.
    pub p99: Duration,
    /// How often they are meant to be renewed.
    pub refresh: Duration,
}

/// What was served instead of the dependency's own answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Alternatives that were served, by where they came from, as words of [`Source`](crate::outcome::Source).
    pub sources: Vec<(&'static str, u64)>,
    /// Copies by age: each of [`AGE_BUCKETS_SECONDS`](crate::tally::AGE_BUCKETS_SECONDS), and one above all.
    pub ages: [u64; AGE_BUCKETS_SECONDS.len() + 1],
    /// The oldest copy.
    pub oldest: Duration,
}

/// What happened since the sample before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Finished requests.
    pub counts: Counts,
    /// Those per business function, in the order of [`Names::functions`].
    pub functions: Vec<Counts>,
    /// In the order of [`Names::dependencies`].
    pub dependencies: Vec<DependencySample>,
    /// Requests per reason, as words of [`Reason::TOKENS`]; `none` is passed over.
    pub reasons: Vec<(&'static str, u64)>,
    /// What was served instead.
    pub served: Served,
    /// Look-ups, where there is a cache.
    pub lookups: Option<Lookups>,
    /// Ages of copies, where they are renewed regularly; of the worst route.
    pub copy_ages: Option<CopyAges>,
    /// Effects whose end is unknown and which nobody follows up.
    pub untracked_effects: u64,
    /// Effects whose end is unknown and which are followed up. They may outlive the incident.
    pub tracked_effects: u64,
}
