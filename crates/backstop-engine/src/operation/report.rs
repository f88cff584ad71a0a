//! What is reported about an operation, by whom.

use crate::time::Mono;

use super::absence::AbsenceRule;
use super::evidence::Refusal;
use super::id::{Fence, OperationId};
use super::kept::KeptAnswer;
use super::schedule::Draw;
use super::state::{Attention, Doubt, NotExecuted};

/// What happened to an operation. Made only by those who may say it; a ledger hands it to [`apply`](super::apply) with the
/// record that it has, and writes what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what happened is to be recorded"]
pub struct Report {
    id: OperationId,
    fence: Fence,
    event: Event,
    answer: Option<KeptAnswer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// By the forward's own answer.
    Succeeded,
    /// By the forward's own answer.
    Refused(Refusal),
    /// The forward, without an answer that decides.
    Lost(Doubt, Draw),
    NeverSent(NotExecuted),
    /// By a status query.
    Found(Verdict, Draw),
    /// By a status query: the upstream has it, and is still at work.
    Pending(Draw),
    /// By a status query that says nothing that can be understood.
    Inconclusive(Draw),
    /// A status query that was asked at this moment knows no such operation.
    Absent {
        asked: Mono,
        may_count: bool,
        rule: Option<AbsenceRule>,
        next: Draw,
    },
    /// A status query that a person has to look at.
    Strange(Attention, Draw),
    /// By a second look at what was decided by absence: it was executed after all.
    ExecutedLate(Draw),
    /// Nothing was asked: the budget or the breaker forbids it now.
    PutBack(Draw),
}

/// What a status query says was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was executed.
    Succeeded,
    /// It was declined, without effect.
    Failed,
}

impl Report {
    pub(super) const fn new(id: OperationId, fence: Fence, event: Event) -> Self {
        Self { id, fence, event, answer: None }
    }

    pub(super) fn with(self, answer: KeptAnswer) -> Self {
        Self { answer: Some(answer), ..self }
    }

    /// Which operation it is about.
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// The fence under which it is said.
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    pub(super) const fn event(&self) -> &Event {
        &self.event
    }

    /// What is to be kept of the upstream's answer, if the report is accepted.
    pub const fn answer(&self) -> Option<&KeptAnswer> {
        self.answer.as_ref()
    }

    /// Takes what is to be kept of the upstream's answer out of it.
    pub const fn take_answer(&mut self) -> Option<KeptAnswer> {
        self.answer.take()
    }
}
