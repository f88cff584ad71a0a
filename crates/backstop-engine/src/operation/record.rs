//! Everything that a ledger keeps of one operation.

use std::fmt;

use crate::time::{Mono, Wall};

use super::digest::{ClientKey, Fingerprint, Scope};
use super::id::{Epoch, Fence, OperationId};
use super::kept::KeptAnswer;
use super::state::State;

/// The longest operation id of an upstream, in bytes.
pub const UPSTREAM_ID_BYTES: usize = 1024;
/// The longest name of a route, in bytes.
pub const ROUTE_BYTES: usize = 128;
/// The most values that are captured from a request.
pub const CAPTURED_VALUES: usize = 16;
/// The longest name or value that is captured, in bytes.
pub const CAPTURED_BYTES: usize = 256;

/// What never changes in a record. The request's content and its credentials are not in it; the client's key is, where the upstream
/// was given just that as operation id and its status can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its name.
    pub id: OperationId,
    /// Whose it is.
    pub scope: Scope,
    /// The client's key, unique within a scope.
    pub key: ClientKey,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// The route, by its name in the policy.
    pub route: Box<str>,
    /// What the upstream was told as operation id, byte for byte, where its status can be asked for by it.
    pub upstream_id: Option<Box<[u8]>>,
    /// Values of the request that the status query compares, by the names that the contract gives them.
    pub captured: Vec<(Box<str>, Box<str>)>,
    /// When it began.
    pub created: Wall,
}

/// Why an intent cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntentError {
    /// The name of the route is longer than [`ROUTE_BYTES`].
    Route,
    /// The upstream's operation id is empty or longer than [`UPSTREAM_ID_BYTES`].
    UpstreamId,
    /// More values than [`CAPTURED_VALUES`], or one longer than [`CAPTURED_BYTES`].
    Captured,
}

impl fmt::Display for IntentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntentError::Route => write!(f, "a route's name has at most {ROUTE_BYTES} bytes"),
            IntentError::UpstreamId => write!(f, "an operation id has 1 to {UPSTREAM_ID_BYTES} bytes"),
            IntentError::Captured => {
                write!(f, "at most {CAPTURED_VALUES} values of {CAPTURED_BYTES} bytes are captured")
            }
        }
    }
}

impl std::error::Error for IntentError {}

impl Identity {
    /// # Errors
    /// The first part that is beyond its limit.
    pub(super) fn check(&self) -> Result<(), IntentError> {
        if self.route.len() > ROUTE_BYTES {
            return Err(IntentError::Route);
        }
        if self.upstream_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > UPSTREAM_ID_BYTES) {
            return Err(IntentError::UpstreamId);
        }
        let is_long = |text: &str| text.len() > CAPTURED_BYTES;
        if self.captured.len() > CAPTURED_VALUES
            || self.captured.iter().any(|(name, value)| is_long(name) || is_long(value))
        {
            return Err(IntentError::Captured);
        }
        Ok(())
    }
}

/// What changes in a record: the state, who may write, and when the status is asked for next.
///
/// Its moments on the clock since boot mean something within [`epoch`](Parts::epoch) only; recovery renews them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Progress(pub(super) Parts);

/// The parts of a [`Progress`], for a ledger to write and to read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// What the operation is in.
    pub state: State,
    /// How often it was written by an owner.
    pub fence: Fence,
    /// The life of the ledger in which the moments below were read.
    pub epoch: Epoch,
    /// Until when its owner may write: whoever forwards while dispatching, whoever asks while it is open.
    pub lease_until: Option<Mono>,
    /// When its status is to be asked for next; while it is open.
    pub due: Option<Mono>,
    /// When an unknown one becomes a matter for a person.
    pub verify_until: Wall,
    /// Since when it has existed, on the clock of this epoch; the beginning of the epoch at the latest.
    pub born: Mono,
    /// From when the time counts that an absence has to outlast.
    pub settle_from: Mono,
    /// How often the status was asked for since it became open, in this epoch.
    pub asked: u32,
    /// When it was asked for last, or could have been.
    pub asked_at: Mono,
    /// Absences in a row that count.
    pub absences: u32,
    /// When the last of them was asked for.
    pub absent_at: Mono,
    /// Whether the last answer to a status query was that there is no such operation.
    pub was_absent: bool,
    /// When the state last changed, by date.
    pub changed: Wall,
}

/// The parts of a progress do not belong together: they were not written by this code, or were damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistent;

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parts of a record do not belong together")
    }
}

impl std::error::Error for Inconsistent {}

impl Progress {
    /// Its parts.
    pub const fn parts(&self) -> &Parts {
        &self.0
    }

    /// What the operation is in.
    pub const fn state(&self) -> State {
        self.0.state
    }

    /// How often it was written by an owner.
    pub const fn fence(&self) -> Fence {
        self.0.fence
    }

    /// When its status is to be asked for next.
    pub const fn due(&self) -> Option<Mono> {
        self.0.due
    }

    /// Reads back what a ledger wrote.
    ///
    /// # Errors
    /// If no order of transitions leads there: a decided operation that is due or leased, one under way that nobody owns.
    pub const fn restore(parts: Parts) -> Result<Self, Inconsistent> {
        let is_right = match parts.state {
            State::Dispatching => parts.lease_until.is_some() && parts.due.is_none(),
            State::Unknown(_) | State::Attention(_) => parts.due.is_some(),
            State::Succeeded(_) | State::Failed(_) | State::NotExecuted(_) => {
                parts.lease_until.is_none() && parts.due.is_none()
            }
        };
        if is_right && parts.fence.number() >= Fence::FIRST.number() {
            Ok(Self(parts))
        } else {
            Err(Inconsistent)
        }
    }

    /// Whether the owner may still write at this moment of this epoch. A lease is over exactly at its end.
    pub(super) fn is_leased(&self, epoch: Epoch, now: Mono) -> bool {
        self.0.epoch == epoch && self.0.lease_until.is_some_and(|until| now < until)
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// What never changes.
    pub identity: Identity,
    /// What does.
    pub progress: Progress,
    /// What is kept of the upstream's own answer, once there was one that decides.
    pub answer: Option<KeptAnswer>,
}
