//! Whole incidents in virtual time, with the engine as it is.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

mod amplification;
mod retry_after;
mod shop;
