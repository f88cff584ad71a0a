//! What waits for the disk's threads.
//!
//! Two lanes lead to the writer. **Withdrawals** are never dropped: they stay until the disk has confirmed them, and
//! the writer always takes them first. They are bounded by what can be withdrawn, and name no target: what a withdrawal
//! leaves here is the identities of the copies that it removed (8 bytes each; there are no more than copies on disk and
//! writes that wait), a bounded memory of what is [leaving](crate::leaving), the name of a route of the policy, and a count. What a disk that cannot be read may hold besides is
//! refused by the marks once it is read. **Puts** are bounded in number and bytes; one more is dropped and
//! counted. A put names a variant, not its content: the writer asks the index for the content when its turn comes, so
//! a newer answer replaces a waiting one, and a put whose variant was withdrawn finds nothing and is skipped.
//!
//! A third queue, of reads, leads to the reader, bounded in number and in the bytes of what comes with them. It never
//! blocks either: one read too many is refused.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstop_engine::time::Wall;
use tokio::sync::oneshot;

use crate::confirm::{Confirmation, WithdrawError};
use crate::copies::{LoadError, OwnedRenewal};
use crate::copy::StoredCopy;
use crate::disk::DiskError;
use crate::index::Place;
use crate::key::CopyKey;
use crate::leaving::{Gone, Leaving};
use crate::options::StoreOptions;

/// Confirmations that may wait before those are let go that nobody waits for any more.
const CONFIRMS: usize = 256;

/// Bytes of fields, chosen by clients and origins, that may wait with the copies that are read back to be renewed.
const RENEWAL_BYTES: usize = 4 * 1024 * 1024;

/// Puts taken together with withdrawals: few, because somebody waits, but some, so that they are not held up for ever.
const PUTS_WITH_ERASES: usize = 8;

/// The next content of a variant waits to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) id: u64,
    pub(crate) shard: u16,
    pub(crate) place: Place,
}

/// Withdrawals: records to delete durably, routes to mark as withdrawn, and who waits for it.
///
/// Bounded although nothing is dropped: identities and routes are each named once, and a confirmation that nobody
/// waits for any more leaves only its count.
#[derive(Debug, Default)]
pub(crate) struct Erases {
    pub(crate) ids: Vec<u64>,
    pub(crate) routes: BTreeSet<Box<str>>,
    pub(crate) confirms: Vec<oneshot::Sender<Result<(), WithdrawError>>>,
    pub(crate) count: u64,
}

impl Erases {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn append(&mut self, mut other: Self) {
        self.ids.append(&mut other.ids);
        self.routes.append(&mut other.routes);
        self.confirms.append(&mut other.confirms);
        self.count += other.count;
    }
}

/// A copy to be read back, and what for.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) put: Put,
    pub(crate) purpose: Purpose,
}

/// What a copy is read back for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// To be served.
    Load(oneshot::Sender<Result<Arc<StoredCopy>, LoadError>>),
    /// To be renewed.
    Renew(Box<OwnedRenewal>),
    /// To be looked at, whether or not it was replaced meanwhile: whose it is, and who wants to know.
    Examine(Box<CopyKey>, oneshot::Sender<Result<Arc<StoredCopy>, LoadError>>),
}

impl Fetch {
    /// The memory that it takes beside itself, in bytes.
    fn bytes(&self) -> usize {
        match &self.purpose {
            Purpose::Load(_) => 0,
            Purpose::Examine(key, _) => key.bytes(),
            Purpose::Renew(renewal) => renewal.bytes(),
        }
    }
}

/// What the writer takes at once.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Records to delete when convenient: copies that the index dropped.
    pub(crate) deletes: Vec<u64>,
    pub(crate) erases: Erases,
    pub(crate) puts: VecDeque<Put>,
    pub(crate) wall: Option<Wall>,
    pub(crate) sweep: bool,
    pub(crate) closing: bool,
    /// A read said that the disk no longer works.
    pub(crate) reported: Option<DiskError>,
}

impl Work {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.deletes.is_empty()
            && self.erases.is_empty()
            && self.puts.is_empty()
            && self.wall.is_none()
            && !self.sweep
    }
}

#[derive(Debug, Default)]
struct Lanes {
    deletes: Vec<u64>,
    erases: Erases,
    puts: VecDeque<Put>,
    fetches: VecDeque<Fetch>,
    fetch_bytes: usize,
    wall: Option<Wall>,
    sweep: bool,
    closing: bool,
    closed: bool,
    unseen: bool,
    /// What the deletions and withdrawals delete that wait here.
    leaving: Leaving,
    /// And those that the writer took and that are not durable yet.
    taken: Leaving,
    /// Routes that are being withdrawn, and of which nobody knows yet whether they had copies.
    undecided: u64,
    reported: Option<DiskError>,
}

/// The queues, shared by requests and the disk's threads.
#[derive(Debug)]
pub(crate) struct Queue {
    lanes: Mutex<Lanes>,
    work: Condvar,
    fetch: Condvar,
    closed: Condvar,
    put_limit: usize,
    byte_limit: u64,
    fetch_limit: usize,
    bytes: AtomicU64,
    waiting: AtomicU64,
    unconfirmed: AtomicU64,
}

/// A route is being withdrawn.
#[derive(Debug)]
pub(crate) struct Undecided<'q>(&'q Queue);

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.0.lanes().undecided -= 1;
    }
}

impl Queue {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        Self {
            lanes: Mutex::default(),
            work: Condvar::new(),
            fetch: Condvar::new(),
            closed: Condvar::new(),
            put_limit: options.queue_len,
            byte_limit: options.queue_bytes,
            fetch_limit: options.read_queue_len,
            bytes: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            unconfirmed: AtomicU64::new(0),
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for content of `new` bytes in place of waiting content of `old` bytes.
    pub(crate) fn reserve(&self, new: u64, old: Option<u64>) -> bool {
        let freed = old.unwrap_or(0);
        let fits = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
            let after = bytes.saturating_sub(freed).saturating_add(new);
            (after <= self.byte_limit).then_some(after)
        });
        if fits.is_ok() && old.is_none() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        fits.is_ok()
    }

    /// Gives back the room of content that was written, dropped or withdrawn.
    pub(crate) fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Queues a put; `false` if the lane is full.
    pub(crate) fn put(&self, put: Put) -> bool {
        let mut lanes = self.lanes();
        if lanes.closing || lanes.puts.len() >= self.put_limit {
            return false;
        }
        lanes.puts.push_back(put);
        if lanes.puts.len() == 1 {
            self.work.notify_one();
        }
        true
    }

    /// Deletes records when convenient. They count as leaving until that is durable. Called under the lock of their shard, as
    /// is [`Queue::erase`]: whoever finds them there no more finds them here.
    pub(crate) fn delete(&self, gone: &[Gone]) {
        let mut lanes = self.lanes();
        lanes.deletes.extend(gone.iter().map(|gone| gone.id));
        gone.iter().for_each(|gone| lanes.leaving.add(Some(gone.site)));
        self.work.notify_one();
    }

    /// Deletes records that the disk turned out to hold. It is read again after every failure and shows them each time,
    /// so those that are queued already are not queued once more.
    pub(crate) fn delete_found(&self, ids: &[u64]) {
        if ids.is_empty() {
            return;
        }
        let mut lanes = self.lanes();
        lanes.deletes.extend_from_slice(ids);
        lanes.deletes.sort_unstable();
        lanes.deletes.dedup();
        lanes.leaving.add(None);
        self.work.notify_one();
    }

    /// The disk had no room for a record any more; of which host and path it is, unless nobody can tell.
    pub(crate) fn evicted(&self, site: Option<u64>) {
        self.lanes().taken.add(site);
    }

    /// Everything that was taken is durable now.
    pub(crate) fn left(&self) {
        self.lanes().taken = Leaving::default();
    }

    /// A route is about to be withdrawn. Until that is dropped, its copies may be leaving.
    pub(crate) fn undecided(&self) -> Undecided<'_> {
        self.lanes().undecided += 1;
        Undecided(self)
    }

    /// Whether the file may hold a record of this host and path, or any at all, that the index no longer knows.
    pub(crate) fn may_hold_unknown(&self, site: Option<u64>) -> bool {
        let lanes = self.lanes();
        lanes.unseen || lanes.undecided > 0 || lanes.leaving.may_hold(site) || lanes.taken.may_hold(site)
    }

    /// Queues a withdrawal of records.
    pub(crate) fn erase(&self, gone: &[Gone]) -> Confirmation {
        let mut lanes = self.lanes();
        gone.iter().for_each(|gone| lanes.leaving.add(Some(gone.site)));
        let ids = gone.iter().map(|gone| gone.id).collect();
        self.withdraw(lanes, Erases { ids, ..Erases::default() })
    }

    /// Queues a withdrawal of a whole route. `stored`: it had copies.
    pub(crate) fn erase_route(&self, route: Box<str>, stored: bool) -> Confirmation {
        let mut lanes = self.lanes();
        if stored {
            lanes.leaving.add(None);
        }
        lanes.sweep = true;
        self.withdraw(lanes, Erases { routes: BTreeSet::from([route]), ..Erases::default() })
    }

    fn withdraw(&self, mut lanes: MutexGuard<'_, Lanes>, erases: Erases) -> Confirmation {
        let (confirm, confirmation) = Confirmation::channel();
        self.unconfirmed.fetch_add(1, Ordering::Relaxed);
        if lanes.closed {
            return confirmation;
        }
        if lanes.erases.confirms.len() >= CONFIRMS {
            lanes.erases.confirms.retain(|confirm| !confirm.is_closed());
        }
        lanes.erases.append(Erases { confirms: vec![confirm], count: 1, ..erases });
        self.work.notify_one();
        confirmation
    }

    /// Tells everybody who waits that withdrawals are durable.
    pub(crate) fn confirm(&self, erases: Erases) {
        self.unconfirmed.fetch_sub(erases.count, Ordering::Relaxed);
        for confirm in erases.confirms {
            // Whoever stopped waiting needs no answer.
            let _ = confirm.send(Ok(()));
        }
    }

    /// Raises the date to persist.
    pub(crate) fn wall(&self, wall: Wall) {
        self.lanes().wall = Some(wall);
        self.work.notify_one();
    }

    /// Tells the writer that the disk no longer works.
    pub(crate) fn report(&self, error: DiskError) {
        self.lanes().reported = Some(error);
        self.work.notify_one();
    }

    /// Queues a read; gives it back if too many wait.
    pub(crate) fn fetch(&self, fetch: Fetch) -> Result<(), Fetch> {
        let mut lanes = self.lanes();
        let bytes = lanes.fetch_bytes.saturating_add(fetch.bytes());
        if lanes.closing || lanes.fetches.len() >= self.fetch_limit || bytes > RENEWAL_BYTES {
            return Err(fetch);
        }
        lanes.fetch_bytes = bytes;
        lanes.fetches.push_back(fetch);
        self.fetch.notify_one();
        Ok(())
    }

    /// Waits for the next read; `None` once the store is closing.
    pub(crate) fn next_fetch(&self) -> Option<Fetch> {
        let mut lanes = self.lanes();
        loop {
            if let Some(fetch) = lanes.fetches.pop_front() {
                lanes.fetch_bytes -= fetch.bytes();
                return Some(fetch);
            }
            if lanes.closing {
                return None;
            }
            lanes = self.fetch.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for work, at most `patience` (`None`: as long as it takes), and takes up to `puts` puts of it.
    pub(crate) fn next_work(&self, patience: Option<Duration>, puts: usize) -> Work {
        let idle = |lanes: &mut Lanes| {
            lanes.deletes.is_empty()
                && lanes.erases.is_empty()
                && lanes.puts.is_empty()
                && lanes.wall.is_none()
                && lanes.reported.is_none()
                && !lanes.closing
        };
        let lanes = self.lanes();
        let mut lanes = match patience {
            Some(patience) => {
                self.work.wait_timeout_while(lanes, patience, idle).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.work.wait_while(lanes, idle).unwrap_or_else(PoisonError::into_inner),
        };
        let leaving = std::mem::take(&mut lanes.leaving);
        lanes.taken.append(leaving);
        let most = if lanes.erases.is_empty() { puts } else { puts.min(PUTS_WITH_ERASES) };
        let puts = most.min(lanes.puts.len());
        Work {
            deletes: std::mem::take(&mut lanes.deletes),
            erases: std::mem::take(&mut lanes.erases),
            puts: lanes.puts.drain(..puts).collect(),
            wall: lanes.wall.take(),
            sweep: std::mem::take(&mut lanes.sweep),
            closing: lanes.closing,
            reported: lanes.reported.take(),
        }
    }

    /// Gives back what could not be done and must not be lost.
    pub(crate) fn give_back(&self, mut deletes: Vec<u64>, erases: Erases) {
        let mut lanes = self.lanes();
        deletes.append(&mut lanes.deletes);
        lanes.deletes = deletes;
        lanes.erases.append(erases);
    }

    /// Gives back puts that found no room in a batch, before those that wait.
    pub(crate) fn give_back_puts(&self, mut puts: VecDeque<Put>) {
        if !puts.is_empty() {
            let mut lanes = self.lanes();
            puts.append(&mut lanes.puts);
            lanes.puts = puts;
        }
    }

    /// Says whether the file may hold records that the index does not know: before it was read, and after a failed
    /// write until it was compared again.
    pub(crate) fn set_unseen(&self, unseen: bool) {
        self.lanes().unseen = unseen;
    }

    /// Pauses; `true` if the store is closing.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let lanes = self.lanes();
        self.work
            .wait_timeout_while(lanes, pause, |lanes| !lanes.closing)
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .closing
    }

    /// Asks the threads to finish what is queued and to end.
    pub(crate) fn close(&self) {
        self.lanes().closing = true;
        self.work.notify_all();
        self.fetch.notify_all();
    }

    /// The writer has ended. What is still queued is lost, and whoever waits is told.
    pub(crate) fn set_closed(&self) {
        let mut lanes = self.lanes();
        lanes.closed = true;
        lanes.closing = true;
        lanes.erases = Erases::default();
        lanes.fetches.clear();
        lanes.fetch_bytes = 0;
        self.closed.notify_all();
    }

    /// Waits until the writer has ended, at most `bound`.
    pub(crate) fn wait_closed(&self, bound: Duration) -> bool {
        let lanes = self.lanes();
        self.closed
            .wait_timeout_while(lanes, bound, |lanes| !lanes.closed)
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .closed
    }

    /// Copies that wait to be written.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Memory that waiting withdrawals take, in bytes.
    #[cfg(test)]
    pub(crate) fn erase_bytes(&self) -> usize {
        let Erases { ids, routes, confirms, count: _ } = &self.lanes().erases;
        ids.capacity() * size_of::<u64>()
            + routes.iter().map(|route| size_of_val(route) + route.len()).sum::<usize>()
            + confirms.capacity() * size_of::<oneshot::Sender<Result<(), WithdrawError>>>()
    }

    /// Withdrawals that are not confirmed yet.
    pub(crate) fn unconfirmed(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
