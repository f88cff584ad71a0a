use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use backstop_engine::time::Mono;

use super::manual::ManualClock;
use super::system::SystemClock;

/// Ends when its clock has reached a moment.
#[must_use = "a sleep does nothing unless awaited"]
pub struct Sleep {
    at: Mono,
    waiting: Waiting,
}

enum Waiting {
    System { clock: Arc<SystemClock>, timer: Option<Pin<Box<tokio::time::Sleep>>> },
    Manual { clock: ManualClock, moved: Pin<Box<dyn Future<Output = ()> + Send + Sync>>, asleep: Asleep },
}

/// One who sleeps on a manual clock, which knows until when.
struct Asleep {
    clock: ManualClock,
    number: Option<u64>,
}

impl Drop for Asleep {
    fn drop(&mut self) {
        if let Some(number) = self.number.take() {
            self.clock.wakes(number);
        }
    }
}

impl Sleep {
    pub(super) fn system(clock: Arc<SystemClock>, at: Mono) -> Self {
        Self { at, waiting: Waiting::System { clock, timer: None } }
    }

    pub(super) fn manual(clock: ManualClock, at: Mono) -> Self {
        let moved = next_move(&clock);
        let asleep = Asleep { clock: clock.clone(), number: None };
        Self { at, waiting: Waiting::Manual { clock, moved, asleep } }
    }

    /// Moves the end, earlier or later.
    pub fn reset(&mut self, at: Mono) {
        self.at = at;
        if let Waiting::System { clock, timer: Some(timer) } = &mut self.waiting {
            timer.as_mut().reset(tokio::time::Instant::now() + clock.mono().until(at));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        match &mut self.waiting {
            // The runtime's timer stops in suspend and may be early by its granularity: ask the real clock each time.
            Waiting::System { clock, timer } => loop {
                let left = clock.mono().until(at);
                if left.is_zero() {
                    return Poll::Ready(());
                }
                let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(left)));
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                timer.as_mut().reset(tokio::time::Instant::now() + clock.mono().until(at));
            },
            // Register first, then look: a move between the two is then never missed. One that was seen is replaced in
            // any case, because a sleep that has ended may be moved on and asked again.
            Waiting::Manual { clock, moved, asleep } => {
                while moved.as_mut().poll(context).is_ready() {
                    *moved = next_move(clock);
                }
                if clock.now().mono < at {
                    asleep.number = Some(clock.sleeps(asleep.number, at));
                    return Poll::Pending;
                }
                if let Some(number) = asleep.number.take() {
                    clock.wakes(number);
                }
                Poll::Ready(())
            }
        }
    }
}

fn next_move(clock: &ManualClock) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
    let clock = clock.clone();
    Box::pin(async move { clock.moved().notified().await })
}

impl std::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sleep").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backstop_engine::time::Now;

    use crate::clock::Clock;

    #[test]
    fn a_clock_that_is_moved_by_hand_knows_who_sleeps_until_when() {
        let (clock, hand) = Clock::manual(Now::default());
        let at = |seconds| clock.mono().after(Duration::from_secs(seconds));
        assert_eq!(hand.next_wake(), None);
        let (first, later) = (at(3), at(5));
        let mut one = tokio_test::task::spawn(clock.sleep_until(later));
        let mut other = tokio_test::task::spawn(clock.sleep_until(first));
        assert!(one.poll().is_pending() && other.poll().is_pending());
        assert_eq!(hand.next_wake(), Some(first));
        hand.advance(Duration::from_secs(3));
        assert!(other.poll().is_ready() && one.poll().is_pending());
        assert_eq!(hand.next_wake(), Some(later), "whoever has woken sleeps no more");
        drop(one);
        assert_eq!(hand.next_wake(), None, "nor does whoever was dropped");
    }

    #[test]
    fn a_sleep_that_has_ended_can_be_moved_on() {
        let (clock, hand) = Clock::manual(Now::default());
        let second = Duration::from_secs(1);
        let mut sleep = tokio_test::task::spawn(clock.sleep_until(clock.mono().after(second)));
        for _ in 0..3 {
            assert!(sleep.poll().is_pending());
            hand.advance(second);
            assert!(sleep.is_woken() && sleep.poll().is_ready());
            let later = clock.mono().after(second);
            sleep.enter(|_, mut sleep| sleep.reset(later));
        }
    }
}
