//! Whoever starts what is rehearsed.

use std::{future::Future, net::SocketAddr, pin::Pin};

use backstop_policy::Loaded;

/// A future that whoever started it waits for.
pub type Starting<'a, T> = Pin<Box<dyn Future<Output = Result<T, StageError>> + 'a>>;

/// Why a gateway could not be started or stopped.
pub type StageError = Box<dyn std::error::Error + Send + Sync>;

/// Starts gateways.
pub trait Stage {
    /// Starts a gateway by this policy, whose dependencies are proxies, whose store is a temporary folder and which listens on
    /// free ports of loopback. `behind` says that its clock is an hour behind and that the machine seems to have started anew.
    fn start(&self, policy: Loaded, behind: bool) -> Starting<'_, Box<dyn Running>>;

    /// Whether [`Stage::start`] knows how to turn the clock back.
    fn can_turn_back(&self) -> bool {
        false
    }
}

/// A gateway that runs.
pub trait Running {
    /// Where it listens for clients.
    fn address(&self) -> SocketAddr;

    /// Stops it and waits until it has written what it keeps.
    fn stop(self: Box<Self>) -> Starting<'static, ()>;
}
