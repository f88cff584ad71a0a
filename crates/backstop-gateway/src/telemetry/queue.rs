//! What waits to be told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// What was told so far, and what was lost.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    told: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn add_told(&self, count: usize) {
        self.told.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn add_dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// The end of the queue where requests put what is to be told.
#[derive(Debug)]
pub(super) struct Queue<T> {
    sender: SyncSender<T>,
    counts: Arc<Counts>,
}

// By hand: what is derived would ask the same of what waits.
impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), counts: Arc::clone(&self.counts) }
    }
}

impl<T> Queue<T> {
    /// For so many at once.
    pub(super) fn new(most: usize) -> (Self, Receiver<T>) {
        let (sender, receiver) = sync_channel(most);
        (Self { sender, counts: Arc::default() }, receiver)
    }

    /// Puts it in, or loses it: nobody is waited for.
    pub(super) fn offer(&self, item: T) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.sender.try_send(item) {
            self.counts.add_dropped(1);
        }
    }

    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_lost_and_counted_and_nobody_waits() {
        let (queue, receiver) = Queue::new(2);
        (0..5).for_each(|number| queue.offer(number));
        assert_eq!(queue.counts().dropped(), 3);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1]);
        drop(receiver);
        queue.offer(6);
        assert_eq!(queue.counts().dropped(), 4);
    }
}
