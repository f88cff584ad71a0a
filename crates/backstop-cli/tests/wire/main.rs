//! What goes over the wires of the built binary: between clients and it, and between it and what it depends on.
//!
//! Every test is judged from both ends: by what a strict client got, and by what an origin that records every byte saw.
#![expect(unreachable_pub, reason = "the support modules are shared by test binaries, not published")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests stop the test")]

#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod admin;
mod alerts;
mod answers;
mod chunks;
mod connections;
mod deadline;
mod expectation;
mod fields;
mod forwarding;
mod framing;
mod heads;
mod held_back;
mod http2;
mod http2_raw;
mod interim;
mod leaving;
mod logs;
mod metrics;
mod metrics_reference;
mod nginx;
mod old_clients;
mod old_services;
mod one_by_one;
mod pool;
mod queueing;
mod raw;
mod saturation;
mod slow_readers;
mod smuggling;
mod stopping;
mod streaming;
mod targets;
mod timing;
mod traces;
mod trailers;
mod uploads;
