//! The counters of the last minute, second by second, so that it is known what came in the last ten and sixty seconds.

use std::collections::VecDeque;
use std::time::Duration;

use super::counted::Counted;

/// What is called now.
pub(super) const NOW: Duration = Duration::from_secs(10);
/// What is called the last minute.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// Moments kept: a minute of seconds, and one before it.
const KEPT: usize = 62;

/// Readings, oldest first. There is always one.
#[derive(Debug)]
pub(super) struct Minute {
    first: Counted,
    later: VecDeque<Counted>,
}

impl Minute {
    pub(super) fn new(first: Counted) -> Self {
        Self { first, later: VecDeque::with_capacity(KEPT) }
    }

    /// Adds the newest.
    pub(super) fn push(&mut self, counted: Counted) {
        // What nobody asks for any more goes: the oldest as long as the next one is old enough too.
        let is_old = |one: &Counted| counted.at.since(&one.at) >= MINUTE;
        while self.later.len() + 2 > KEPT || self.later.front().is_some_and(is_old) {
            match self.later.pop_front() {
                Some(next) => self.first = next,
                None => break,
            }
        }
        self.later.push_back(counted);
    }

    /// The newest.
    pub(super) fn last(&self) -> &Counted {
        self.later.back().unwrap_or(&self.first)
    }

    /// How much came after the newest reading that is at least so old, or after the oldest one.
    pub(super) fn within(&self, now: &Counted, window: Duration) -> (Counted, Duration) {
        let before = self.before(now, window);
        (now.since(before), now.at.since(&before.at))
    }

    /// The oldest copy of each route in the same time.
    pub(super) fn oldest(&self, now: &Counted, window: Duration, route: usize) -> Option<Duration> {
        let from = self.before(now, window).at;
        let later = self.later.iter().filter(|one| one.at.mono > from.mono).chain([now]);
        later.filter_map(|one| one.routes.get(route)?.oldest).max()
    }

    fn before(&self, now: &Counted, window: Duration) -> &Counted {
        let is_old = |one: &&Counted| now.at.since(&one.at) >= window;
        self.later.iter().rev().find(is_old).unwrap_or(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::counted::DependencyCounted;
    use backstop_engine::incident::Moment;
    use backstop_engine::time::{BootId, Mono, Wall};

    /// At this moment so many calls had been counted in all.
    fn at(ns: u64, attempts: u64) -> Counted {
        let moment = Moment { mono: Mono::from_ns(ns), wall: Wall::from_unix_ns(0), boot: BootId([1; 16]) };
        let calls = DependencyCounted { attempts, ..DependencyCounted::default() };
        Counted { at: moment, dependencies: vec![calls], ..Counted::default() }
    }

    const SECOND: u64 = 1_000_000_000;

    fn calls(minute: &Minute, now: &Counted, window: Duration) -> (u64, f64) {
        let (counted, seconds) = minute.within(now, window);
        (counted.dependencies[0].attempts, seconds.as_secs_f64())
    }

    /// By hand: one call in each second from 0 to 69. At second 70 the ten before it are 60 to 69.
    #[test]
    fn ten_seconds_reach_back_to_the_reading_that_is_ten_seconds_old_and_not_a_nanosecond_less() {
        let mut minute = Minute::new(at(0, 0));
        for second in 1..=69 {
            minute.push(at(second * SECOND, second));
        }
        assert_eq!(calls(&minute, &at(70 * SECOND, 70), NOW), (10, 10.0));
        assert_eq!(calls(&minute, &at(70 * SECOND - 1, 70), NOW).0, 11, "second 60 is not ten seconds ago");
        assert_eq!(calls(&minute, &at(70 * SECOND, 70), MINUTE), (60, 60.0));
    }

    #[test]
    fn it_keeps_a_bounded_number_of_readings_however_often_they_come() {
        let mut minute = Minute::new(at(0, 0));
        for tenth in 1..=10_000 {
            minute.push(at(tenth * SECOND / 10, tenth));
        }
        assert!(minute.later.len() < KEPT);
        assert_eq!(minute.last().dependencies[0].attempts, 10_000);
    }

    /// A machine that slept: the window reaches back to before, and says how long it is.
    #[test]
    fn a_gap_makes_the_window_longer_and_loses_nothing() {
        let mut minute = Minute::new(at(0, 0));
        minute.push(at(SECOND, 5));
        minute.push(at(500 * SECOND, 7));
        assert_eq!(calls(&minute, &at(501 * SECOND, 8), MINUTE), (3, 500.0));
    }
}
