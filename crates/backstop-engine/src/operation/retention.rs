//! How long a record is kept.
//!
//! What is decided loses its content after a day and is forgotten after a month. What is not decided is kept until it is. A
//! forgotten key is a new one, so forgetting needs a date that may be believed: while the clock ran back or is not synchronised
//! everything is kept.

use std::time::Duration;

use crate::time::{Now, WallTrust};

use super::record::Record;

/// How long what is decided is kept, from the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retention {
    /// The content of the answer. 24 h.
    pub content: Duration,
    /// The record without it: names, state and dates. 30 days.
    pub tombstone: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self { content: DAY, tombstone: DAY.saturating_mul(30) }
    }
}

/// What becomes of a record now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// It stays as it is.
    Whole,
    /// The fields and the content of its answer go; its status stays.
    Tombstone,
    /// It goes.
    Nothing,
}

/// What becomes of a record now. Exactly at its limit it goes.
pub fn retained(record: &Record, retention: &Retention, now: &Now) -> Keep {
    let parts = record.progress.parts();
    if !parts.state.is_decided() || now.wall_trust != WallTrust::Synchronised {
        return Keep::Whole;
    }
    match now.wall.since(parts.changed) {
        Some(age) if age >= retention.tombstone.max(retention.content) => Keep::Nothing,
        Some(age) if age >= retention.content => Keep::Tombstone,
        _ => Keep::Whole,
    }
}
