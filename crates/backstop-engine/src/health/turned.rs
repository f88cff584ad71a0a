//! Calls whose answers go to a client as they come.
//!
//! Like any other call, such a one is counted once, when it ends: with its last byte, or when it breaks off. What its reader
//! takes for themselves is none of its time. It is counted earlier as soon as it is known to be slow, because whoever waits for
//! an answer that hangs may wait for long; should it break off after that, the same call has failed too. A reader who leaves
//! before it was slow says nothing.
//!
//! Two kinds count when they begin, because their end is not theirs to give: an answer that may have no end, and one by which
//! a probe has brought more than is held back. What breaks off of these has failed after all: the same call, as long as the
//! window has it, and a further one after that. A probe that breaks off is a failed one, whatever its head said.

use std::time::Duration;

use super::Health;
use super::machine::{Call, End};
use super::word::Kind;
use crate::sync::Ordering;
use crate::time::Mono;

/// A call whose answer has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    generation: u32,
    entropy: u64,
    /// How long it has taken, without what its client and its reader took.
    lasted: Duration,
    /// Whether its head is one of somebody who is well.
    well: bool,
    counted: Option<Counted>,
}

/// When a call was counted before its end, and whether as a slow one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    at: Mono,
    is_slow: bool,
}

impl Call {
    /// To be counted when it ends.
    pub(super) fn began(&self, now: Mono, well: bool) -> Began {
        let (generation, entropy) = (self.generation, self.entropy);
        Began { generation, entropy, lasted: self.lasted(now), well, counted: None }
    }

    /// Counted at this moment.
    pub(super) fn counted(&self, now: Mono, well: bool) -> Began {
        Began { counted: Some(Counted { at: now, is_slow: false }), ..self.began(now, well) }
    }
}

impl Health {
    /// How long the rest of an answer may keep its reader waiting until it is slow. `None`: it was counted already, or nothing
    /// could come of it.
    pub(crate) fn slow_in(&self, began: Began) -> Option<Duration> {
        let left = self.rules.slow.checked_sub(began.lasted);
        left.filter(|_| self.is_breaking && began.counted.is_none())
    }

    /// The rest has kept its reader waiting for another while. Beyond what is accepted the call counts now.
    pub(crate) fn waited(&self, began: &mut Began, waited: Duration, now: Mono) {
        began.lasted = began.lasted.saturating_add(waited);
        if began.counted.is_none() && self.is_breaking && began.lasted > self.rules.slow {
            began.counted = Some(Counted { at: now, is_slow: true });
            self.count(began.generation, None, End::Abandoned, began.lasted, now, began.entropy);
        }
    }

    /// The answer came to its end.
    pub(crate) fn completed(&self, began: Began, now: Mono) {
        match began.counted {
            None => {
                let end = if began.well { End::Answered } else { End::Neutral };
                self.count(began.generation, None, end, began.lasted, now, began.entropy);
            }
            // It was slow, and an answer: the dependency does not fail each time.
            Some(_) => self.streak.answered(began.generation),
        }
    }

    /// The answer broke off: the call has failed.
    pub(crate) fn broke_off(&self, began: Began, now: Mono) {
        let Some(counted) = began.counted else {
            return self.count(began.generation, None, End::Failed, began.lasted, now, began.entropy);
        };
        self.see(now);
        self.advance(now);
        let Began { generation, entropy, .. } = began;
        let word = self.state.load();
        if word.generation() != generation {
            return;
        }
        self.window.turn_into_failure(generation, counted.at, now, !counted.is_slow);
        self.bad_at.fetch_max(now.as_ns(), Ordering::Relaxed);
        if word.settled() == Kind::HalfOpen {
            if self.state.take(generation) {
                self.open(now, entropy);
            }
            return;
        }
        let in_a_row = self.streak.failed(generation, now);
        if word.settled() == Kind::Ramp {
            self.ramp.turn_into_failure(generation, counted.at);
        }
        self.weigh(word, now, in_a_row, entropy);
        self.advance(now);
    }
}
