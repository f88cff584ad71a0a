//! What time does to operations, by route, and what of it a person has to hear.

use backstop_engine::operation::{Attention, Claim, OperationId, Record, Retention, Schedule, State};
use backstop_engine::time::{Mono, Wall};

/// How the operations of one route are looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// The route, by its name.
    pub route: Box<str>,
    /// How long what is decided is kept.
    pub retention: Retention,
    /// When the status is asked for of what became unknown, or a matter for a person, by time alone.
    pub schedule: Schedule,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Operations that are unknown now because their owner did not say in time what came of them.
    pub lapsed: u64,
    /// Unknown operations that need a person now.
    pub overdue: u64,
    /// Answers whose content was dropped because of its age.
    pub emptied: u64,
    /// Operations that were forgotten because of their age.
    pub forgotten: u64,
    /// It did as much as one may, so there may be more: sweep again soon.
    pub has_more: bool,
    /// Operations that came to need a person since the last sweep, whoever reported it, in order. Each is told once.
    pub raised: Vec<Raised>,
    /// How many more there were than are kept for one sweep. They are among those in that state.
    pub raised_left_out: u64,
}

/// What was claimed of one route.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The rights to ask, those that were asked for least often first, of equals those that were due longest.
    pub claims: Vec<Claim>,
    /// When the oldest status query of the route that nobody has claimed became due, or will.
    pub oldest_due: Option<Mono>,
}

/// An operation that came to need a person. Nothing of its content or its key is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The operation.
    pub id: OperationId,
    /// The route, by its name.
    pub route: Box<str>,
    /// Why.
    pub why: Attention,
    /// When the operation began.
    pub created: Wall,
    /// Since when it needs a person.
    pub since: Wall,
}

impl Raised {
    /// An operation, if it needs a person.
    pub fn of(record: &Record) -> Option<Self> {
        let parts = record.progress.parts();
        let State::Attention(why) = parts.state else { return None };
        let identity = &record.identity;
        let (created, since) = (identity.created, parts.changed);
        Some(Self { id: identity.id, route: identity.route.clone(), why, created, since })
    }
}
