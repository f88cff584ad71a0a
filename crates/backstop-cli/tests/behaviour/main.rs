//! What clients get from the built binary while the origin fails, and what the origin really received.
#![expect(
    unreachable_pub,
    missing_docs,
    reason = "the support modules are shared by test binaries, not published"
)]

#[path = "../support/mod.rs"]
mod support;

mod first;
