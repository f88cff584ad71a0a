//! The built binary under open-loop load, in real time: through failure and recovery, counted at the origin.
//!
//! Each of these tests keeps both cores busy for a while, so they run one after another.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod amplification;
mod cold_backend;
mod database;
mod half_open;
mod isolation;
mod operations;
mod outage;
mod postgres;
mod retry_storm;
mod thousands;
mod timeline;
mod town;

use std::sync::{Mutex, PoisonError};

/// Held by the test that runs, where all tests of this file run in one process.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test while no other one of this file runs.
fn alone<F: Future>(test: F) -> F::Output {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    support::run(test)
}

/// How many times as long a load lasts that has a long version (`BACKSTOP_SOAK`).
fn times() -> u32 {
    if std::env::var_os("BACKSTOP_SOAK").is_some() { 10 } else { 1 }
}
