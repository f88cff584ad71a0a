//! Who is connected to the operators' port: at most so many, and never so that nobody else comes in.
//!
//! When all places are taken, the next one takes that of whoever has been silent for longest. Silent is who has not asked
//! yet, or last asked so long ago that the answer must have been taken. Only if nobody is silent, it is the one who asked
//! first. So connections that say nothing keep no scraper out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Connections at once.
const PLACES: usize = 64;

/// The connections that are open.
#[derive(Clone)]
pub(super) struct Visitors {
    open: Arc<Mutex<Vec<Visitor>>>,
    /// After so long nobody is still taking an answer.
    patience: Duration,
}

struct Visitor {
    number: u64,
    has_asked: bool,
    /// When it came or last asked.
    heard: Instant,
    task: Option<AbortHandle>,
}

/// One connection's place. It is free again when this is dropped.
pub(super) struct Seat {
    visitors: Visitors,
    number: u64,
}

impl Visitors {
    pub(super) fn new(patience: Duration) -> Self {
        Self { open: Arc::default(), patience }
    }

    /// A place for the next connection, at the cost of another one if need be. Numbers are the caller's, each given once.
    pub(super) fn seat(&self, number: u64, now: Instant) -> Seat {
        let mut open = self.lock();
        let left = (open.len() >= PLACES).then(|| self.longest_silent(&open, now)).flatten();
        let left = left.map(|at| open.swap_remove(at));
        open.push(Visitor { number, has_asked: false, heard: now, task: None });
        drop(open);
        if let Some(task) = left.and_then(|left| left.task) {
            task.abort();
        }
        Seat { visitors: self.clone(), number }
    }

    /// The task to end when the place goes to somebody else.
    pub(super) fn runs_as(&self, number: u64, task: AbortHandle) {
        if let Some(visitor) = self.lock().iter_mut().find(|visitor| visitor.number == number) {
            visitor.task = Some(task);
        }
    }

    fn longest_silent(&self, open: &[Visitor], now: Instant) -> Option<usize> {
        let order = |visitor: &Visitor| {
            let is_answered = visitor.has_asked && now.duration_since(visitor.heard) < self.patience;
            (is_answered, visitor.heard, visitor.number)
        };
        let first = open.iter().enumerate().min_by_key(|(_, visitor)| order(visitor));
        first.map(|(at, _)| at)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Visitor>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// It asks for something.
    pub(super) fn asks(&self, now: Instant) {
        if let Some(visitor) = self.visitors.lock().iter_mut().find(|visitor| visitor.number == self.number) {
            (visitor.has_asked, visitor.heard) = (true, now);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.visitors.lock().retain(|visitor| visitor.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_been_silent_for_longest_gives_way() {
        let visitors = Visitors::new(Duration::from_secs(5));
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let here = || {
            let mut numbers: Vec<_> = visitors.lock().iter().map(|visitor| visitor.number).collect();
            numbers.sort_unstable();
            numbers
        };
        let mut seats: Vec<Seat> =
            (0..PLACES as u64).map(|number| visitors.seat(number, at(number))).collect();
        // The first two ask; of the others the third came first.
        seats[1].asks(at(100));
        seats[0].asks(at(101));
        seats.push(visitors.seat(64, at(200)));
        assert!(here().len() == PLACES && !here().contains(&2) && here().contains(&0));
        // All ask: now it is the one who asked first, which is the second.
        seats.iter().skip(2).for_each(|seat| seat.asks(at(300)));
        seats.push(visitors.seat(65, at(400)));
        assert!(here().len() == PLACES && !here().contains(&1) && here().contains(&0));
        // Who asked long ago is silent, longer than the one that came just now.
        seats.push(visitors.seat(66, at(5101)));
        assert!(!here().contains(&0) && here().contains(&65) && here().contains(&3));
        drop(seats);
        assert!(here().is_empty());
    }
}
