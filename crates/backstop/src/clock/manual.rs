use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop_engine::time::Now;
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
}

impl ManualClock {
    pub(super) fn new(start: Now) -> Self {
        Self { inner: Arc::new(Inner { now: Mutex::new(start), moved: Notify::new() }) }
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

    pub(super) fn moved(&self) -> &Notify {
        &self.inner.moved
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        // A reading is plain data: whoever panicked while holding it left it whole.
        self.inner.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
