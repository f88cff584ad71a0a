//! The layer as a service's author meets it, in time that only the tests move.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop the test")]

mod support;

mod age;
mod deadline;
mod incomplete;
mod pass_through;
