//! The best answer that was accepted beforehand, while something that a service depends on is broken.
//!
//! Two faces of one engine:
//! - [`BackstopLayer`] protects a tower service over [`http`] types: one layer per route.
//! - [`call::Reads`] protects a plain async function.
//!
//! Both admit a request or refuse it at once, ask within one total deadline, tell a failure from an answer, and serve
//! the last correct answer with its age, or nothing. Which failures lead to an alternative is a closed list
//! ([`engine::failure`]); everything else passes unchanged.
//!
//! ```
//! use std::time::Duration;
//! use backstop::{Backstop, BackstopLayer, builder, clock::Clock};
//! use backstop::engine::failure::FailureKind;
//!
//! let policy = builder::public_read("description", Duration::from_millis(300))
//!     .in_flight(200)
//!     .max_age(Duration::from_secs(60))
//!     .policy();
//! let backstop = Backstop::in_memory(policy, Clock::system()?, 64 << 20)?;
//! let layer = BackstopLayer::new(backstop.route("description")?, |_: &std::io::Error| Some(FailureKind::Connect));
//! # drop(layer);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod abandoned;
pub mod authorize;
mod body;
mod budget;
pub mod builder;
pub mod call;
pub mod canonical;
pub mod clock;
mod compose;
mod concern;
pub mod correct;
mod driver;
mod exchange;
pub mod exercise;
pub mod fields;
pub mod fill;
mod fixed;
mod flights;
pub mod json;
mod keep;
pub mod language;
mod layer;
mod lists;
pub mod operation;
mod own;
pub mod problem;
mod protected;
mod replay;
pub mod request;
mod service;
mod signals;
pub mod storable;
mod stream;
mod unsettled;
pub mod upload;
pub mod upstream;
pub mod walk;

pub use backstop_engine as engine;
pub use body::ReplyBody;
pub use budget::{Held as HeldContent, HeldBack};
pub use compose::{Asked, NotAPlace, compose};
pub use exchange::{Incoming, respond};
pub use layer::BackstopLayer;
pub use protected::{Backstop, ProtectedRoute, SetupError, Withdrawals, Withdraws};
pub use service::{BackstopService, Once, PermitBody, Repeating, Repeats};
pub use unsettled::ForwardedWrite;
