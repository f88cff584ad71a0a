//! What a [`Flow`](super::Flow) asks its driver to do, and what the driver tells it.

use std::time::Duration;

use crate::admission::{ClassShare, Permit};
use crate::alternative::StandInPermit;
use crate::composed::PartFacts;
use crate::failure::{Cause, Failure, NotAsked};
use crate::health::ProbePlace;
use crate::policy::DependencyId;
use crate::resource::{ResourcePermit, ResourcePermits};
use crate::snapshot::CopyFacts;
use crate::time::Mono;

use super::authorize::Authorization;
use super::operation::{Came, Consulted, Known, Recorded};
use super::settle::{Account, Decision, Streaming};

/// The number of one call of a dependency within its request, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u32);

/// What the driver does next. Every variant but [`Step::Done`] is answered by one event.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Find out whether the caller may: [`Event::Authorized`], or [`Event::TimeUp`] at `until`.
    Authorize {
        /// No longer than this.
        until: Mono,
        /// The one call of whoever is asked. `None`: the request proves it itself.
        attempt: Option<Attempt>,
    },
    /// Say whether a copy exists, from memory alone: [`Event::Known`].
    Peek,
    /// Ask the route's cache: [`Event::Cached`], or [`Event::TimeUp`] at `until`.
    Lookup {
        /// No longer than this.
        until: Mono,
    },
    /// Have the dependency read for everybody who asks for the same, or wait for such a read that is under way:
    /// [`Event::Filled`], or [`Event::TimeUp`] at `until`.
    Join {
        /// No longer than this. The read itself goes on.
        until: Mono,
        /// No more than so many wait for one read.
        waiters: u32,
    },
    /// Wait until a place at the dependency may be free: [`Event::Released`], or [`Event::TimeUp`] at `until`.
    Wait {
        /// Whose place.
        dependency: DependencyId,
        /// As what it waits: free places are announced to each class apart.
        class: ClassShare,
        /// No longer than this.
        until: Mono,
    },
    /// Call the dependency: [`Event::Head`], [`Event::Failed`], [`Event::NotAsked`], [`Event::TimeUp`] or
    /// [`Event::Propagated`]. An operation is written down before, and then it may be one that was begun before:
    /// [`Event::Again`].
    Attempt(Attempt),
    /// Wait before the call is made again: [`Event::TimeUp`] at `until`.
    Pause {
        /// The moment.
        until: Mono,
    },
    /// Hold the answer back until it is complete: [`Event::Body`], [`Event::Failed`] or [`Event::TimeUp`].
    Collect {
        /// Which answer.
        attempt: AttemptId,
        /// No longer than this.
        until: Mono,
        /// No more than this.
        limit_bytes: u64,
    },
    /// Fetch the copy: [`Event::Copy`]. From memory at once; from disk only while there is time.
    Load {
        /// The disk is not waited for any longer than this.
        until: Mono,
    },
    /// Ask for the parts of a composed answer, all at once, and wait for the next that comes: [`Event::Part`], or
    /// [`Event::TimeUp`] at `until`.
    Parts {
        /// No longer than this.
        until: Mono,
    },
    /// Say what the ledger has for the key of the operation, or for its name: [`Event::Consulted`], or [`Event::TimeUp`] at
    /// `until`.
    Consult {
        /// No longer than this.
        until: Mono,
    },
    /// Write down what came of the one forward: [`Event::Recorded`]. At `until` it is answered all the same.
    Record {
        /// What.
        came: Came,
        /// No longer than this.
        until: Mono,
    },
    /// Answer.
    Done(Decision),
}

/// One call of a dependency.
#[derive(Debug)]
pub struct Attempt {
    /// Its number; events about it carry it.
    pub id: AttemptId,
    /// Whom to call.
    pub dependency: DependencyId,
    /// How often the request has been tried, by whoever tried it: 1 is the first time. What is sent on as
    /// `Backstop-Attempt` from 2 on.
    pub number: u32,
    /// What the call takes up, held until the dependency's work has ended or has been given up.
    pub places: Places,
    /// The call must be over by then. No phase of it starts later.
    pub until: Mono,
    /// The request is over by then.
    pub end: Mono,
    /// How long an abandoned call goes on occupying the dependency if it does not end by itself: this long, or until
    /// `end` if `None`.
    pub abandon_hold: Option<Duration>,
    /// Whether it must not be sent a second time even where nothing of it was written: it is the one forward of an operation.
    pub is_once: bool,
}

/// What one call takes up: a place at its dependency, and its part of the resources that the dependency uses.
#[derive(Debug)]
#[must_use = "places that are dropped are given back at once"]
pub struct Places {
    /// `None` for a call that is made whatever is decided about it.
    _dependency: Option<Permit>,
    _resources: ResourcePermits,
    /// Its part of what was verified, of a dependency that stands in.
    _stand_in: Option<StandInPermit>,
    /// Its part of what may be read for a shared cache.
    _fill: Option<ResourcePermit>,
    /// Its place among those that try a dependency that was open.
    _probe: Option<ProbePlace>,
}

impl Places {
    pub(super) const fn new(
        dependency: Permit,
        resources: ResourcePermits,
        stand_in: Option<StandInPermit>,
        fill: Option<ResourcePermit>,
        probe: Option<ProbePlace>,
    ) -> Self {
        Self {
            _dependency: Some(dependency),
            _resources: resources,
            _stand_in: stand_in,
            _fill: fill,
            _probe: probe,
        }
    }

    /// Of a call that takes up nothing, because it is made whatever is decided about it: its request is only observed.
    pub fn none() -> Self {
        Self {
            _dependency: None,
            _resources: ResourcePermits::default(),
            _stand_in: None,
            _fill: None,
            _probe: None,
        }
    }

    /// What a call that is nobody's request takes up.
    pub const fn of_a_probe(dependency: Permit, resources: ResourcePermits) -> Self {
        Self::new(dependency, resources, None, None, None)
    }
}

impl From<Permit> for Places {
    /// A place at a dependency alone.
    fn from(dependency: Permit) -> Self {
        Self::new(dependency, ResourcePermits::default(), None, None, None)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Whether the caller may.
    Authorized(Authorization),
    /// Whether a copy exists, and its facts.
    Known(Option<CopyFacts>),
    /// A place may be free.
    Released,
    /// The step's time is over, or the attempt's in the given phase.
    TimeUp(Option<Failure>),
    /// The attempt's answer begins.
    Head {
        /// Which attempt.
        attempt: AttemptId,
        /// What its head says.
        head: HeadFacts,
    },
    /// The answer is complete, or larger than the limit.
    Body {
        /// Which attempt.
        attempt: AttemptId,
        /// What it is.
        body: BodyFacts,
    },
    /// The attempt failed.
    Failed {
        /// Which attempt.
        attempt: AttemptId,
        /// How.
        failure: Failure,
    },
    /// The call was not begun after all: no connection was free in time, or the time was over before anything was done.
    /// Nobody is blamed for it.
    NotAsked {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        reason: NotAsked,
    },
    /// The attempt ended in an error that nobody classified; it goes to the caller unchanged.
    Propagated {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// What the route's cache has.
    Cached(Cached),
    /// What came of a read for everybody who asks for the same.
    Filled(Filled),
    /// The copy, or why it cannot be had: `Ok(None)` is missing, `Err(())` unreadable.
    Copy(Result<Option<CopyFacts>, ()>),
    /// In all, the client has kept us waiting for its own bytes this long; the deadline moves back by it.
    ClientWaited(Duration),
    /// The client's own request is at fault; the dependency is not.
    ClientFault(ClientFault),
    /// The operation was begun before: nothing was sent.
    Again {
        /// Which attempt.
        attempt: AttemptId,
        /// What the ledger says of it.
        known: Known,
    },
    /// What the ledger has.
    Consulted(Consulted),
    /// What came of writing down what came.
    Recorded(Recorded),
    /// A part of a composed answer came.
    Part {
        /// Its number in the policy's order, from 0.
        number: usize,
        /// What it is.
        facts: PartFacts,
    },
}

/// What a cache has for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// A copy. Its limit is what the origin says about answers that it is not asked for at all.
    Hit(CopyFacts),
    /// The cache answered, and has nothing that could be used.
    Miss,
    /// It gave no answer.
    Failed,
    /// It was not asked.
    NotAsked,
}

/// What came of a read for everybody who asks for the same.
#[derive(Clone, Copy, Debug)]
pub enum Filled {
    /// An answer that everybody who asked for it may have.
    Shared(Account, CopyFacts),
    /// An answer that only whoever began the read may have, whole.
    Whole(Account),
    /// The same, as it comes.
    Streamed(Account, Option<Streaming>),
    /// No answer.
    Failed(Cause),
    /// An answer that whoever waited for it may not have.
    Apart,
    /// As many wait already as may.
    Full,
}

/// What is wrong with a request that is still arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientFault {
    /// It did not arrive in the time that it has for that.
    Slow,
    /// It is larger than accepted.
    TooLarge,
    /// It broke off: the client left.
    Broken,
}

/// What the head of an answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// HTTP status.
    pub status: u16,
    /// Whether content follows.
    pub has_body: bool,
    /// If a gateway behind this one marked its answer as an alternative: how old it says that is.
    pub degraded: Option<Duration>,
    /// When the dependency asks to be called again (`Retry-After`, RFC 9110 section 10.2.3).
    pub retry_after: Option<Duration>,
    /// How long its database kept it waiting (`Server-Timing: db;dur=`).
    pub database_wait: Option<Duration>,
}

/// What a collected answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFacts {
    /// Complete, and of the form that it declares.
    Whole {
        /// Whether it keeps the route's `correct` rules.
        correct: bool,
        /// Whether HTTP allows to keep it.
        storable: bool,
    },
    /// Not of the form that it declares: nothing but part of an answer.
    Broken,
    /// Larger than the limit: it has to stream.
    TooLarge,
}
