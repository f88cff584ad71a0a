//! How a ledger is opened.

use std::fmt;
use std::sync::Arc;

/// How a ledger is opened, whatever it is kept on.
#[derive(Clone)]
pub struct LedgerOptions {
    /// The most intents, looks and operators' calls that may wait; one more is refused. Default 4096.
    pub queue_len: usize,
    /// The most that is written in one transaction. Default 256.
    pub batch: usize,
    /// What is done when the disk failed to write or to sync. After a failed sync nobody knows what the disk holds
    /// (<https://www.usenix.org/conference/atc20/presentation/rebello>), so nothing may be acknowledged any more. By default
    /// the process ends at once; when it starts again it reads what is really there.
    pub on_failed_disk: OnFailedDisk,
}

/// What is done when a ledger's disk failed, with what it said.
pub type OnFailedDisk = Arc<dyn Fn(&str) + Send + Sync>;

impl Default for LedgerOptions {
    fn default() -> Self {
        Self { queue_len: 4096, batch: 256, on_failed_disk: Arc::new(|_| std::process::abort()) }
    }
}

impl fmt::Debug for LedgerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerOptions")
            .field("queue_len", &self.queue_len)
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}
