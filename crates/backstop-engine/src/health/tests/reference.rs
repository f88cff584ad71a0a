//! The same rules once more, written down naively: lists of everything, searched every time. Shares no code with what
//! it is compared to. Time is in milliseconds.

use super::told::{Admitted, Ended, Fate, Seen};

#[path = "turned.rs"]
mod turned;

pub(crate) struct Reference {
    pub(crate) probes: usize,
    pub(crate) min_calls: usize,
    pub(crate) recovers: bool,
    /// Measured by others and taken over at each trip: nanoseconds, and thousandths per second.
    pub(crate) p95_ns: u64,
    pub(crate) rate_milli: u64,
    pub(crate) state: Seen,
    pub(crate) generation: u64,
    pub(crate) trips: u64,
    ended: Vec<Ended>,
    /// Failures and answers of calls that are no probes: under which generation, when, and whether it was a failure.
    row: Vec<(u64, u64, bool)>,
    /// Probes at work, and how many hold each one's place.
    out: Vec<(Admitted, u32)>,
    /// What turned out to be wanted in this ramp.
    raised: bool,
    /// Calls refused beyond the share since the tick began.
    refused: usize,
    successes: usize,
    row_of_trips: u32,
    bad_at: u64,
    asked: u64,
    seen: u64,
    ids: u64,
    /// The moment at which the ramp's next call is due, in nanoseconds.
    due_ns: u64,
    tick_began: u64,
    reds: u32,
    backs: Vec<u64>,
    frozen_until: u64,
    /// Use of a resource in thousandths and the wait for a database in milliseconds: when, and what was said last.
    signals: [Option<(u64, u64)>; 2],
}

const SLOW: u64 = 1000;
const MS: u64 = 1_000_000;

impl Reference {
    pub(crate) fn new(probes: usize, min_calls: usize, recovers: bool, rate_milli: u64) -> Self {
        Self {
            probes,
            min_calls,
            recovers,
            p95_ns: 0,
            rate_milli,
            state: Seen::Closed,
            generation: 0,
            trips: 0,
            ended: Vec::new(),
            row: Vec::new(),
            out: Vec::new(),
            raised: false,
            refused: 0,
            successes: 0,
            row_of_trips: 0,
            bad_at: 0,
            asked: 0,
            seen: 0,
            ids: 0,
            due_ns: 0,
            tick_began: 0,
            reds: 0,
            backs: Vec::new(),
            frozen_until: 0,
            signals: [None; 2],
        }
    }

    fn enter(&mut self, state: Seen, now: u64) {
        self.generation += 1;
        self.state = state;
        self.out.clear();
        self.successes = 0;
        match state {
            Seen::Closed => {
                self.bad_at = now;
                self.asked = 0;
            }
            Seen::Ramp { .. } => {
                self.asked = 0;
                self.refused = 0;
                self.due_ns = 0;
                self.tick_began = now;
                self.reds = 0;
                self.backs.clear();
                self.frozen_until = 0;
            }
            _ => {}
        }
    }

    fn open(&mut self, now: u64) {
        self.row_of_trips += 1;
        self.trips += 1;
        let rest = (0..self.row_of_trips - 1).fold(5_000, |rest: u64, _| (rest * 2).min(30_000));
        self.enter(Seen::Open { until: now + rest }, now);
    }

    fn until(&self) -> u64 {
        match self.state {
            Seen::Open { until } => until.max(self.asked),
            _ => 0,
        }
    }

    pub(crate) fn look(&mut self, now: u64) -> Seen {
        self.seen = self.seen.max(now);
        match self.state {
            Seen::Watch { until } if now >= until => self.enter(Seen::Closed, now),
            Seen::HalfOpen if self.out.iter().any(|(probe, _)| now >= probe.at + 10_000) => self.open(now),
            Seen::Ramp { share } => self.judge(share, now),
            _ => {}
        }
        match self.state {
            Seen::Open { .. } => Seen::Open { until: self.until() },
            state => state,
        }
    }

    fn interval_ns(&self) -> u64 {
        let Seen::Ramp { share } = self.state else { return 0 };
        self.interval_at(share)
    }

    fn interval_at(&self, share: u64) -> u64 {
        // 5 % more than the share.
        let milli = self.rate_milli * share * 105 / 100 / 1000;
        1_000_000_000_000 / milli.max(1000)
    }

    /// Whether a call passes the ramp now, and when the next would be due.
    fn ramp(&self, now: u64) -> Option<u64> {
        let now_ns = now * 1_000_000;
        let interval = self.interval_ns();
        let next = self.due_ns.max(now_ns) + interval;
        (next - now_ns <= interval.max(100_000_000)).then_some(next)
    }

    pub(crate) fn would_pass(&mut self, now: u64, safe: bool) -> bool {
        self.look(now);
        match self.state {
            Seen::Closed | Seen::Watch { .. } | Seen::ForcedClosed => true,
            Seen::ForcedOpen => false,
            Seen::Open { .. } => safe && now >= self.until(),
            Seen::HalfOpen => safe && self.out.len() < self.probes,
            Seen::Ramp { .. } => {
                let passes = self.ramp(now).is_some();
                self.refused += usize::from(!passes);
                passes
            }
        }
    }

    pub(crate) fn admit(&mut self, now: u64, safe: bool) -> Option<Admitted> {
        if !self.would_pass(now, safe) {
            return None;
        }
        if matches!(self.state, Seen::Open { .. }) {
            self.enter(Seen::HalfOpen, now);
        }
        self.ids += 1;
        let is_probe = self.state == Seen::HalfOpen;
        let call = Admitted { id: self.ids, generation: self.generation, is_probe, at: now, waited_ns: 0 };
        if is_probe {
            self.out.push((call, 1));
        }
        if matches!(self.state, Seen::Ramp { .. }) {
            self.due_ns = self.ramp(now).unwrap();
        }
        Some(call)
    }

    pub(crate) fn end(&mut self, call: Admitted, fate: Fate, now: u64) {
        if fate == Fate::Unused {
            if call.generation == self.generation {
                self.answered(call);
                if matches!(self.state, Seen::Ramp { .. }) {
                    self.due_ns = self.due_ns.saturating_sub(self.interval_ns());
                }
            }
            return;
        }
        if fate == Fate::Silent {
            return self.let_go(call);
        }
        let now = if fate == Fate::Abandoned { self.seen } else { now };
        self.look(now);
        let lasted_ns = ((now - call.at) * MS).saturating_sub(call.waited_ns);
        self.count(call, fate, lasted_ns, now);
    }

    /// What came of a call that lasted so long.
    fn count(&mut self, call: Admitted, fate: Fate, lasted_ns: u64, now: u64) {
        self.look(now);
        if call.generation != self.generation {
            return;
        }
        let slow = lasted_ns > SLOW * MS;
        let failed = fate == Fate::Failed;
        let given_up = matches!(fate, Fate::Abandoned | Fate::GivenUp);
        if given_up && !slow {
            return self.let_go(call);
        }
        self.answered(call);
        self.ended.push(Ended {
            id: call.id,
            failed,
            slow,
            probe: call.is_probe,
            lasted_ns,
            given_up,
            in_window: true,
            in_tick: matches!(self.state, Seen::Ramp { .. }),
            ..Ended::further(call.generation, now)
        });
        if call.is_probe {
            if failed || slow {
                self.open(now);
            } else if fate == Fate::Answered {
                self.successes += 1;
                if self.successes == self.probes {
                    let next = if self.recovers { Seen::Ramp { share: 100 } } else { Seen::Closed };
                    self.enter(next, now);
                }
            }
            return;
        }
        if !given_up {
            self.row.push((call.generation, now, failed));
        }
        self.weigh(failed, now);
        self.look(now);
    }

    /// The probe's place is free, whoever holds it.
    fn answered(&mut self, call: Admitted) {
        self.out.retain(|(probe, _)| probe.id != call.id);
    }

    /// Whatever the call takes up at its dependency holds its place too.
    pub(crate) fn hold(&mut self, call: Admitted) {
        self.out.iter_mut().filter(|(probe, _)| probe.id == call.id).for_each(|(_, holders)| *holders += 1);
    }

    /// One who held the probe's place does so no more.
    pub(crate) fn let_go(&mut self, call: Admitted) {
        self.out.iter_mut().filter(|(probe, _)| probe.id == call.id).for_each(|(_, holders)| *holders -= 1);
        self.out.retain(|(_, holders)| *holders > 0);
    }

    fn weigh(&mut self, failed: bool, now: u64) {
        if !matches!(self.state, Seen::Closed | Seen::Ramp { .. } | Seen::Watch { .. }) {
            return;
        }
        let (calls, failures, slow) = self.counts(now);
        if self.state == Seen::Closed && self.row_of_trips > 0 {
            if now >= self.bad_at + 60_000 {
                self.row_of_trips = 0;
            }
            if failures >= 2 && failures * 100 > calls {
                self.bad_at = now;
            }
        }
        let enough = calls >= self.min_calls;
        let bad = enough && ((failures > 0 && failures * 2 >= calls) || (slow > 0 && slow * 10 >= calls * 6));
        if bad || (failed && self.has_row(now)) {
            self.open(now);
        }
    }

    /// Ten failures, no answer between them, the first at most five seconds before the last.
    fn has_row(&self, now: u64) -> bool {
        let own = self.row.iter().rev().filter(|(generation, ..)| *generation == self.generation);
        let row: Vec<u64> = own.take_while(|(.., failed)| *failed).map(|(_, at, _)| *at).take(10).collect();
        row.len() == 10 && now - row[9] <= 5_000
    }

    pub(crate) fn counts(&self, now: u64) -> (usize, usize, usize) {
        let oldest = (now / 1000).saturating_sub(9);
        let inside: Vec<_> = self
            .ended
            .iter()
            .filter(|end| end.in_window && end.generation == self.generation && end.at / 1000 >= oldest)
            .collect();
        let count = |what: fn(&Ended) -> bool| inside.iter().filter(|end| what(end)).count();
        (inside.len(), count(|end| end.failed || end.broke), count(|end| end.slow))
    }

    fn judge(&mut self, share: u64, now: u64) {
        let tick: Vec<Ended> = self
            .ended
            .iter()
            .filter(|end| end.generation == self.generation && end.in_tick && !end.probe)
            .copied()
            .collect();
        let lasted = now - self.tick_began;
        if lasted < 1000 || tick.len() < 5 && (lasted < 60_000 || tick.is_empty()) {
            return;
        }
        self.ended.iter_mut().for_each(|end| end.in_tick = false);
        self.tick_began = now;
        let refused = std::mem::take(&mut self.refused) as u64;
        // What came, at most, and what the whole and its burst of a tenth of a second would have let through.
        let (lasted_ns, whole) = (lasted * MS, self.interval_at(1000));
        let was_too_little =
            refused + lasted_ns / self.interval_at(share) > (lasted_ns + whole.max(100 * MS)) / whole;
        let (green, red) = self.bounds();
        let late = |bound: u64| tick.iter().filter(|end| end.is_later_than(bound)).count();
        let (over_green, over_red) = (late(green), late(red));
        let failures = tick.iter().filter(|end| end.failed || end.broke_in_tick).count();
        let percent = |part: usize| part as f64 * 100.0 / tick.len() as f64;
        let mut is_red = percent(failures) > 5.0 && failures >= 2 || percent(over_red) > 5.0 && over_red >= 2;
        let mut is_green = percent(failures) <= 1.0 && percent(over_green) <= 5.0;
        for (signal, (green, red)) in self.signals.into_iter().zip([(700, 900), (5, 20)]) {
            let Some((at, value)) = signal else { continue };
            let age = now - at;
            if age <= 60_000 {
                is_red |= age <= 2_000 && value > red;
                is_green &= age <= 2_000 && value <= green;
            }
        }
        if is_red {
            self.red(share, now);
        } else {
            self.reds = 0;
            if is_green && now >= self.frozen_until {
                self.green(share, was_too_little, now);
            }
        }
    }

    /// Later than these an answer is no longer green, and red.
    fn bounds(&self) -> (u64, u64) {
        if self.p95_ns == 0 { (SLOW * MS, SLOW * MS) } else { (self.p95_ns * 3, self.p95_ns * 7) }
    }

    fn green(&mut self, share: u64, was_too_little: bool, now: u64) {
        let mut next = (share * 3 / 2).min(1000);
        if !was_too_little {
            match next {
                1000 => self.enter(Seen::Watch { until: now + 60_000 }, now),
                _ => self.state = Seen::Ramp { share: next },
            }
            return;
        }
        // Steps that let nobody else through are none.
        while next < 1000 && self.interval_at(next) == self.interval_at(share) {
            next = (next * 3 / 2).min(1000);
        }
        if self.interval_at(next) == self.interval_at(share) {
            self.rate_milli = self.rate_milli.max(1000) * 3 / 2;
            self.raised = true;
        }
        self.state = Seen::Ramp { share: next };
    }

    /// What is measured elsewhere: at a trip, and what a ramp found to be wanted is told here as there.
    pub(crate) fn take_over_rate(&mut self, rate_milli: u64) {
        if matches!(self.state, Seen::Ramp { .. } | Seen::Watch { .. }) && self.raised {
            assert_eq!(rate_milli, self.rate_milli, "raised");
        }
        if !matches!(self.state, Seen::Ramp { .. } | Seen::Watch { .. }) {
            self.raised = false;
        }
        self.rate_milli = rate_milli;
    }

    fn red(&mut self, share: u64, now: u64) {
        if share == 100 {
            self.reds += 1;
            if self.reds == 3 {
                self.open(now);
            }
            return;
        }
        self.state = Seen::Ramp { share: (share * 7 / 10).max(100) };
        self.backs.push(now);
        if self.backs.iter().filter(|&&back| back + 30_000 >= now).count() >= 3 {
            self.frozen_until = now + 10_000;
        }
    }

    pub(crate) fn force(&mut self, state: Seen, now: u64) {
        self.seen = self.seen.max(now);
        let is_forced = matches!(self.state, Seen::ForcedOpen | Seen::ForcedClosed);
        if self.state == state || (state == Seen::Closed && !is_forced) {
            return;
        }
        self.row_of_trips = 0;
        self.enter(state, now);
    }

    pub(crate) fn ask(&mut self, now: u64, rest: u64) {
        self.seen = self.seen.max(now);
        self.asked = self.asked.max(now + rest.min(60_000));
    }

    pub(crate) fn signal(&mut self, now: u64, in_use: u64) {
        self.seen = self.seen.max(now);
        self.signals[0] = Some((now, in_use));
    }

    pub(crate) fn database_waits(&mut self, now: u64, wait: u64) {
        self.seen = self.seen.max(now);
        self.signals[1] = Some((now, wait));
    }

    /// The open time is spread by a fifth to either side; where to is taken over.
    pub(crate) fn take_over_spread(&mut self, until: u64) {
        if let Seen::Open { until: middle } = &mut self.state {
            assert!(until.abs_diff(*middle) <= 6_001 || until == self.asked, "{until} for {middle}");
            *middle = until;
        }
    }
}
