//! Rows in SQLite: one connection, statements prepared once.

use std::fs;
use std::path::{Path, PathBuf};

use backstop_engine::operation::{ClientKey, Epoch, Fence, OperationId, Record, Scope};
use backstop_engine::time::{Mono, Wall};
use rusqlite::types::ToSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::encode::{COLUMNS, moment, number, pairs, record};
use super::lock::{FolderLock, failed};
use super::reserve::Reserve;
use super::schema::OWNER;
use super::{OpenError, file, statements};
use crate::ledger::history::{Actor, HistoryEvent, Resolution};
use crate::ledger::rows::{Filter, Rows, RowsError, SecondLooks};

/// Rows that may be written between two checkpoints; a row takes a few pages of the WAL.
const ROWS_PER_CHECKPOINT: u64 = 2000;
/// Commits between two checkpoints at most.
const COMMITS_PER_CHECKPOINT: u64 = 500;
/// `SQLITE_IOERR_SHMSIZE`: the index of the WAL could not grow, for want of room.
const SHM_SIZE: i32 = 4874;

/// Rows in one SQLite file, which this process alone has open.
#[derive(Debug)]
pub struct SqliteRows {
    connection: Connection,
    path: PathBuf,
    reserve: Reserve,
    rows: u64,
    commits: u64,
    /// After the connection: the file is closed before it is let go.
    _lock: FolderLock,
}

impl SqliteRows {
    /// Opens the file below a folder, and makes it if there is none. `reserve_bytes` of room are held for outcomes.
    ///
    /// # Errors
    /// If it cannot be opened, or not as durable as it has to be.
    pub fn open(folder: &Path, reserve_bytes: u64) -> Result<Self, OpenError> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let lock = FolderLock::take(folder)?;
        let (connection, path) = file::open(folder)?;
        connection.set_prepared_statement_cache_capacity(64);
        let reserve = Reserve::new(folder, reserve_bytes);
        Ok(Self { connection, path, reserve, rows: 0, commits: 0, _lock: lock })
    }

    /// Whether this ledger was written with the secret of this digest. A new one is from now on.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn belongs_to(&mut self, digest: &[u8; 32]) -> Result<bool, OpenError> {
        let asked = self.connection.execute_batch(OWNER).and_then(|()| {
            self.connection.execute("INSERT OR IGNORE INTO owner VALUES (1, ?1)", [&digest[..]])?;
            self.connection.query_row("SELECT digest = ?1 FROM owner", [&digest[..]], |row| row.get(0))
        });
        asked.map_err(|error| self.error(&error).into())
    }

    /// Forbids the file to grow beyond so many pages of 4 KiB: as if the disk were full then.
    #[cfg(any(test, feature = "testing"))]
    pub fn limit_pages(&self, pages: u64) {
        let _ = self.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()));
    }

    fn error(&self, error: &rusqlite::Error) -> RowsError {
        let message = format!("{}: {error}", self.path.display());
        match error {
            rusqlite::Error::SqliteFailure(failure, _)
                if failure.code == ErrorCode::DiskFull || failure.extended_code == SHM_SIZE =>
            {
                RowsError::Full(message)
            }
            _ => RowsError::Failed(message),
        }
    }

    fn run(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, RowsError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        self.rows += 1;
        done.map_err(|error| self.error(&error))
    }

    fn records(&self, rest: &str, values: &[&dyn ToSql]) -> Result<Vec<Record>, RowsError> {
        let sql = format!("SELECT {COLUMNS} FROM operations {rest}");
        let found = self.connection.prepare_cached(&sql).and_then(|mut statement| {
            statement.query_map(values, record).and_then(Iterator::collect::<Result<Vec<_>, _>>)
        });
        found.map_err(|error| self.error(&error))
    }

    fn one<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<Option<T>, RowsError> {
        let found = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, |row| row.get(0)).optional());
        found.map_err(|error| self.error(&error))
    }

    /// Moves what is in the WAL into the file. One that finds no room leaves it in the WAL, which is as durable.
    fn checkpoint(&mut self) -> Result<(), RowsError> {
        (self.rows, self.commits) = (0, 0);
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        match done.map_err(|error| self.error(&error)) {
            Err(RowsError::Failed(message)) => Err(RowsError::Failed(message)),
            Ok(()) | Err(RowsError::Full(_)) => Ok(()),
        }
    }
}

impl Rows for SqliteRows {
    fn next_epoch(&mut self) -> Result<Epoch, RowsError> {
        self.run("UPDATE lives SET epoch = epoch + 1", &[])?;
        let epoch: Option<i64> = self.one("SELECT epoch FROM lives", &[])?;
        let epoch = epoch.and_then(|epoch| u64::try_from(epoch).ok());
        epoch
            .map(Epoch::new)
            .ok_or_else(|| RowsError::Failed(format!("{}: it counts no lives", self.path.display())))
    }

    fn begin(&mut self) -> Result<(), RowsError> {
        loop {
            // An operator's shell may hold the file for as long as it likes. Nothing is lost by waiting: whoever asks has a
            // deadline, and what is not acknowledged is not forwarded. Once it has begun nobody can come between.
            let begun =
                self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            match begun {
                Ok(_) => return Ok(()),
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
                Err(error) => return Err(self.error(&error)),
            }
        }
    }

    fn commit(&mut self) -> Result<(), RowsError> {
        self.run("COMMIT", &[])?;
        self.commits += 1;
        if self.rows >= ROWS_PER_CHECKPOINT || self.commits >= COMMITS_PER_CHECKPOINT {
            self.checkpoint()
        } else {
            Ok(())
        }
    }

    fn roll_back(&mut self) -> Result<(), RowsError> {
        // Some errors have SQLite undo the transaction itself.
        if self.connection.is_autocommit() { Ok(()) } else { self.run("ROLLBACK", &[]).map(|_| ()) }
    }

    fn by_key(&mut self, scope: &Scope, key: &ClientKey) -> Result<Option<Record>, RowsError> {
        let found = self.records(statements::BY_KEY, params![key.as_bytes(), scope.as_bytes()])?;
        Ok(found.into_iter().next())
    }

    fn by_id(&mut self, id: OperationId) -> Result<Option<Record>, RowsError> {
        Ok(self.records(statements::BY_ID, params![id.as_bytes()])?.into_iter().next())
    }

    fn insert(&mut self, record: &Record) -> Result<bool, RowsError> {
        let Record { identity, progress, .. } = record;
        let parts = progress.parts();
        let captured =
            pairs(identity.captured.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        let written = self.run(
            "INSERT INTO operations (id, scope, key, fingerprint, route, upstream_id, captured, created, state, why, \
             fence, epoch, lease_until, due, verify_until, born, settle_from, asked, asked_at, absences, absent_at, \
             was_absent, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19, ?20, ?21, ?22, ?23) ON CONFLICT DO NOTHING",
            params![
                identity.id.as_bytes(),
                identity.scope.as_bytes(),
                identity.key.as_bytes(),
                identity.fingerprint.as_bytes(),
                identity.route,
                identity.upstream_id.as_deref(),
                captured,
                identity.created.as_unix_ns(),
                parts.state.token(),
                parts.state.why(),
                number(parts.fence.number()),
                number(parts.epoch.number()),
                parts.lease_until.map(moment),
                parts.due.map(moment),
                parts.verify_until.as_unix_ns(),
                moment(parts.born),
                moment(parts.settle_from),
                parts.asked,
                moment(parts.asked_at),
                parts.absences,
                moment(parts.absent_at),
                parts.was_absent,
                parts.changed.as_unix_ns(),
            ],
        )?;
        Ok(written == 1)
    }

    fn update(&mut self, record: &Record, fence: Fence) -> Result<bool, RowsError> {
        let parts = record.progress.parts();
        let answer = record.answer.as_ref();
        // Nothing but a status is no content.
        let content = answer.filter(|answer| answer.body.is_some() || !answer.fields.is_empty());
        let fields = content
            .map(|answer| pairs(answer.fields.iter().map(|(name, value)| (name.as_bytes(), &**value))));
        let written = self.run(
            "UPDATE operations SET state = ?3, why = ?4, fence = ?5, epoch = ?6, lease_until = ?7, due = ?8, \
             born = ?9, settle_from = ?10, asked = ?11, asked_at = ?12, absences = ?13, absent_at = ?14, \
             was_absent = ?15, changed = ?16, answer_status = ?17, answer_fields = ?18, answer_body = ?19 \
             WHERE id = ?1 AND fence = ?2",
            params![
                record.identity.id.as_bytes(),
                number(fence.number()),
                parts.state.token(),
                parts.state.why(),
                number(parts.fence.number()),
                number(parts.epoch.number()),
                parts.lease_until.map(moment),
                parts.due.map(moment),
                moment(parts.born),
                moment(parts.settle_from),
                parts.asked,
                moment(parts.asked_at),
                parts.absences,
                moment(parts.absent_at),
                parts.was_absent,
                parts.changed.as_unix_ns(),
                answer.map(|answer| answer.status),
                fields,
                answer.and_then(|answer| answer.body.as_deref()),
            ],
        )?;
        Ok(written == 1)
    }

    fn forget(&mut self, id: OperationId) -> Result<(), RowsError> {
        self.run("DELETE FROM history WHERE operation = ?1", params![id.as_bytes()])?;
        self.run("DELETE FROM operations WHERE id = ?1", params![id.as_bytes()]).map(|_| ())
    }

    fn note(&mut self, id: OperationId, event: &HistoryEvent) -> Result<(), RowsError> {
        let (person, reason) = match &event.actor {
            Actor::Person(by) => (Some(by.by()), Some(by.reason())),
            _ => (None, None),
        };
        let written = self.run(
            "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                id.as_bytes(),
                event.at.as_unix_ns(),
                event.actor.token(),
                event.from.token(),
                event.from.why(),
                event.to.token(),
                event.to.why(),
                person,
                reason,
            ],
        );
        written.map(|_| ())
    }

    fn history(&mut self, id: OperationId) -> Result<Vec<HistoryEvent>, RowsError> {
        use backstop_engine::operation::State;
        let sql = "SELECT at, actor, was, was_why, became, became_why, person, reason FROM history \
                   WHERE operation = ?1 ORDER BY rowid";
        let read = |row: &rusqlite::Row<'_>| -> Result<Option<HistoryEvent>, rusqlite::Error> {
            let state = |at: usize| -> Result<Option<State>, rusqlite::Error> {
                Ok(State::parse(row.get_ref(at)?.as_str()?, row.get_ref(at + 1)?.as_str()?))
            };
            let (person, reason): (Option<String>, Option<String>) = (row.get(6)?, row.get(7)?);
            let actor = match (row.get_ref(1)?.as_str()?, person, reason) {
                ("reporter", None, None) => Some(Actor::Reporter),
                ("time", None, None) => Some(Actor::Time),
                ("recovery", None, None) => Some(Actor::Recovery),
                ("person", Some(by), Some(reason)) => Resolution::new(&by, &reason).ok().map(Actor::Person),
                _ => None,
            };
            let at = Wall::from_unix_ns(row.get(0)?);
            let (from, to) = (state(2)?, state(4)?);
            Ok((|| Some(HistoryEvent { at, actor: actor?, from: from?, to: to? }))())
        };
        let found = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_map(params![id.as_bytes()], read).and_then(Iterator::collect::<Result<Vec<_>, _>>)
        });
        let found = found.map_err(|error| self.error(&error))?;
        let whole: Option<Vec<HistoryEvent>> = found.into_iter().collect();
        whole.ok_or_else(|| RowsError::Failed(format!("{}: a history is damaged", self.path.display())))
    }

    fn due(&mut self, route: &str, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.records(statements::DUE, params![route, moment(at), most as i64])
    }

    fn oldest_due_of(&mut self, route: &str) -> Result<Option<Mono>, RowsError> {
        let oldest: Option<Option<i64>> = self.one(statements::OLDEST_DUE_OF, params![route])?;
        Ok(oldest.flatten().and_then(|due| u64::try_from(due).ok()).map(Mono::from_ns))
    }

    fn routes(&mut self) -> Result<Vec<Box<str>>, RowsError> {
        let sql = "SELECT DISTINCT route FROM operations ORDER BY route";
        let found = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect::<Result<Vec<_>, _>>)
        });
        found.map_err(|error| self.error(&error))
    }

    fn lapsed(&mut self, at: Mono, most: usize) -> Result<Vec<Record>, RowsError> {
        self.records(statements::LAPSED, params![moment(at), most as i64])
    }

    fn overdue(&mut self, at: Wall, most: usize) -> Result<Vec<Record>, RowsError> {
        self.records(statements::OVERDUE, params![at.as_unix_ns(), most as i64])
    }

    fn decided_before(
        &mut self,
        route: &str,
        at: Wall,
        has_content: bool,
        most: usize,
    ) -> Result<Vec<Record>, RowsError> {
        let rest = if has_content { statements::WITH_CONTENT_BEFORE } else { statements::DECIDED_BEFORE };
        self.records(rest, params![route, at.as_unix_ns(), most as i64])
    }

    fn absent(&mut self, route: &str, which: &SecondLooks) -> Result<Vec<Record>, RowsError> {
        let SecondLooks { began_after, after, until, most } = which;
        // Every name comes after an empty one.
        let after = after.as_ref().map_or(&[] as &[u8], |after| &after.as_bytes()[..]);
        let most = (*most).min(SecondLooks::MOST) as i64;
        let values = params![route, after, until.as_bytes(), began_after.as_unix_ns(), most];
        self.records(statements::ABSENT, values)
    }

    fn open_before(&mut self, epoch: Epoch, most: usize) -> Result<Vec<Record>, RowsError> {
        let values = params![number(epoch.number()), most as i64];
        let mut found = self.records("WHERE due IS NOT NULL AND epoch < ?1 LIMIT ?2", values)?;
        let under_way = self.records("WHERE state = 'dispatching' AND epoch < ?1 LIMIT ?2", values)?;
        found.extend(under_way.into_iter().take(most.saturating_sub(found.len())));
        Ok(found)
    }

    fn list(&mut self, filter: &Filter) -> Result<Vec<Record>, RowsError> {
        let after = filter.after.as_ref().map(|id| &id.as_bytes()[..]);
        let most = filter.most.min(Filter::MOST) as i64;
        let from = filter.from.as_unix_ns();
        match filter.state {
            None => self.records(statements::LIST, params![from, after, most]),
            // There are few, and they have an index that the others are not in.
            Some(state @ ("unknown" | "attention")) => {
                self.records(statements::LIST_OPEN, params![from, after, most, state])
            }
            Some(state) => self.records(statements::LIST_STATE, params![from, after, most, state]),
        }
    }

    fn counts(&mut self) -> Result<[u64; 6], RowsError> {
        use backstop_engine::operation::State;
        let mut counts = [0; 6];
        for (count, state) in counts.iter_mut().zip(State::TOKENS) {
            let found: Option<i64> =
                self.one("SELECT count(*) FROM operations WHERE state = ?1", params![state])?;
            *count = found.and_then(|found| u64::try_from(found).ok()).unwrap_or(0);
        }
        Ok(counts)
    }

    fn oldest(&mut self, state: &'static str) -> Result<Option<Wall>, RowsError> {
        let oldest: Option<Option<i64>> = self.one(statements::OLDEST, params![state])?;
        Ok(oldest.flatten().map(Wall::from_unix_ns))
    }

    fn release_reserve(&mut self) -> bool {
        self.reserve.release()
    }

    fn take_reserve(&mut self) -> bool {
        self.reserve.take()
    }
}
