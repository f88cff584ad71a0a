//! Limits on how often: so many per second, taken at once or refused at once.
//!
//! A [`Rate`] is the generic cell rate algorithm (ITU-T I.371, appendix I) in one word. The word holds the *theoretical
//! arrival time*: the moment at which everything taken so far would have been used up by takers that come evenly, one
//! *interval* apart. Who comes while that moment lies less than the burst ahead is admitted and moves it one interval
//! further; everybody else is refused and moves nothing. No timer fills anything, so nothing is lost or gained while
//! nobody asks.
//!
//! In any stretch of time, whoever takes and from however many threads, no more than `rate * stretch + burst` are
//! admitted. The interval is in whole nanoseconds, rounded up: the rate is never above the one asked for, and below it
//! by less than one part in a thousand up to 10^6 per second.
//!
//! A burst is at least one: a smaller one would never admit anybody. No debt grows: a refusal costs nothing, so a rate
//! that was asked for too much admits again after one interval.
//!
//! [`Rate::set`] changes the rate while it is in use. What could be taken at that moment can still be taken, up to the
//! new burst, and nothing is given on top; from a rate of zero it begins with nothing.

mod pace;

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Mono;

use pace::{AT_ONCE, NEVER, Pace, PaceCell, scaled};

/// A number of admissions per time.
pub struct Rate {
    /// The theoretical arrival time in nanoseconds since boot above, and below it which of `paces` is in force. One word,
    /// so that nobody adds an interval to a moment that was reckoned with another.
    word: AtomicU64,
    /// The pace in force and those before it. More than two, so that a thread that was held up for some changes still
    /// finds that the word has moved on.
    paces: [PaceCell; 1 << SLOT_BITS],
    /// The burst, where one is named; what 50 ms of the rate are otherwise.
    burst: Option<u64>,
}

const SLOT_BITS: u32 = 3;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// The latest moment that fits: 73 years after boot. Nothing is admitted at a later one.
const LATEST_NS: u64 = u64::MAX >> SLOT_BITS;

/// One admission, as it stands in the word, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    before: u64,
    after: u64,
}

impl Rate {
    /// So many per second, of which up to `burst` at once (0 counts as 1). A rate of 0 admits nothing; one above 10^9
    /// counts as 10^9.
    pub fn new(per_second: u64, burst: u64) -> Self {
        let burst = Some(burst.max(1));
        Self::with(Pace::new(per_second, Duration::from_secs(1), burst), burst)
    }

    /// `count` in every `period`, with the usual burst: what 50 ms of the rate are, at least 1.
    pub fn per(count: u64, period: Duration) -> Self {
        Self::with(Pace::new(count, period, None), None)
    }

    /// No limit, until one is [set](Rate::set).
    pub fn unlimited() -> Self {
        Self::with(Pace::AT_ONCE, None)
    }

    fn with(pace: Pace, burst: Option<u64>) -> Self {
        Self { word: AtomicU64::new(0), paces: std::array::from_fn(|_| PaceCell::new(pace)), burst }
    }

    /// Takes one now, or not at all.
    pub fn try_take(&self, now: Mono) -> bool {
        self.take(now).is_some()
    }

    /// Takes one now, or not at all; what was taken can be [put back](Rate::put_back).
    pub(crate) fn take(&self, now: Mono) -> Option<Taken> {
        let mut after = 0;
        let taken = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            after = self.with_one_more(word, now)?;
            Some(after)
        });
        taken.ok().map(|before| Taken { before, after })
    }

    /// Puts back what was taken if nobody has taken since; otherwise it stays spent, because a free moment may have
    /// passed in between and would be given twice.
    pub(crate) fn put_back(&self, taken: Taken) {
        let Taken { before, after } = taken;
        let _or_stays_spent = self.word.compare_exchange(after, before, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn with_one_more(&self, word: u64, now: Mono) -> Option<u64> {
        let pace = self.pace_of(word);
        match pace.interval_ns {
            NEVER => None,
            AT_ONCE => Some(word),
            interval_ns => {
                let next = arrival(word).max(now.as_ns()).checked_add(interval_ns)?;
                let ahead = next - now.as_ns();
                (ahead <= pace.burst_ns() && next <= LATEST_NS).then(|| pack(next, word))
            }
        }
    }

    /// Changes the rate from `now` on. One thread at a time changes a rate: two at once may leave the interval of
    /// either for what the other has reckoned.
    pub fn set(&self, now: Mono, per_second: u64) {
        self.set_per(now, per_second, Duration::from_secs(1));
    }

    /// Changes the rate to `count` in every `period`, as [`Rate::set`] does.
    pub fn set_per(&self, now: Mono, count: u64, period: Duration) {
        self.set_pace(now, Pace::new(count, period, self.burst));
    }

    /// Takes the limit away.
    pub fn set_unlimited(&self, now: Mono) {
        self.set_pace(now, Pace::AT_ONCE);
    }

    fn set_pace(&self, now: Mono, pace: Pace) {
        let _none_if_the_same = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let old = self.pace_of(word);
            if pace == old {
                return None;
            }
            let slot = (word & SLOT_MASK).wrapping_add(1) & SLOT_MASK;
            if let Some(next) = self.paces.get(slot as usize) {
                next.store(pace);
            }
            let burst_ns = pace.burst_ns();
            let free_ns = match (old.interval_ns, pace.interval_ns) {
                (NEVER, _) => 0,
                (AT_ONCE, _) | (_, AT_ONCE | NEVER) => burst_ns,
                (old_ns, new_ns) => scaled(free_ns(word, old, now), new_ns, old_ns).min(burst_ns),
            };
            let next = now.as_ns().saturating_add(burst_ns - free_ns).min(LATEST_NS);
            Some(pack(next, slot))
        });
    }

    /// How many could be taken at this moment.
    pub fn spare(&self, now: Mono) -> u64 {
        let word = self.word.load(Ordering::Acquire);
        let pace = self.pace_of(word);
        match pace.interval_ns {
            NEVER => 0,
            AT_ONCE => u64::MAX,
            interval_ns => free_ns(word, pace, now) / interval_ns,
        }
    }

    /// Whether one could be taken at this moment and half of what may be taken at once would still be there, at least one.
    pub fn is_half_spare(&self, now: Mono) -> bool {
        let word = self.word.load(Ordering::Acquire);
        let pace = self.pace_of(word);
        match pace.interval_ns {
            NEVER => false,
            AT_ONCE => true,
            interval_ns => {
                let left_ns = free_ns(word, pace, now).saturating_sub(interval_ns);
                left_ns >= interval_ns.max(pace.burst_ns() / 2)
            }
        }
    }

    /// Admissions per second, as it is now: after rounding, and infinite without a limit.
    pub fn per_second(&self) -> f64 {
        match self.pace().interval_ns {
            NEVER => 0.0,
            interval_ns => 1e9 / interval_ns as f64,
        }
    }

    /// Whether there is no limit.
    pub fn is_unlimited(&self) -> bool {
        self.pace().interval_ns == AT_ONCE
    }

    fn pace(&self) -> Pace {
        self.pace_of(self.word.load(Ordering::Acquire))
    }

    fn pace_of(&self, word: u64) -> Pace {
        // The mask leaves no slot that is not there; who could not know its pace would admit nobody.
        self.paces.get((word & SLOT_MASK) as usize).map_or(Pace::NEVER, PaceCell::load)
    }
}

impl std::fmt::Debug for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rate")
            .field("per_second", &self.per_second())
            .field("burst", &self.pace().burst)
            .finish_non_exhaustive()
    }
}

const fn arrival(word: u64) -> u64 {
    word >> SLOT_BITS
}

const fn pack(arrival_ns: u64, slot: u64) -> u64 {
    (arrival_ns << SLOT_BITS) | (slot & SLOT_MASK)
}

/// Time that is free before the burst is used up.
fn free_ns(word: u64, pace: Pace, now: Mono) -> u64 {
    let ahead = arrival(word).saturating_sub(now.as_ns());
    pace.burst_ns().saturating_sub(ahead)
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rate/threads_tests.rs"]
mod threads_tests;
