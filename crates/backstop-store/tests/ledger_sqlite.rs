//! The ledger in its SQLite file: crowds, faults, and what lies in it.
#![cfg(feature = "sqlite")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail, and shows its figures"
)]

#[path = "ledger_sqlite/crowd.rs"]
mod crowd;
#[path = "ledger_sqlite/faults.rs"]
mod faults;
#[path = "ledger_sqlite/faulty.rs"]
mod faulty;
#[path = "ledger_sqlite/files.rs"]
mod files;
#[path = "ledger_sqlite/full.rs"]
mod full;
#[path = "ledger_sqlite/index.rs"]
mod index;
#[path = "ledger_sqlite/support.rs"]
mod support;
#[path = "ledger_sqlite/timing.rs"]
mod timing;
