//! How many status queries a route may begin, and when.
//!
//! Two limits, both the operator's: the least time between the beginnings of two queries, and how many may be under way at
//! once. What is claimed has its place from then on, so that never more is claimed than can be asked soon: a claim that waits
//! uses up its lease.

use std::time::Duration;

use backstop_engine::time::Mono;

/// Claims are made so much before they may be asked for: a claim is written to the disk first, and a query should not begin later
/// for that. Far below what a claim's lease has beside the query's own time.
const LEAD: Duration = Duration::from_millis(100);

/// One route's budget.
#[derive(Debug)]
pub(super) struct Budget {
    interval: Duration,
    concurrency: u32,
    /// Claimed, and not asked for yet.
    waiting: u32,
    under_way: u32,
    /// Before this moment no query begins.
    earliest: Mono,
}

impl Budget {
    pub(super) fn new(interval: Duration, concurrency: u32) -> Self {
        Self {
            interval,
            concurrency: concurrency.max(1),
            waiting: 0,
            under_way: 0,
            earliest: Mono::default(),
        }
    }

    /// How many may be claimed now.
    pub(super) fn room(&self, now: Mono) -> u32 {
        let free = self.concurrency.saturating_sub(self.waiting + self.under_way);
        let Some(ahead) = now.after(LEAD).since(self.earliest.max(now)) else { return 0 };
        // Without an interval all may begin at once.
        let slots =
            ahead.as_nanos().checked_div(self.interval.as_nanos()).map_or(u128::MAX, |slots| slots + 1);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        free.min(slots.saturating_sub(self.waiting))
    }

    /// When there will be room, if a place is free then.
    pub(super) fn room_at(&self, now: Mono) -> Mono {
        self.earliest.max(now).after(self.interval.saturating_mul(self.waiting)).before(LEAD)
    }

    /// Before this moment no query begins.
    pub(super) const fn earliest(&self) -> Mono {
        self.earliest
    }

    /// How many are claimed and not asked for yet.
    pub(super) const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// One was claimed.
    pub(super) const fn claimed(&mut self) {
        self.waiting = self.waiting.saturating_add(1);
    }

    /// One that was claimed will not be asked for.
    pub(super) const fn given_up(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Begins one that was claimed.
    ///
    /// # Errors
    /// When to try again.
    pub(super) fn begin(&mut self, now: Mono) -> Result<(), Mono> {
        if now < self.earliest {
            return Err(self.earliest);
        }
        self.given_up();
        self.under_way += 1;
        self.earliest = now.after(self.interval);
        Ok(())
    }

    /// One has ended.
    pub(super) const fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_ns(ms * 1_000_000)
    }

    /// Five a second: one each 200 ms, claimed up to 100 ms before.
    #[test]
    fn between_two_beginnings_lies_the_interval() {
        let mut budget = Budget::new(Duration::from_millis(200), 4);
        assert_eq!(budget.room(at(1000)), 1);
        budget.claimed();
        assert_eq!(budget.room(at(1000)), 0, "one waits for the only beginning so soon");
        assert_eq!(budget.begin(at(1000)), Ok(()));
        assert_eq!(budget.room(at(1099)), 0);
        assert_eq!(budget.room_at(at(1000)), at(1100));
        assert_eq!(budget.room(at(1100)), 1);
        budget.claimed();
        assert_eq!(budget.begin(at(1199)), Err(at(1200)));
        assert_eq!(budget.begin(at(1200)), Ok(()));
        assert_eq!(budget.begin(at(1399)), Err(at(1400)));
    }

    /// A thousand a second: those of the next 100 ms at once, and no more than may be under way.
    #[test]
    fn no_more_is_claimed_than_can_be_asked_soon() {
        let wide = Budget::new(Duration::from_millis(1), 1000);
        assert_eq!(wide.room(at(1000)), 101);
        let mut narrow = Budget::new(Duration::from_millis(1), 3);
        assert_eq!(narrow.room(at(1000)), 3);
        for ms in 0..3 {
            narrow.claimed();
            assert_eq!(narrow.begin(at(1000 + ms)), Ok(()));
        }
        assert_eq!(narrow.room(at(5000)), 0, "three are under way");
        narrow.ended();
        assert_eq!(narrow.room(at(5000)), 1);
        narrow.claimed();
        narrow.given_up();
        assert_eq!(narrow.room(at(5000)), 1);
    }
}
