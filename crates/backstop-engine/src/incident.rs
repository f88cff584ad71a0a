//! Incidents: when one begins, how it stands, and when it is over.
//!
//! [`Incidents`] is told once a second what happened since the second before. It is driven by one task that keeps house
//! and is on no request's path.
//!
//! **It begins** when a breaker is not closed, or when one of four ratios is out of bounds: quality (less than 99 % of
//! requests answered normally), fallback (more than the usual share + 0.1 percentage points, and more than 0.5 %),
//! refusals (more than 0.1 %), errors (more than 1 %). Out of bounds means either of:
//! - for three seconds in a row, not counting seconds without requests, which together have at least 20 requests and 5
//!   bad ones;
//! - over the last 60 s as a whole, with at least 5 bad ones, and without its two worst seconds too, unless the last
//!   three seconds have fewer than 20 requests. That is for little traffic and for what is thin but steady; one bad
//!   moment alone is no incident.
//!
//! The incident's first second is the earliest that speaks for it, so what was lost before it was certain is counted
//! too. A service that always answers more than 1 % of its requests with less than full quality is always in one.
//!
//! **It goes through phases**: degraded, recovering, observing, ended ([`Phase`] says what leads from one to the next).
//!
//! **It ends** when for five minutes without a break every dependency was closed and at full rate; the four ratios were
//! within bounds; no 95th percentile was raised; no dependency had more than 1.02 calls for one request; cache hits were
//! at 95 % of what is usual or above (or fewer for so long that this is usual now); copies were no older than their renewal leaves them; and no effect had an unknown
//! end that nobody follows up. Signals that are not configured are green.
//!
//! **Time** is the boot clock's. A tick that comes more than five seconds after the one before is a gap: it is noted, and
//! what lasted until then begins anew, because a machine that slept has not been green. [`Saved`] is for restarts.
//!
//! Everything is bounded: the last minute, the timeline, names, and the incidents that are remembered.

mod baseline;
mod begin;
mod bounds;
mod course;
mod judge;
mod moment;
mod named;
mod phase;
mod record;
mod sample;
mod saved;
mod signal;
mod timeline;
mod window;

pub use baseline::Baseline;
pub use course::{COURSE_DEPENDENCIES, COURSE_MAX, Course, Stretch};
pub use moment::Moment;
pub use named::Named;
pub use phase::{AMBER_TOLERATED, GREEN_TO_END, Phase};
pub use record::{DependencyRecord, NAMES_MAX, Record, TOKENS_MAX};
pub use sample::{
    CopyAges, Counts, DependencySample, DependencyState, Latency, Lookups, Names, OTHER, Sample, Served,
};
pub use saved::Saved;
pub use signal::{Signal, Signals};
pub use timeline::{Entry, FIRST_MAX, LAST_MAX, Timeline, What};

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Now;

use judge::Judge;
use phase::Progress;
use window::{Second, Window};

/// Incidents that have ended and are remembered.
pub const ENDED_MAX: usize = 32;
/// The longest time that one tick may speak for.
pub const TICK_MAX: Duration = Duration::from_secs(5);

/// What a tick changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An incident began.
    Began {
        /// Which.
        id: Box<str>,
        /// Its first second, some time ago.
        began: Moment,
        /// What speaks for it.
        signals: Signals,
    },
    /// It has another phase.
    PhaseChanged {
        /// Which.
        id: Box<str>,
        /// The phase before.
        from: Phase,
        /// The phase now.
        to: Phase,
        /// What is not green.
        signals: Signals,
    },
    /// It is over.
    Ended {
        /// Which.
        id: Box<str>,
        /// How long it took in all.
        lasted: Duration,
    },
}

/// The incident of the moment and those before it.
#[derive(Clone, Debug, Default)]
pub struct Incidents {
    current: Option<Record>,
    ended: VecDeque<Record>,
    begun: u64,
    baseline: Baseline,
    window: Window,
    judge: Judge,
    progress: Progress,
    last_tick: Option<Moment>,
}

impl Incidents {
    /// No incident, and nothing known of what is usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// The incident of the moment.
    pub fn current(&self) -> Option<&Record> {
        self.current.as_ref()
    }

    /// Those that have ended, oldest first; at most [`ENDED_MAX`].
    pub fn ended(&self) -> impl DoubleEndedIterator<Item = &Record> + ExactSizeIterator {
        self.ended.iter()
    }

    /// Incidents that have begun so far.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// What is usual while nothing is wrong.
    pub fn baseline(&self) -> &Baseline {
        &self.baseline
    }

    /// Takes in what happened since the tick before.
    pub fn tick(&mut self, now: Now, sample: &Sample, names: &Names) -> Option<Change> {
        let at = Moment::from(now);
        if let Some(missed) = self.missed(&at) {
            self.window.clear();
            self.judge = Judge::default();
            self.progress.interrupt();
            if let Some(record) = &mut self.current {
                record.timeline.note(at, What::Gap { missed });
            }
        }
        self.last_tick = Some(at);
        let second = Second { at, sample: sample.clone(), names: names.clone() };
        self.window.push(second, self.current.is_none().then_some(&mut self.baseline));
        match self.current.take() {
            None => self.begin(at),
            Some(record) => self.go_on(record, at),
        }
    }

    /// How long nobody counted before this tick, if that is too long for one tick to speak for.
    fn missed(&self, at: &Moment) -> Option<Duration> {
        let last = self.last_tick.as_ref()?;
        let passed = at.since(last);
        let is_same_run = at.boot == last.boot && at.mono >= last.mono && passed <= TICK_MAX;
        (!is_same_run).then_some(passed)
    }

    fn begin(&mut self, at: Moment) -> Option<Change> {
        let evidence = begin::evidence(&self.window, &self.baseline)?;
        let began = self.window.forward_from(evidence.from).next().map_or(at, |second| second.at);
        self.begun = self.begun.saturating_add(1);
        let mut record = Record::new(began, at, self.begun);
        let is_before = |second: &&Second| second.at.mono < evidence.from;
        record.note_before(self.window.back().filter(is_before));
        for second in self.window.forward_from(evidence.from) {
            record.count(second);
        }
        record.timeline.note(at, What::Phase(Phase::Degraded));
        if let Some(newest) = self.window.newest() {
            record.note_states(newest);
        }
        self.judge = Judge::default();
        self.progress = Progress::default();
        let seen = self.judge.signals(&self.window, &self.baseline);
        record.note_signals(at, evidence.signals.and(seen));
        let change = Change::Began { id: record.id.clone(), began, signals: evidence.signals };
        self.current = Some(record);
        Some(change)
    }

    fn go_on(&mut self, mut record: Record, at: Moment) -> Option<Change> {
        if let Some(newest) = self.window.newest() {
            record.count(newest);
            record.note_states(newest);
        }
        let signals = self.judge.signals(&self.window, &self.baseline);
        record.note_signals(at, signals);
        if self.progress.fewer_hits_are_usual(signals, at.mono) {
            self.baseline.forget_hits();
        }
        let (from, id) = (record.phase, record.id.clone());
        let to = self.progress.next(from, signals, &self.window, at.mono);
        if from != to {
            record.phase = to;
            record.timeline.note(at, What::Phase(to));
        }
        if to == Phase::Ended {
            record.ended = Some(at);
            let lasted = at.since(&record.began);
            // These seconds belong to this incident and to no later one.
            self.window.clear();
            self.keep(record);
            return Some(Change::Ended { id, lasted });
        }
        self.current = Some(record);
        (from != to).then_some(Change::PhaseChanged { id, from, to, signals })
    }
}

#[cfg(test)]
mod tests;
