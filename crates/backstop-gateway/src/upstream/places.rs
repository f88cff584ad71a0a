//! How many connections are open: counted exactly, never more than allowed.
//!
//! A [`Place`] is taken before a connection is begun and given back after its socket has been closed, so the number of
//! places taken is never less than the number of sockets. Calls are admitted elsewhere and there are never more of them
//! than places; still a place may come a moment late, while the socket of a call that has ended is being closed. Whoever
//! finds none therefore waits to be told, which [`Places::given_back`] promises to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use backstop_engine::admission::Excess;
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Places {
    limit: AtomicU32,
    excess: Excess,
    open: AtomicU32,
    waiting: AtomicU32,
    freed: Notify,
}

impl Places {
    pub(super) fn new(limit: u32, excess: Excess) -> Self {
        Self {
            limit: AtomicU32::new(limit),
            excess,
            open: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
        }
    }

    pub(super) fn try_take(self: &Arc<Self>) -> Option<Place> {
        let limit = self.limit.load(Ordering::Relaxed);
        self.open
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| {
                (open < limit || self.excess == Excess::Count).then(|| open.saturating_add(1))
            })
            .ok()
            .map(|_before| Place(Arc::clone(self)))
    }

    pub(super) fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Announces somebody who waits. To look once more after this is to miss nothing.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// A connection went to rest. Costs one load while nobody waits.
    ///
    /// Nobody sleeps on beside it: a connection is put to rest under its shelf's lock and then this is called, while a
    /// waiter first announces itself and then looks on the shelves. Whichever takes the lock second sees the other.
    pub(super) fn rested(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_one();
        }
    }

    fn given_back(&self) {
        let before = self.open.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a place came back twice");
        self.freed.notify_one();
    }
}

/// The right to one open connection.
#[derive(Debug)]
#[must_use = "a place that is dropped is given back at once"]
pub(super) struct Place(Arc<Places>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.given_back();
    }
}

#[derive(Debug)]
pub(super) struct Waiting<'a>(&'a Places);

impl Waiting<'_> {
    pub(super) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.freed.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_and_every_place_comes_back() {
        let places = Arc::new(Places::new(2, Excess::Refuse));
        let (first, second) = (places.try_take(), places.try_take());
        assert!(first.is_some() && second.is_some() && places.try_take().is_none());
        drop(first);
        assert_eq!(places.open(), 1);
        assert!(places.try_take().is_some());
        places.set_limit(0);
        assert!(places.try_take().is_none());
    }

    #[test]
    fn an_excess_that_is_only_counted_refuses_nothing() {
        let places = Arc::new(Places::new(1, Excess::Count));
        let taken: Vec<_> = (0..3).map(|_| places.try_take()).collect();
        assert!(taken.iter().all(Option::is_some));
        assert_eq!(places.open(), 3);
    }
}
