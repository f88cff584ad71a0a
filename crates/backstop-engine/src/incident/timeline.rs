//! What happened in an incident, in order and bounded.
//!
//! The first [`FIRST_MAX`] entries stay for ever and the newest [`LAST_MAX`] are kept; what falls out between them is
//! counted. Steps of one ramp are one entry. Once the first entries are full, a phase or a state that is among the last
//! eight entries already is counted there instead: a breaker that opens anew every half minute for a day does not push
//! out what else happened. The worst second stands once, where it was.

use std::time::Duration;

use super::moment::Moment;
use super::phase::Phase;
use super::sample::{Counts, DependencyState};

/// Entries from the beginning that stay.
pub const FIRST_MAX: usize = 100;
/// Newest entries that are kept beyond them.
pub const LAST_MAX: usize = 100;

const REPEATS_WITHIN: usize = 8;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The incident has another phase.
    Phase(Phase),
    /// A dependency has another state, other than a ramp.
    Dependency {
        /// Its name.
        name: Box<str>,
        /// How it stands.
        state: DependencyState,
    },
    /// A dependency's traffic came back in steps.
    Ramp {
        /// Its name.
        name: Box<str>,
        /// The first step, in per cent.
        from: u8,
        /// The latest step.
        to: u8,
        /// Steps that led down.
        steps_back: u32,
    },
    /// The second in which most requests were not completed.
    Worst(Counts),
    /// Nobody counted for a while: the process was held up or the machine slept.
    Gap {
        /// For how long.
        missed: Duration,
    },
    /// The process ended and another took over.
    Restart {
        /// How long nobody counted.
        missed: Duration,
    },
}

/// One line of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it happened first.
    pub at: Moment,
    /// When it happened last.
    pub until: Moment,
    /// How often.
    pub times: u64,
    /// What.
    pub what: What,
}

/// A bounded list of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// From the beginning.
    pub first: Vec<Entry>,
    /// Entries that fell out after those.
    pub dropped: u64,
    /// The newest.
    pub last: Vec<Entry>,
}

impl Timeline {
    /// Every entry that is kept, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.first.iter().chain(&self.last)
    }

    pub(super) fn note(&mut self, at: Moment, what: What) {
        let is_crowded = self.first.len() >= FIRST_MAX || !self.last.is_empty();
        let repeats = is_crowded && matches!(what, What::Phase(_) | What::Dependency { .. });
        if repeats && let Some(entry) = self.newest().find(|entry| entry.what == what) {
            entry.happened_again(at);
            return;
        }
        self.push(Entry { at, until: at, times: 1, what });
    }

    /// Another step of a ramp: of the same one if nothing else was heard of the dependency since.
    pub(super) fn note_ramp(&mut self, at: Moment, dependency: &str, percent: u8) {
        let newest = self.newest().find(|entry| match &entry.what {
            What::Dependency { name, .. } | What::Ramp { name, .. } => **name == *dependency,
            What::Phase(_) | What::Worst(_) | What::Gap { .. } | What::Restart { .. } => false,
        });
        if let Some(entry) = newest
            && let What::Ramp { to, steps_back, .. } = &mut entry.what
        {
            *steps_back = steps_back.saturating_add(u32::from(percent < *to));
            *to = percent;
            entry.happened_again(at);
            return;
        }
        let what = What::Ramp { name: dependency.into(), from: percent, to: percent, steps_back: 0 };
        self.push(Entry { at, until: at, times: 1, what });
    }

    pub(super) fn note_worst(&mut self, at: Moment, counts: Counts) {
        let is_other = |entry: &Entry| !matches!(entry.what, What::Worst(_));
        self.first.retain(is_other);
        self.last.retain(is_other);
        self.push(Entry { at, until: at, times: 1, what: What::Worst(counts) });
    }

    fn newest(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.first.iter_mut().chain(&mut self.last).rev().take(REPEATS_WITHIN)
    }

    fn push(&mut self, entry: Entry) {
        if self.first.len() < FIRST_MAX && self.last.is_empty() {
            self.first.push(entry);
            return;
        }
        self.last.push(entry);
        if self.last.len() > LAST_MAX {
            self.last.remove(0);
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The same within its bounds: it comes from a file.
    pub(super) fn bounded(mut self) -> Self {
        let mut last = self.first.split_off(self.first.len().min(FIRST_MAX));
        last.append(&mut self.last);
        let excess = last.len().saturating_sub(LAST_MAX);
        self.last = last.split_off(excess);
        self.dropped = self.dropped.saturating_add(excess as u64);
        self
    }
}

impl Entry {
    fn happened_again(&mut self, at: Moment) {
        self.times = self.times.saturating_add(1);
        self.until = at;
    }
}
