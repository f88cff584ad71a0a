//! The moments of an operation at which a process may die, each with a name.
//!
//! What a ledger promises has to hold wherever the process ends. So the code says [`pass`] where it passes one of these moments,
//! and a test that has put somebody there to [`watch`] ends the process at the moment that it wants to see. Where nobody
//! watches, which is in every released binary, a passing is one load.

use std::sync::OnceLock;

/// A moment of an operation, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checkpoint {
    /// Its whole request is here; nothing was decided.
    RequestRead,
    /// It was admitted: breaker, places, time. Nothing is written.
    Admitted,
    /// Its intent waits for the ledger's thread.
    IntentQueued,
    /// Its intent is in a transaction that is not committed.
    IntentWritten,
    /// Its intent is committed, and nobody has heard of that.
    IntentCommitted,
    /// Its intent is acknowledged, and nothing is sent.
    IntentAcknowledged,
    /// There is a connection for its forward, and no byte has left.
    ForwardBegun,
    /// Its head has left, and its body has not.
    ForwardPartlySent,
    /// All of it has left, and there is no answer.
    ForwardSent,
    /// The head of its answer is here, and the body is not.
    AnswerBegun,
    /// Its whole answer is in memory, and nothing of it is written.
    AnswerRead,
    /// Its outcome is in a transaction that is not committed.
    OutcomeWritten,
    /// Its outcome is committed, and the client has heard nothing.
    OutcomeCommitted,
    /// Its status query is claimed, and not sent.
    QueryClaimed,
    /// The answer to its status query is in memory, and not written.
    QueryAnswered,
    /// Some of what is too old is deleted in a transaction that is not committed.
    RetentionWritten,
}

impl Checkpoint {
    /// Every one once, in declaration order.
    pub const ALL: [Checkpoint; 16] = [
        Checkpoint::RequestRead,
        Checkpoint::Admitted,
        Checkpoint::IntentQueued,
        Checkpoint::IntentWritten,
        Checkpoint::IntentCommitted,
        Checkpoint::IntentAcknowledged,
        Checkpoint::ForwardBegun,
        Checkpoint::ForwardPartlySent,
        Checkpoint::ForwardSent,
        Checkpoint::AnswerBegun,
        Checkpoint::AnswerRead,
        Checkpoint::OutcomeWritten,
        Checkpoint::OutcomeCommitted,
        Checkpoint::QueryClaimed,
        Checkpoint::QueryAnswered,
        Checkpoint::RetentionWritten,
    ];

    /// As one word.
    pub const fn token(self) -> &'static str {
        match self {
            Checkpoint::RequestRead => "request_read",
            Checkpoint::Admitted => "admitted",
            Checkpoint::IntentQueued => "intent_queued",
            Checkpoint::IntentWritten => "intent_written",
            Checkpoint::IntentCommitted => "intent_committed",
            Checkpoint::IntentAcknowledged => "intent_acknowledged",
            Checkpoint::ForwardBegun => "forward_begun",
            Checkpoint::ForwardPartlySent => "forward_partly_sent",
            Checkpoint::ForwardSent => "forward_sent",
            Checkpoint::AnswerBegun => "answer_begun",
            Checkpoint::AnswerRead => "answer_read",
            Checkpoint::OutcomeWritten => "outcome_written",
            Checkpoint::OutcomeCommitted => "outcome_committed",
            Checkpoint::QueryClaimed => "query_claimed",
            Checkpoint::QueryAnswered => "query_answered",
            Checkpoint::RetentionWritten => "retention_written",
        }
    }

    /// The one of this word.
    pub fn parse(token: &str) -> Option<Self> {
        Checkpoint::ALL.into_iter().find(|point| point.token() == token)
    }
}

/// Somebody watches already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("checkpoints of operations are watched already")]
pub struct AlreadyWatched;

static WATCHER: OnceLock<fn(Checkpoint)> = OnceLock::new();

/// Calls `watcher` at every passing from now on, on the thread that passes. For tests alone.
///
/// # Errors
/// If somebody watches already: there is one watcher in the life of a process.
pub fn watch(watcher: fn(Checkpoint)) -> Result<(), AlreadyWatched> {
    WATCHER.set(watcher).map_err(|_theirs| AlreadyWatched)
}

/// Whether anybody watches.
pub fn is_watched() -> bool {
    WATCHER.get().is_some()
}

/// An operation passes this moment.
#[inline]
pub fn pass(point: Checkpoint) {
    if let Some(watcher) = WATCHER.get() {
        watcher(point);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static SEEN: Mutex<Vec<Checkpoint>> = Mutex::new(Vec::new());

    #[test]
    fn every_moment_is_found_by_its_word() {
        for point in Checkpoint::ALL {
            assert_eq!(Checkpoint::parse(point.token()), Some(point));
        }
        assert!(Checkpoint::ALL.is_sorted_by(|one, next| one < next));
        assert_eq!(Checkpoint::parse("at_lunch"), None);
    }

    #[test]
    fn one_watcher_sees_what_is_passed_after_it_came() {
        pass(Checkpoint::RequestRead);
        watch(|point| SEEN.lock().unwrap().push(point)).unwrap();
        assert_eq!(watch(|_| ()), Err(AlreadyWatched));
        pass(Checkpoint::ForwardSent);
        pass(Checkpoint::AnswerRead);
        assert_eq!(*SEEN.lock().unwrap(), [Checkpoint::ForwardSent, Checkpoint::AnswerRead]);
    }
}
