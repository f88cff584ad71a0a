use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop_engine::time::{Mono, Now};
use tokio::sync::Notify;

/// The hand that moves a [`Clock`](super::Clock).
#[derive(Clone, Debug)]
pub struct ManualClock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    now: Mutex<Now>,
    moved: Notify,
    sleepers: Mutex<Sleepers>,
}

/// Who sleeps, by number.
#[derive(Debug, Default)]
struct Sleepers {
    until: BTreeMap<u64, Mono>,
    last: u64,
}

impl ManualClock {
    pub(super) fn new(start: Now) -> Self {
        Self {
            inner: Arc::new(Inner {
                now: Mutex::new(start),
                moved: Notify::new(),
                sleepers: Mutex::default(),
            }),
        }
    }

    /// What the clock shows.
    pub fn now(&self) -> Now {
        *self.lock()
    }

    /// Changes what the clock shows, in any direction, and wakes everybody who sleeps on it.
    pub fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.lock());
        self.inner.moved.notify_waiters();
    }

    /// Moves time since boot and the date forward alike, as time does.
    pub fn advance(&self, by: std::time::Duration) {
        self.set(|now| {
            now.mono = now.mono.after(by);
            now.wall = now.wall.after(by);
        });
    }

    /// The earliest moment to come that anybody sleeps until; `None` if nobody does. Whoever moves the clock there lets time
    /// pass as it would, with nothing left out.
    pub fn next_wake(&self) -> Option<Mono> {
        let now = self.now().mono;
        self.sleepers().until.values().filter(|until| **until > now).min().copied()
    }

    /// Somebody sleeps until a moment: they get a number, unless they have one.
    pub(super) fn sleeps(&self, number: Option<u64>, until: Mono) -> u64 {
        let mut sleepers = self.sleepers();
        let number = number.unwrap_or_else(|| {
            sleepers.last += 1;
            sleepers.last
        });
        sleepers.until.insert(number, until);
        number
    }

    /// They do not any more.
    pub(super) fn wakes(&self, number: u64) {
        self.sleepers().until.remove(&number);
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.inner.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn moved(&self) -> &Notify {
        &self.inner.moved
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // A reading is plain data: whoever panicked while holding it left it whole.
        self.inner.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
