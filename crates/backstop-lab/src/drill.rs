//! Drills: a policy's failures rehearsed before they happen.
//!
//! A [`Scenario`] says what clients ask, what fails meanwhile ([`crate::proxy`]) and what has to hold. [`run()`] puts proxies between a
//! gateway and everything that the policy calls, has the gateway started by a [`Stage`], sends the load, and judges what clients
//! got and what the dependencies received:
//!
//! * What a policy promises anyway is held in every drill ([`derived`]), whatever is rehearsed.
//! * [`ready`] makes the drills that every operator needs from the policy itself; [`own`] makes one of a drill file.
//! * A check that had nothing to look at has not passed: it says so ([`Verdict::Nothing`]).
//!
//! Rules of safety, each by construction:
//! * The proxies connect to nothing but the addresses that the policy names; load goes to nothing but the gateway that was
//!   started for it, on loopback.
//! * A gateway whose every dependency is not behind a proxy is not started.
//! * Without a sandbox, no request that may write leaves a proxy, and no route with effects is called.
//! * What its gateway keeps in a shared cache stands under keys of that run alone.
//!
//! What starts a gateway is not known here: that is the [`Stage`]'s, so that a drill can be played against one that is broken on
//! purpose.

mod ask;
pub mod capacity;
pub mod derived;
mod expect;
mod facts;
mod find;
mod finding;
mod html;
mod junit;
mod load;
pub mod own;
mod plots;
mod rates;
pub mod ready;
mod report;
mod run;
mod scenario;
mod stage;
mod view;

pub use ask::{Ask, Samples};
pub use expect::{Expect, Kind, Selector};
pub use facts::{Facts, RouteFacts, Upstream};
pub use finding::{Finding, Verdict};
pub use html::html;
pub use junit::junit;
pub use load::Sample;
pub use report::{Bin, DrillReport, Report, Skipped};
pub use run::{Progress, RunError, run};
pub use scenario::{NoDrill, Scenario, Sending};
pub use stage::{Running, Stage, StageError, Starting};
pub use view::View;
