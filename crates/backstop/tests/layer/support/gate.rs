//! Something that waits until a test lets it go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Closed at first; once opened it stays open. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_open: AtomicBool,
    opened: Notify,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.0.is_open.store(true, Ordering::SeqCst);
        self.0.opened.notify_waiters();
    }

    pub(crate) async fn passed(&self) {
        // An opening after this line is not missed.
        let opened = self.0.opened.notified();
        if !self.0.is_open.load(Ordering::SeqCst) {
            opened.await;
        }
    }
}
