//! Whether an unknown outcome is really being followed.
//!
//! "In verification" is said only while that is true. A queue that nobody works on, or that is far behind, is not followed.

use std::time::Duration;

use crate::time::{Mono, Now, Wall};

use super::id::Epoch;
use super::record::Record;
use super::state::{State, words};

/// What is known of whoever asks for statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Whether the contract has a status query.
    pub has_status_query: bool,
    /// When it last said that it is at work.
    pub heartbeat: Option<Mono>,
    /// The oldest status query that is due and not asked yet.
    pub oldest_due: Option<Mono>,
    /// The oldest heartbeat that counts. 10 s.
    pub heartbeat_limit: Duration,
    /// The furthest that it may be behind. 60 s.
    pub lag_limit: Duration,
}

words! {
    /// Why an operation is not followed.
    Untracked {
        /// Its outcome is not unknown.
        NotUnknown = "not_unknown",
        /// The contract has no status query.
        NoStatusQuery = "no_status_query",
        /// Its time for verification is over.
        Deadline = "deadline",
        /// It is not in line to be asked for.
        NotDue = "not_due",
        /// Whoever asks has not been heard of.
        Silent = "silent",
        /// Whoever asks is too far behind.
        Behind = "behind",
    }
}

/// Until the next status query of an operation that is being followed; zero if it is due.
///
/// # Errors
/// Why it is not followed.
pub fn tracked(record: &Record, follower: &Follower, epoch: Epoch, now: &Now) -> Result<Duration, Untracked> {
    let parts = record.progress.parts();
    let require = |holds: bool, why| if holds { Ok(()) } else { Err(why) };
    require(matches!(parts.state, State::Unknown(_)), Untracked::NotUnknown)?;
    require(follower.has_status_query, Untracked::NoStatusQuery)?;
    require(now.wall < parts.verify_until, Untracked::Deadline)?;
    let due = parts.due.filter(|_| parts.epoch == epoch).ok_or(Untracked::NotDue)?;
    let is_within = |since: Mono, limit: Duration| now.mono.since(since).is_none_or(|age| age <= limit);
    require(
        follower.heartbeat.is_some_and(|heartbeat| is_within(heartbeat, follower.heartbeat_limit)),
        Untracked::Silent,
    )?;
    let oldest = follower.oldest_due.map_or(due, |oldest| oldest.min(due));
    require(is_within(oldest, follower.lag_limit), Untracked::Behind)?;
    Ok(now.mono.until(due))
}

/// The date of a moment that lies so far ahead.
pub fn date_of(wait: Duration, now: &Now) -> Wall {
    now.wall.after(wait)
}
