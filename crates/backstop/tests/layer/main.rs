//! The layer as a service's author meets it, in time that only the tests move.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stop the test")]

mod support;

mod age;
mod any_sequence;
mod body_errors;
mod conditions;
mod deadline;
mod degraded;
mod fields;
mod incomplete;
mod keeping;
mod keys;
mod leaving;
mod optional;
mod pass_through;
mod saturation;
mod second_calls;
mod services;
mod streaming;
mod withdrawal;
