//! A disk that panics is a disk that failed.
//!
//! A damaged file may break assumptions deep inside the database. That must cost copies, not a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::DiskError;

/// Runs `work`; a panic in it counts as damage. Whatever it touched is given up by the caller.
pub(super) fn contain<T>(work: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(DiskError::Corrupt(format!("the database panicked: {message}")))
    })
}
