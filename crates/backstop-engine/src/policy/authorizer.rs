//! Who says whether a caller may.

use std::time::Duration;

use super::{DependencyId, Origin};

/// Who is asked whether a request may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizerRules {
    /// The dependency that is asked: with places, a breaker and counters of its own, like any other. `None`: the request
    /// proves it itself, and whoever drives the flow can tell.
    pub dependency: Option<DependencyId>,
    /// How long it is waited for, its whole answer included; never longer than the request has.
    pub timeout: Duration,
    /// Where it was written.
    pub origin: Origin,
}
