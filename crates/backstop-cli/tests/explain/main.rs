//! What `backstop explain` says, and that the built binary does what it says.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod agrees;
mod stage;
mod told;
