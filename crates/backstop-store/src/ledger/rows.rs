//! What a ledger with one writing thread is kept on: records, found by key, by name, and by what time makes of them.

use std::fmt;

use backstop_engine::operation::{ClientKey, Epoch, Fence, OperationId, Record, Scope};
use backstop_engine::time::{Mono, Wall};

use super::history::HistoryEvent;

/// Why rows could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// There is no room. Nothing of the transaction was written.
    #[error("{0}")]
    Full(String),
    /// The disk failed, or what it holds is damaged. What of the transaction was written is not known.
    #[error("{0}")]
    Failed(String),
}

/// Which operations are listed, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// In this state, by its word; all if `None`.
    pub state: Option<&'static str>,
    /// Those that began at this date or later.
    pub from: Wall,
    /// Of those that began exactly then, only what comes after this name: where the last page ended.
    pub after: Option<OperationId>,
    /// At most so many; never more than [`Filter::MOST`].
    pub most: usize,
}

impl Filter {
    /// The most that is listed at once.
    pub const MOST: usize = 1000;

    /// Whether what began then, under this name, comes after where the last page ended.
    pub(crate) fn is_past_page(&self, created: Wall, id: OperationId) -> bool {
        created > self.from || created == self.from && self.after.is_none_or(|after| id > after)
    }
}

/// Which operations that were decided by absence are looked at again: a part of the names, so that whoever walks through all
/// of them in a time needs no count of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondLooks {
    /// Those that began after this date.
    pub began_after: Wall,
    /// What comes after this name; from the first if `None`.
    pub after: Option<OperationId>,
    /// Up to this name, inclusive.
    pub until: OperationId,
    /// At most so many; never more than [`SecondLooks::MOST`].
    pub most: usize,
}

impl SecondLooks {
    /// The most that is looked up at once.
    pub const MOST: usize = 256;
}

/// Rows in transactions. Used by one thread. After an error the transaction is rolled back, or what it holds is given up.
pub trait Rows: fmt::Debug + Send {
    /// Begins a new life, durably: one more than the last one.
    ///
    /// # Errors
    /// Of every function here: if the rows cannot be read or written.
    fn next_epoch(&mut self) -> Result<Epoch, RowsError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), RowsError>;

    /// Makes the transaction durable: it survives a crash from here on.
    fn commit(&mut self) -> Result<(), RowsError>;

    /// Undoes the transaction.
    fn roll_back(&mut self) -> Result<(), RowsError>;

    /// The record of a key.
    fn by_key(&mut self, scope: &Scope, key: &ClientKey) -> Result<Option<Record>, RowsError>;

    /// The record of a name.
    fn by_id(&mut self, id: OperationId) -> Result<Option<Record>, RowsError>;

    /// Writes a new record; `false` if its name or its key is taken.
    fn insert(&mut self, record: &Record) -> Result<bool, RowsError>;

    /// Writes what changes of a record, if its fence is still this; `false` if it is not.
    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError>;

    /// Deletes a record and its history.
    fn forget(&mut self, id: OperationId) -> Result<(), RowsError>;

    /// Adds to the history of a record.
    fn note(&mut self, id: OperationId, event: &HistoryEvent) -> Result<(), RowsError>;

    /// The history of a record, oldest first.
    fn history(&mut self, id: OperationId) -> Result<Vec<HistoryEvent>, RowsError>;

    /// Records of a route that are due at this moment: those that were asked for least often first, of equals those that are due
    /// longest, and then by name.
    fn due(&mut self, route: &str, at: Mono, most: usize) -> Result<Vec<Record>, RowsError>;

    /// Since when the record of a route is due that is due longest.
    fn oldest_due_of(&mut self, route: &str) -> Result<Option<Mono>, RowsError>;

    /// The routes of all records, by name, in order.
    fn routes(&mut self) -> Result<Vec<Box<str>>, RowsError>;

    /// Records under way whose lease is over at this moment.
    fn lapsed(&mut self, at: Mono, most: usize) -> Result<Vec<Record>, RowsError>;

    /// Unknown records whose time for verification is over at this date, by name.
    fn overdue(&mut self, at: Wall, most: usize) -> Result<Vec<Record>, RowsError>;

    /// Decided records of a route that have been so since this date or longer; only those with content of an answer, or all.
    fn decided_before(
        &mut self,
        route: &str,
        at: Wall,
        has_content: bool,
        most: usize,
    ) -> Result<Vec<Record>, RowsError>;

    /// Records of a route that were decided by absence, by name.
    fn absent(&mut self, route: &str, which: &SecondLooks) -> Result<Vec<Record>, RowsError>;

    /// Records of lives before this one that are not decided.
    fn open_before(&mut self, epoch: Epoch, most: usize) -> Result<Vec<Record>, RowsError>;

    /// Records for an operator, oldest first; of equals by name.
    fn list(&mut self, filter: &Filter) -> Result<Vec<Record>, RowsError>;

    /// How many records are in each state, in the order of [`State::TOKENS`](backstop_engine::operation::State::TOKENS).
    fn counts(&mut self) -> Result<[u64; 6], RowsError>;

    /// When the oldest record in this state began.
    fn oldest(&mut self, state: &'static str) -> Result<Option<Wall>, RowsError>;

    /// Gives up room that was held for outcomes. `false` if there is none.
    fn release_reserve(&mut self) -> bool {
        false
    }

    /// Takes that room again. `false` if there is too little.
    fn take_reserve(&mut self) -> bool {
        true
    }
}
