//! Operations through the built binary while it is killed: clients go on asking, and in the end what they were told is held
//! against what really happened and against the ledger.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod ledger;
mod lives;
mod moments;
mod operations;
mod without_a_ledger;
