//! Which fault a call meets: of the windows that are open for its upstream the last one that was written, for its share of
//! the calls.
//!
//! Shares are drawn from one seeded sequence (SplitMix64), so a run with one seed draws the same numbers again.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::{Fault, Window};

#[derive(Debug)]
pub(crate) struct Schedule {
    windows: Vec<Window>,
    state: AtomicU64,
}

impl Schedule {
    pub(crate) fn new(windows: Vec<Window>, seed: u64) -> Self {
        Self { windows, state: AtomicU64::new(seed) }
    }

    /// What a call that begins now meets, `Refuse` and `Full` apart: those befall connections.
    pub(crate) fn of_call(&self, upstream: usize, at: Duration) -> Option<Fault> {
        let window = self.open(upstream, at).filter(|window| self.hits(window.per_mille))?;
        match window.fault {
            Fault::Refuse | Fault::Full(_) => None,
            Fault::Flap(half) => is_down(at.saturating_sub(window.from), half).then_some(Fault::HangUp),
            fault => Some(fault),
        }
    }

    /// Whether connections to it are refused at this moment.
    pub(crate) fn refuses(&self, upstream: usize, at: Duration) -> bool {
        self.open(upstream, at).is_some_and(|window| window.fault == Fault::Refuse)
    }

    /// How many connections to it are served at this moment, if they are counted.
    pub(crate) fn room(&self, upstream: usize, at: Duration) -> Option<u32> {
        match self.open(upstream, at)?.fault {
            Fault::Full(most) => Some(most),
            _ => None,
        }
    }

    /// The next moment after this one at which a window of it opens or closes.
    pub(crate) fn next_change(&self, upstream: usize, at: Duration) -> Option<Duration> {
        let own = self.windows.iter().filter(|window| window.upstream == upstream);
        own.flat_map(|window| [window.from, window.to]).filter(|change| *change > at).min()
    }

    fn open(&self, upstream: usize, at: Duration) -> Option<&Window> {
        self.windows.iter().rev().find(|window| window.upstream == upstream && window.is_open(at))
    }

    fn hits(&self, per_mille: u16) -> bool {
        per_mille >= 1000 || self.draw() % 1000 < u64::from(per_mille)
    }

    fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// It works first, and is down in every second turn.
fn is_down(since: Duration, half: Duration) -> bool {
    let turn = since.as_nanos() / half.as_nanos().max(1);
    !turn.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_window_holds_from_its_first_moment_and_not_at_its_last() {
        let schedule = Schedule::new(vec![Window::new(1, Fault::Hang, ms(10), ms(20))], 1);
        let met = |upstream, at| schedule.of_call(upstream, ms(at));
        assert_eq!(
            [met(1, 9), met(1, 10), met(1, 19), met(1, 20)],
            [None, Some(Fault::Hang), Some(Fault::Hang), None]
        );
        assert_eq!(met(0, 15), None, "another upstream");
        assert_eq!(schedule.next_change(1, ms(0)), Some(ms(10)));
        assert_eq!(schedule.next_change(1, ms(10)), Some(ms(20)));
        assert_eq!(schedule.next_change(1, ms(20)), None);
    }

    #[test]
    fn the_last_window_that_was_written_wins() {
        let windows =
            vec![Window::new(0, Fault::Hang, ms(0), ms(9)), Window::new(0, Fault::Refuse, ms(3), ms(6))];
        let schedule = Schedule::new(windows, 1);
        assert_eq!(schedule.of_call(0, ms(2)), Some(Fault::Hang));
        assert!(schedule.refuses(0, ms(3)) && schedule.of_call(0, ms(3)).is_none());
        assert!(!schedule.refuses(0, ms(6)));
    }

    #[test]
    fn a_share_is_drawn_and_the_same_seed_draws_the_same() {
        let half = Window { per_mille: 500, ..Window::new(0, Fault::Hang, ms(0), ms(9)) };
        let drawn = |seed| {
            let schedule = Schedule::new(vec![half], seed);
            (0..1000).map(|_| schedule.of_call(0, ms(1)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        // A fair coin stays within 500 +- 5 standard deviations (15.8 each).
        let hits = drawn(7).into_iter().filter(|hit| *hit).count();
        assert!((421..=579).contains(&hits), "{hits}");
    }

    #[test]
    fn it_flaps_in_turns() {
        let schedule = Schedule::new(vec![Window::new(0, Fault::Flap(ms(10)), ms(100), ms(200))], 1);
        let down = [100, 109, 110, 119, 120, 130].map(|at| schedule.of_call(0, ms(at)).is_some());
        assert_eq!(down, [false, false, true, true, false, true]);
    }
}
