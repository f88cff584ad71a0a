//! An open-loop load generator.
//!
//! Requests have *intended* send times at a constant rate, fixed before the run begins. Latency is measured from
//! the intended time, whether or not the request could be sent then: when the target stalls, every request that
//! should have been sent during the stall shows it (no coordinated omission).
//!
//! * A request that finds no free connection waits for one, and its waiting counts as latency.
//! * At most [`Plan::connections`] connections are open, with one request in flight on each. They take turns, so
//!   even a low rate opens them all.
//! * At most [`Plan::waiting_max`] requests wait. One more is not sent but counted as `excess`, as are those that
//!   still wait when the run is over and [`Plan::drain`] has passed. `offered = answered + failed + excess`.
//! * Nothing is sent twice. A kept connection that the target has closed is replaced before use, as far as that
//!   can be seen; if the close crosses the request, that is a failure.
//! * Targets other than loopback addresses are refused.
//!
//! A thread of its own keeps the pace and another one, with its own runtime, the connections, so that the caller
//! distorts neither. What the generator itself adds is reported as `send_lag`: from the intended time until a
//! connection was free and the request was handed to the kernel.

mod answers;
mod error;
mod kind;
mod pace;
mod plan;
mod queue;
mod run;
mod sample;
mod summary;
mod tally;
mod worker;

pub use answers::Answers;
pub use error::LoadError;
pub use kind::Kind;
pub use plan::Plan;
pub use run::{Run, run, start};
pub use sample::{Failure, Sample};
pub use summary::{KindSummary, Latency, Progress, Summary};
