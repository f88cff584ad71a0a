//! The operations of this gateway: their ledger, its secret, and who follows what is unknown.
//!
//! | room | what is done there |
//! |---|---|
//! | [`path`] | a request that wants its operation done, read whole and run to its end |
//! | [`look`] | a request that wants to know what became of one |
//! | [`key_file`] | the secret that digests are made with outlives every operation |

mod key_file;
mod look;
mod path;

use std::path::Path;
use std::sync::Arc;

use backstop::operation::Successes;
use backstop::operation::following::Following;
use backstop_engine::operation::OperationId;
use backstop_engine::policy::effect::{EffectRules, KeySource, Scope};
use backstop_engine::time::Now;
use backstop_store::ledger::sqlite::{self, OpenError, SqliteRows};
use backstop_store::ledger::{LedgerOptions, ThreadLedger};

/// Whose so many operations are may be asked of the ledger at once by whoever is not known yet. Far below what may wait for it.
pub(crate) const LOOKS: u32 = 64;

pub(crate) use backstop::operation::Operations;
pub use key_file::KeyError;
pub(crate) use look::{answer as look, named};
pub(crate) use path::{Arriving, answer};

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

/// Opens the ledger below a folder, and makes it where there is none.
///
/// # Errors
/// If it cannot be opened, or not as durable as it has to be.
pub(crate) fn open(folder: &Path, now: Now) -> Result<Operations, LedgerUnusable> {
    std::fs::create_dir_all(folder)
        .map_err(|source| LedgerUnusable::Folder { folder: folder.to_string_lossy().into(), source })?;
    let secret = key_file::secret(folder)?;
    let entropy = u64::from_ne_bytes(key_file::random().map_err(LedgerUnusable::Random)?);
    let options = LedgerOptions { on_failed_disk: Arc::new(end_at_once), ..LedgerOptions::default() };
    let mut rows = SqliteRows::open(folder, sqlite::RESERVE_BYTES)?;
    if !rows.belongs_to(&secret.digest("ledger", []))? {
        return Err(KeyError::OfAnother(folder.join(key_file::FILE_NAME)).into());
    }
    let ledger = ThreadLedger::open(Box::new(rows), options, entropy, now).map_err(OpenError::from)?;
    let (following, successes) = (Following::default(), Successes::default());
    Ok(Operations { ledger: Arc::new(ledger), secret, following, successes })
}

/// A name for an operation that nobody can guess.
///
/// # Errors
/// If the system gives no random numbers.
pub(crate) fn draw_id() -> std::io::Result<OperationId> {
    key_file::random().map(OperationId::from_bytes)
}

/// The fields by which an operation is told, to us and to its upstream.
pub(crate) fn fields(rules: &EffectRules) -> Vec<&str> {
    let mut names = vec![&*rules.send.header];
    if let KeySource::Header(name) = &rules.key {
        names.push(name);
    }
    if let Scope::Header(name) = &rules.scope {
        names.push(name);
    }
    let absence = rules.verification.as_ref().and_then(|verification| verification.absence.as_ref());
    names.extend(absence.and_then(|absence| absence.not_after.as_deref()));
    names
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
