//! Every ledger keeps the contract.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use backstop_engine::operation::Epoch;
use backstop_engine::time::Now;
use backstop_store::ledger::{Ledger, LedgerOptions, MemoryRows, ThreadLedger};
use backstop_store::testing::{LedgerBackend, ledger_contract};

#[derive(Default)]
struct Memory(MemoryRows, Option<Epoch>);

impl LedgerBackend for Memory {
    fn fresh(&mut self, now: Now) -> Box<dyn Ledger> {
        self.0 = MemoryRows::default();
        self.again(now).unwrap()
    }

    fn again(&mut self, now: Now) -> Option<Box<dyn Ledger>> {
        let rows = Box::new(self.0.clone());
        let ledger = ThreadLedger::open(rows, LedgerOptions::default(), 1, now).unwrap();
        self.1 = Some(ledger.epoch());
        Some(Box::new(ledger))
    }

    fn beside(&mut self) -> Option<Box<dyn Ledger>> {
        let rows = Box::new(self.0.clone());
        Some(Box::new(ThreadLedger::beside(rows, LedgerOptions::default(), self.1?).unwrap()))
    }
}

#[test]
fn memory_keeps_the_ledgers_contract() {
    ledger_contract(&mut Memory::default());
}

struct AtOnce;

impl LedgerBackend for AtOnce {
    fn fresh(&mut self, _now: Now) -> Box<dyn Ledger> {
        let rows = Box::new(MemoryRows::default());
        Box::new(ThreadLedger::at_once(rows, LedgerOptions::default()).unwrap())
    }

    fn again(&mut self, _now: Now) -> Option<Box<dyn Ledger>> {
        None
    }
}

#[test]
fn a_ledger_without_a_thread_keeps_the_ledgers_contract() {
    ledger_contract(&mut AtOnce);
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use backstop_store::ledger::sqlite::{self, OpenError};

    use super::*;

    struct Sqlite(tempfile::TempDir);

    impl LedgerBackend for Sqlite {
        fn fresh(&mut self, now: Now) -> Box<dyn Ledger> {
            self.0 = tempfile::tempdir().unwrap();
            self.again(now).unwrap()
        }

        /// The thread of a ledger that was only dropped may hold the file for a moment longer.
        fn again(&mut self, now: Now) -> Option<Box<dyn Ledger>> {
            loop {
                match sqlite::open(self.0.path(), LedgerOptions::default(), 1, now) {
                    Ok(ledger) => return Some(Box::new(ledger)),
                    Err(error) => assert!(matches!(error, OpenError::Locked(_)), "{error}"),
                }
            }
        }
    }

    #[test]
    fn sqlite_keeps_the_ledgers_contract() {
        ledger_contract(&mut Sqlite(tempfile::tempdir().unwrap()));
    }
}
