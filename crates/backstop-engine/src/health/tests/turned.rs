//! Answers that go to their clients as they come.

use super::super::told::{Admitted, Begun, Ended, Fate, Seen};
use super::{MS, Reference, SLOW};

impl Reference {
    /// The answer began, well or not. It counts when it ends.
    pub(crate) fn began(&mut self, call: Admitted, well: bool, now: u64) -> Begun {
        let lasted_ns = ((now - call.at) * MS).saturating_sub(call.waited_ns);
        let mut begun = Begun { call, lasted_ns, well, counted: None };
        self.waited(&mut begun, 0, now);
        begun
    }

    /// The same, and it counts now.
    pub(crate) fn counts_now(&mut self, call: Admitted, well: bool, now: u64) -> Begun {
        self.end(call, if well { Fate::Answered } else { Fate::Neutral }, now);
        Begun { call, lasted_ns: 0, well, counted: Some((now, false)) }
    }

    /// How long its rest may keep a reader waiting, if anything is to be told of that.
    pub(crate) fn slow_in_ns(begun: Begun) -> Option<u64> {
        (begun.counted.is_none() && begun.lasted_ns <= SLOW * MS).then(|| SLOW * MS - begun.lasted_ns)
    }

    /// It kept them waiting for another while. Beyond what is accepted it counts, as one that was given up then would.
    pub(crate) fn waited(&mut self, begun: &mut Begun, ns: u64, now: u64) {
        begun.lasted_ns += ns;
        if begun.counted.is_none() && begun.lasted_ns > SLOW * MS {
            begun.counted = Some((now, true));
            self.count(begun.call, Fate::GivenUp, begun.lasted_ns, now);
        }
    }

    /// It came to its end: counted now, or at least no failure.
    pub(crate) fn completed(&mut self, begun: Begun) {
        let now = self.seen;
        match begun.counted {
            None => {
                let fate = if begun.well { Fate::Answered } else { Fate::Neutral };
                self.count(begun.call, fate, begun.lasted_ns, now);
            }
            Some(_) => self.row.push((begun.call.generation, now, false)),
        }
    }

    /// It broke off, and has failed: counted now; or the call that was counted has, if the window or the tick still has it, and
    /// else a further one, unless it was counted as a bad one already. Of a probe that is a failed one, whatever its head said.
    pub(crate) fn broke_off(&mut self, begun: Begun) {
        let now = self.seen;
        let Some((counted, was_slow)) = begun.counted else {
            return self.count(begun.call, Fate::Failed, begun.lasted_ns, now);
        };
        self.look(now);
        if begun.call.generation != self.generation {
            return;
        }
        if self.state == Seen::HalfOpen {
            return self.open(now);
        }
        let further = Ended::further(self.generation, now);
        let is_inside = now / 1000 - counted / 1000 <= 9;
        match self.ended.iter_mut().find(|end| is_inside && end.id == begun.call.id) {
            Some(end) => end.broke = true,
            None if was_slow => {}
            None => self.ended.push(Ended { in_window: true, ..further }),
        }
        if matches!(self.state, Seen::Ramp { .. }) {
            let is_of_this_tick = counted >= self.tick_began;
            let generation = self.generation;
            let answered = |end: &&mut Ended| {
                let is_in_tick = end.in_tick && end.generation == generation;
                is_in_tick && !end.failed && !end.broke_in_tick
            };
            match self.ended.iter_mut().find(answered).filter(|_| is_of_this_tick) {
                Some(end) => end.broke_in_tick = true,
                None => self.ended.push(Ended { in_tick: true, ..further }),
            }
        }
        self.row.push((self.generation, now, true));
        self.weigh(true, now);
        self.look(now);
    }
}
