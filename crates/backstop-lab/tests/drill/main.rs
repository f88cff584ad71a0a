//! Every ready drill holds against a gateway that keeps its policy's promises, and fails against one that breaks just one of them.
//!
//! The gateway here is a stand-in of some hundred lines, because the real one has no switch by which a promise could be broken.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop the test")]
#![expect(clippy::panic, reason = "helpers of tests stop the test")]

mod mutations;
mod own;
mod routes;
mod standin;
mod world;
