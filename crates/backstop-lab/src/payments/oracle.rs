//! What clients were told, held against what happened and against what the ledger says in the end.
//!
//! A test keeps a [`ClientLog`] of every attempt and what was heard of it. When everything has come to rest it joins that log
//! with the effects of [`Payments`](super::Payments) and with the entries of the ledger, and [`check`] says what must not be:
//!
//! | [`Rule`] | what must hold |
//! |---|---|
//! | `effect_twice`, `forwarded_twice` | an operation happens at most once, and is sent at most once, cut or whole |
//! | `effect_unasked` | nothing happens that no client asked for with this key and amount |
//! | `success_without_effect`, `success_of_another` | whoever is told of a success has one, of what was sent |
//! | `failure_with_effect` | what a client was told to have failed, or not to have been executed, never happens |
//! | `weaker_answer` | who asks after having heard of a success hears of it again |
//! | `replay_differs` | the same answer, to the byte, and with the same `Content-Type` and `Location`, whenever it is given |
//! | `not_ended` | an operation ends: succeeded, failed, not executed, or a matter for a person |
//! | `unwritten`, `listed_twice` | what was sent or spoken of is in the ledger, once |
//! | `ledger_disagrees` | the ledger says what happened, and what clients were told |
//! | `unreadable_answer` | an answer about an operation uses the documented words |
//!
//! An attempt whose answer never came says nothing. One that was cut counts by its status: there are clients that look no
//! further. An answer that says that the ledger could not be written is not exempt; do not break the disk here.

mod check;
mod client_log;
mod told;
mod violation;

#[cfg(test)]
mod tests;

pub use check::{Evidence, LedgerEntry, check};
pub use client_log::{Answer, Asked, Attempt, AttemptId, ClientLog, Heard};
pub use told::Told;
pub use violation::{Rule, Violation};
