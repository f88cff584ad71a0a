//! Why a plan cannot be run.

use std::{io, net::SocketAddr};

/// Why a plan cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target is no loopback address.
    #[error("{0} is not a loopback address; load is sent to loopback targets only")]
    NotLoopback(SocketAddr),
    /// A value of the plan makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// A thread or its runtime could not be made.
    #[error("could not start: {0}")]
    Start(#[source] io::Error),
    /// A thread of the run died.
    #[error("the run died")]
    Died,
}
