//! An HTTP/1.1 origin that fails on demand and records what reached it.
//!
//! The origin speaks TCP by hand, so it can send any bytes and end a connection in any way. It runs on a thread and
//! runtime of its own. An [`Origin`] is a handle: clones drive the same origin from any thread, while it runs, and
//! it stops when the last one is dropped.
//!
//! * **What it does** with a request is a [`Behaviour`], chosen by the last matching rule when the request's head
//!   has arrived.
//! * **What it saw** is a [`Request`] per head, byte by byte, and [`Stats`]. With raw recording every connection's
//!   bytes are kept verbatim, HTTP or not.
//! * **Whether it is there at all**: [`Origin::refuse`], [`Origin::fill_backlog`], [`Origin::accept_again`].
//!
//! ```
//! use std::time::Duration;
//!
//! use backstop_lab::{
//!     client,
//!     origin::{Behaviour, Matcher, Origin},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let origin = Origin::start().await?;
//! origin.on(Matcher::get("/p/1"), Behaviour::json(r#"{"id":"1"}"#));
//! origin.on(Matcher::get("/p/1"), Behaviour::truncated(600, 300).times(1));
//!
//! let cut = client::get(origin.addr(), "/p/1", &[]).await?;
//! assert!(!cut.is_complete());
//! let whole = client::get(origin.addr(), "/p/1", &[]).await?;
//! assert_eq!(whole.text(), r#"{"id":"1"}"#);
//!
//! origin.wait_for(2, Duration::from_secs(1)).await?;
//! assert_eq!(origin.count_of("GET", "/p/1"), 2);
//! # Ok(())
//! # }
//! ```
//!
//! A test waits on the origin's record ([`Origin::wait_for`], [`Origin::wait_until`]) or on a [`Gate`], never on
//! time.

mod answer;
mod behaviour;
mod builder;
mod connection;
mod connections;
mod control;
mod fault;
mod gate;
mod handle;
pub(crate) mod head;
mod incoming;
mod journal;
mod limits;
pub(crate) mod listening;
mod matcher;
mod observer;
mod perform;
mod plan;
mod request;
mod rules;
mod server;
mod spec;
mod stats;
mod switches;

pub use answer::{Answer, CutAt, Date, Framing, Lines, Then};
pub use behaviour::Behaviour;
pub use builder::Builder;
pub use connections::ConnectionRecord;
pub use fault::{GARBAGE, HALF_JSON};
pub use gate::{Gate, GateTimeout};
pub use handle::{Origin, WaitTimeout};
pub use limits::Limits;
pub use matcher::Matcher;
pub use observer::Arrival;
pub use request::{Request, RequestFraming};
pub use spec::{BehaviourSpec, RuleSpec, SpecError};
pub use stats::Stats;
pub use switches::{ExpectContinue, OnAccept};
