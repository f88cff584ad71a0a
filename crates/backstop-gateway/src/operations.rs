//! The operations of this gateway: their ledger, its secret, and who follows what is unknown.
//!
//! | room | what is done there |
//! |---|---|
//! | [`key_file`] | the secret that digests are made with outlives every operation |
//! | [`following`] | whether "in verification" is true |

mod following;
mod key_file;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstop::operation::secret::Secret;
use backstop_engine::operation::OperationId;
use backstop_engine::time::Now;
use backstop_store::ledger::sqlite::{self, OpenError};
use backstop_store::ledger::{Ledger, LedgerOptions};

pub(crate) use following::Following;
pub use key_file::KeyError;

/// What all threads share of the operations.
#[derive(Debug)]
pub(crate) struct Operations {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) secret: Secret,
    pub(crate) following: Following,
}

/// Why no operation can be written down. Then none may be forwarded, so nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum LedgerUnusable {
    /// The folder cannot be made.
    #[error("{folder}: the folder of the ledger cannot be made")]
    Folder {
        /// The folder.
        folder: Box<str>,
        /// Why.
        source: std::io::Error,
    },
    /// There is no secret.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random(#[source] std::io::Error),
}

impl Operations {
    /// Opens the ledger below a folder, and makes it where there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or not as durable as it has to be.
    pub(crate) fn open(folder: &Path, now: Now) -> Result<Self, LedgerUnusable> {
        std::fs::create_dir_all(folder)
            .map_err(|source| LedgerUnusable::Folder { folder: folder.to_string_lossy().into(), source })?;
        let secret = key_file::secret(folder)?;
        let entropy = u64::from_ne_bytes(key_file::random().map_err(LedgerUnusable::Random)?);
        let options = LedgerOptions { on_failed_disk: Arc::new(end_at_once), ..LedgerOptions::default() };
        let ledger = sqlite::open(folder, options, entropy, now)?;
        Ok(Self { ledger: Arc::new(ledger), secret, following: Following::default() })
    }

    /// A name for an operation that nobody can guess.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn draw_id() -> std::io::Result<OperationId> {
        key_file::random().map(OperationId::from_bytes)
    }

    /// Finishes what waits to be written. `false` if that took longer than `bound`.
    pub(crate) fn close(&self, bound: Duration) -> bool {
        self.ledger.close(bound)
    }
}

/// After a failed sync nobody knows what the disk holds: nothing may be acknowledged any more, by anyone in this process.
fn end_at_once(message: &str) {
    tracing::error!(
        target: "backstop::ledger",
        message,
        "the ledger's disk failed: the process ends, and reads what is really there when it is started again"
    );
    std::process::abort()
}
