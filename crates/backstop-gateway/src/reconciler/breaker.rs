//! Whether a route's upstream is asked for statuses at all.
//!
//! ```text
//! closed --[five failures in a row]--> open --[its wait is over]--> trying --[an answer]--> closed
//!                                        ^                            |
//!                                        +------- a longer wait ------+ a failure
//! ```
//!
//! It is not the breaker of requests: a status endpoint may work while payments fail, and the other way round. And it is simpler.
//! Status queries are few, so a share of failures in a window says little, and what an open one costs is only time: each wait is
//! drawn between half and all of 1, 2, 4 ... 30 s. That is below what an operation may lag behind and still be called followed.
//! While it tries, one query is under way.

use std::time::Duration;

use backstop_engine::entropy::spread;
use backstop_engine::time::Mono;

/// So many failures in a row open it.
const FAILURES: u32 = 5;
/// The longest first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// One route's breaker for status queries.
#[derive(Debug)]
pub(super) struct Breaker {
    phase: Phase,
    /// How often it opened since it was closed.
    opened: u32,
    /// One more with each change of phase: a late result changes nothing newer.
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed { failures: u32 },
    Open { until: Mono },
    Trying,
}

/// A query that was begun, for its result to count once, where it belongs.
#[derive(Debug)]
#[must_use = "what came of it is to be told"]
pub(super) struct Begun(u64);

impl Begun {
    const fn generation(self) -> u64 {
        self.0
    }
}

impl Breaker {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Closed { failures: 0 }, opened: 0, generation: 0 }
    }

    /// How many queries may be claimed now, as far as it goes.
    pub(super) fn room(&self, now: Mono) -> u32 {
        match self.phase {
            Phase::Closed { .. } => u32::MAX,
            Phase::Open { until } if now >= until => 1,
            Phase::Open { .. } | Phase::Trying => 0,
        }
    }

    /// Until when nothing is asked.
    pub(super) const fn open_until(&self) -> Option<Mono> {
        match self.phase {
            Phase::Open { until } => Some(until),
            Phase::Closed { .. } | Phase::Trying => None,
        }
    }

    /// Whether it is not closed.
    pub(super) const fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Closed { .. })
    }

    /// Begins a query; `None` if none may begin.
    pub(super) fn begin(&mut self, now: Mono) -> Option<Begun> {
        match self.phase {
            Phase::Closed { .. } => {}
            Phase::Open { until } if now >= until => self.enter(Phase::Trying),
            Phase::Open { .. } | Phase::Trying => return None,
        }
        Some(Begun(self.generation))
    }

    /// There was an answer that shows the status endpoint at work.
    pub(super) const fn answered(&mut self, begun: Begun) {
        if begun.generation() != self.generation {
            return;
        }
        if let Phase::Trying = self.phase {
            self.opened = 0;
            self.generation += 1;
        }
        self.phase = Phase::Closed { failures: 0 };
    }

    /// It failed. Whether the breaker opened over it.
    pub(super) fn failed(&mut self, begun: Begun, now: Mono, entropy: u64) -> bool {
        if begun.generation() != self.generation {
            return false;
        }
        match self.phase {
            Phase::Closed { failures } if failures + 1 < FAILURES => {
                self.phase = Phase::Closed { failures: failures + 1 };
                false
            }
            Phase::Closed { .. } | Phase::Trying => {
                let longest = FIRST.saturating_mul(1 << self.opened.min(8)).min(LONGEST);
                let half = longest / 2;
                self.opened = self.opened.saturating_add(1);
                self.enter(Phase::Open { until: now.after(half).after(spread(longest - half, entropy)) });
                true
            }
            Phase::Open { .. } => false,
        }
    }

    /// Nobody knows what came of a query: its task has panicked. One that tried has failed, or none would ever try again.
    pub(super) fn lost(&mut self, now: Mono, entropy: u64) {
        if let Phase::Trying = self.phase {
            let _it_opens = self.failed(Begun(self.generation), now, entropy);
        }
    }

    const fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_ns(ms * 1_000_000)
    }

    fn fail(breaker: &mut Breaker, now: Mono) -> bool {
        let begun = breaker.begin(now).expect("it may begin");
        breaker.failed(begun, now, u64::MAX)
    }

    /// By hand: waits of 1, 2, 4, 8, 16, 30, 30 s, all of each being drawn.
    #[test]
    fn five_failures_in_a_row_open_it_for_longer_each_time() {
        let mut breaker = Breaker::new();
        for _ in 0..4 {
            assert!(!fail(&mut breaker, at(0)));
        }
        let begun = breaker.begin(at(0)).unwrap();
        breaker.answered(begun);
        for _ in 0..4 {
            assert!(!fail(&mut breaker, at(0)), "in a row");
        }
        assert!(fail(&mut breaker, at(0)));
        let mut now = 0;
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(breaker.open_until(), Some(at(now + seconds * 1000)));
            now += seconds * 1000;
            assert_eq!((breaker.room(at(now - 1)), breaker.room(at(now))), (0, 1));
            assert!(breaker.begin(at(now - 1)).is_none());
            assert!(fail(&mut breaker, at(now)));
        }
    }

    #[test]
    fn one_query_tries_and_its_answer_closes_it() {
        let mut breaker = Breaker::new();
        let late = breaker.begin(at(0)).unwrap();
        for _ in 0..5 {
            fail(&mut breaker, at(0));
        }
        assert!(!breaker.failed(late, at(0), 0), "of another generation");
        let trying = breaker.begin(at(1000)).unwrap();
        assert_eq!(breaker.room(at(9000)), 0);
        assert!(breaker.begin(at(9000)).is_none());
        breaker.answered(trying);
        assert_eq!(breaker.room(at(9000)), u32::MAX);
        for _ in 0..5 {
            fail(&mut breaker, at(9000));
        }
        assert_eq!(breaker.open_until(), Some(at(10_000)), "waits begin anew");
    }

    #[test]
    fn a_try_that_is_lost_is_followed_by_another() {
        let mut breaker = Breaker::new();
        breaker.lost(at(0), u64::MAX);
        assert!(!breaker.is_open());
        for _ in 0..5 {
            fail(&mut breaker, at(0));
        }
        let _lost = breaker.begin(at(1000)).unwrap();
        assert_eq!(breaker.room(at(9000)), 0);
        breaker.lost(at(9000), u64::MAX);
        assert_eq!(breaker.open_until(), Some(at(11_000)));
    }

    #[test]
    fn a_wait_is_at_least_half_as_long() {
        let mut breaker = Breaker::new();
        for _ in 0..5 {
            let begun = breaker.begin(at(0)).unwrap();
            breaker.failed(begun, at(0), 0);
        }
        assert_eq!(breaker.open_until(), Some(at(500)));
    }
}
