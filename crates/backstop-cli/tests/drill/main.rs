//! `backstop drill` of the built binary: the real gateway under the ready drills, by real time.
//!
//! That each ready drill can fail is shown against a stand-in, in the lab; here the real gateway must hold in all of them, and what a
//! policy can express is broken in the policy.

#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod apart;
mod broken_policies;
mod nginx;
mod ready;
mod safety;
mod services;
