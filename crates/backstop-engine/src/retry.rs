//! Whether a failed call is made once more.
//!
//! A retry helps against a fault of one moment and feeds every longer one, so it is the exception that has to be shown:
//! - One layer owns the retries. Where somebody else does, or whoever called has tried already, none is made here: three
//!   layers of three attempts are 27 calls
//! - [Two attempts](MAX_ATTEMPTS) in all, for GET and HEAD alone (RFC 9110 section 9.2.2 allows more; whoever waits for
//!   an answer to be lost twice does not)
//! - Only after what is over in a moment: the name was not resolved, the connection was refused or was lost before any
//!   byte of the answer, the request could not be written, or the dependency says 502 or 503. Never after a timeout, its
//!   own or the one that a 504 reports: the dependency may be at work still, and a second call doubles just the work
//!   that was too slow. Never after part of an answer: its whole cost was paid already
//! - Not while the dependency recovers, nor while a resource that it uses is at [70 %](RESOURCE_PER_MILLE)
//! - Only if the wait before it and a useful attempt after it fit in what is left of the deadline. The wait is drawn
//!   ([`backoff`]), and comes on top of the dependency's own `Retry-After`
//! - Retries under way are at most [a fifth](PLACES_SHARE) of what is in flight, and each is paid from successes
//!   ([`Budget`])
//!
//! [`may_retry`] is all of that but the payment, as one function of what is known.

mod backoff;
mod budget;

use std::time::Duration;

use crate::failure::{Failure, FailureKind, Phase};
use crate::flow::Method;

pub use backoff::{BACKOFF_FIRST, BACKOFF_MOST, backoff};
pub use budget::{Budget, BudgetRules, PLACES_SHARE, places};

/// Calls of one request, the first one included.
pub const MAX_ATTEMPTS: u32 = 2;

/// From this use of a resource on, in thousandths, its dependencies are not called again.
pub const RESOURCE_PER_MILLE: u32 = 700;

/// Who makes a failed call again, if anybody does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// This gateway or library.
    #[default]
    Backstop,
    /// Whoever calls it.
    Client,
    /// Something behind it.
    Upstream,
}

/// What is known when a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryFacts {
    /// Who owns the retries.
    pub owner: Owner,
    /// The number of this attempt by the caller's own count (`Backstop-Attempt`); 1 where it names none.
    pub inbound_attempt: u32,
    /// What the request's method promises.
    pub method: Method,
    /// Calls that the route allows for one request; 1 is no retry.
    pub attempts_allowed: u32,
    /// Calls that were made for this request.
    pub attempts_made: u32,
    /// How the last one failed.
    pub failure: Failure,
    /// When the dependency asked to be called again, if its answer said so.
    pub retry_after: Option<Duration>,
    /// Whether retries wait for the dependency to be well again: its breaker is not closed, or it is recovering.
    pub suspended: bool,
    /// Use of the fullest resource that the dependency uses, in thousandths.
    pub resource_per_mille: u32,
    /// Retries to this dependency that are under way.
    pub retries_in_flight: u32,
    /// Calls to this dependency that are under way, retries included.
    pub in_flight: u32,
    /// The wait that was drawn.
    pub backoff: Duration,
    /// Time left for attempts.
    pub left: Duration,
    /// The least time in which an attempt is any use.
    pub min_useful: Duration,
}

/// Why a call is not made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoRetry {
    /// Somebody else owns the retries.
    Owner,
    /// The caller is trying again already.
    Inbound,
    /// The method may change something.
    Method,
    /// All attempts were made.
    Attempts,
    /// It timed out.
    Timeout,
    /// The failure is not one of a moment.
    Failure,
    /// The dependency is recovering.
    Suspended,
    /// A resource that it uses is nearly full.
    Resource,
    /// The dependency asked for a later moment than the deadline leaves.
    RetryAfter,
    /// Too little of the deadline is left.
    Deadline,
    /// Enough retries are under way.
    InFlight,
    /// Not enough calls succeeded to pay for it.
    Budget,
}

impl NoRetry {
    /// Every reason once, in declaration order.
    pub const TOKENS: [&'static str; 12] = [
        "owner",
        "inbound",
        "method",
        "attempts",
        "timeout",
        "failure",
        "suspended",
        "resource",
        "retry_after",
        "deadline",
        "in_flight",
        "budget",
    ];

    /// The reason as one word, as in traces and metrics.
    pub fn token(self) -> &'static str {
        NoRetry::TOKENS.get(self as usize).copied().unwrap_or("budget")
    }
}

/// Whether the call may be made again, and how long to wait before. What it costs is not looked at:
/// [`Budget::start`] decides that, at the moment when the retry would be made.
///
/// # Errors
/// The first rule that forbids it, in the order of [`NoRetry`].
pub fn may_retry(facts: &RetryFacts) -> Result<Duration, NoRetry> {
    let refuse_if = |forbidden: bool, why| if forbidden { Err(why) } else { Ok(()) };
    refuse_if(facts.owner != Owner::Backstop, NoRetry::Owner)?;
    refuse_if(facts.inbound_attempt > 1, NoRetry::Inbound)?;
    refuse_if(!matches!(facts.method, Method::Get | Method::Head), NoRetry::Method)?;
    refuse_if(facts.attempts_made >= facts.attempts_allowed.min(MAX_ATTEMPTS), NoRetry::Attempts)?;
    is_of_a_moment(facts.failure)?;
    refuse_if(facts.suspended, NoRetry::Suspended)?;
    refuse_if(facts.resource_per_mille >= RESOURCE_PER_MILLE, NoRetry::Resource)?;
    let fits = |wait: Duration| wait.saturating_add(facts.min_useful) <= facts.left;
    refuse_if(!fits(facts.backoff), NoRetry::Deadline)?;
    // On top, not instead: all that were told the same moment would come at that moment.
    let wait = facts.retry_after.unwrap_or_default().saturating_add(facts.backoff);
    refuse_if(!fits(wait), NoRetry::RetryAfter)?;
    refuse_if(facts.retries_in_flight >= places(facts.in_flight), NoRetry::InFlight)?;
    Ok(wait)
}

/// Whether a failure is of the kind that the next moment may not have.
const fn is_of_a_moment(failure: Failure) -> Result<(), NoRetry> {
    match failure.kind {
        FailureKind::ConnectTimeout
        | FailureKind::ReadTimeout
        | FailureKind::Unavailable { status: 504 }
        | FailureKind::Declared { status: 504 | 408 } => Err(NoRetry::Timeout),
        FailureKind::Dns | FailureKind::Connect | FailureKind::Write => Ok(()),
        FailureKind::Unavailable { status: 502 | 503 } => Ok(()),
        // A connection lost within the body is an answer that ended early, whatever it is called.
        FailureKind::Reset if !matches!(failure.phase, Phase::Body) => Ok(()),
        // A certificate, a protocol or a declared status is the same a moment later; `Incomplete` was answered.
        FailureKind::Reset
        | FailureKind::Tls
        | FailureKind::Incomplete
        | FailureKind::Protocol
        | FailureKind::Unavailable { .. }
        | FailureKind::Declared { .. } => Err(NoRetry::Failure),
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
