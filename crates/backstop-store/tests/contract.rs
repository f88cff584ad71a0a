//! Every store keeps the contract.

use backstop_engine::time::Now;
use backstop_store::testing::{Backend, FakeMedium, contract};
use backstop_store::{Copies, StoreOptions};

struct Memory;

impl Backend for Memory {
    fn fresh(&mut self, _: Now) -> Copies {
        Copies::memory(64 << 20)
    }

    fn again(&mut self, _: Now) -> Option<Copies> {
        None
    }
}

struct Fake(FakeMedium);

impl Backend for Fake {
    fn fresh(&mut self, now: Now) -> Copies {
        self.0 = FakeMedium::default();
        Copies::open_on(Box::new(self.0.clone()), StoreOptions::new(""), now).0
    }

    fn again(&mut self, now: Now) -> Option<Copies> {
        Some(Copies::open_on(Box::new(self.0.clone()), StoreOptions::new(""), now).0)
    }
}

#[test]
fn memory_keeps_the_contract() {
    contract(&mut Memory);
}

#[test]
fn a_store_with_a_disk_keeps_the_contract() {
    contract(&mut Fake(FakeMedium::default()));
}

#[cfg(feature = "redb")]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod redb {
    use backstop_store::DiskState;

    use super::*;

    struct Redb(tempfile::TempDir);

    impl Redb {
        /// The file may be locked for a moment by the thread of the store before.
        fn open(&self, now: Now) -> Copies {
            loop {
                let (store, report) = Copies::open(StoreOptions::new(self.0.path()), now);
                if report.disk == DiskState::Ok {
                    return store;
                }
                assert!(format!("{report:?}").contains("already open"), "{report:?}");
                store.close(std::time::Duration::ZERO);
            }
        }
    }

    impl Backend for Redb {
        fn fresh(&mut self, now: Now) -> Copies {
            self.0 = tempfile::tempdir().unwrap();
            self.open(now)
        }

        fn again(&mut self, now: Now) -> Option<Copies> {
            Some(self.open(now))
        }
    }

    #[test]
    fn redb_keeps_the_contract() {
        contract(&mut Redb(tempfile::tempdir().unwrap()));
    }
}
