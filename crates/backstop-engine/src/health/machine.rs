//! What leads from one phase to the next.

use std::time::Duration;

use super::probe_place::ProbePlace;
use super::ramp::{Given, Move};
use super::tally::Late;
use super::window::WindowCount;
use super::word::{Kind, Order, Word};
use super::{Health, WATCH};
use crate::sync::Ordering;
use crate::time::{Mono, duration_ns};

/// Closed and green for so long, and earlier trips are forgotten.
const GREEN_FOR: Duration = Duration::from_secs(60);
const GREEN_FAILURES: u64 = 2;

/// What a call was admitted under.
pub(super) struct Call {
    pub(super) generation: u32,
    pub(super) probe: Option<ProbePlace>,
    pub(super) admitted: Mono,
    /// How long the client kept the call waiting for the request's own content.
    pub(super) client_waited: Duration,
    pub(super) entropy: u64,
}

impl Call {
    /// How long it has taken, without what its client took.
    pub(super) fn lasted(&self, now: Mono) -> Duration {
        self.admitted.until(now).saturating_sub(self.client_waited)
    }
}

/// What came of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Answered,
    Failed,
    Neutral,
    Abandoned,
}

impl Health {
    /// The latest moment that anybody came with.
    pub(crate) fn latest(&self) -> Mono {
        Mono::from_ns(self.seen.load(Ordering::Relaxed))
    }

    /// Does what is due by time alone.
    pub(super) fn advance(&self, now: Mono) {
        let word = self.state.load();
        match word.settled() {
            Kind::Watch => self.end_watch(word, now),
            Kind::HalfOpen if self.probes.is_one_overdue(word, now) => {
                self.trip(word, now, self.entropy.load(Ordering::Relaxed));
            }
            Kind::Ramp => self.judge(word, now),
            _ => {}
        }
    }

    fn end_watch(&self, word: Word, now: Mono) {
        if now >= self.watch_until() && self.state.take(word.generation()) {
            self.publish(Kind::Closed, now);
        }
    }

    /// Ends a call.
    pub(super) fn settle(&self, call: &Call, end: End, now: Mono) {
        let (generation, entropy) = (call.generation, call.entropy);
        self.count(generation, call.probe.as_ref(), end, call.lasted(now), now, entropy);
    }

    /// Counts what came of a call that lasted so long.
    pub(super) fn count(
        &self,
        generation: u32,
        probe: Option<&ProbePlace>,
        end: End,
        lasted: Duration,
        now: Mono,
        entropy: u64,
    ) {
        self.see(now);
        self.advance(now);
        let word = self.state.load();
        if word.generation() != generation {
            return;
        }
        let is_slow = lasted > self.rules.slow;
        if end == End::Abandoned && !is_slow {
            return;
        }
        let failed = end == End::Failed;
        self.window.record(generation, now, failed, is_slow);
        if failed || is_slow {
            self.bad_at.fetch_max(now.as_ns(), Ordering::Relaxed);
        }
        if let Some(place) = probe {
            return self.probed(generation, place, end, is_slow, now, entropy);
        }
        let in_a_row = match end {
            End::Failed => self.streak.failed(generation, now),
            End::Answered | End::Neutral => {
                self.streak.answered(generation);
                false
            }
            End::Abandoned => false,
        };
        match word.settled() {
            Kind::Closed if end == End::Answered && !is_slow => self.latency.record(now, lasted),
            Kind::Ramp => self.tally(generation, end, lasted),
            _ => {}
        }
        self.weigh(word, now, in_a_row, entropy);
        self.advance(now);
    }

    /// Whether what was counted opens the breaker.
    pub(super) fn weigh(&self, word: Word, now: Mono, in_a_row: bool, entropy: u64) {
        if !self.is_breaking || !matches!(word.settled(), Kind::Closed | Kind::Ramp | Kind::Watch) {
            return;
        }
        // In good times nothing in the window can open it, and it need not be added up.
        if Mono::from_ns(self.bad_at.load(Ordering::Relaxed)).after(self.rules.window) < now {
            return;
        }
        let count = self.window.count(word.generation(), now);
        if word.settled() == Kind::Closed && self.opening.trips() > 0 {
            self.forget_trips(count, now);
        }
        if in_a_row || self.is_too_bad(count) {
            self.trip(word, now, entropy);
        }
    }

    fn is_too_bad(&self, count: WindowCount) -> bool {
        count.calls >= u64::from(self.rules.min_calls)
            && (self.rules.failures.is_reached(count.failures, count.calls)
                || self.rules.slow_share.is_reached(count.slow, count.calls))
    }

    fn forget_trips(&self, count: WindowCount, now: Mono) {
        let since = Mono::from_ns(self.green_since.load(Ordering::Acquire));
        if since.after(GREEN_FOR) <= now {
            self.opening.forget_trips(self.opening.trips());
        }
        let green = self.recovery.unwrap_or_default().green.errors;
        if count.failures >= GREEN_FAILURES && green.is_exceeded(count.failures, count.calls) {
            self.green_since.fetch_max(now.as_ns(), Ordering::AcqRel);
        }
    }

    /// Opens, if the generation of this word is not over and nobody is moving it already.
    fn trip(&self, word: Word, now: Mono, entropy: u64) {
        if self.state.take(word.generation()) {
            if word.settled() == Kind::Closed {
                self.rate.freeze();
                self.latency.freeze();
            }
            self.open(now, entropy);
        }
    }

    /// Only for whoever is moving.
    pub(super) fn open(&self, now: Mono, entropy: u64) {
        self.opening.trip(now, &self.rules, entropy);
        self.counters.trips.add();
        self.publish(Kind::Open, now);
    }

    /// A probe ended with something to count.
    fn probed(&self, generation: u32, place: &ProbePlace, end: End, is_slow: bool, now: Mono, entropy: u64) {
        if end == End::Failed || is_slow {
            if self.state.take(generation) {
                self.open(now, entropy);
            }
            return;
        }
        if end != End::Answered {
            return place.free();
        }
        let Some(slot) = place.take() else { return };
        let needed = self.slots();
        let changed = self.state.within(generation, |word| {
            let counted = word.without_slot(slot).with_success();
            Some(if counted.successes() >= needed { counted.moving() } else { counted })
        });
        // Who finds it moving is not the one who moves it: a trip, or an earlier success that was enough.
        if changed.is_some_and(|(before, after)| after.is_moving() && !before.is_moving()) {
            let to = if self.recovery.is_some() { Kind::Ramp } else { Kind::Closed };
            self.publish(to, now);
        }
    }

    /// Gives a probe's slot back.
    pub(super) fn free_slot(&self, generation: u32, slot: u32) {
        let _over = self.state.within(generation, |word| Some(word.without_slot(slot)));
    }

    /// A probe is about to leave its slot, and is no longer waited for.
    pub(super) fn end_probe(&self, generation: u32, slot: u32, admitted: Mono) {
        self.probes.end(generation, slot, admitted);
    }

    /// A call was not made.
    pub(super) fn unused(&self, call: &Call) {
        let word = self.state.load();
        if word.generation() != call.generation {
            return;
        }
        if let Some(place) = &call.probe {
            return place.free();
        }
        match word.settled() {
            Kind::Closed => self.rate.uncount(call.admitted),
            Kind::Ramp => self.ramp.gate.give_back(self.interval_ns()),
            _ => {}
        }
    }

    /// Counts a result for the tick.
    fn tally(&self, generation: u32, end: End, lasted: Duration) {
        let failed = end == End::Failed;
        // Of a call that was given up only the least is known: it would have been later still.
        let lasted = if end == End::Abandoned { Duration::MAX } else { lasted };
        let late = if failed { Late::default() } else { self.late(lasted) };
        self.ramp.tally.add(generation, failed, late);
    }

    /// What an answer after this time is to a ramp. While the times of good days are unknown, what is slow is too late.
    pub(super) fn late(&self, lasted: Duration) -> Late {
        let Some(rules) = &self.recovery else { return Late::default() };
        let lasted = duration_ns(lasted);
        let slow = duration_ns(self.rules.slow);
        let (green, red) = match self.latency.frozen_ns() {
            Some(p95) => (rules.green.p95.times(p95), rules.red.p95.times(p95)),
            None => (slow, slow),
        };
        Late { over_green: lasted > green, over_red: lasted > red }
    }

    /// Judges the tick, if it is due.
    fn judge(&self, word: Word, now: Mono) {
        let Some(rules) = &self.recovery else { return };
        let generation = word.generation();
        // Looked at again once the right is taken: another thread may have judged the same tick in between.
        let is_due = || self.ramp.is_due(generation, now, rules);
        if !is_due() || !self.state.take(generation) {
            return;
        }
        let judge = || {
            let refused = self.counters.refused_ramping.get();
            let given = Given { baseline_milli: self.baseline_milli(), refused };
            self.ramp.judge(generation, now, rules, &self.signals, given)
        };
        let to = if is_due() { judge() } else { Move::Hold };
        match to {
            Move::Trip => return self.open(now, self.entropy.load(Ordering::Relaxed)),
            Move::Full => {
                self.counters.step_ups.add();
                self.watch_until.store(now.after(WATCH).as_ns(), Ordering::Release);
                return self.publish(Kind::Watch, now);
            }
            Move::Up => self.counters.step_ups.add(),
            Move::More { baseline_milli } => {
                self.counters.step_ups.add();
                self.rate.set_frozen(baseline_milli);
            }
            Move::Back => self.counters.step_backs.add(),
            Move::Hold => {}
        }
        self.stay(now);
    }

    /// Ends a move with the next generation. Only for whoever is moving.
    pub(super) fn publish(&self, to: Kind, now: Mono) {
        self.prepare(to, now);
        self.finish(now, |word| word.next(to));
    }

    /// Ends a move within its generation. Only for whoever is moving.
    fn stay(&self, now: Mono) {
        self.finish(now, Word::still);
    }

    /// Ends a move, as an operator wants it if one does.
    fn finish(&self, now: Mono, to: impl Fn(Word) -> Word) {
        loop {
            let word = self.state.load();
            let next = match word.order() {
                None => to(word),
                Some(order) => {
                    self.opening.restore(Mono::default(), 0);
                    self.prepare(order.kind(), now);
                    word.next(order.kind())
                }
            };
            if next.generation() != word.generation() {
                self.begin(next.generation());
            }
            if self.state.replace(word, next) {
                return;
            }
        }
    }

    /// Empties what counts for a generation, for the one that begins. Only for whoever is moving: results of the one
    /// that ends are lost from here on, as they would be a moment later.
    fn begin(&self, generation: u32) {
        self.window.begin(generation);
        self.streak.begin(generation);
        let _of_the_last_ramp = self.ramp.tally.take(generation);
    }

    /// Writes what a phase begins with. Only for whoever is moving.
    fn prepare(&self, kind: Kind, now: Mono) {
        match kind {
            Kind::Closed => {
                self.green_since.store(now.as_ns(), Ordering::Release);
                self.rate.resume(now);
                self.opening.asks_no_more();
            }
            Kind::Ramp => {
                if let Some(rules) = &self.recovery {
                    self.ramp.begin(now, rules, self.counters.refused_ramping.get());
                }
                self.opening.asks_no_more();
            }
            Kind::Open | Kind::HalfOpen | Kind::Watch | Kind::ForcedOpen | Kind::ForcedClosed => {}
        }
    }

    /// An operator's word. It is never lost: whoever is moving the state carries it out instead.
    pub(super) fn order(&self, now: Mono, order: Order) {
        self.see(now);
        loop {
            let word = self.state.load();
            let is_forced = matches!(word.kind(), Kind::ForcedOpen | Kind::ForcedClosed);
            let is_done = word.kind() == order.kind();
            if (order == Order::Release && !is_forced) || (order != Order::Release && is_done) {
                return;
            }
            if word.is_moving() {
                if self.state.replace(word, word.with_order(order)) {
                    return;
                }
            } else if self.state.replace(word, word.with_order(order).moving()) {
                return self.stay(now);
            }
        }
    }
}
