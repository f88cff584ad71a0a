//! The pages of the operators' port in a real browser: what people see, with and without JavaScript, in light and dark, on a
//! phone, by keyboard and through an accessibility checker.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod demo;
mod hand;
mod incident;
mod page;
mod town;
