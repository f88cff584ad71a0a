//! A second look at what was decided by absence.
//!
//! The rule of [absence](super::absence) is as good as the `settle` that was declared. An operation that the upstream executes
//! later than that would go unnoticed, because nothing asks about what is decided. So for as long as the upstream knows
//! operations it is asked again, and one answer counts: that it was executed after all. It decides nothing, because a client may
//! have heard the contrary: a person is called.

use std::time::Duration;

use crate::time::Now;

use super::record::Record;
use super::report::{Event, Report};
use super::schedule::Draw;
use super::state::{NotExecuted, State};

/// The right to ask about an operation that counts as not executed because its upstream did not know it. Nothing is leased
/// and nothing is written: who is overtaken has asked one question too many, and its report is stale.
#[derive(Debug)]
pub struct SecondLook {
    record: Record,
}

/// A second look at an operation, for ledgers alone; `None` of what was not decided by absence.
pub fn second_look(record: Record) -> Option<SecondLook> {
    let is_absent = record.progress.state() == State::NotExecuted(NotExecuted::Absent);
    is_absent.then_some(SecondLook { record })
}

impl SecondLook {
    /// The operation, for the answer to be compared with.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Whether the upstream can still be asked about it, where it remembers operations for so long. By date: one that began
    /// in the future, because the date ran back, is remembered.
    pub fn is_remembered(&self, remembered: Duration, now: &Now) -> bool {
        now.wall.since(self.record.identity.created).is_none_or(|age| age < remembered)
    }

    /// The answer says that it was executed after all, and is about this operation. `next`: when its status is asked for
    /// again while a person has it.
    pub fn executed(self, next: Draw) -> Report {
        Report::new(self.record.identity.id, self.record.progress.fence(), Event::ExecutedLate(next))
    }
}
