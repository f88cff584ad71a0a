//! The steps of one request, for whoever asks why.

use std::time::Duration;

use crate::admission::NoPlace;
use crate::alternative::NoAlternative;
use crate::failure::{Cause, Failure, NotAsked};
use crate::outcome::{Outcome, Reason, Scope, Source};
use crate::policy::{DependencyId, Origin};
use crate::retry::NoRetry;
use crate::snapshot::CopyRefusal;
use crate::time::Mono;

use super::authorize::Authorization;
use super::operation::{Came, Consulted, Recorded, Telling};
use super::settle::CopyAction;
use super::step::{AttemptId, BodyFacts};

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
    /// What was known of the copy before anybody was asked, needed or not.
    Peeked(Result<Duration, CopyRefusal>),
    /// Whether a usable copy existed when it was needed.
    Copy(Result<Duration, CopyRefusal>),
    /// No place at the dependency, because of this.
    NoPlace(NoPlace),
    /// What the cache had that could be used.
    Cached(Result<Duration, CopyRefusal>),
    /// The cache gave no answer in its time.
    CacheSilent,
    /// The cache was not asked, because of this.
    CacheNotAsked(NotAsked),
    /// The dependency is read for everybody who asks for the same.
    Joined,
    /// What that read brought.
    Brought(Brought),
    /// Waiting for a place at the dependency, until this moment at most.
    Waiting(Mono),
    /// A dependency is called.
    Called {
        /// The number of the call.
        attempt: AttemptId,
        /// Who is called.
        dependency: DependencyId,
        /// When the call has to be over.
        until: Mono,
    },
    /// The call is made again at this moment.
    Retry(Mono),
    /// It is not, because of this.
    NoRetry(NoRetry),
    /// Another dependency stands in.
    Alternative(DependencyId),
    /// It does not, because of this.
    NoAlternative(NoAlternative),
    /// Its answer begins with this status.
    Answered(u16),
    /// What the answer is that was held back.
    Body(BodyFacts),
    /// The call failed.
    Failed(Failure),
    /// Nobody was asked, because of this.
    NotAsked(NotAsked),
    /// What the ledger has for the operation, where it alone is asked.
    Consulted(Consulted),
    /// The key of the operation was used before: nothing was sent.
    Again(Telling),
    /// What came of the operation's one forward was written down, or was not in time.
    Recorded(Came, Recorded),
    /// The parts of a composed answer are asked, and awaited until this moment.
    Parts(Mono),
    /// A part came, with this status and what it came to.
    Part(usize, u16, Outcome),
    /// No part is waited for any longer.
    PartsTimeUp,
    /// What becomes of the copy.
    Kept(CopyAction),
    /// The request came to this.
    Decided(Outcome, Source, Reason),
}

/// What a read for everybody who asks for the same brought to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// An answer.
    Answer,
    /// None, because of this.
    Nothing(Cause),
    /// An answer that is somebody else's.
    Apart,
    /// As many wait already as may.
    Full,
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

    /// Whether steps are recorded.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn note(&mut self, at: Mono, rule: Origin, note: Note) {
        if let Some(entries) = &mut self.0 {
            entries.push(TraceEntry { at, note, rule });
        }
    }
}
