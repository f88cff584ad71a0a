//! The decisions of Backstop: what an HTTP API answers while something that it depends on is broken.
//!
//! One request is one [`Flow`](flow::Flow): a step machine that says what to do next and is told what came of it. It
//! admits the request or refuses it at once, asks the dependency within one deadline, tells a failure from an answer,
//! and serves the alternative that was accepted beforehand, or nothing.
//!
//! | room | what is decided there |
//! |---|---|
//! | [`flow`] | the order of everything |
//! | [`admission`] | what is in flight, and that it never exceeds its limit |
//! | [`rate`], [`resource`] | how often, and how much of what several dependencies share |
//! | [`deadline`] | one end for the whole request, and the shares before it |
//! | [`failure`] | what counts as a dependency's failure |
//! | [`retry`] | whether a failed call is made once more, and what pays for it |
//! | [`alternative`], [`watched`] | whether another dependency may stand in |
//! | [`retry_after`] | when who was refused may come back |
//! | [`health`] | what a dependency that failed is still given, and how it comes back |
//! | [`exercise`] | what is tried of an alternative while nobody needs it |
//! | [`snapshot`] | when an answer is a copy's, and when a copy may still be served |
//! | [`composed`] | what an answer comes to that is put together from others |
//! | [`outcome`] | what a request came to |
//! | [`status`] | which HTTP status a refusal has |
//! | [`fills`] | what may be read for a shared cache |
//! | [`coverage`], [`tally`] | what is counted |
//! | [`operation`] | what must happen once: what is known of it, and what may be said |
//! | [`incident`] | when an outage begins, how it stands, and when it is over |
//!
//! The crate has no dependencies, does no I/O, awaits nothing, reads no clock and draws no randomness: `clippy.toml`
//! beside its manifest forbids them. Time comes in as [`Now`](time::Now).

pub mod admission;
pub mod alternative;
pub mod composed;
pub mod coverage;
pub mod deadline;
pub mod engine;
pub mod entropy;
pub mod exercise;
pub mod failure;
pub mod fills;
pub mod flow;
pub mod health;
pub mod incident;
pub mod operation;
pub mod outcome;
pub mod policy;
pub mod rate;
pub mod resource;
pub mod retry;
pub mod retry_after;
pub mod snapshot;
pub mod status;
mod sync;
pub mod tally;
pub mod time;
pub mod watched;
pub mod words;
