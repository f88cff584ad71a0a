//! What a request came to: exactly one [`Outcome`], from one [`Source`], for one [`Reason`].

use crate::failure::{Cause, FailureKind, NotAsked};
use crate::snapshot::CopyRefusal;
use crate::words::joined;

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The dependency answered acceptably.
    Normal,
    /// An alternative that was accepted beforehand was served.
    Fallback,
    /// Backstop refused.
    Rejected,
    /// There was no acceptable answer.
    Failed,
    /// The client left first.
    Abandoned,
}

impl Outcome {
    /// Every outcome, in declaration order.
    pub const ALL: [Outcome; 5] =
        [Outcome::Normal, Outcome::Fallback, Outcome::Rejected, Outcome::Failed, Outcome::Abandoned];

    /// The outcome as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Outcome::Normal => "normal",
            Outcome::Fallback => "fallback",
            Outcome::Rejected => "rejected",
            Outcome::Failed => "failed",
            Outcome::Abandoned => "abandoned",
        }
    }
}

/// Where the answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The route's own dependency, in this very request.
    Primary,
    /// A cache in front of it.
    Cache,
    /// The last correct answer.
    Snapshot,
    /// A general answer prepared beforehand.
    Prepared,
    /// The part was left out.
    Omitted,
    /// Another dependency, or a gateway behind this one that answered with an alternative.
    Alternative,
    /// The operations ledger.
    Ledger,
    /// Whoever says who may: that this caller may not.
    Authorizer,
    /// Nobody: Backstop's own refusal or error.
    None,
}

impl Source {
    /// Every source, in declaration order.
    pub const ALL: [Source; 9] = [
        Source::Primary,
        Source::Cache,
        Source::Snapshot,
        Source::Prepared,
        Source::Omitted,
        Source::Alternative,
        Source::Ledger,
        Source::Authorizer,
        Source::None,
    ];

    /// The source as one word.
    pub const fn token(self) -> &'static str {
        match self {
            Source::Primary => "primary",
            Source::Cache => "cache",
            Source::Snapshot => "snapshot",
            Source::Prepared => "prepared",
            Source::Omitted => "omitted",
            Source::Alternative => "alternative",
            Source::Ledger => "ledger",
            Source::Authorizer => "authorizer",
            Source::None => "none",
        }
    }
}

/// Why the answer is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nothing went wrong.
    None,
    /// A limit of the route or the process was reached.
    Capacity(Scope),
    /// The dependency failed or was not asked.
    Cause(Cause),
    /// No copy could be served after the cause.
    Copy(CopyRefusal),
    /// A whole answer broke the route's `correct` rules.
    Incorrect,
    /// A 5xx that is not in the closed list passed through.
    ServerError,
    /// A gateway behind this one answered with an alternative.
    UpstreamDegraded,
    /// The service is stopping.
    Draining,
    /// The client left.
    ClientLeft,
    /// The client did not send its request in time.
    ClientSlow,
    /// The client's request is larger than accepted.
    ClientTooLarge,
    /// The caller may not, by the authorizer's explicit word.
    Denied,
    /// Whether the caller may could not be found out.
    Authorizer,
    /// What the ledger says of the operation.
    Operation(OperationReason),
    /// The request's own code panicked or returned an error that nobody classified.
    Unclassified,
}

/// Whose limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole process's.
    Process,
    /// The whole process's: places are free, but they are kept for classes that matter more.
    ProcessShare,
    /// The route's.
    Route,
    /// The lane for alternatives.
    FallbackLane,
}

/// What the ledger says of an operation that cannot be answered with an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationReason {
    /// It is under way.
    InProgress,
    /// It is not known what came of it.
    Unknown,
    /// It was not executed.
    NotExecuted,
    /// A person has to look at it.
    NeedsAttention,
    /// Its key was used for another request.
    KeyReused,
    /// There is none of this name in this scope.
    NoSuchOperation,
    /// What it is in cannot be read at present.
    LedgerUnreadable,
}

impl OperationReason {
    /// The words, in declaration order.
    pub const TOKENS: [&'static str; 7] = [
        "operation_in_progress",
        "operation_unknown",
        "operation_not_executed",
        "operation_attention",
        "key_reused",
        "no_such_operation",
        "ledger_unreadable",
    ];
}

impl Reason {
    /// The words of its own, in the order of [`Reason::index`].
    const OWN: [&'static str; 17] = [
        "none",
        "capacity",
        "missing",
        "age",
        "forbidden",
        "clock",
        "unreadable",
        "incorrect",
        "server_error",
        "upstream_degraded",
        "draining",
        "client_left",
        "client_slow",
        "client_too_large",
        "denied",
        "authorizer",
        "unclassified",
    ];

    /// Every word that [`Reason::token`] gives, in the order of [`Reason::index`].
    pub const TOKENS: [&'static str; 42] =
        joined(&[&Reason::OWN, &OperationReason::TOKENS, &FailureKind::TOKENS, &NotAsked::TOKENS]);

    /// Position in [`Reason::TOKENS`].
    pub const fn index(self) -> usize {
        const OPERATIONS: usize = Reason::OWN.len();
        const FAILURES: usize = OPERATIONS + OperationReason::TOKENS.len();
        const NOT_ASKED: usize = FAILURES + FailureKind::TOKENS.len();
        match self {
            Reason::None => 0,
            Reason::Capacity(_) => 1,
            Reason::Copy(CopyRefusal::Missing) => 2,
            // Too old and from the future are one fault to whoever reads the answer: its age is not acceptable. The
            // problem type tells them apart.
            Reason::Copy(CopyRefusal::TooOld | CopyRefusal::FromFuture) => 3,
            Reason::Copy(CopyRefusal::ForbiddenByOrigin) => 4,
            Reason::Copy(CopyRefusal::ClockUntrusted) => 5,
            Reason::Copy(CopyRefusal::Unreadable) => 6,
            Reason::Incorrect => 7,
            Reason::ServerError => 8,
            Reason::UpstreamDegraded => 9,
            Reason::Draining => 10,
            Reason::ClientLeft => 11,
            Reason::ClientSlow => 12,
            Reason::ClientTooLarge => 13,
            Reason::Denied => 14,
            Reason::Authorizer => 15,
            Reason::Unclassified => 16,
            Reason::Operation(reason) => OPERATIONS + reason as usize,
            Reason::Cause(Cause::Failed(failure)) => FAILURES + failure.kind.index(),
            Reason::Cause(Cause::NotAsked(reason)) => NOT_ASKED + reason as usize,
        }
    }

    /// The reason as one word, as in the `Backstop` field, logs and metrics.
    pub fn token(self) -> &'static str {
        Self::TOKENS.get(self.index()).copied().unwrap_or("none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, Phase, Sent};

    #[test]
    fn every_cause_has_the_same_word_as_a_reason() {
        let failures = [
            FailureKind::Dns,
            FailureKind::Connect,
            FailureKind::ConnectTimeout,
            FailureKind::Tls,
            FailureKind::Write,
            FailureKind::Reset,
            FailureKind::ReadTimeout,
            FailureKind::Incomplete,
            FailureKind::Protocol,
            FailureKind::Unavailable { status: 503 },
            FailureKind::Declared { status: 500 },
        ]
        .map(|kind| Cause::Failed(Failure::new(kind, Phase::Head, Sent::Maybe)));
        let not_asked = [
            NotAsked::BreakerOpen,
            NotAsked::Ramping,
            NotAsked::DependencyFull,
            NotAsked::PoolTimeout,
            NotAsked::ResourceFull,
            NotAsked::TooLate,
            NotAsked::Ledger,
        ]
        .map(Cause::NotAsked);
        for cause in failures.into_iter().chain(not_asked) {
            assert_eq!(Reason::Cause(cause).token(), cause.token());
        }
    }

    #[test]
    fn every_word_of_the_ledger_is_the_same_as_a_reason() {
        let reasons = [
            OperationReason::InProgress,
            OperationReason::Unknown,
            OperationReason::NotExecuted,
            OperationReason::NeedsAttention,
            OperationReason::KeyReused,
            OperationReason::NoSuchOperation,
            OperationReason::LedgerUnreadable,
        ];
        assert!(
            reasons
                .iter()
                .zip(OperationReason::TOKENS)
                .all(|(reason, token)| { Reason::Operation(*reason).token() == token && !token.is_empty() })
        );
        assert_eq!(Reason::Operation(OperationReason::InProgress).token(), "operation_in_progress");
        assert_eq!(Reason::Operation(OperationReason::LedgerUnreadable).token(), "ledger_unreadable");
    }

    #[test]
    fn words_are_distinct() {
        let mut words = Reason::TOKENS.to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::TOKENS.len());
    }
}
