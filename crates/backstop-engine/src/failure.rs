//! What counts as a dependency's failure, and what only looks like one.
//!
//! Two closed lists lead to an alternative. [`FailureKind`] names what a dependency did wrong; those also feed whatever
//! remembers its health. [`NotAsked`] names why it was not called at all; those never do. Everything else (401, 403,
//! 404, 409, 410, 422, other 4xx, schema errors, panics, errors that nobody classified) passes through or propagates
//! unchanged.

use crate::policy::{Route, StatusSet};

/// One failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// In which part of the exchange.
    pub phase: Phase,
    /// Whether the dependency can have received any of the request.
    pub sent: Sent,
}

impl Failure {
    /// A failure of the given kind, in the phase in which it was met.
    pub const fn new(kind: FailureKind, phase: Phase, sent: Sent) -> Self {
        Self { kind, phase, sent }
    }

    /// The failure that a whole answer with this status is, if it is one.
    pub fn of_status(status: u16, route: &Route) -> Option<Self> {
        let kind = match status {
            502..=504 => FailureKind::Unavailable { status },
            _ if route.declared.contains(status) && !Self::never(status) => FailureKind::Declared { status },
            _ => return None,
        };
        Some(Self::new(kind, Phase::Head, Sent::Maybe))
    }

    /// A gateway behind this one gives an alternative that is older than the route accepts: it could not ask either.
    pub const fn of_old_answer(status: u16) -> Self {
        Self::new(FailureKind::Unavailable { status }, Phase::Head, Sent::Maybe)
    }

    /// A whole answer that is not what the route accepts, where it declares that a failure.
    pub const fn of_incorrect(status: u16) -> Self {
        Self::new(FailureKind::Declared { status }, Phase::Body, Sent::Maybe)
    }

    /// An answer that ended early, or whose content is not what it says.
    pub const fn of_broken_body() -> Self {
        Self::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe)
    }

    /// Whether a status can never be declared a failure: all but 429 and 5xx.
    ///
    /// Every other 4xx is an answer about the request (RFC 9110 section 15.5): what one client asks for must not count
    /// against the dependency or be answered with a copy. 429 says that the dependency takes no more.
    pub const fn never(status: u16) -> bool {
        !matches!(status, 429 | 500..=599)
    }

    /// The set of statuses that may be declared a failure.
    pub fn declarable() -> StatusSet {
        let mut set = StatusSet::EMPTY;
        for status in 100..600 {
            if !Self::never(status) {
                set.insert(status);
            }
        }
        set
    }
}

/// What a dependency did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Its name could not be resolved.
    Dns,
    /// The connection was refused or is unreachable.
    Connect,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    Tls,
    /// The request could not be written.
    Write,
    /// The connection was reset or closed before an answer.
    Reset,
    /// No complete answer in time.
    ReadTimeout,
    /// The answer ended early, or its body is not what its framing or media type says.
    Incomplete,
    /// The answer is not valid HTTP.
    Protocol,
    /// It says itself that it is unavailable: 502, 503 or 504, or with too old an alternative of its own.
    Unavailable {
        /// The status.
        status: u16,
    },
    /// A status that the route declares a failure, or a whole answer that it declares one because it is not correct.
    Declared {
        /// The status.
        status: u16,
    },
}

impl FailureKind {
    /// Every kind once, in the order of [`FailureKind::index`].
    pub const TOKENS: [&'static str; 11] = [
        "dns",
        "connect",
        "connect_timeout",
        "tls",
        "write",
        "reset",
        "read_timeout",
        "incomplete",
        "protocol",
        "unavailable",
        "declared",
    ];

    /// Position in [`FailureKind::TOKENS`].
    pub const fn index(self) -> usize {
        match self {
            FailureKind::Dns => 0,
            FailureKind::Connect => 1,
            FailureKind::ConnectTimeout => 2,
            FailureKind::Tls => 3,
            FailureKind::Write => 4,
            FailureKind::Reset => 5,
            FailureKind::ReadTimeout => 6,
            FailureKind::Incomplete => 7,
            FailureKind::Protocol => 8,
            FailureKind::Unavailable { .. } => 9,
            FailureKind::Declared { .. } => 10,
        }
    }

    /// Whether any byte of the request can have reached the dependency, as far as the kind alone tells: no connection,
    /// no request.
    pub const fn sent(self) -> Sent {
        match self {
            FailureKind::Dns | FailureKind::Connect | FailureKind::ConnectTimeout | FailureKind::Tls => {
                Sent::No
            }
            FailureKind::Write
            | FailureKind::Reset
            | FailureKind::ReadTimeout
            | FailureKind::Incomplete
            | FailureKind::Protocol
            | FailureKind::Unavailable { .. }
            | FailureKind::Declared { .. } => Sent::Maybe,
        }
    }

    /// Whether it was asked and did not answer in time, as it was seen here or as it says itself. It may be at work still,
    /// and so may what it uses.
    pub const fn is_late(self) -> bool {
        matches!(
            self,
            FailureKind::ReadTimeout
                | FailureKind::Unavailable { status: 504 }
                | FailureKind::Declared { status: 504 }
        )
    }

    /// The status that the dependency itself gave, if it gave one.
    pub const fn status(self) -> Option<u16> {
        match self {
            FailureKind::Unavailable { status } | FailureKind::Declared { status } => Some(status),
            _ => None,
        }
    }
}

/// A part of an exchange with a dependency, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waiting for a connection slot.
    Queue,
    /// Resolving the name.
    Resolve,
    /// Establishing the connection.
    Connect,
    /// Writing the request.
    Send,
    /// Waiting for the head of the answer.
    Head,
    /// Reading its body.
    Body,
}

/// Whether any byte of the request can have reached the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// Certainly none.
    No,
    /// It may have.
    Maybe,
}

/// Why a dependency was not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotAsked {
    /// Its breaker is open.
    BreakerOpen,
    /// It is recovering and its share is used up.
    Ramping,
    /// All of its connections are taken.
    DependencyFull,
    /// None of its connections became free in time.
    PoolTimeout,
    /// A resource that it uses is full.
    ResourceFull,
    /// Too little of the deadline is left to start.
    TooLate,
    /// The operation could not be written down, so it was not sent.
    Ledger,
}

impl NotAsked {
    /// Every reason once, in declaration order.
    pub const TOKENS: [&'static str; 7] =
        ["breaker_open", "ramping", "dependency_full", "pool_timeout", "resource_full", "too_late", "ledger"];
}

/// What may lead to an alternative: one of the two closed lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The dependency failed.
    Failed(Failure),
    /// It was not asked.
    NotAsked(NotAsked),
}

impl Cause {
    /// The cause as one word, as in the `Backstop` field, logs and metrics.
    pub fn token(self) -> &'static str {
        match self {
            Cause::Failed(failure) => {
                FailureKind::TOKENS.get(failure.kind.index()).copied().unwrap_or("protocol")
            }
            Cause::NotAsked(reason) => NotAsked::TOKENS.get(reason as usize).copied().unwrap_or("too_late"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_about_the_request_can_never_be_declared_failures() {
        let set = Failure::declarable();
        for status in (100..500).filter(|&status| status != 429) {
            assert!(!set.contains(status) && Failure::never(status), "{status}");
        }
        for status in [429, 500, 501, 503, 599] {
            assert!(set.contains(status) && !Failure::never(status), "{status}");
        }
        for status in [0, 99, 600, u16::MAX] {
            assert!(Failure::never(status), "{status}");
        }
    }

    #[test]
    fn tokens_follow_declaration_order() {
        assert_eq!(Cause::NotAsked(NotAsked::PoolTimeout).token(), "pool_timeout");
        assert_eq!(Cause::NotAsked(NotAsked::TooLate).token(), "too_late");
        let failed = |kind| Cause::Failed(Failure::new(kind, Phase::Head, Sent::Maybe)).token();
        assert_eq!(failed(FailureKind::Dns), "dns");
        assert_eq!(failed(FailureKind::Declared { status: 500 }), "declared");
    }
}
