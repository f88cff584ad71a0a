//! Where a refusal becomes HTTP: the only place that chooses a status.
//!
//! | situation | status |
//! |---|---|
//! | a limit of the process, the route, the dependency or a resource; breaker, ramp; too late to start; stopping | 503 |
//! | no usable copy after a failure | 503 by contract, or 502/504 by the cause if the route says so |
//! | no alternative on this route: refused, TLS, name, invalid or incomplete answer | 502 |
//! | no alternative on this route: no answer in time | 504 |
//! | whether the caller may could not be found out | 503 |
//! | an operation could not be written down | 503 |
//! | the client did not send its request in time | 408 |
//! | the client's request is larger than accepted | 413 |
//!
//! Statuses: RFC 9110 section 15.6; error types: RFC 9209 section 2.3; problem types: RFC 9457.

use std::time::Duration;

use crate::failure::{Cause, FailureKind, NotAsked};
use crate::flow::Telling;
use crate::operation::Doubt;
use crate::outcome::{OperationReason, Reason};
use crate::policy::UnavailableStatus;
use crate::snapshot::CopyRefusal;

/// An answer that Backstop gives in nobody's name but its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// What kind of problem it is.
    pub problem: Problem,
    /// The `error` parameter of `Proxy-Status`, a registered type of RFC 9209.
    pub proxy_error: &'static str,
    /// The status that the dependency gave, if it gave one.
    pub received_status: Option<u16>,
    /// `Retry-After` in seconds (RFC 9110 section 10.2.3), where the moment is known.
    pub retry_after_s: Option<u32>,
}

/// Kinds of problem, each with its own documented type and title (RFC 9457).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// A limit was reached.
    Capacity,
    /// The service is stopping.
    Draining,
    /// Too little time was left to ask.
    Deadline,
    /// The breaker is open or the dependency is recovering.
    CircuitOpen,
    /// Whether the caller may could not be found out.
    Authorizer,
    /// There is no copy of the answer.
    SnapshotMissing,
    /// The copy is older than accepted.
    SnapshotTooOld,
    /// The copy's date lies in the future, or the clock cannot be believed.
    SnapshotFromFuture,
    /// The origin forbids an old copy.
    SnapshotProhibited,
    /// The dependency failed and the route has no alternative.
    UpstreamFailed,
    /// The dependency did not answer in time and the route has no alternative.
    UpstreamTimeout,
    /// The client was too slow to send its request.
    ClientTooSlow,
    /// The request's content is larger than accepted.
    ContentTooLarge,
    /// The request's content broke off, or its framing is malformed.
    ContentBroken,
    /// The operation could not be written down.
    Ledger,
    /// The operation is under way.
    OperationInProgress,
    /// It is not known what came of the operation.
    OutcomeUnknown,
    /// The operation was not executed.
    NotExecuted,
    /// The operation was declined, without effect.
    Declined,
    /// A person has to look at the operation.
    NeedsAttention,
    /// The key was used for another request.
    KeyReused,
    /// There is no such operation.
    NoSuchOperation,
    /// What became of the operation cannot be read at present.
    LedgerUnreadable,
}

impl Problem {
    /// Every problem, in declaration order.
    pub const ALL: [Problem; 23] = [
        Problem::Capacity,
        Problem::Draining,
        Problem::Deadline,
        Problem::CircuitOpen,
        Problem::Authorizer,
        Problem::SnapshotMissing,
        Problem::SnapshotTooOld,
        Problem::SnapshotFromFuture,
        Problem::SnapshotProhibited,
        Problem::UpstreamFailed,
        Problem::UpstreamTimeout,
        Problem::ClientTooSlow,
        Problem::ContentTooLarge,
        Problem::ContentBroken,
        Problem::Ledger,
        Problem::OperationInProgress,
        Problem::OutcomeUnknown,
        Problem::NotExecuted,
        Problem::Declined,
        Problem::NeedsAttention,
        Problem::KeyReused,
        Problem::NoSuchOperation,
        Problem::LedgerUnreadable,
    ];

    /// The last part of the problem type's URI.
    pub const fn token(self) -> &'static str {
        match self {
            Problem::Capacity => "capacity",
            Problem::Draining => "draining",
            Problem::Deadline => "deadline",
            Problem::CircuitOpen => "circuit-open",
            Problem::Authorizer => "authorizer-failed",
            Problem::SnapshotMissing => "snapshot-missing",
            Problem::SnapshotTooOld => "snapshot-too-old",
            Problem::SnapshotFromFuture => "snapshot-from-future",
            Problem::SnapshotProhibited => "snapshot-prohibited-by-origin",
            Problem::UpstreamFailed => "upstream-failed",
            Problem::UpstreamTimeout => "upstream-timeout",
            Problem::ClientTooSlow => "client-too-slow",
            Problem::ContentTooLarge => "content-too-large",
            Problem::ContentBroken => "content-broken",
            Problem::Ledger => "ledger-unavailable",
            Problem::OperationInProgress => "operation-in-progress",
            Problem::OutcomeUnknown => "outcome-unknown",
            Problem::NotExecuted => "not-executed",
            Problem::Declined => "declined",
            Problem::NeedsAttention => "needs-attention",
            Problem::KeyReused => "key-reused",
            Problem::NoSuchOperation => "no-such-operation",
            Problem::LedgerUnreadable => "ledger-unreadable",
        }
    }

    /// The problem's title, the same for every occurrence.
    pub const fn title(self) -> &'static str {
        match self {
            Problem::Capacity => "Too many requests are in flight",
            Problem::Draining => "The service is stopping",
            Problem::Deadline => "Too little time is left to ask the service behind",
            Problem::CircuitOpen => "The service behind is held off",
            Problem::Authorizer => "Whether this request is allowed cannot be found out at present",
            Problem::SnapshotMissing => "The service behind failed and there is no earlier answer",
            Problem::SnapshotTooOld => "The service behind failed and the earlier answer is too old",
            Problem::SnapshotFromFuture => {
                "The service behind failed and the earlier answer's date cannot be believed"
            }
            Problem::SnapshotProhibited => {
                "The service behind failed and forbids the use of an earlier answer"
            }
            Problem::UpstreamFailed => "The service behind failed",
            Problem::UpstreamTimeout => "The service behind did not answer in time",
            Problem::ClientTooSlow => "The request did not arrive in time",
            Problem::ContentTooLarge => "The request is larger than accepted",
            Problem::ContentBroken => "The request's content broke off or is malformed",
            Problem::Ledger => {
                "The ledger cannot be used at present: this request was not sent, which says nothing of an earlier one"
            }
            Problem::OperationInProgress => "The operation is under way",
            Problem::OutcomeUnknown => "It is not known whether the operation was executed",
            Problem::NotExecuted => "The operation was not executed",
            Problem::Declined => "The operation was declined and had no effect",
            Problem::NeedsAttention => "Whether the operation was executed has to be found out by a person",
            Problem::KeyReused => "The key was used for another request",
            Problem::NoSuchOperation => "There is no such operation",
            Problem::LedgerUnreadable => "What became of the operation cannot be read at present",
        }
    }
}

/// The answer for a reason, on a route that has no better one.
pub fn refusal(reason: Reason, cause: Option<Cause>, unavailable: UnavailableStatus) -> Refusal {
    match reason {
        Reason::Copy(copy) => {
            let by_cause = cause.map(of_cause);
            let status = match unavailable {
                UnavailableStatus::Contract => 503,
                UnavailableStatus::Cause => by_cause.map_or(503, |refusal| refusal.status),
            };
            Refusal {
                status,
                problem: copy_problem(copy),
                proxy_error: by_cause.map_or("proxy_internal_response", |refusal| refusal.proxy_error),
                received_status: by_cause.and_then(|refusal| refusal.received_status),
                retry_after_s: None,
            }
        }
        Reason::Cause(cause) => of_cause(cause),
        Reason::Draining => own(503, Problem::Draining),
        // Never the authorizer's own status: an outage of it says nothing about the caller.
        Reason::Authorizer => {
            Refusal { proxy_error: "destination_unavailable", ..own(503, Problem::Authorizer) }
        }
        Reason::ClientSlow => own(408, Problem::ClientTooSlow),
        Reason::ClientTooLarge => own(413, Problem::ContentTooLarge),
        // Most who break off are gone; whoever sent a malformed chunk still reads (RFC 9112 section 7.1).
        Reason::ClientLeft => own(400, Problem::ContentBroken),
        Reason::Capacity(_) => own(503, Problem::Capacity),
        Reason::Operation(OperationReason::NoSuchOperation) => own(404, Problem::NoSuchOperation),
        Reason::Operation(OperationReason::LedgerUnreadable) => own(503, Problem::LedgerUnreadable),
        Reason::None
        | Reason::Operation(_)
        | Reason::Incorrect
        | Reason::ServerError
        | Reason::UpstreamDegraded
        | Reason::Denied
        | Reason::Unclassified => cause.map_or(own(502, Problem::UpstreamFailed), of_cause),
    }
}

/// What the ledger says of an operation, as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationReply {
    /// HTTP status. Of the dependency's own answer it is that one's.
    pub status: u16,
    /// What kind of problem it is; `None` where it is none.
    pub refusal: Option<Refusal>,
    /// Whether it is told to somebody who comes with the key of an earlier request.
    pub again: bool,
    /// Whether its client only looks.
    pub looks: bool,
    /// `Retry-After` in seconds, where it is known when more may be known.
    pub retry_after_s: Option<u32>,
}

/// Who asks for what the ledger says, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Somebody who comes with the key of an earlier request.
    pub again: bool,
    /// Somebody who only looks.
    pub looks: bool,
    /// Somebody who understands that an operation of unknown outcome was accepted, while it is really followed.
    pub is_accepted: bool,
}

/// The answer for what the ledger says of an operation.
///
/// | what is known | whoever sent it | the same operation again | a look |
/// |---|---|---|---|
/// | under way | (waits) | 409 | 200 |
/// | unknown | 202 where that is understood and it is followed; else 504 after a timeout, 502 otherwise | 409 | 200 |
/// | the dependency's own answer | that | that | 200 |
/// | executed, by evidence that came later | 200 | 200 | 200 |
/// | declined, by evidence that came later | 409 | 409 | 200 |
/// | not executed | 503 | 409 | 200 |
/// | a person is needed | 409 | 409 | 200 |
/// | the key was used for another request | | 422 | |
///
/// `received` is the status of an answer of the dependency that proved nothing.
pub fn operation(
    telling: Telling,
    asks: Asks,
    cause: Option<Cause>,
    received: Option<u16>,
    next_query: Option<Duration>,
) -> OperationReply {
    let Asks { again, looks, is_accepted } = asks;
    let by_cause = cause.map(of_cause).filter(|_| !again);
    let (status, problem) = match telling {
        // A look is answered whatever it shows.
        _ if looks => (200, None),
        Telling::Answered(status) => (status, None),
        Telling::Executed(_) => (200, None),
        Telling::InProgress => (409, Some(Problem::OperationInProgress)),
        Telling::Unknown(_) if again => (409, Some(Problem::OutcomeUnknown)),
        Telling::Unknown(_) if is_accepted => (202, None),
        Telling::Unknown(doubt) => {
            let is_late = doubt == Doubt::Timeout || by_cause.is_some_and(|refusal| refusal.status == 504);
            (if is_late { 504 } else { 502 }, Some(Problem::OutcomeUnknown))
        }
        Telling::NotExecuted(_) => (if again { 409 } else { 503 }, Some(Problem::NotExecuted)),
        Telling::Declined(_) => (409, Some(Problem::Declined)),
        Telling::NeedsAttention(_) => (409, Some(Problem::NeedsAttention)),
        Telling::OtherRequest => (422, Some(Problem::KeyReused)),
    };
    let retry_after_s = next_query.filter(|_| matches!(telling, Telling::Unknown(_))).map(whole_seconds);
    let refusal = problem.map(|problem| Refusal {
        proxy_error: by_cause.map_or("destination_unavailable", |refusal| refusal.proxy_error),
        received_status: by_cause.and_then(|refusal| refusal.received_status).or(received),
        retry_after_s,
        ..own(status, problem)
    });
    OperationReply { status, refusal, again, looks, retry_after_s }
}

/// Rounded up, and at least one: whoever comes earlier learns nothing new.
fn whole_seconds(time: Duration) -> u32 {
    let seconds = time.as_nanos().div_ceil(1_000_000_000).max(1);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

const fn own(status: u16, problem: Problem) -> Refusal {
    Refusal {
        status,
        problem,
        proxy_error: "proxy_internal_response",
        received_status: None,
        retry_after_s: None,
    }
}

const fn copy_problem(refusal: CopyRefusal) -> Problem {
    match refusal {
        CopyRefusal::Missing | CopyRefusal::Unreadable => Problem::SnapshotMissing,
        CopyRefusal::TooOld => Problem::SnapshotTooOld,
        CopyRefusal::FromFuture | CopyRefusal::ClockUntrusted => Problem::SnapshotFromFuture,
        CopyRefusal::ForbiddenByOrigin => Problem::SnapshotProhibited,
    }
}

fn of_cause(cause: Cause) -> Refusal {
    match cause {
        Cause::NotAsked(NotAsked::BreakerOpen | NotAsked::Ramping) => Refusal {
            status: 503,
            problem: Problem::CircuitOpen,
            proxy_error: "destination_unavailable",
            received_status: None,
            retry_after_s: None,
        },
        Cause::NotAsked(NotAsked::DependencyFull | NotAsked::ResourceFull | NotAsked::PoolTimeout) => {
            own(503, Problem::Capacity)
        }
        Cause::NotAsked(NotAsked::TooLate) => own(503, Problem::Deadline),
        Cause::NotAsked(NotAsked::Ledger) => own(503, Problem::Ledger),
        Cause::Failed(failure) => {
            let received_status = failure.kind.status();
            let (status, proxy_error) = match failure.kind {
                FailureKind::Dns => (502, "dns_error"),
                FailureKind::Connect => (502, "connection_refused"),
                FailureKind::ConnectTimeout => (504, "connection_timeout"),
                FailureKind::Tls => (502, "tls_protocol_error"),
                FailureKind::Write | FailureKind::Reset => (502, "connection_terminated"),
                FailureKind::ReadTimeout => (504, "http_response_timeout"),
                FailureKind::Incomplete => (502, "http_response_incomplete"),
                FailureKind::Protocol => (502, "http_protocol_error"),
                FailureKind::Unavailable { status: status @ 502..=504 } => {
                    (status, "destination_unavailable")
                }
                FailureKind::Unavailable { .. } | FailureKind::Declared { .. } => {
                    (502, "destination_unavailable")
                }
            };
            let problem = if status == 504 { Problem::UpstreamTimeout } else { Problem::UpstreamFailed };
            Refusal { status, problem, proxy_error, received_status, retry_after_s: None }
        }
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
