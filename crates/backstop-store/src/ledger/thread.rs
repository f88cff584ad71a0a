//! A ledger with one writing thread, on any rows; or with none, for whoever must not wait for another thread.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
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
pub struct ThreadLedger {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    epoch: Epoch,
    /// Who writes where no thread does: at once, before the call returns.
    at_once: Option<Mutex<Writer>>,
}

impl fmt::Debug for ThreadLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadLedger").field("epoch", &self.epoch).finish_non_exhaustive()
    }
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

    /// A ledger that has done what it is asked when the call returns, on the thread of whoever asks: for rows that answer at
    /// once, and for those to whom time may not go on meanwhile.
    ///
    /// # Errors
    /// If the rows cannot be read or written.
    pub fn at_once(mut rows: Box<dyn Rows>, options: LedgerOptions) -> Result<Self, RowsError> {
        let epoch = rows.next_epoch()?;
        let writer = Self::writer(rows, epoch, options)?;
        let (queue, counters) = (Arc::clone(&writer.queue), Arc::clone(&writer.counters));
        Ok(Self { queue, counters, epoch, at_once: Some(Mutex::new(writer)) })
    }

    /// A second ledger on rows that are shared, in the same life: as two replicas have one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(any(test, feature = "testing"))]
    pub fn beside(rows: Box<dyn Rows>, options: LedgerOptions, epoch: Epoch) -> Result<Self, RowsError> {
        Self::start(rows, epoch, options)
    }

    fn start(rows: Box<dyn Rows>, epoch: Epoch, options: LedgerOptions) -> Result<Self, RowsError> {
        let writer = Self::writer(rows, epoch, options)?;
        let (queue, counters) = (Arc::clone(&writer.queue), Arc::clone(&writer.counters));
        std::thread::Builder::new()
            .name("backstop-ledger".into())
            .spawn(move || writer.run())
            .map_err(|error| RowsError::Failed(error.to_string()))?;
        Ok(Self { queue, counters, epoch, at_once: None })
    }

    fn writer(mut rows: Box<dyn Rows>, epoch: Epoch, options: LedgerOptions) -> Result<Writer, RowsError> {
        let counters = Arc::new(Counters::default());
        rows.begin()?;
        counters.set_states(rows.counts()?);
        counters.set_oldest(rows.oldest("unknown")?, rows.oldest("attention")?);
        rows.commit()?;
        let is_full = !rows.take_reserve();
        counters.is_full.store(u64::from(is_full), std::sync::atomic::Ordering::Relaxed);
        let queue = Arc::new(Queue::new(options.queue_len));
        let raised = Vec::new();
        Ok(Writer { rows, epoch, queue, counters, options, is_full, raised, raised_left_out: 0 })
    }

    fn send<T>(&self, lane: Lane, work: Work, done: impl FnOnce(Completes<T>) -> Done) -> Completion<T> {
        let (completes, completion) = Completion::channel();
        if let Some(writer) = &self.at_once {
            // A transaction that a panic left open is refused by the rows, not taken up here.
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let _closed_if_it_failed = writer.does(vec![Command { work, done: done(completes) }]);
            return completion;
        }
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
        self.at_once.is_some() || self.queue.wait_ended(bound)
    }
}

impl Drop for ThreadLedger {
    fn drop(&mut self) {
        self.queue.close();
    }
}
