//! What an answer that was counted at its head still turns into.
//!
//! An answer that goes to its client as it comes counts when its head comes, because it may have no end. Two things can
//! still be said of it, each at most once. It breaks off: the call has failed. Or its rest keeps its reader waiting: with
//! the time until the head, beyond `slow`, the call is a slow one from that moment on. What a reader takes for themselves
//! is none of that time. Either way it is the call that was counted, as long as the window and the tick still have it, and
//! a further one after that. A probe that turns is a failed one, whatever its head said.

use std::time::Duration;

use super::Health;
use super::machine::Call;
use super::word::Kind;
use crate::sync::Ordering;
use crate::time::Mono;

/// A call that was counted when its answer began, and whose content is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    generation: u32,
    counted: Mono,
    /// How long it took until then.
    lasted: Duration,
    entropy: u64,
}

impl Call {
    pub(super) fn began(&self, now: Mono) -> Began {
        Began { generation: self.generation, counted: now, lasted: self.lasted(now), entropy: self.entropy }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    Failed,
    Slow,
}

impl Health {
    /// How long the rest of an answer may keep its reader waiting before [`turned_slow`](Self::turned_slow) is to be said
    /// of it. `None`: it is slow already, or nothing could come of it.
    pub(crate) fn slow_in(&self, began: Began) -> Option<Duration> {
        self.rules.slow.checked_sub(began.lasted).filter(|_| self.is_breaking)
    }

    /// An answer that had begun broke off: the call has failed.
    pub(crate) fn broke_off(&self, began: Began) {
        self.turn(began, Into::Failed, self.latest());
    }

    /// The rest of an answer that had begun has kept its reader waiting for longer than [`slow_in`](Self::slow_in).
    pub(crate) fn turned_slow(&self, began: Began, now: Mono) {
        self.see(now);
        self.turn(began, Into::Slow, now);
    }

    fn turn(&self, began: Began, into: Into, now: Mono) {
        self.advance(now);
        let Began { generation, counted, lasted, entropy } = began;
        let word = self.state.load();
        if word.generation() != generation {
            return;
        }
        let failed = into == Into::Failed;
        self.window.turn(generation, counted, now, failed);
        self.bad_at.fetch_max(now.as_ns(), Ordering::Relaxed);
        if word.settled() == Kind::HalfOpen {
            if self.state.take(generation) {
                self.open(now, entropy);
            }
            return;
        }
        let in_a_row = failed && self.streak.failed(generation, now);
        if word.settled() == Kind::Ramp {
            if failed {
                self.ramp.turn_into_failure(generation, counted);
            } else {
                self.ramp.turn_late(generation, counted, self.late(lasted));
            }
        }
        self.weigh(word, now, in_a_row, entropy);
        self.advance(now);
    }
}
