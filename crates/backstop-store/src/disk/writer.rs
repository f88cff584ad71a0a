//! The thread that writes.
//!
//! It works in batches. Withdrawals and deletions come first, then puts, each with the content that the index has for
//! it at that moment. A batch with a withdrawal is committed durably before the withdrawal is confirmed; others are
//! committed durably once the commit interval has passed or nothing more is to be done.
//!
//! After a failure the disk is given up: puts of the batch are lost and counted, withdrawals and deletions go back
//! into the queue, and the disk is opened again after a pause that doubles each time. Until it was read again it counts as
//! unseen, so that no withdrawal is answered with "nothing stored". A damaged file is set aside and a new one begun.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use backstop_engine::time::{Mono, Now};

use super::failure::contain;
use super::found::take;
use super::reader::{self, Current, current};
use super::{Batch, Disk, DiskError, Medium, Record};
use crate::codec::{Entry, decode_entry, encode_copy, encode_entry};
use crate::copies::{Copies, Inner};
use crate::copy::StoredCopy;
use crate::health::{DiskState, DiskTrouble, add};
use crate::options::{OpenReport, StoreOptions};
use crate::queue::{Erases, Put, Queue, Work};

/// Puts taken at once.
const BATCH_PUTS: usize = 64;

struct Writer {
    inner: Arc<Inner>,
    queue: Arc<Queue>,
    medium: Box<dyn Medium>,
    disk: Arc<Current>,
    /// Whether what the disk holds was ever taken over.
    taken_over: bool,
    sequence: u64,
    /// Whether something was applied that is not durable.
    dirty: bool,
    durable_at: Mono,
    unseen: bool,
    pause: Duration,
}

/// Content taken from the index to be written.
struct Taken {
    put: Put,
    copy: Arc<StoredCopy>,
}

/// Opens the disk, takes over what it holds, and starts the threads.
pub(super) fn open(medium: Box<dyn Medium>, options: StoreOptions, now: Now) -> (Copies, OpenReport) {
    let queue = Arc::new(Queue::new(&options));
    let pause = options.retry_pause.0;
    let inner = Arc::new(Inner::new(options, Some(queue.clone())));
    inner.note_mono(now);
    let disk = Arc::new(Current::default());
    let mut writer = Writer {
        inner: inner.clone(),
        queue: queue.clone(),
        medium,
        disk: disk.clone(),
        taken_over: false,
        sequence: 1,
        dirty: false,
        durable_at: now.mono,
        unseen: false,
        pause,
    };
    let mut report = OpenReport::default();
    match writer.open(&mut report) {
        Ok(()) => inner.counters.set_disk(DiskState::Ok),
        Err(error) => {
            writer.set_unseen(writer.medium.may_hold_copies());
            writer.trouble(&error);
        }
    }
    let wall = inner.wall();
    report.high_water_wall = (wall.as_unix_ns() != i64::MIN).then_some(wall);

    let (reads, read_queue, read_disk) = (inner.clone(), queue.clone(), disk);
    let threads =
        thread::Builder::new().name("backstop-writer".into()).spawn(move || writer.run()).and_then(|_| {
            thread::Builder::new()
                .name("backstop-reader".into())
                .spawn(move || reader::run(&reads, &read_queue, &read_disk))
        });
    if let Err(error) = threads {
        queue.close();
        inner
            .counters
            .set_disk(DiskState::Failed(DiskTrouble { since: now.mono, message: error.to_string() }));
    }
    report.disk = inner.counters.disk();
    (Copies::with_queue(inner, queue), report)
}

impl Writer {
    fn run(mut self) {
        loop {
            if current(&self.disk).is_none() && !self.reopen() {
                break;
            }
            let patience = self.dirty.then_some(self.inner.options.commit_interval);
            let mut work = self.queue.next_work(patience, BATCH_PUTS);
            if work.sweep {
                self.inner.sweep();
            }
            let last = work.closing && work.is_empty();
            if last && !self.dirty {
                break;
            }
            let closing = work.closing;
            match work.reported.take() {
                Some(error) => self.failed(&error, work, &[]),
                None => self.write(work),
            }
            if closing && current(&self.disk).is_none() {
                break;
            }
        }
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.queue.set_closed();
    }

    /// Opens the disk and takes over what it holds; a damaged one is set aside once.
    fn open(&mut self, report: &mut OpenReport) -> Result<(), DiskError> {
        match self.open_once(report) {
            Err(DiskError::Corrupt(_)) => {
                report.set_aside = Some(self.medium.set_aside()?);
                report.corrupt += 1;
                add(&self.inner.counters.corrupt, 1);
                self.open_once(report)
            }
            opened => opened,
        }
    }

    fn open_once(&mut self, report: &mut OpenReport) -> Result<(), DiskError> {
        let first = !self.taken_over;
        let medium = &mut self.medium;
        let disk: Arc<dyn Disk> = Arc::from(contain(|| medium.open())?);
        let taken = take(&self.inner, &*disk, first)?;
        self.taken_over = true;
        self.sequence = self.sequence.max(taken.next_sequence);
        self.queue.delete_found(&taken.unwanted);
        self.inner.counters.disk_bytes.store(disk.bytes(), std::sync::atomic::Ordering::Relaxed);
        report.copies = taken.copies;
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = Some(disk);
        Ok(())
    }

    /// Opens the disk again, after a pause. `false` if the store was closed first. That the disk works again is said
    /// only after something was written to it.
    fn reopen(&mut self) -> bool {
        loop {
            let closing = self.queue.pause(self.pause);
            self.pause = (self.pause * 2).min(self.inner.options.retry_pause.1);
            match self.open(&mut OpenReport::default()) {
                Ok(()) => {
                    self.dirty = true;
                    return true;
                }
                Err(error) => self.trouble(&error),
            }
            if closing {
                return false;
            }
        }
    }

    fn write(&mut self, mut work: Work) {
        let Some(disk) = current(&self.disk) else { return };
        let idle = work.is_empty();
        let (batch, taken) = self.batch(&mut work, idle, disk.largest_copy());
        let applied = contain(|| disk.apply(&batch));
        drop(disk);
        match applied {
            Ok(applied) => {
                for Taken { put, copy } in &taken {
                    self.inner.written(*put, copy);
                }
                // After that, because what was written may have had to leave again.
                self.note_evicted(&applied.evicted);
                add(&self.inner.counters.writes_done, taken.len() as u64);
                self.dirty = !applied.durable;
                if applied.durable {
                    self.durable(work.erases);
                } else {
                    self.queue.give_back(Vec::new(), work.erases);
                }
                self.note_size();
            }
            Err(error) => self.failed(&error, work, &taken),
        }
    }

    /// What to write, and where its content came from.
    fn batch(&mut self, work: &mut Work, idle: bool, limit: u64) -> (Batch, Vec<Taken>) {
        let now = self.inner.mono();
        let waited =
            now.since(self.durable_at).is_none_or(|since| since >= self.inner.options.commit_interval);
        let mut batch = Batch {
            deletes: work.deletes.iter().chain(&work.erases.ids).copied().collect(),
            wall: Some(self.inner.wall()).filter(|wall| wall.as_unix_ns() != i64::MIN),
            durable: idle
                || waited
                || self.unseen
                || work.closing
                || !work.erases.is_empty()
                || work.wall.is_some(),
            ..Batch::default()
        };
        for route in &work.erases.routes {
            batch.withdrawn.push((route.clone(), self.next_sequence()));
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(put) = work.puts.pop_front() {
            let Some((record, copy)) = self.record(put) else { continue };
            let record_bytes = record.copy.len() as u64;
            if record_bytes > limit {
                self.inner.write_lost(put, &copy);
                add(&self.inner.counters.writes_dropped, 1);
                continue;
            }
            bytes += record_bytes;
            batch.puts.push(record);
            taken.push(Taken { put, copy });
            if bytes > limit / 2 {
                break;
            }
        }
        self.queue.give_back_puts(std::mem::take(&mut work.puts));
        (batch, taken)
    }

    /// The record of a variant, unless it left meanwhile.
    fn record(&mut self, put: Put) -> Option<(Record, Arc<StoredCopy>)> {
        let (key, copy) = self.inner.take_queued(put)?;
        let bytes = encode_copy(put.id, &key, &copy);
        let entry = Entry {
            id: put.id,
            sequence: self.next_sequence(),
            record_bytes: bytes.len() as u64,
            facts: copy.facts,
            key,
            vary: copy.vary.clone(),
        };
        Some((Record { id: put.id, entry: encode_entry(&entry), copy: bytes }, copy))
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn note_evicted(&self, evicted: &[Vec<u8>]) {
        add(&self.inner.counters.disk_evictions, evicted.len() as u64);
        for entry in evicted.iter().map(|bytes| decode_entry(bytes).ok()) {
            // Before anybody can see that it left the index.
            self.queue.evicted(entry.as_ref().map(|entry| self.inner.index.locate(&entry.key).site));
            if let Some(entry) = entry {
                self.inner.lost(&entry);
            }
        }
    }

    /// Everything so far survives a crash.
    fn durable(&mut self, erases: Erases) {
        self.durable_at = self.inner.mono();
        self.queue.left();
        self.set_unseen(false);
        self.pause = self.inner.options.retry_pause.0;
        self.inner.counters.set_disk(DiskState::Ok);
        self.queue.confirm(erases);
    }

    fn failed(&mut self, error: &DiskError, work: Work, taken: &[Taken]) {
        self.set_unseen(true);
        for Taken { put, copy } in taken {
            self.inner.write_lost(*put, copy);
        }
        add(&self.inner.counters.writes_failed, taken.len() as u64);
        self.queue.give_back(work.deletes, work.erases);
        self.queue.give_back_puts(work.puts);
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.dirty = false;
        match error {
            DiskError::Full(_) => self.medium.keep_less(),
            DiskError::Corrupt(_) => {
                add(&self.inner.counters.corrupt, 1);
                if let Err(error) = self.medium.set_aside() {
                    self.trouble(&error);
                    return;
                }
            }
            DiskError::Failed(_) => {}
        }
        self.trouble(error);
    }

    fn trouble(&self, error: &DiskError) {
        let trouble = DiskTrouble { since: self.inner.mono(), message: error.to_string() };
        self.inner.counters.set_disk(match error {
            DiskError::Full(_) => DiskState::Full(trouble),
            DiskError::Failed(_) | DiskError::Corrupt(_) => DiskState::Failed(trouble),
        });
    }

    fn set_unseen(&mut self, unseen: bool) {
        if self.unseen != unseen {
            self.unseen = unseen;
            self.queue.set_unseen(unseen);
        }
    }

    fn note_size(&self) {
        if let Some(disk) = current(&self.disk) {
            self.inner.counters.disk_bytes.store(disk.bytes(), std::sync::atomic::Ordering::Relaxed);
        }
    }
}
