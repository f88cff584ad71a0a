//! A ledger that does once what real ones do seldom: refuses, panics, answers late.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop_engine::operation::{
    ClientKey, Decision, Epoch, Intent, IntentError, OperationId, Record, Report, Scope, SecondLook,
};
use backstop_engine::time::Now;
use backstop_store::ledger::{
    Begun, Claimed, Completion, Filter, Ledger, LedgerError, LedgerStanding, MemoryRows, Recorded,
    Resolution, Rows, SecondLooks, Shown, Swept, Upkeep,
};

/// Another ledger with faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Arc<dyn Ledger>,
    /// So many looks for routes are refused.
    pub(crate) refuses_routes: AtomicU32,
    /// So many lists are refused.
    pub(crate) refuses_lists: AtomicU32,
    /// So many sweeps panic.
    pub(crate) panics: AtomicU32,
    /// So many records panic.
    pub(crate) record_panics: AtomicU32,
    /// The next claim is not answered until [`Faulty::lets_go`].
    pub(crate) holds: AtomicBool,
    rows: Mutex<MemoryRows>,
}

impl Faulty {
    /// Without any fault yet. `rows`: those of the other one.
    pub(crate) fn new(inner: Arc<dyn Ledger>, rows: MemoryRows) -> Self {
        let never = || AtomicU32::new(0);
        Self {
            inner,
            refuses_routes: never(),
            refuses_lists: never(),
            panics: never(),
            record_panics: never(),
            holds: AtomicBool::new(false),
            rows: Mutex::new(rows),
        }
    }

    /// The claim that was held is answered.
    pub(crate) fn lets_go(&self) {
        self.rows.lock().unwrap().commit().unwrap();
    }
}

/// Whether there is one fault more.
fn takes(faults: &AtomicU32) -> bool {
    faults.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Ledger for Faulty {
    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn begin(&self, intent: Intent, now: Now) -> Completion<Result<Begun, IntentError>> {
        self.inner.begin(intent, now)
    }

    fn record(&self, report: Report, now: Now) -> Completion<Recorded> {
        assert!(!takes(&self.record_panics), "a fault that nobody thought of");
        self.inner.record(report, now)
    }

    fn look(&self, scope: Scope, id: OperationId, now: Now) -> Completion<Option<Box<Record>>> {
        self.inner.look(scope, id, now)
    }

    fn find(&self, scope: Scope, key: ClientKey, now: Now) -> Completion<Option<Box<Record>>> {
        self.inner.find(scope, key, now)
    }

    fn claim(&self, route: &str, most: usize, query_timeout: Duration, now: Now) -> Completion<Claimed> {
        if self.holds.load(Ordering::SeqCst) {
            self.rows.lock().unwrap().begin().unwrap();
            self.holds.store(false, Ordering::SeqCst);
        }
        self.inner.claim(route, most, query_timeout, now)
    }

    fn sweep(&self, upkeep: Arc<[Upkeep]>, entropy: u64, now: Now) -> Completion<Swept> {
        assert!(!takes(&self.panics), "a fault that nobody thought of");
        self.inner.sweep(upkeep, entropy, now)
    }

    fn second_looks(&self, route: &str, which: SecondLooks) -> Completion<Vec<SecondLook>> {
        self.inner.second_looks(route, which)
    }

    fn routes(&self) -> Completion<Vec<Box<str>>> {
        match takes(&self.refuses_routes) {
            true => Completion::refused(LedgerError::QueueFull),
            false => self.inner.routes(),
        }
    }

    fn list(&self, filter: Filter) -> Completion<Vec<Record>> {
        match takes(&self.refuses_lists) {
            true => Completion::refused(LedgerError::QueueFull),
            false => self.inner.list(filter),
        }
    }

    fn show(&self, id: OperationId) -> Completion<Option<Shown>> {
        self.inner.show(id)
    }

    fn resolve(&self, id: OperationId, decision: Decision, by: Resolution, now: Now) -> Completion<Recorded> {
        self.inner.resolve(id, decision, by, now)
    }

    fn standing(&self, now: Now) -> LedgerStanding {
        self.inner.standing(now)
    }

    fn close(&self, bound: Duration) -> bool {
        self.inner.close(bound)
    }
}
