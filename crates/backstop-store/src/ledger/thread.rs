//! A ledger with one writing thread, on any rows.

use std::sync::Arc;
use std::time::Duration;

use backstop_engine::operation::{
    ClientKey, Decision, Epoch, Intent, IntentError, OperationId, Record, Report, Scope, SecondLook,
};
use backstop_engine::time::Now;

use super::batch::{Batch, Command, Done, Tally, Work};
use super::completion::{Completes, Completion, LedgerError};
use super::history::Resolution;
use super::options::LedgerOptions;
use super::queue::{Lane, NotQueued, Queue};
use super::rows::{Filter, Rows, RowsError, SecondLooks};
use super::standing::{Counters, LedgerStanding, add};
use super::writer::Writer;
use super::{Begun, Claimed, Ledger, Recorded, Shown, Swept, Upkeep};

/// How many records one transaction of the recovery takes over.
const RECOVERED: usize = 1000;

/// A ledger whose rows one thread writes, many operations with one sync. Dropped, it finishes what waits and ends; whether it
/// has can be seen by [`Ledger::close`].
#[derive(Debug)]
pub struct ThreadLedger {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    epoch: Epoch,
}

impl ThreadLedger {
    /// Begins a new life of these rows: what was under way in an earlier one is unknown from now on. `entropy`: 64 random bits.
    ///
    /// # Errors
    /// If the rows cannot be read or written, or the thread cannot be started.
    pub fn open(
        mut rows: Box<dyn Rows>,
        options: LedgerOptions,
        entropy: u64,
        now: Now,
    ) -> Result<Self, RowsError> {
        let epoch = rows.next_epoch()?;
        recover(&mut *rows, epoch, entropy, &now)?;
        Self::start(rows, epoch, options)
    }

    /// A second ledger on rows that are shared, in the same life: as two replicas have one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(any(test, feature = "testing"))]
    pub fn beside(rows: Box<dyn Rows>, options: LedgerOptions, epoch: Epoch) -> Result<Self, RowsError> {
        Self::start(rows, epoch, options)
    }

    fn start(mut rows: Box<dyn Rows>, epoch: Epoch, options: LedgerOptions) -> Result<Self, RowsError> {
        let counters = Arc::new(Counters::default());
        rows.begin()?;
        counters.set_states(rows.counts()?);
        counters.set_oldest(rows.oldest("unknown")?, rows.oldest("attention")?);
        rows.commit()?;
        let is_full = !rows.take_reserve();
        counters.is_full.store(u64::from(is_full), std::sync::atomic::Ordering::Relaxed);
        let queue = Arc::new(Queue::new(options.queue_len));
        let writer = Writer {
            rows,
            epoch,
            queue: queue.clone(),
            counters: counters.clone(),
            options,
            is_full,
            raised: Vec::new(),
            raised_left_out: 0,
        };
        std::thread::Builder::new()
            .name("backstop-ledger".into())
            .spawn(move || writer.run())
            .map_err(|error| RowsError::Failed(error.to_string()))?;
        Ok(Self { queue, counters, epoch })
    }

    fn send<T>(&self, lane: Lane, work: Work, done: impl FnOnce(Completes<T>) -> Done) -> Completion<T> {
        let (completes, completion) = Completion::channel();
        match self.queue.push(lane, Command { work, done: done(completes) }) {
            Ok(()) => completion,
            Err(NotQueued::Closed) => Completion::refused(LedgerError::Closed),
            Err(NotQueued::Full) => {
                add(&self.counters.queue_full, 1);
                Completion::refused(LedgerError::QueueFull)
            }
        }
    }
}

fn recover(rows: &mut dyn Rows, epoch: Epoch, entropy: u64, now: &Now) -> Result<(), RowsError> {
    loop {
        rows.begin()?;
        let mut batch = Batch { rows: &mut *rows, epoch, may_begin: false, tally: Tally::default() };
        let recovered = batch.recover(entropy, RECOVERED, now)?;
        rows.commit()?;
        if recovered < RECOVERED {
            return Ok(());
        }
    }
}

impl Ledger for ThreadLedger {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn begin(&self, intent: Intent, now: Now) -> Completion<Result<Begun, IntentError>> {
        self.send(Lane::Requests, Work::Begin(Box::new(intent), now), Done::Begun)
    }

    fn record(&self, report: Report, now: Now) -> Completion<Recorded> {
        self.send(Lane::Outcomes, Work::Record(Box::new(report), now), Done::Recorded)
    }

    fn look(&self, scope: Scope, id: OperationId, now: Now) -> Completion<Option<Box<Record>>> {
        self.send(Lane::Requests, Work::Look(scope, id, now), Done::Looked)
    }

    fn find(&self, scope: Scope, key: ClientKey, now: Now) -> Completion<Option<Box<Record>>> {
        self.send(Lane::Requests, Work::Find(scope, key, now), Done::Looked)
    }

    fn claim(&self, route: &str, most: usize, query_timeout: Duration, now: Now) -> Completion<Claimed> {
        self.send(Lane::Upkeep, Work::Claim(route.into(), most, query_timeout, now), Done::Claimed)
    }

    fn sweep(&self, upkeep: Arc<[Upkeep]>, entropy: u64, now: Now) -> Completion<Swept> {
        self.send(Lane::Upkeep, Work::Sweep(upkeep, entropy, now), Done::Swept)
    }

    fn second_looks(&self, route: &str, which: SecondLooks) -> Completion<Vec<SecondLook>> {
        self.send(Lane::Upkeep, Work::SecondLooks(route.into(), which), Done::SecondLooks)
    }

    fn routes(&self) -> Completion<Vec<Box<str>>> {
        self.send(Lane::Upkeep, Work::Routes, Done::Routes)
    }

    fn list(&self, filter: Filter) -> Completion<Vec<Record>> {
        self.send(Lane::Requests, Work::List(filter), Done::Listed)
    }

    fn show(&self, id: OperationId) -> Completion<Option<Shown>> {
        self.send(Lane::Requests, Work::Show(id), Done::Shown)
    }

    fn resolve(&self, id: OperationId, decision: Decision, by: Resolution, now: Now) -> Completion<Recorded> {
        self.send(Lane::Requests, Work::Resolve(id, decision, by, now), Done::Recorded)
    }

    fn standing(&self, now: Now) -> LedgerStanding {
        self.counters.standing(self.queue.waiting(), &now)
    }

    fn close(&self, bound: Duration) -> bool {
        self.queue.close();
        self.queue.wait_ended(bound)
    }
}

impl Drop for ThreadLedger {
    fn drop(&mut self) {
        self.queue.close();
    }
}
