//! The built binary in front of the fault-injecting origin.
//!
//! Everything a black-box test needs: a policy with free ports, the running gateway (stopped by its pid, its output kept
//! for the failure message), its clock, its metrics, and requests by a strict raw client.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests stop the test")]

pub mod bank;
pub mod demo;
pub mod expect;
pub mod gateway;
pub mod guarded;
pub mod hooks;
pub mod issuer;
pub mod metrics;
pub mod page;
pub mod policy;
pub mod preload;
pub mod redis;
pub mod shop;
pub mod state;

pub use gateway::Gateway;
pub use hooks::{Hand, Reading};
pub use metrics::{Metrics, Outcomes};
pub use policy::Policy;
pub use redis::Redis;
pub use shop::{Shop, product, products};

use std::time::Duration;

/// The bound of every wait. Nothing takes this long unless it is broken.
pub const BOUND: Duration = Duration::from_secs(10);

/// Runs an async test on a runtime of its own, with real time.
pub fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test)
}
