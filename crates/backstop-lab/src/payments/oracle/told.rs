//! What an answer tells of an operation, read as a client reads it.

use super::{Answer, Asked, Attempt, Heard};

/// What Backstop's own problems begin with.
const OWN_PROBLEM: &str = "urn:backstop:problem:";

/// What a client was told of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It happened.
    Succeeded,
    /// It was refused, and has no effect.
    Failed,
    /// It was not executed, or a new key may be used for it, which says the same.
    NotExecuted,
    /// Nobody can say yet: under way, in verification, or unknown.
    Open,
    /// It is a matter for a person.
    Attention,
    /// The key belongs to another request.
    OtherRequest,
    /// There is no such operation, to who looked for it.
    Missing,
    /// Nothing about the operation: this attempt was not taken.
    NotTaken,
    /// Something about the operation, in no documented word.
    Unreadable,
}

impl Told {
    /// What an attempt was told; `None` if it heard nothing.
    #[must_use]
    pub fn by(attempt: &Attempt) -> Option<Self> {
        match &attempt.heard {
            Heard::Nothing => None,
            Heard::Answer(answer) => Some(Self::of(attempt.asked, answer)),
            Heard::Cut { status } => match attempt.asked {
                Asked::Execute { .. } if is_success(*status) => Some(Self::Succeeded),
                _ => None,
            },
        }
    }

    /// What a whole answer says to who asked this.
    fn of(asked: Asked, answer: &Answer) -> Self {
        let executes = matches!(asked, Asked::Execute { .. });
        // Whatever the body says: there are clients that look at the status alone.
        if executes && is_success(answer.status) {
            return Self::Succeeded;
        }
        match answer.retry.as_deref() {
            Some("new_key") => return Self::NotExecuted,
            None | Some("same_key" | "never") => {}
            Some(_) => return Self::Unreadable,
        }
        match answer.state.as_deref() {
            Some("succeeded") => Self::Succeeded,
            Some("failed") => Self::Failed,
            Some("not_executed") => Self::NotExecuted,
            Some("dispatching" | "in_verification" | "unknown") => Self::Open,
            Some("needs_attention") => Self::Attention,
            Some(_) => Self::Unreadable,
            None if !executes && answer.status == 404 => Self::Missing,
            None if answer.problem.as_deref().is_some_and(|it| it.starts_with(OWN_PROBLEM)) => {
                Self::of_own_problem(answer.status)
            }
            None if executes => Self::of_status(answer.status),
            None if answer.status == 200 => Self::Unreadable,
            None => Self::NotTaken,
        }
    }

    fn of_own_problem(status: u16) -> Self {
        match status {
            422 => Self::OtherRequest,
            409 | 502 | 504 => Self::Open,
            _ => Self::NotTaken,
        }
    }

    /// By the status of an answer of the upstream itself. What many send after an effect is no refusal.
    fn of_status(status: u16) -> Self {
        match status {
            408 | 409 | 425 | 429 => Self::Open,
            400..=499 => Self::Failed,
            _ => Self::Open,
        }
    }

    /// Whether who was told so may believe that the operation has no effect.
    pub(super) fn is_without_effect(self) -> bool {
        matches!(self, Self::Failed | Self::NotExecuted)
    }
}

/// Whether a client takes this status for a success. 202 is none: it says that the work is not done.
fn is_success(status: u16) -> bool {
    (200..=299).contains(&status) && status != 202
}
