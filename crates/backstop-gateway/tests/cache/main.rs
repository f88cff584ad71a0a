//! The cache against a real Redis server, and against servers that are none.
//!
//! Nothing here waits for time to pass, but for what a server does with time and for `timing`: the clock is moved by
//! hand, and everything else is an event that is waited for, with a bound that only a failing test reaches.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bounds;
mod copies;
mod fake;
mod foreign;
mod frozen;
mod greeting;
mod killed;
mod server;
mod support;
mod timing;
mod values;
