//! Whether a failed call is made once more.

use std::time::Duration;

/// Calls of one request, the first one included.
pub const MAX_ATTEMPTS: u32 = 2;

/// The longest wait before the first retry.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(25);

/// Who makes a failed call again, if anybody does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// This gateway or library.
    #[default]
    Backstop,
    /// Whoever calls it.
    Client,
    /// Something behind it.
    Upstream,
}
