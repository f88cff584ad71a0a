//! The open file: transactions over its tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use backstop_engine::time::Wall;
use bytes::Bytes;
use redb::{
    Database, Durability, Error, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError,
    WriteTransaction,
};

use super::backend::Outside;
use super::commits::Commits;
use super::medium::io_error;
use super::presize::presize;
use super::room::{Bounds, PIECE, cost, cost_of};
use crate::codec::{decode_withdrawn, encode_withdrawn, peek_entry};
use crate::disk::{Applied, Batch, Disk, DiskError, Found, Record};

const ENTRIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("entries");
const ORDER: TableDefinition<'_, u64, u64> = TableDefinition::new("order");
const PIECES: TableDefinition<'_, Piece, &[u8]> = TableDefinition::new("pieces");
const WITHDRAWN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("withdrawn");
const DATES: TableDefinition<'_, &str, i64> = TableDefinition::new("dates");
const WALL: &str = "wall";
/// The number of the last withdrawal; see [`Commits`].
const WITHDRAWALS: &str = "withdrawals";

/// Identity and number of a piece, big-endian, so that the pieces of one copy lie together.
type Piece = [u8; 12];

/// An open file.
#[derive(Debug)]
pub(super) struct RedbFile {
    database: Database,
    path: PathBuf,
    bounds: Bounds,
    outside: Outside,
    /// What records take. Changed by the writing thread only.
    used: Arc<AtomicU64>,
    /// Taken by the writing thread only.
    room: Mutex<Room>,
    commits: Commits,
}

#[derive(Clone, Copy, Debug, Default)]
struct Room {
    used: u64,
    /// Freed or rewritten since the last durable commit, and so not yet to be used again.
    waiting: u64,
    /// The number of the last withdrawal, and the one that was told beside the file.
    withdrawals: u64,
    told: u64,
}

impl RedbFile {
    pub(super) fn new(
        database: Database,
        path: PathBuf,
        bounds: Bounds,
        outside: Outside,
    ) -> Result<Self, DiskError> {
        let new = is_new(&database).map_err(|error| disk_error(error, &path))?;
        let commits = if new { Commits::create(&path).map(|new| (new, 0)) } else { Commits::open(&path) };
        let (commits, told) = commits.map_err(|error| io_error(&error, &Commits::beside(&path)))?;
        let room = Mutex::default();
        let mut file = Self { database, path, bounds, outside, used: Arc::default(), room, commits };
        let withdrawals = file.withdrawals().map_err(|error| file.error(error))?;
        if withdrawals < told {
            let message = format!("{}: it has gone back behind a withdrawal", file.path.display());
            return Err(DiskError::Corrupt(message));
        }
        let used = file.open_tables().map_err(|error| file.error(error))?;
        if new {
            presize(&file.database, file.bounds.limit, || file.outside.length())
                .map_err(|error| file.error(error))?;
        }
        file.used.store(used, Ordering::Relaxed);
        file.room = Mutex::new(Room { used, withdrawals, told, ..Room::default() });
        Ok(file)
    }

    /// Tells what records take, also after the file was given up.
    pub(super) fn used_handle(&self) -> Arc<AtomicU64> {
        self.used.clone()
    }

    fn budget(&self) -> u64 {
        self.bounds.budget(self.outside.length())
    }

    fn withdrawals(&self) -> Result<u64, Error> {
        match self.database.begin_read()?.open_table(DATES) {
            Ok(dates) => Ok(dates.get(WITHDRAWALS)?.map_or(0, |number| number.value().unsigned_abs())),
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes what is missing, and counts what is there.
    fn open_tables(&self) -> Result<u64, Error> {
        let mut transaction = self.database.begin_write()?;
        let used = {
            transaction.open_table(PIECES)?;
            transaction.open_table(ORDER)?;
            transaction.open_table(WITHDRAWN)?;
            transaction.open_table(DATES)?;
            let entries = transaction.open_table(ENTRIES)?;
            let mut used = 0;
            for entry in entries.iter()? {
                used += cost_of(entry?.1.value(), self.bounds.limit);
            }
            used
        };
        transaction.set_quick_repair(true);
        transaction.commit()?;
        Ok(used)
    }

    fn error(&self, error: Error) -> DiskError {
        disk_error(error, &self.path)
    }

    fn apply_batch(&self, batch: &Batch) -> Result<Applied, Error> {
        let budget = self.budget();
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = *room;
        let mut transaction = self.database.begin_write()?;
        let mut evicted: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        {
            let mut tables = Tables::open(&transaction, self.bounds.limit)?;
            for id in &batch.deletes {
                tables.delete(*id, &mut next)?;
            }
            for record in &batch.puts {
                tables.delete(record.id, &mut next)?;
                let cost = cost(record.entry.len(), record.copy.len() as u64);
                while next.used + cost > budget {
                    let Some((id, entry)) = tables.drop_oldest(&mut next)? else { break };
                    evicted.insert(id, entry);
                }
                tables.insert(record)?;
                evicted.remove(&record.id);
                next.used += cost;
                next.waiting += cost;
            }
            while next.used > budget {
                let Some((id, entry)) = tables.drop_oldest(&mut next)? else { break };
                evicted.insert(id, entry);
            }
            let mut withdrawn = transaction.open_table(WITHDRAWN)?;
            for (route, sequence) in &batch.withdrawn {
                withdrawn.insert(&**route, &encode_withdrawn(route, *sequence)[..])?;
            }
            if !batch.deletes.is_empty() || !batch.withdrawn.is_empty() {
                next.withdrawals += 1;
                let number = i64::try_from(next.withdrawals).unwrap_or(i64::MAX);
                transaction.open_table(DATES)?.insert(WITHDRAWALS, number)?;
            }
            if let Some(wall) = batch.wall {
                transaction.open_table(DATES)?.insert(WALL, wall.as_unix_ns())?;
            }
        }
        let durable = batch.durable || next.waiting > budget / 32;
        if durable {
            transaction.set_quick_repair(true);
            next.waiting = 0;
        } else {
            transaction.set_durability(Durability::None)?;
        }
        transaction.commit()?;
        if durable {
            if next.told < next.withdrawals {
                self.commits.tell(next.withdrawals)?;
                next.told = next.withdrawals;
            }
            self.look_at_device();
        }
        *room = next;
        self.used.store(next.used, Ordering::Relaxed);
        Ok(Applied { evicted: evicted.into_values().collect(), durable })
    }

    /// A device that was full may have room again.
    fn look_at_device(&self) {
        if self.bounds.was_full()
            && let Ok(device) = rustix::fs::statvfs(&self.path)
        {
            self.bounds.keep_more(device.f_bavail.saturating_mul(device.f_frsize));
        }
    }

    fn read_copy(&self, id: u64) -> Result<Option<Bytes>, Error> {
        let transaction = self.database.begin_read()?;
        let Some(entry) = transaction.open_table(ENTRIES)?.get(id)? else { return Ok(None) };
        let length = peek_entry(entry.value()).map_or(0, |entry| entry.record_bytes.min(self.bounds.limit));
        let mut record = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        for piece in transaction.open_table(PIECES)?.range(piece(id, 0)..=piece(id, u32::MAX))? {
            record.extend_from_slice(piece?.1.value());
        }
        Ok(Some(Bytes::from(record)))
    }

    fn scan_all(&self, show: &mut dyn FnMut(Found<'_>)) -> Result<(), Error> {
        let transaction = self.database.begin_read()?;
        if let Some(wall) = transaction.open_table(DATES)?.get(WALL)? {
            show(Found::Wall(Wall::from_unix_ns(wall.value())));
        }
        for route in transaction.open_table(WITHDRAWN)?.iter()? {
            let (route, sequence) = route?;
            let route = route.value();
            let sequence = decode_withdrawn(route, sequence.value())
                .map_err(|error| Error::Corrupted(format!("the withdrawal of a route: {error}")))?;
            show(Found::Withdrawn { route, sequence });
        }
        for entry in transaction.open_table(ENTRIES)?.iter()? {
            let (id, bytes) = entry?;
            show(Found::Entry { id: id.value(), bytes: bytes.value() });
        }
        Ok(())
    }
}

impl Disk for RedbFile {
    fn scan(&self, show: &mut dyn FnMut(Found<'_>)) -> Result<(), DiskError> {
        self.scan_all(show).map_err(|error| self.error(error))
    }

    fn apply(&self, batch: &Batch) -> Result<Applied, DiskError> {
        self.apply_batch(batch).map_err(|error| self.error(error))
    }

    fn read(&self, id: u64) -> Result<Option<Bytes>, DiskError> {
        self.read_copy(id).map_err(|error| self.error(error))
    }

    fn bytes(&self) -> u64 {
        self.outside.length()
    }

    fn largest_copy(&self) -> u64 {
        self.budget() / 16
    }
}

impl Drop for RedbFile {
    fn drop(&mut self) {
        self.outside.freeze();
    }
}

/// The tables of copies within one transaction.
struct Tables<'a> {
    entries: redb::Table<'a, u64, &'static [u8]>,
    pieces: redb::Table<'a, Piece, &'static [u8]>,
    order: redb::Table<'a, u64, u64>,
    limit: u64,
}

impl<'a> Tables<'a> {
    fn open(transaction: &'a WriteTransaction, limit: u64) -> Result<Self, TableError> {
        let (entries, pieces) = (transaction.open_table(ENTRIES)?, transaction.open_table(PIECES)?);
        Ok(Self { entries, pieces, order: transaction.open_table(ORDER)?, limit })
    }

    fn insert(&mut self, record: &Record) -> Result<(), StorageError> {
        self.entries.insert(record.id, &*record.entry)?;
        if let Some(peek) = peek_entry(&record.entry) {
            self.order.insert(peek.sequence, record.id)?;
        }
        for (number, bytes) in (0..).zip(record.copy.chunks(PIECE)) {
            self.pieces.insert(piece(record.id, number), bytes)?;
        }
        Ok(())
    }

    /// Deletes an entry and its copy; gives the entry back.
    fn delete(&mut self, id: u64, room: &mut Room) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(entry) = self.entries.remove(id)?.map(|entry| entry.value().to_vec()) else {
            return Ok(None);
        };
        if let Some(peek) = peek_entry(&entry) {
            self.order.remove(peek.sequence)?;
        }
        self.pieces.retain_in(piece(id, 0)..=piece(id, u32::MAX), |_, _| false)?;
        let cost = cost_of(&entry, self.limit);
        room.used = room.used.saturating_sub(cost);
        room.waiting += cost;
        Ok(Some(entry))
    }

    /// Drops the entry that was written longest ago; `None` if there is none.
    fn drop_oldest(&mut self, room: &mut Room) -> Result<Option<(u64, Vec<u8>)>, StorageError> {
        loop {
            let Some(id) = self.order.pop_first()?.map(|(_, id)| id.value()) else { return Ok(None) };
            if let Some(entry) = self.delete(id, room)? {
                return Ok(Some((id, entry)));
            }
        }
    }
}

fn is_new(database: &Database) -> Result<bool, Error> {
    Ok(database.begin_read()?.list_tables()?.next().is_none())
}

fn piece(id: u64, number: u32) -> Piece {
    let mut piece = [0; 12];
    let (high, low) = piece.split_at_mut(8);
    high.copy_from_slice(&id.to_be_bytes());
    low.copy_from_slice(&number.to_be_bytes());
    piece
}

fn disk_error(error: Error, path: &Path) -> DiskError {
    match error {
        Error::Io(error) => io_error(&error, path),
        Error::Corrupted(_) | Error::TableTypeMismatch { .. } | Error::TypeDefinitionChanged { .. } => {
            DiskError::Corrupt(format!("{}: {error}", path.display()))
        }
        other => DiskError::Failed(format!("{}: {other}", path.display())),
    }
}

/// An error of the storage, with the file's path.
pub(super) fn storage_error(error: StorageError, path: &Path) -> DiskError {
    disk_error(error.into(), path)
}
