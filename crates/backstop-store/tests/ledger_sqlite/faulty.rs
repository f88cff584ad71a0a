//! Rows that fail, or are slow, when they are told to.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstop_engine::operation::{ClientKey, Epoch, Fence, OperationId, Record, Scope};
use backstop_engine::time::{Mono, Wall};
use backstop_store::ledger::{Filter, HistoryEvent, Rows, RowsError, SecondLooks};

/// Passes everything on until its turn comes, and then fails: before the call is made, or after it.
#[derive(Debug)]
pub(super) struct Faulty<R> {
    pub(super) rows: R,
    /// Calls until the one that fails.
    pub(super) left: u64,
    /// The failing call is made all the same: a commit whose answer is lost.
    pub(super) is_after: bool,
    pub(super) error: RowsError,
    /// What every commit takes besides: a disk whose sync is slow.
    pub(super) sync: Duration,
    /// The folder in `/proc` of the thread that began the last transaction.
    pub(super) thread: Arc<Mutex<PathBuf>>,
}

impl<R: Rows> Faulty<R> {
    /// Rows that never fail, on a disk whose sync takes so long.
    pub(super) fn slow(rows: R, sync: Duration) -> Self {
        let error = RowsError::Failed(String::new());
        Self { rows, left: u64::MAX, is_after: false, error, sync, thread: Arc::default() }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut R) -> Result<T, RowsError>) -> Result<T, RowsError> {
        if self.left == 0 {
            if self.is_after {
                let _ = call(&mut self.rows);
            }
            return Err(self.error.clone());
        }
        self.left -= 1;
        call(&mut self.rows)
    }
}

impl<R: Rows> Rows for Faulty<R> {
    fn next_epoch(&mut self) -> Result<Epoch, RowsError> {
        self.call(R::next_epoch)
    }
    fn begin(&mut self) -> Result<(), RowsError> {
        *self.thread.lock().unwrap() =
            Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap());
        self.call(R::begin)
    }
    fn commit(&mut self) -> Result<(), RowsError> {
        std::thread::sleep(self.sync);
        self.call(R::commit)
    }
    fn roll_back(&mut self) -> Result<(), RowsError> {
        self.rows.roll_back()
    }
    fn by_key(&mut self, scope: &Scope, key: &ClientKey) -> Result<Option<Record>, RowsError> {
        self.call(|rows| rows.by_key(scope, key))
    }
    fn by_id(&mut self, id: OperationId) -> Result<Option<Record>, RowsError> {
        self.call(|rows| rows.by_id(id))
    }
    fn insert(&mut self, record: &Record) -> Result<bool, RowsError> {
        self.call(|rows| rows.insert(record))
    }
    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError> {
        self.call(|rows| rows.update(record, fence))
    }
    fn forget(&mut self, id: OperationId) -> Result<(), RowsError> {
        self.call(|rows| rows.forget(id))
    }
    fn note(&mut self, id: OperationId, event: &HistoryEvent) -> Result<(), RowsError> {
        self.call(|rows| rows.note(id, event))
    }
    fn history(&mut self, id: OperationId) -> Result<Vec<HistoryEvent>, RowsError> {
        self.call(|rows| rows.history(id))
    }
    fn due(&mut self, route: &str, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.due(route, at, most))
    }
    fn oldest_due_of(&mut self, route: &str) -> Result<Option<Mono>, RowsError> {
        self.call(|rows| rows.oldest_due_of(route))
    }

    fn routes(&mut self) -> Result<Vec<Box<str>>, RowsError> {
        self.call(Rows::routes)
    }

    fn lapsed(&mut self, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.lapsed(at, most))
    }
    fn overdue(&mut self, at: Wall, most: usize) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.overdue(at, most))
    }
    fn decided_before(
        &mut self,
        route: &str,
        at: Wall,
        has_content: bool,
        most: usize,
    ) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.decided_before(route, at, has_content, most))
    }
    fn absent(&mut self, route: &str, which: &SecondLooks) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.absent(route, which))
    }
    fn open_before(&mut self, epoch: Epoch, most: usize) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.open_before(epoch, most))
    }
    fn list(&mut self, filter: &Filter) -> Result<Vec<Record>, RowsError> {
        self.call(|rows| rows.list(filter))
    }
    fn counts(&mut self) -> Result<[u64; 6], RowsError> {
        self.call(R::counts)
    }
    fn oldest(&mut self, state: &'static str) -> Result<Option<Wall>, RowsError> {
        self.call(|rows| rows.oldest(state))
    }
}
