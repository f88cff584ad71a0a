//! The store as requests see it. No call waits: neither for the disk, nor for a queue, nor for another request beyond
//! the short lock of one shard.

mod put;
mod read;
mod renew;
mod withdraw;
mod write_back;

pub use put::PutOutcome;
pub use read::{LoadError, Loaded};
pub(crate) use renew::OwnedRenewal;
pub use renew::{Judge, RenewOutcome, Renewal};
pub use withdraw::{Withdrawal, Withdrawn};

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use backstop_engine::time::{Mono, Now, Wall};

use crate::bodies::{Bodies, Evicted};
use crate::health::{Counters, StoreHealth, add};
use crate::holds::Holds;
use crate::index::{Index, Removed, SHARDS, Shard};
use crate::leaving::Gone;
use crate::marks::ReadTicket;
use crate::options::StoreOptions;
use crate::queue::Queue;
use crate::routes::Routes;

/// The last correct answers. A handle: clones share one store, which ends with the last of them.
#[derive(Clone, Debug)]
pub struct Copies {
    inner: Arc<Inner>,
    _closer: Option<Arc<Closer>>,
}

/// Lets the disk's threads end once nobody can ask any more.
#[derive(Debug)]
struct Closer(Arc<Queue>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What requests and the disk's threads share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) index: Index,
    pub(crate) bodies: Bodies,
    pub(crate) routes: Routes,
    pub(crate) holds: Holds,
    pub(crate) counters: Counters,
    /// `None` if the store is memory only.
    pub(crate) queue: Option<Arc<Queue>>,
    pub(crate) options: StoreOptions,
    generation: AtomicU64,
    next_id: AtomicU64,
    mono: AtomicU64,
    wall: AtomicI64,
    wall_sent: AtomicI64,
    /// One bit for each shard that holds copies of a withdrawn route.
    stale_shards: AtomicU64,
}

impl Copies {
    /// A store that keeps at most `limit_bytes` of copies in memory and nothing anywhere else.
    pub fn memory(limit_bytes: u64) -> Self {
        let options = StoreOptions {
            memory_bytes: limit_bytes,
            index_bytes: (limit_bytes / 2).max(1024 * 1024),
            ..StoreOptions::new("")
        };
        Self::memory_with(options)
    }

    /// Memory only, with every limit chosen; what concerns the disk is not used.
    pub fn memory_with(options: StoreOptions) -> Self {
        Self { inner: Arc::new(Inner::new(options, None)), _closer: None }
    }

    /// Without the feature `redb` there is no file to open: copies are kept in memory only, and the report says so.
    #[cfg(not(feature = "redb"))]
    pub fn open(options: StoreOptions, now: Now) -> (Self, crate::OpenReport) {
        let message = "this build has no file of copies (feature `redb`): memory only".to_owned();
        let disk = crate::DiskState::Failed(crate::DiskTrouble { since: now.mono, message });
        let store = Self::memory_with(options);
        store.inner.counters.set_disk(disk.clone());
        (store, crate::OpenReport { disk, ..crate::OpenReport::default() })
    }

    pub(crate) fn with_queue(inner: Arc<Inner>, queue: Arc<Queue>) -> Self {
        Self { inner, _closer: Some(Arc::new(Closer(queue))) }
    }

    /// Says that a read of an upstream begins now. Taken before the upstream is asked, and handed in with the answer.
    pub fn begin_read(&self, now: Now) -> ReadTicket {
        ReadTicket::new(self.inner.generation.load(Ordering::SeqCst), now)
    }

    /// Remembers how far the date has come, so that a later life notices if it ran back. Cheap; called as often as
    /// is convenient, at least every few seconds.
    pub fn note_wall(&self, now: Now) {
        self.inner.note_mono(now);
        let wall = now.wall.as_unix_ns();
        if self.inner.wall.fetch_max(wall, Ordering::Relaxed) >= wall {
            return;
        }
        if let Some(queue) = &self.inner.queue {
            let interval = i64::try_from(self.inner.options.wall_interval.as_nanos()).unwrap_or(i64::MAX);
            let sent = self.inner.wall_sent.load(Ordering::Relaxed);
            if wall >= sent.saturating_add(interval)
                && self
                    .inner
                    .wall_sent
                    .compare_exchange(sent, wall, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                queue.wall(now.wall);
            }
        }
    }

    /// The latest date that this or an earlier life of the store was told; `i64::MIN` if none.
    pub fn high_water_wall(&self) -> Wall {
        self.inner.wall()
    }

    /// Counters, levels and the state of the disk.
    pub fn health(&self) -> StoreHealth {
        let mut health = self.inner.counters.read();
        health.memory_bytes = self.inner.bodies.bytes();
        if let Some(queue) = &self.inner.queue {
            health.writes_queued = queue.waiting();
            health.withdrawals_unconfirmed = queue.unconfirmed();
        }
        health
    }

    /// Writes what is queued and ends the disk's threads, waiting at most `bound`. `false` if that was not enough;
    /// they go on alone. Blocks the calling thread. From here on nothing more is written, whichever handle it is
    /// put through.
    pub fn close(self, bound: Duration) -> bool {
        match &self.inner.queue {
            Some(queue) => {
                queue.close();
                queue.wait_closed(bound)
            }
            None => true,
        }
    }
}

impl Inner {
    pub(crate) fn new(options: StoreOptions, queue: Option<Arc<Queue>>) -> Self {
        Self {
            index: Index::new(options.index_bytes),
            bodies: Bodies::new(options.memory_bytes),
            routes: Routes::default(),
            holds: Holds::default(),
            counters: Counters::default(),
            queue,
            options,
            generation: AtomicU64::new(1),
            // Identities are never reused between lives: each life starts at a random place.
            next_id: AtomicU64::new(RandomState::new().hash_one("identity") >> 1),
            mono: AtomicU64::new(0),
            wall: AtomicI64::new(i64::MIN),
            wall_sent: AtomicI64::new(i64::MIN),
            stale_shards: AtomicU64::new(0),
        }
    }

    /// An identity for a new variant.
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The generation of a new withdrawal.
    fn new_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The latest moment that the store was told.
    pub(crate) fn mono(&self) -> Mono {
        Mono::from_ns(self.mono.load(Ordering::Relaxed))
    }

    /// The latest date that the store was told.
    pub(crate) fn wall(&self) -> Wall {
        Wall::from_unix_ns(self.wall.load(Ordering::Relaxed))
    }

    /// The date that an earlier life had reached.
    pub(crate) fn adopt_wall(&self, wall: Wall) {
        self.wall.fetch_max(wall.as_unix_ns(), Ordering::Relaxed);
        self.wall_sent.fetch_max(wall.as_unix_ns(), Ordering::Relaxed);
    }

    pub(crate) fn note_mono(&self, now: Now) {
        self.mono.fetch_max(now.mono.as_ns(), Ordering::Relaxed);
    }

    /// The oldest moment whose withdrawals are still remembered.
    fn mark_horizon(&self, now: Now) -> Mono {
        now.mono.before(self.options.mark_lifetime)
    }

    /// Keeps the totals of the index after a shard changed from (`bytes`, `entries`) to what it is now.
    pub(crate) fn account(&self, before: (usize, usize), after: (usize, usize)) {
        let step = |counter: &AtomicU64, before: usize, after: usize| {
            counter.fetch_add((after as u64).wrapping_sub(before as u64), Ordering::Relaxed);
        };
        step(&self.counters.index_bytes, before.0, after.0);
        step(&self.counters.entries, before.1, after.1);
    }

    /// Lets go of what variants that left the index still hold in memory and in the queue. Called under the lock of
    /// their shard, so that nobody finds them in between. The records that the disk holds of them are returned.
    pub(crate) fn release(&self, removed: &[Removed]) -> Vec<Gone> {
        let mut on_disk = Vec::new();
        for Removed { variant, site } in removed {
            if variant.resident {
                self.bodies.remove(variant.id);
            }
            if let (Some(queued), Some(queue)) = (&variant.queued, &self.queue) {
                queue.release(queued.copy.weight());
            }
            if variant.touched_disk() {
                on_disk.push(Gone { id: variant.id, site: *site });
            }
        }
        on_disk
    }

    /// As [`Inner::release`], and has the records deleted when convenient.
    pub(crate) fn forget(&self, removed: &[Removed]) {
        let on_disk = self.release(removed);
        if let Some(queue) = &self.queue
            && !on_disk.is_empty()
        {
            queue.delete(&on_disk);
        }
    }

    /// Follows up on copies that had to leave memory: they stay if the disk has them. Takes one shard after the
    /// other, so the caller holds none.
    pub(crate) fn evicted(&self, evicted: &Evicted) {
        if evicted.is_empty() {
            return;
        }
        add(&self.counters.memory_evictions, evicted.len() as u64);
        for (id, shard, place) in evicted {
            let mut shard = self.index.write(*shard);
            let before = (shard.bytes(), shard.len());
            if self.bodies.contains(*id) {
                continue;
            }
            let mut removed = Vec::new();
            if let Some(variant) = shard.variant_mut(*place, *id) {
                variant.resident = false;
                if !variant.settle() {
                    shard.remove_variant(*place, *id, &mut removed);
                }
            }
            self.forget(&removed);
            self.account(before, (shard.bytes(), shard.len()));
        }
    }

    /// Says that every shard may hold copies of a withdrawn route. Without a thread of its own the store removes them
    /// when something is next put into the shard.
    fn stale_everywhere(&self) {
        self.stale_shards.store(u64::MAX, Ordering::SeqCst);
    }

    /// Removes what routes have withdrawn from a shard, if that was not done yet.
    fn sweep_stale(&self, number: u16, shard: &mut Shard) {
        let bit = 1 << number;
        if self.stale_shards.load(Ordering::Relaxed) & bit != 0 {
            self.stale_shards.fetch_and(!bit, Ordering::SeqCst);
            self.sweep_shard(shard);
        }
    }

    /// Removes what routes have withdrawn, shard by shard.
    pub(crate) fn sweep(&self) {
        for shard in 0..SHARDS as u16 {
            self.sweep_shard(&mut self.index.write(shard));
        }
    }

    fn sweep_shard(&self, shard: &mut Shard) {
        let before = (shard.bytes(), shard.len());
        let mut removed = Vec::new();
        shard.sweep(&mut removed);
        self.forget(&removed);
        self.account(before, (shard.bytes(), shard.len()));
    }
}
