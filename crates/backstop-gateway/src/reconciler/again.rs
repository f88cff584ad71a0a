//! Second looks: what was decided by absence is asked about again.
//!
//! Nothing else asks about what is decided, so an operation that its upstream executes later than the declared `settle` would go
//! unnoticed. For as long as the upstream remembers operations each is asked about once in the time of an `attention_poll`, by
//! the same query. That it was executed calls a person; every other answer changes nothing.
//!
//! Names of operations are drawn evenly. So who walks evenly through all possible names asks evenly, however many there are,
//! and counts nothing. One is asked at a time, out of the route's budget, and only where nothing is left to be claimed: what is
//! unknown never waits for more than that one. With more of them than can be asked so, a walk takes longer. Which they are is
//! in the ledger; with a process only the place of its walk is lost, and the next one begins anew.

use std::collections::VecDeque;
use std::time::Duration;

use backstop_engine::operation::{OperationId, SecondLook};
use backstop_engine::time::{Mono, Now, Wall};
use backstop_store::ledger::SecondLooks;

use super::route::EVERY;

/// So many are looked up at once.
const PAGE: usize = 16;
/// After every other name.
const LAST: OperationId = OperationId::from_bytes([u8::MAX; 16]);

/// The second looks of one route.
#[derive(Debug)]
pub(super) struct Again {
    remembered: Duration,
    walk: Walk,
    /// Looked up, and not asked yet.
    waiting: VecDeque<SecondLook>,
    is_under_way: bool,
    next_read: Mono,
}

impl Again {
    /// Each once in `period`, until its upstream forgets it after `remembered`.
    pub(super) const fn new(period: Duration, remembered: Duration, now: Mono) -> Self {
        let walk = Walk { period, start: now, after: None };
        Self { remembered, walk, waiting: VecDeque::new(), is_under_way: false, next_read: now }
    }

    /// What is to be looked up in the ledger now.
    pub(super) fn wanted(&mut self, now: &Now) -> Option<SecondLooks> {
        if !self.waiting.is_empty() || now.mono < self.next_read {
            return None;
        }
        let (after, until) = (self.walk.after, self.walk.until(now.mono));
        let began_after = before(now.wall, self.remembered);
        after.is_none_or(|after| after < until).then_some(SecondLooks {
            began_after,
            after,
            until,
            most: PAGE,
        })
    }

    /// What was found there.
    pub(super) fn found(&mut self, which: &SecondLooks, looks: Vec<SecondLook>, now: Mono) {
        let is_all = looks.len() < which.most;
        let last = looks.last().filter(|_| !is_all).map(|look| look.record().identity.id);
        self.walk.came_to(last.unwrap_or(which.until), now);
        if is_all {
            self.next_read = now.after(EVERY);
        }
        self.waiting.extend(looks);
    }

    /// One to be asked now, which is under way from here on. What the upstream has forgotten meanwhile is left out.
    pub(super) fn next(&mut self, now: &Now) -> Option<SecondLook> {
        if self.is_under_way {
            return None;
        }
        while let Some(look) = self.waiting.pop_front() {
            if look.is_remembered(self.remembered, now) {
                self.is_under_way = true;
                return Some(look);
            }
        }
        None
    }

    /// It could not be asked.
    pub(super) fn put_back(&mut self, look: SecondLook) {
        self.waiting.push_front(look);
    }

    /// The one under way has ended.
    pub(super) const fn ended(&mut self) {
        self.is_under_way = false;
    }

    /// Whether one could be asked as soon as there is room.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_under_way && !self.waiting.is_empty()
    }
}

/// So long before a date.
fn before(wall: Wall, age: Duration) -> Wall {
    let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
    Wall::from_unix_ns(wall.as_unix_ns().saturating_sub(age))
}

/// A walk through all possible names in a time.
#[derive(Debug)]
struct Walk {
    period: Duration,
    start: Mono,
    /// The last name that is behind.
    after: Option<OperationId>,
}

impl Walk {
    /// How far it may have come by now.
    fn until(&self, now: Mono) -> OperationId {
        let gone = now.since(self.start).unwrap_or_default();
        if gone >= self.period {
            return LAST;
        }
        // Moments are below 2^64 nanoseconds, so that nothing is cut off; and `gone` is less than the period, which is not zero.
        let share = (gone.as_nanos() << 64).checked_div(self.period.as_nanos()).unwrap_or(u128::MAX);
        OperationId::from_bytes((share << 64).to_be_bytes())
    }

    /// All up to this name is behind. At the last one it begins anew: in step, or now if it was too slow for that.
    fn came_to(&mut self, name: OperationId, now: Mono) {
        self.after = Some(name);
        if name < LAST {
            return;
        }
        self.after = None;
        self.start = self.start.after(self.period);
        if now >= self.start.after(self.period) {
            self.start = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_ns(seconds * 1_000_000_000)
    }

    fn walk() -> Walk {
        Walk { period: Duration::from_secs(1024), start: at(1000), after: None }
    }

    /// By hand: a quarter of the time is a quarter of the names, whose first byte is below 64.
    #[test]
    fn a_walk_goes_evenly_through_all_names_in_its_time() {
        let first_bytes = |seconds| *walk().until(at(seconds)).as_bytes();
        for (seconds, first, second) in [
            (900, 0, 0),
            (1000, 0, 0),
            (1001, 0, 64),
            (1004, 1, 0),
            (1256, 64, 0),
            (1512, 128, 0),
            (2020, 255, 0),
        ] {
            let bytes = first_bytes(seconds);
            assert_eq!((bytes[0], bytes[1]), (first, second), "{seconds}");
        }
        assert!(walk().until(Mono::from_ns(2_023_999_999_999)) < LAST);
        assert_eq!([2024, 2025, 9999].map(|seconds| walk().until(at(seconds))), [LAST; 3]);
    }

    #[test]
    fn a_walk_that_is_over_begins_anew_in_step_or_now_if_it_was_too_slow() {
        for (over, start) in [(2024, 2024), (2500, 2024), (3047, 2024), (3048, 3048), (9999, 9999)] {
            let mut walk = walk();
            walk.came_to(OperationId::from_bytes([9; 16]), at(1100));
            assert_eq!((walk.start, walk.after), (at(1000), Some(OperationId::from_bytes([9; 16]))));
            walk.came_to(LAST, at(over));
            assert_eq!((walk.start, walk.after), (at(start), None), "{over}");
        }
    }

    /// Nothing that a policy allows, and no endless loop.
    #[test]
    fn a_walk_in_no_time_is_over_at_once() {
        let mut walk = Walk { period: Duration::ZERO, ..walk() };
        assert_eq!(walk.until(at(1000)), LAST);
        walk.came_to(LAST, at(1500));
        assert_eq!(walk.start, at(1500));
    }

    #[test]
    fn the_ledger_is_asked_once_a_second_at_most_for_what_is_not_behind() {
        let now =
            |seconds| Now { mono: at(seconds), wall: Wall::from_unix_ns(5_000_000_000), ..Now::default() };
        let mut again = Again::new(Duration::from_secs(1024), Duration::from_secs(2), at(1000));
        let first = again.wanted(&now(1000)).unwrap();
        assert_eq!((first.after, first.most), (None, 16));
        assert_eq!(first.began_after, Wall::from_unix_ns(3_000_000_000));
        again.found(&first, Vec::new(), at(1000));
        assert_eq!(again.wanted(&now(1000)), None);
        let second = again.wanted(&now(1001)).unwrap();
        assert_eq!(second.after, Some(first.until));
        assert!(second.until > first.until);
        assert!(again.next(&now(1001)).is_none() && !again.is_waiting());
    }
}
