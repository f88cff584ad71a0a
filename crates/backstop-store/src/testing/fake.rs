//! A disk in memory that stalls, fails and crashes as it is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use backstop_engine::time::Wall;
use bytes::Bytes;

use crate::disk::{Applied, Batch, Disk, DiskError, Found, Medium};

#[derive(Clone, Debug, Default)]
struct Content {
    wall: Option<Wall>,
    withdrawn: BTreeMap<Box<str>, u64>,
    entries: BTreeMap<u64, Vec<u8>>,
    copies: BTreeMap<u64, Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    applied: Content,
    durable: Content,
    stalled: bool,
    stalled_reads: bool,
    failing: Option<DiskError>,
    /// The next reading of everything ends after so many entries: with an error, or in a panic.
    broken_scan: Option<(usize, bool)>,
    /// A batch waits because the disk is stalled.
    waits: bool,
    batches: u64,
}

/// A disk whose content outlives the store; its clones are one disk.
#[derive(Clone, Debug, Default)]
pub struct FakeMedium(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    change: Condvar,
}

impl FakeMedium {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on batches wait, or go on.
    pub fn stall(&self, stalled: bool) {
        self.state().stalled = stalled;
        self.0.change.notify_all();
    }

    /// From here on reads wait, or go on.
    pub fn stall_reads(&self, stalled: bool) {
        self.state().stalled_reads = stalled;
        self.0.change.notify_all();
    }

    /// From here on everything fails like this, or works again.
    pub fn fail(&self, error: Option<DiskError>) {
        self.state().failing = error;
        self.0.change.notify_all();
    }

    /// The next time that everything is read, that ends after `entries` entries: with an error, or in a panic.
    pub fn break_next_scan(&self, entries: usize, panics: bool) {
        self.state().broken_scan = Some((entries, panics));
    }

    /// Goes back to what was durable, as a crash does.
    pub fn crash(&self) {
        let mut state = self.state();
        state.applied = state.durable.clone();
    }

    /// Flips a bit in every copy (`entries`: in every entry).
    pub fn damage(&self, entries: bool) {
        let state = &mut *self.state();
        for content in [&mut state.applied, &mut state.durable] {
            let records = if entries { &mut content.entries } else { &mut content.copies };
            for last in records.values_mut().filter_map(|record| record.last_mut()) {
                *last ^= 1;
            }
        }
    }

    /// Copies held durably.
    pub fn durable_copies(&self) -> usize {
        self.state().durable.copies.len()
    }

    /// Waits until a batch waits for the stalled disk.
    pub fn wait_stalled(&self) {
        let state = self.state();
        drop(self.0.change.wait_while(state, |state| !state.waits));
    }

    /// Waits until `reached` batches were applied.
    pub fn wait_batches(&self, reached: u64) {
        let state = self.state();
        drop(self.0.change.wait_while(state, |state| state.batches < reached));
    }
}

impl Medium for FakeMedium {
    fn open(&mut self) -> Result<Box<dyn Disk>, DiskError> {
        let mut state = self.state();
        if let Some(error) = &state.failing {
            return Err(error.clone());
        }
        state.applied = state.durable.clone();
        drop(state);
        Ok(Box::new(self.clone()))
    }

    fn set_aside(&mut self) -> Result<PathBuf, DiskError> {
        let mut state = self.state();
        state.applied = Content::default();
        state.durable = Content::default();
        Ok(PathBuf::from("aside"))
    }

    fn may_hold_copies(&self) -> bool {
        true
    }

    fn keep_less(&mut self) {}
}

impl Disk for FakeMedium {
    fn scan(&self, show: &mut dyn FnMut(Found<'_>)) -> Result<(), DiskError> {
        let (content, broken) = {
            let mut state = self.state();
            (state.applied.clone(), state.broken_scan.take())
        };
        if let Some(wall) = content.wall {
            show(Found::Wall(wall));
        }
        for (route, sequence) in &content.withdrawn {
            show(Found::Withdrawn { route, sequence: *sequence });
        }
        for (number, (id, bytes)) in content.entries.iter().enumerate() {
            match broken {
                // The panic hook need not print it.
                Some((entries, true)) if number == entries => std::panic::resume_unwind(Box::new("scripted")),
                Some((entries, false)) if number == entries => {
                    return Err(DiskError::Failed("the scan broke off".into()));
                }
                _ => show(Found::Entry { id: *id, bytes }),
            }
        }
        Ok(())
    }

    fn apply(&self, batch: &Batch) -> Result<Applied, DiskError> {
        let mut state = self.state();
        state.waits = state.stalled && state.failing.is_none();
        self.0.change.notify_all();
        let stalled = |state: &mut State| state.stalled && state.failing.is_none();
        let mut state = self.0.change.wait_while(state, stalled).unwrap_or_else(PoisonError::into_inner);
        state.waits = false;
        if let Some(error) = &state.failing {
            return Err(error.clone());
        }
        let content = &mut state.applied;
        for id in &batch.deletes {
            content.entries.remove(id);
            content.copies.remove(id);
        }
        for record in &batch.puts {
            content.entries.insert(record.id, record.entry.clone());
            content.copies.insert(record.id, record.copy.clone());
        }
        content.withdrawn.extend(batch.withdrawn.iter().cloned());
        content.wall = batch.wall.or(content.wall);
        if batch.durable {
            state.durable = state.applied.clone();
        }
        state.batches += 1;
        drop(state);
        self.0.change.notify_all();
        Ok(Applied { evicted: Vec::new(), durable: batch.durable })
    }

    fn read(&self, id: u64) -> Result<Option<Bytes>, DiskError> {
        let state = self.state();
        let stalled = |state: &mut State| state.stalled_reads && state.failing.is_none();
        let state = self.0.change.wait_while(state, stalled).unwrap_or_else(PoisonError::into_inner);
        match &state.failing {
            Some(error) => Err(error.clone()),
            None => Ok(state.applied.copies.get(&id).map(|copy| Bytes::copy_from_slice(copy))),
        }
    }

    fn bytes(&self) -> u64 {
        self.state().applied.copies.values().map(|copy| copy.len() as u64).sum()
    }

    fn largest_copy(&self) -> u64 {
        u64::MAX
    }
}
