//! Backstop's reverse proxy: listeners, routing, bounded upstream pools, admin port.
//!
//! One request flows one way, and `stack.rs` tells it from top to bottom:
//!
//! ```text
//! accept -> head parsed -> strict -> route -> ADMIT (engine) -> call (upstream) -> DECIDE (engine) -> reply
//! ```
//! Each core runs one single-threaded runtime. A connection stays on the thread that accepted it, and so do its calls;
//! only limits, counters and copies are shared, none of them behind a lock that all requests take.

mod admin;
mod authorizer;
mod breakers;
#[cfg(feature = "redis")]
pub mod cache;
#[cfg(feature = "redis")]
mod caches;
#[cfg(not(feature = "redis"))]
#[path = "caches_absent.rs"]
mod caches;
mod client_body;
mod composed;
mod connection;
mod cors;
mod crew;
mod disk;
mod edits;
mod forward;
mod gateway;
mod hop;
mod incidents;
mod interim;
mod log;
mod max_forwards;
mod metrics;
mod observe;
mod operations;
mod parts;
mod probe;
mod reconciler;
mod router;
mod stack;
mod state;
pub mod status;
mod strict;
mod taken;
mod tallies;
mod target;
mod tasks;
mod timed_io;
mod trailers;
pub mod upstream;
mod via;
mod withdraws;
mod worker;

pub use authorizer::CannotAsk;
pub use gateway::{BindError, Bound, Gateway};
pub use operations::{KeyError, LedgerUnusable};
pub use probe::CannotProbe;
pub use reconciler::CannotFollow;
