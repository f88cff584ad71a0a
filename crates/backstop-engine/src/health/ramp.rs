//! The way back to full traffic, in steps.
//!
//! A recovering dependency is given a share of what it had before, and a twentieth on top. A tick is judged once it has
//! lasted its time and holds five results; with fewer it goes on until it has them, so without traffic there is no step
//! and little traffic is judged late. A tick of a minute is judged by whatever it holds. Green steps up, red steps back
//! at once, anything between holds. Three red ticks in a row at the first share are a trip. Three steps back within
//! thirty seconds keep the share from growing for ten.
//!
//! The whole is not yet everything: what came before may have been little (a night, a pause) and what comes now more. So
//! the end is a green tick in which no more came than the whole would let through. Until then a green tick with the whole
//! given raises the measure itself, as a step raises the share, and a step that would give no call more is passed over.
//!
//! Everything here but the tally and the gate is written only by whoever moves the state.

use std::time::Duration;

use super::bands::{self, Light};
use super::gate::{self, Gate, MIN_MILLI, interval_ns};
use super::rules::{PerMille, RecoveryRules};
use super::signals::Signals;
use super::tally::{Late, Tally};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::Mono;

const MIN_RESULTS: u64 = 5;
const TICK_MAX: Duration = Duration::from_secs(60);
const REDS_TO_TRIP: u32 = 3;
const FROZEN_AFTER: usize = 3;
const FROZEN_WITHIN: Duration = Duration::from_secs(30);
const FROZEN_FOR: Duration = Duration::from_secs(10);

/// What a tick led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Hold,
    Up,
    /// The whole is given and more is wanted: this many thousandths of a call per second are the whole from now on.
    More {
        baseline_milli: u64,
    },
    Back,
    /// Everything is given: watch.
    Full,
    /// It does not come back: open.
    Trip,
}

pub(super) struct Ramp {
    pub(super) gate: Gate,
    pub(super) tally: Tally,
    share: AtomicU32,
    tick_began: AtomicU64,
    reds: AtomicU32,
    // Moments of the last steps back, plus one: zero is never. The oldest is replaced.
    steps_back: [AtomicU64; FROZEN_AFTER],
    frozen_until: AtomicU64,
    // Calls that had been refused when the tick began, of all that ever were.
    refused_before: AtomicU64,
}

/// What a recovery is given so far, and whether that is enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// Thousandths of a call per second that are the whole.
    pub(super) baseline_milli: u64,
    /// Calls refused beyond the share so far, of all that ever were.
    pub(super) refused: u64,
}

impl Ramp {
    pub(super) fn new() -> Self {
        Self {
            gate: Gate::new(),
            tally: Tally::new(),
            share: AtomicU32::new(0),
            tick_began: AtomicU64::new(0),
            reds: AtomicU32::new(0),
            steps_back: std::array::from_fn(|_| AtomicU64::new(0)),
            frozen_until: AtomicU64::new(0),
            refused_before: AtomicU64::new(0),
        }
    }

    pub(super) fn share(&self) -> PerMille {
        PerMille(self.share.load(Ordering::Acquire))
    }

    /// Nanoseconds between two calls at the present share of this many thousandths of a call per second.
    pub(super) fn interval_ns(&self, baseline_milli: u64) -> u64 {
        interval_at(self.share().0, baseline_milli)
    }

    /// The first share.
    pub(super) fn begin(&self, now: Mono, rules: &RecoveryRules, refused: u64) {
        self.refused_before.store(refused, Ordering::Release);
        self.share.store(start(rules), Ordering::Release);
        self.tick_began.store(now.as_ns(), Ordering::Release);
        self.reds.store(0, Ordering::Release);
        self.frozen_until.store(0, Ordering::Release);
        for moment in &self.steps_back {
            moment.store(0, Ordering::Release);
        }
        self.gate.reset();
    }

    /// Whether the tick may be judged.
    pub(super) fn is_due(&self, generation: u32, now: Mono, rules: &RecoveryRules) -> bool {
        let lasted = Mono::from_ns(self.tick_began.load(Ordering::Acquire)).until(now);
        if lasted < rules.tick {
            return false;
        }
        let calls = self.tally.get(generation).calls;
        calls >= MIN_RESULTS || (lasted >= TICK_MAX && calls > 0)
    }

    /// A call that was counted as answered at `counted` has failed: the same call, if the tick is still that one, else a
    /// further one.
    pub(super) fn turn_into_failure(&self, generation: u32, counted: Mono) {
        let is_of_this_tick = counted.as_ns() >= self.tick_began.load(Ordering::Acquire);
        if !(is_of_this_tick && self.tally.turn_into_failure(generation)) {
            self.tally.add(generation, true, Late::default());
        }
    }

    /// Ends the tick.
    pub(super) fn judge(
        &self,
        generation: u32,
        now: Mono,
        rules: &RecoveryRules,
        signals: &Signals,
        given: Given,
    ) -> Move {
        let results = bands::light(self.tally.take(generation), &rules.green, &rules.red);
        let light = results.max(signals.light(now, rules.tick, &rules.green, &rules.red));
        let share = self.share.load(Ordering::Acquire);
        let refused = given.refused.saturating_sub(self.refused_before.swap(given.refused, Ordering::AcqRel));
        let lasted = Mono::from_ns(self.tick_began.swap(now.as_ns(), Ordering::AcqRel)).until(now);
        // Whoever refused gave all that the share holds, or nothing was refused.
        let came = refused.saturating_add(gate::calls_in(lasted, interval_at(share, given.baseline_milli)));
        let whole = gate::most_in(lasted, interval_at(PerMille::WHOLE.0, given.baseline_milli));
        if light != Light::Red {
            self.reds.store(0, Ordering::Release);
        }
        match light {
            Light::Red if share <= start(rules) => {
                let reds = self.reds.load(Ordering::Acquire) + 1;
                self.reds.store(reds, Ordering::Release);
                if reds >= REDS_TO_TRIP { Move::Trip } else { Move::Hold }
            }
            Light::Red => {
                self.step_back(share, now, rules);
                Move::Back
            }
            Light::Amber => Move::Hold,
            Light::Green if now.as_ns() < self.frozen_until.load(Ordering::Acquire) => Move::Hold,
            Light::Green if came <= whole => self.step_up(share, rules),
            Light::Green => self.step_up_to_more(share, rules, given.baseline_milli),
        }
    }

    fn step_up(&self, share: u32, rules: &RecoveryRules) -> Move {
        let raised = raised(share, rules);
        self.share.store(raised, Ordering::Release);
        if raised >= PerMille::WHOLE.0 { Move::Full } else { Move::Up }
    }

    fn step_up_to_more(&self, share: u32, rules: &RecoveryRules, baseline_milli: u64) -> Move {
        let interval = interval_at(share, baseline_milli);
        let mut next = share;
        while next < PerMille::WHOLE.0 {
            next = raised(next, rules);
            if interval_at(next, baseline_milli) < interval {
                self.share.store(next, Ordering::Release);
                return Move::Up;
            }
        }
        self.share.store(PerMille::WHOLE.0, Ordering::Release);
        let least = baseline_milli.max(MIN_MILLI);
        Move::More { baseline_milli: rules.up.times(least).max(least.saturating_add(1)) }
    }

    fn step_back(&self, share: u32, now: Mono, rules: &RecoveryRules) {
        let lowered = times(share, rules.back).min(share).max(start(rules));
        self.share.store(lowered, Ordering::Release);
        let moment = |last: &AtomicU64| last.load(Ordering::Acquire);
        if let Some(oldest) = self.steps_back.iter().min_by_key(|last| moment(last)) {
            oldest.store(now.as_ns().saturating_add(1), Ordering::Release);
        }
        let is_recent = |last: &AtomicU64| {
            moment(last).checked_sub(1).is_some_and(|at| Mono::from_ns(at).after(FROZEN_WITHIN) >= now)
        };
        if self.steps_back.iter().all(is_recent) {
            self.frozen_until.store(now.after(FROZEN_FOR).as_ns(), Ordering::Release);
        }
    }
}

fn interval_at(share: u32, baseline_milli: u64) -> u64 {
    let milli = u128::from(baseline_milli) * u128::from(share) * 105 / 100_000;
    interval_ns(u64::try_from(milli).unwrap_or(u64::MAX))
}

/// The next share. A step that is no step would never end.
fn raised(share: u32, rules: &RecoveryRules) -> u32 {
    times(share, rules.up).max(share.saturating_add(1)).min(PerMille::WHOLE.0)
}

fn start(rules: &RecoveryRules) -> u32 {
    rules.start.0.clamp(1, PerMille::WHOLE.0)
}

fn times(share: u32, multiple: PerMille) -> u32 {
    u32::try_from(multiple.times(u64::from(share))).unwrap_or(u32::MAX)
}
