//! Answers that counted when they began, and what they turn into.

use super::super::told::{Admitted, Begun, Ended, Fate, Seen};
use super::{MS, Reference, SLOW};

impl Reference {
    /// The answer began, well or not; what of it is still to come may break off.
    pub(crate) fn began(&mut self, call: Admitted, well: bool, now: u64) -> Begun {
        self.end(call, if well { Fate::Answered } else { Fate::NeutralSoFar }, now);
        let lasted_ns = ((now - call.at) * MS).saturating_sub(call.waited_ns);
        Begun { id: call.id, generation: call.generation, counted: now, lasted_ns }
    }

    /// An answer that was counted when it began broke off: that call has failed, if the window or the tick still has it,
    /// and else a further one. A probe has failed whatever its head said.
    pub(crate) fn broke_off(&mut self, begun: Begun) {
        let now = self.seen;
        self.look(now);
        if begun.generation != self.generation {
            return;
        }
        if self.state == Seen::HalfOpen {
            return self.open(now);
        }
        let further = Ended::further(self.generation, now);
        let is_inside = now / 1000 - begun.counted / 1000 <= 9;
        match self.ended.iter_mut().find(|end| is_inside && end.id == begun.id) {
            Some(end) => end.broke = true,
            None => self.ended.push(Ended { in_window: true, ..further }),
        }
        if matches!(self.state, Seen::Ramp { .. }) {
            let is_of_this_tick = begun.counted >= self.tick_began;
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

    /// How long its rest may keep a reader waiting.
    pub(crate) fn slow_in_ns(begun: Begun) -> Option<u64> {
        (begun.lasted_ns <= SLOW * MS).then(|| SLOW * MS - begun.lasted_ns)
    }

    /// It kept them waiting for longer: a slow call, as one that breaks off is a failed one. In the tick it is later than
    /// anything that is asked of it, if it did not count as that when it began.
    pub(crate) fn turned_slow(&mut self, begun: Begun, now: u64) {
        self.seen = self.seen.max(now);
        self.look(now);
        if begun.generation != self.generation {
            return;
        }
        if self.state == Seen::HalfOpen {
            return self.open(now);
        }
        let further =
            Ended { failed: false, slow: true, given_up: true, ..Ended::further(self.generation, now) };
        let is_inside = now / 1000 - begun.counted / 1000 <= 9;
        match self.ended.iter_mut().find(|end| is_inside && end.id == begun.id) {
            Some(end) => end.slow = true,
            None => self.ended.push(Ended { in_window: true, ..further }),
        }
        if matches!(self.state, Seen::Ramp { .. }) {
            let (green, red) = self.bounds();
            let more = [begun.lasted_ns <= green, begun.lasted_ns <= red].map(usize::from);
            let generation = self.generation;
            let tick =
                || self.ended.iter().filter(|end| end.generation == generation && end.in_tick && !end.probe);
            let late = |bound: u64| tick().filter(|end| end.is_later_than(bound)).count();
            let now_late =
                [late(green) + self.turned_late[0] + more[0], late(red) + self.turned_late[1] + more[1]];
            let has_room = tick().count() > 0 && now_late.iter().all(|&late| late <= tick().count());
            if begun.counted >= self.tick_began && has_room {
                self.turned_late = [self.turned_late[0] + more[0], self.turned_late[1] + more[1]];
            } else {
                self.ended.push(Ended { in_tick: true, ..further });
            }
        }
        self.weigh(false, now);
        self.look(now);
    }
}
