//! For tests: the contract that every store keeps, whatever it is kept on, and a disk that does as it is told.
//!
//! A new [`Medium`](crate::disk::Medium) runs [`contract`], a new [`Ledger`](crate::ledger::Ledger) runs [`ledger_contract`], and
//! has then shown what the rest of Backstop relies on.

mod contract;
mod fake;
mod ledger;
mod samples;

pub use contract::{Backend, contract};
pub use fake::FakeMedium;
pub use ledger::{LedgerBackend, ROUTE, begin, forward, intent, kept, ledger_contract, unknown, upkeep};
pub use samples::{block_on, copy, headers, key, now, now_in_boot};
