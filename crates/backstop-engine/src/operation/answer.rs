//! What a client hears about an operation.
//!
//! | state | to whoever asked first | to the same operation again |
//! |---|---|---|
//! | dispatching | (waits for its own answer) | in progress |
//! | unknown | unknown | unknown |
//! | succeeded, failed: by the upstream's own answer | that answer | that answer; its status alone if no more is kept |
//! | succeeded, failed: by status, or by a person | the outcome, without an answer that nobody gave | the same |
//! | not executed | not executed | not executed |
//! | attention | a person is needed | the same |
//!
//! A new key is offered only for what was certainly never sent. In every other case it could be the second payment.

use super::evidence::EvidenceKind;
use super::kept::KeptAnswer;
use super::record::Record;
use super::state::{Attention, Doubt, NotExecuted, State, words};

words! {
    /// What a client may do next.
    NextTry {
        /// Ask again with the same key, and no other.
        SameKey = "same_key",
        /// Begin anew with a new key: nothing was sent under the old one.
        NewKey = "new_key",
        /// Nothing: it is decided.
        Never = "never",
    }
}

/// What a client hears. How that looks in HTTP is decided elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// It is under way.
    InProgress,
    /// It is not known what came of it.
    Unknown(Doubt),
    /// The upstream's own answer, as it was kept.
    Replay(&'a KeptAnswer),
    /// The upstream's own answer had this status, and no more of it is kept.
    StatusOnly(u16),
    /// It was executed, as a status query or a person says. There is no answer of the upstream to show.
    Executed(EvidenceKind),
    /// It was refused or declined without effect, as a status query or a person says.
    Declined(EvidenceKind),
    /// It was not executed.
    NotExecuted(NotExecuted),
    /// A person has to look at it.
    NeedsAttention(Attention),
}

/// What whoever comes with the key of this operation, and with the same request, hears.
pub fn answer(record: &Record) -> Told<'_> {
    match record.progress.state() {
        State::Dispatching => Told::InProgress,
        State::Unknown(doubt) => Told::Unknown(doubt),
        State::Succeeded(evidence) => kept(record, evidence.kind(), Told::Executed(evidence.kind())),
        State::Failed(evidence) => kept(record, evidence.kind(), Told::Declined(evidence.kind())),
        State::NotExecuted(why) => Told::NotExecuted(why),
        State::Attention(why) => Told::NeedsAttention(why),
    }
}

/// The upstream's own answer, where that is what decided.
fn kept<'a>(record: &'a Record, kind: EvidenceKind, otherwise: Told<'a>) -> Told<'a> {
    match (kind, &record.answer) {
        (EvidenceKind::Direct, Some(answer)) if answer.body.is_some() => Told::Replay(answer),
        (EvidenceKind::Direct, Some(answer)) => Told::StatusOnly(answer.status),
        _ => otherwise,
    }
}

impl Told<'_> {
    /// What the client may do next.
    pub const fn next_try(&self) -> NextTry {
        match self {
            Told::NotExecuted(why) if why.is_never_sent() => NextTry::NewKey,
            Told::InProgress | Told::Unknown(_) | Told::NotExecuted(_) | Told::NeedsAttention(_) => {
                NextTry::SameKey
            }
            Told::Replay(_) | Told::StatusOnly(_) | Told::Executed(_) | Told::Declined(_) => NextTry::Never,
        }
    }
}
