//! What happened to an operation, for whoever has to find out later.

use std::fmt;

use backstop_engine::operation::State;
use backstop_engine::time::Wall;

/// The longest name of a person, in bytes.
pub(crate) const NAME_BYTES: usize = 128;
/// The longest reason, in bytes.
pub(crate) const REASON_BYTES: usize = 1024;

/// Who changed an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Whoever reported: the forward or a status query.
    Reporter,
    /// Time: a lease or a deadline was over.
    Time,
    /// The start of a process.
    Recovery,
    /// A person.
    Person(Resolution),
}

impl Actor {
    /// As one word.
    pub const fn token(&self) -> &'static str {
        match self {
            Actor::Reporter => "reporter",
            Actor::Time => "time",
            Actor::Recovery => "recovery",
            Actor::Person(_) => "person",
        }
    }
}

/// One change of an operation's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// When.
    pub at: Wall,
    /// By whom.
    pub actor: Actor,
    /// What it was in before.
    pub from: State,
    /// What it was in then.
    pub to: State,
}

/// Who decides, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    by: Box<str>,
    reason: Box<str>,
}

/// A decision without a name or a reason is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolutionError {
    /// The name is empty or longer than 128 bytes.
    Name,
    /// The reason is empty or longer than 1024 bytes.
    Reason,
}

impl fmt::Display for ResolutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolutionError::Name => write!(f, "a decision needs a name of 1 to {NAME_BYTES} bytes"),
            ResolutionError::Reason => write!(f, "a decision needs a reason of 1 to {REASON_BYTES} bytes"),
        }
    }
}

impl std::error::Error for ResolutionError {}

impl Resolution {
    /// Who decides, and why. White space around them does not count.
    ///
    /// # Errors
    /// If one of them is missing or too long.
    pub fn new(by: &str, reason: &str) -> Result<Self, ResolutionError> {
        let (by, reason) = (by.trim(), reason.trim());
        if by.is_empty() || by.len() > NAME_BYTES {
            return Err(ResolutionError::Name);
        }
        if reason.is_empty() || reason.len() > REASON_BYTES {
            return Err(ResolutionError::Reason);
        }
        Ok(Self { by: by.into(), reason: reason.into() })
    }

    /// Who decides.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
