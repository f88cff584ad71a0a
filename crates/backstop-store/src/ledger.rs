//! The ledger of operations that must happen once.
//!
//! What an operation is in, and what leads on from there, is decided by
//! [`backstop_engine::operation`]. A ledger keeps it, and promises:
//!
//! - **An intent is durable before it is handed out**: a [`DurableIntent`] comes out of [`Ledger::begin`] once it
//!   survives a crash, and at most one for each key, however many ask at once.
//! - **An outcome is durable before it is acknowledged.** What is acknowledged is never taken back.
//! - **A change is written only over what it was decided on**: whoever was overtaken changes nothing and is counted.
//! - **Nothing of another caller is shown**: a client's look needs the scope that the operation began with.
//! - **What is written is no secret**: no content of a request, no credential; of answers what [`redact`] lets through. A client's
//!   key is written only where it is what the upstream has to be asked by.
//! - **Everything is bounded**: what waits, what is taken at once, what is listed. What does not fit is refused, and a refused
//!   intent is never forwarded.
//!
//! Every call returns at once; what comes of it completes a [`Completion`], which async code awaits and a thread waits for.
//! A ledger reads no clock: every call is given [`Now`].

mod batch;
mod bench;
pub mod checkpoint;
mod completion;
mod history;
mod memory;
mod options;
mod queue;
pub mod redact;
mod rows;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod standing;
mod thread;
mod upkeep;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backstop_engine::operation::{
    ClientKey, Decision, DurableIntent, Epoch, Intent, IntentError, OperationId, Record, Refused, Report,
    Scope, SecondLook, State,
};
use backstop_engine::time::Now;

pub use bench::{BenchReport, bench};
pub use completion::{Completion, LedgerError};
pub use history::{Actor, HistoryEvent, Resolution, ResolutionError};
pub use memory::MemoryRows;
pub use options::{LedgerOptions, OnFailedDisk};
pub use rows::{Filter, Rows, RowsError, SecondLooks};
pub use standing::{LedgerStanding, StateCount};
pub use thread::ThreadLedger;
pub use upkeep::{Claimed, Raised, Swept, Upkeep};

/// What a key led to.
#[derive(Debug)]
#[must_use = "a new operation is to be forwarded"]
pub enum Begun {
    /// A new operation, whose intent is durable: it may be forwarded, once.
    New(DurableIntent),
    /// The same operation again: what is known of it is the answer.
    Again(Box<Record>),
    /// The key was used for another request.
    OtherRequest,
}

/// What came of a report or a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is durable.
    Changed {
        /// The operation as it is now.
        record: Box<Record>,
        /// What it was in before.
        from: State,
        /// Evidence contradicts what was decided: somebody has to be called.
        is_contradiction: bool,
    },
    /// It changed nothing.
    Refused {
        /// Why.
        why: Refused,
        /// The operation as it is.
        record: Box<Record>,
    },
    /// There is no such operation.
    Unheard,
}

/// An operation with its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The operation.
    pub record: Record,
    /// What happened to it after it began, in order.
    pub history: Vec<HistoryEvent>,
}

/// A ledger of operations.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// The life that this ledger is in.
    fn epoch(&self) -> Epoch;

    /// Begins an operation, or finds it. The same operation again wakes its verification.
    ///
    /// To be awaited where nobody's leaving ends it: an intent that is dropped may as well have been forwarded, and is verified.
    fn begin(&self, intent: Intent, now: Now) -> Completion<Result<Begun, IntentError>>;

    /// Records what happened to an operation. Never refused for want of room in a queue.
    fn record(&self, report: Report, now: Now) -> Completion<Recorded>;

    /// A client's look at one operation, by its name. `None` if there is none in this scope. It wakes its verification.
    fn look(&self, scope: Scope, id: OperationId, now: Now) -> Completion<Option<Box<Record>>>;

    /// The operation of a client's key. `None` if there is none in this scope. It wakes its verification, and begins nothing.
    fn find(&self, scope: Scope, key: ClientKey, now: Now) -> Completion<Option<Box<Record>>>;

    /// Claims up to `most` operations of a route whose status is to be asked for: those that were asked for least often first,
    /// of equals those that are due longest. So operations that nobody can tell anything of keep no other waiting.
    /// `query_timeout` bounds each query, and with it the lease. By route, so that one whose upstream cannot be asked keeps
    /// nobody else waiting.
    fn claim(&self, route: &str, most: usize, query_timeout: Duration, now: Now) -> Completion<Claimed>;

    /// Does what time alone makes necessary: leases, deadlines, retention. To be called about once a second; bounded in what
    /// it does at once, so a large backlog takes several calls. Of a route that is not named everything is kept. `entropy`: 64
    /// random bits.
    fn sweep(&self, upkeep: Arc<[Upkeep]>, entropy: u64, now: Now) -> Completion<Swept>;

    /// Second looks at operations of a route that were decided by absence, by name. Nothing is written and nobody is kept from
    /// anything by it.
    fn second_looks(&self, route: &str, which: SecondLooks) -> Completion<Vec<SecondLook>>;

    /// The routes of all operations, by name, in order. It reads all of them: for a start, not for every second.
    fn routes(&self) -> Completion<Vec<Box<str>>>;

    /// Operations for an operator to look at, oldest first.
    fn list(&self, filter: Filter) -> Completion<Vec<Record>>;

    /// One operation with its history, for an operator.
    fn show(&self, id: OperationId) -> Completion<Option<Shown>>;

    /// An operator's decision, with name and reason, both of which become part of the history.
    fn resolve(&self, id: OperationId, decision: Decision, by: Resolution, now: Now) -> Completion<Recorded>;

    /// How many operations are in which state, what waits and what was refused.
    fn standing(&self, now: Now) -> LedgerStanding;

    /// Finishes what waits, and ends. `false` if that took longer than `bound`.
    fn close(&self, bound: Duration) -> bool;
}
