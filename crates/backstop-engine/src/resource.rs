//! What several dependencies share (a database, say): how much of it may be in use, and how often.

use crate::policy::Origin;

/// The rules of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRules {
    /// Its name, as in metrics and messages.
    pub name: Box<str>,
    /// Its places; without a number they are only counted.
    pub concurrency: Option<u32>,
    /// What was verified that it can take per second, beyond what others use; without a number there is no limit. The
    /// burst is what 50 ms of it are, at least 1.
    pub rate: Option<u64>,
    /// Where they were written.
    pub origin: Origin,
}
