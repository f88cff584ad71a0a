//! The steps of one request, for whoever asks why.

use std::time::Duration;

use crate::admission::NoPlace;
use crate::alternative::NoAlternative;
use crate::failure::{Cause, NotAsked};
use crate::outcome::{Outcome, Reason, Scope, Source};
use crate::policy::Origin;
use crate::retry::NoRetry;
use crate::snapshot::CopyRefusal;
use crate::time::Mono;

use super::authorize::Authorization;
use super::step::AttemptId;

/// A recorder of steps; off by default, and then it costs nothing.
#[derive(Debug, Default)]
pub struct Trace(Option<Vec<TraceEntry>>);

/// One step that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When.
    pub at: Mono,
    /// What.
    pub note: Note,
    /// The rule that decided it.
    pub rule: Origin,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Admitted by the process and the route.
    Admitted,
    /// Refused by a limit.
    Refused(Scope),
    /// What came of asking whether the caller may.
    Authorization(Authorization),
    /// Admitted to the lane for alternatives.
    FallbackLane,
    /// Whether a usable copy existed.
    Copy(Result<Duration, CopyRefusal>),
    /// No place at the dependency, because of this.
    NoPlace(NoPlace),
    /// What the cache had that could be used.
    Cached(Result<Duration, CopyRefusal>),
    /// The cache was not asked, because of this.
    CacheNotAsked(NotAsked),
    /// The dependency is read for everybody who asks for the same.
    Joined,
    /// Waiting for a place at the dependency.
    Waiting,
    /// The dependency is called.
    Called(AttemptId),
    /// The call is made again at this moment.
    Retry(Mono),
    /// It is not, because of this.
    NoRetry(NoRetry),
    /// Another dependency stands in.
    Alternative,
    /// It does not, because of this.
    NoAlternative(NoAlternative),
    /// Its answer begins with this status.
    Answered(u16),
    /// It failed or was not asked.
    Cause(Cause),
    /// The request came to this.
    Decided(Outcome, Source, Reason),
}

impl Trace {
    /// Records nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Records every step.
    pub const fn on() -> Self {
        Self(Some(Vec::new()))
    }

    /// The steps so far.
    pub fn entries(&self) -> &[TraceEntry] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn note(&mut self, at: Mono, rule: Origin, note: Note) {
        if let Some(entries) = &mut self.0 {
            entries.push(TraceEntry { at, note, rule });
        }
    }
}
