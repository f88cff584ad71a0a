//! Incidents across a restart: plain data out, plain data in.
//!
//! - An incident that had not ended goes on in its phase. The gap is noted in its timeline. What lasted until then (five
//!   minutes of green, ten seconds of amber) begins anew: nobody knows what happened meanwhile.
//! - The boot clock of another boot is compared with nothing. Then the date tells how long the gap was, and never a
//!   negative time.
//! - What is usual is kept, the last minute is not.
//! - What could not be read at the start may be read later. Incidents of the time in between come after those that were
//!   written down, with numbers that go on from theirs; of two that have not ended, the later one goes on.
//! - Data from a file is cut to the same bounds as everything else.

use crate::time::Now;

use super::baseline::Baseline;
use super::moment::Moment;
use super::phase::Phase;
use super::record::Record;
use super::timeline::What;
use super::{ENDED_MAX, Incidents};

/// All that must be written down to go on after a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// The incident that has not ended.
    pub current: Option<Record>,
    /// Those that have, oldest first.
    pub ended: Vec<Record>,
    /// Incidents that have begun so far.
    pub begun: u64,
    /// What is usual.
    pub baseline: Baseline,
    /// The last tick.
    pub last_tick: Option<Moment>,
}

impl Incidents {
    /// What must be written down.
    pub fn save(&self) -> Saved {
        Saved {
            current: self.current.clone(),
            ended: self.ended.iter().cloned().collect(),
            begun: self.begun,
            baseline: self.baseline,
            last_tick: self.last_tick,
        }
    }

    /// Goes on from what was written down.
    pub fn restore(saved: Saved, now: Now) -> Self {
        let now = Moment::from(now);
        let mut incidents = Self {
            begun: saved.begun.max(saved.ended.len() as u64 + u64::from(saved.current.is_some())),
            baseline: saved.baseline.plausible(),
            ..Self::default()
        };
        for record in saved.ended {
            incidents.keep(record.bounded());
        }
        if let Some(record) = saved.current {
            let mut record = record.bounded();
            if record.phase == Phase::Ended || record.ended.is_some() {
                incidents.keep(record);
            } else {
                let last_known = saved.last_tick.unwrap_or(record.detected);
                record.timeline.note(now, What::Restart { missed: now.since(&last_known) });
                record.restarts = record.restarts.saturating_add(1);
                incidents.current = Some(record);
            }
        }
        incidents
    }

    /// Takes up what was written down before any of this began, and was not read then.
    pub fn take_up_late(&mut self, saved: Saved, now: Now) {
        let last_known = saved.last_tick;
        let mut all = Self::restore(saved, now);
        let first_number = all.begun;
        if self.current.is_some()
            && let Some(mut earlier) = all.current.take()
        {
            earlier.phase = Phase::Ended;
            earlier.ended = Some(last_known.unwrap_or(earlier.detected));
            all.keep(earlier);
        }
        for mut record in std::mem::take(&mut self.ended) {
            record.number_from(first_number);
            all.keep(record);
        }
        self.ended = all.ended;
        self.begun = self.begun.saturating_add(first_number);
        self.baseline = self.baseline.with(&all.baseline);
        match &mut self.current {
            Some(record) => record.number_from(first_number),
            none => *none = all.current,
        }
    }

    /// Keeps an incident that has ended; the oldest is forgotten beyond [`ENDED_MAX`].
    pub(super) fn keep(&mut self, record: Record) {
        self.ended.push_back(record);
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
    }
}
