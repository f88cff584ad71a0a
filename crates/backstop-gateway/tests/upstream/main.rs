//! The connection pool against a real origin on the loopback interface.
//!
//! Nothing here waits for time to pass: the pool's clock is moved by hand, and everything else is an event that is
//! waited for, with a bound that only a failing test reaches.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod abandoned;
mod bounds;
mod faults;
mod framing;
mod origin;
mod reuse;
mod support;
mod uploads;
