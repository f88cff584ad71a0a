//! Rows on a disk that has no room for any transaction.

use backstop_engine::operation::{ClientKey, Epoch, Fence, OperationId, Record, Scope};
use backstop_engine::time::{Mono, Wall};
use backstop_store::ledger::{Filter, HistoryEvent, MemoryRows, Rows, RowsError, SecondLooks};

#[derive(Debug, Default)]
pub(super) struct FullRows {
    rows: MemoryRows,
    /// The start of a ledger writes too, and comes through.
    transactions: u32,
}

/// What a start needs: one for the recovery, one for the counts.
const START: u32 = 2;

impl Rows for FullRows {
    fn commit(&mut self) -> Result<(), RowsError> {
        self.transactions += 1;
        if self.transactions > START {
            return Err(RowsError::Full("no space left on device".into()));
        }
        self.rows.commit()
    }

    fn next_epoch(&mut self) -> Result<Epoch, RowsError> {
        self.rows.next_epoch()
    }

    fn begin(&mut self) -> Result<(), RowsError> {
        self.rows.begin()
    }

    fn roll_back(&mut self) -> Result<(), RowsError> {
        self.rows.roll_back()
    }

    fn by_key(&mut self, scope: &Scope, key: &ClientKey) -> Result<Option<Record>, RowsError> {
        self.rows.by_key(scope, key)
    }

    fn by_id(&mut self, id: OperationId) -> Result<Option<Record>, RowsError> {
        self.rows.by_id(id)
    }

    fn insert(&mut self, record: &Record) -> Result<bool, RowsError> {
        self.rows.insert(record)
    }

    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError> {
        self.rows.update(record, fence)
    }

    fn forget(&mut self, id: OperationId) -> Result<(), RowsError> {
        self.rows.forget(id)
    }

    fn note(&mut self, id: OperationId, event: &HistoryEvent) -> Result<(), RowsError> {
        self.rows.note(id, event)
    }

    fn history(&mut self, id: OperationId) -> Result<Vec<HistoryEvent>, RowsError> {
        self.rows.history(id)
    }

    fn oldest_due_of(&mut self, route: &str) -> Result<Option<Mono>, RowsError> {
        self.rows.oldest_due_of(route)
    }

    fn routes(&mut self) -> Result<Vec<Box<str>>, RowsError> {
        self.rows.routes()
    }

    fn due(&mut self, route: &str, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.rows.due(route, at, most)
    }

    fn lapsed(&mut self, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.rows.lapsed(at, most)
    }

    fn overdue(&mut self, at: Wall, most: usize) -> Result<Vec<Record>, RowsError> {
        self.rows.overdue(at, most)
    }

    fn decided_before(
        &mut self,
        route: &str,
        at: Wall,
        has_content: bool,
        most: usize,
    ) -> Result<Vec<Record>, RowsError> {
        self.rows.decided_before(route, at, has_content, most)
    }

    fn absent(&mut self, route: &str, which: &SecondLooks) -> Result<Vec<Record>, RowsError> {
        self.rows.absent(route, which)
    }

    fn open_before(&mut self, epoch: Epoch, most: usize) -> Result<Vec<Record>, RowsError> {
        self.rows.open_before(epoch, most)
    }

    fn list(&mut self, filter: &Filter) -> Result<Vec<Record>, RowsError> {
        self.rows.list(filter)
    }

    fn counts(&mut self) -> Result<[u64; 6], RowsError> {
        self.rows.counts()
    }

    fn oldest(&mut self, state: &'static str) -> Result<Option<Wall>, RowsError> {
        self.rows.oldest(state)
    }
}
