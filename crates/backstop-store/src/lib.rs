//! Copies: the last correct answers, kept for the moment in which nobody can give a new one.
//!
//! What is stored here was judged before: the caller decides what a correct answer is and whether a copy may still be
//! served. The store decides none of that. It promises:
//!
//! - **A date is never changed.** It travels with the content, through memory, disk and restart. Serving does not renew
//!   it; only the origin's word does ([`Copies::renew`]).
//! - **An older read never replaces a newer one.** Reads of one boot are told apart by its clock; those of different boots
//!   by when they were stored, never by their dates. And a read that began before a withdrawal that touches it is never
//!   stored. Where the store no longer knows, it refuses.
//! - **A withdrawn copy is gone**: from memory at once, from disk once the [`Confirmation`] completes, also after
//!   `kill -9`.
//! - **A copy is whole or absent.** Every record carries a checksum over all of it; one that fails is dropped, counted
//!   and never served.
//! - **The disk costs copies, never requests.** No call waits for it. Full, slow, broken, damaged or locked, it is
//!   reported ([`OpenReport`], [`StoreHealth`]) and done without, and tried again.
//! - **Everything is bounded**, and in bytes wherever clients or origins choose the size: memory, index, file, queues,
//!   marks of withdrawals (26 MiB), variants of a key.
//!
//! Beside them lies the [`ledger`] of operations that must happen once, where the opposite holds: a disk that does not do what it
//! promised costs the operation, never its truth.
//!
//! The store reads no clock. Every call that depends on time is given [`Now`](backstop_engine::time::Now).

mod bodies;
pub mod codec;
mod confirm;
mod copies;
mod copy;
pub mod disk;
mod health;
mod holds;
mod index;
mod key;
mod leaving;
pub mod ledger;
mod marks;
mod options;
mod queue;
#[cfg(feature = "redb")]
pub mod redb;
mod routes;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod vary;

pub use confirm::{Confirmation, PendingLoad, WithdrawError};
pub use copies::{
    Copies, Judge, LoadError, Loaded, PutOutcome, RenewOutcome, Renewal, Withdrawal, Withdrawn,
};
pub use copy::{StoredCopy, owned_fields};
pub use health::{DiskState, DiskTrouble, StoreHealth};
pub use key::{CopyKey, Target};
pub use marks::ReadTicket;
pub use options::{OpenReport, StoreOptions};
pub use vary::VaryField;
