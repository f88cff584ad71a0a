//! The thread that reads copies back.
//!
//! There is one, with a bounded queue before it, so that a slow disk holds up nothing but the reads themselves. A
//! record that fails its checksum, or is not the one that was asked for, is dropped, counted and never served. What was
//! read is kept in memory.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::Disk;
use super::failure::contain;
use crate::codec::decode_copy;
use crate::copies::{Inner, LoadError};
use crate::copy::StoredCopy;
use crate::health::add;
use crate::key::CopyKey;
use crate::queue::{Purpose, Put, Queue};

/// The disk, while it works.
pub(super) type Current = Mutex<Option<Arc<dyn Disk>>>;

/// The disk, if it works.
pub(super) fn current(disk: &Current) -> Option<Arc<dyn Disk>> {
    disk.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Reads until the store is closed.
pub(super) fn run(inner: &Inner, queue: &Queue, disk: &Current) {
    while let Some(fetch) = queue.next_fetch() {
        if let Purpose::Load(reply) | Purpose::Examine(_, reply) = &fetch.purpose
            && reply.is_closed()
        {
            continue;
        }
        let disk = current(disk).ok_or(LoadError::Unreadable);
        let copy = disk.and_then(|disk| match &fetch.purpose {
            Purpose::Examine(key, _) => examine(inner, queue, &*disk, fetch.put, key),
            Purpose::Load(_) | Purpose::Renew(_) => read(inner, queue, &*disk, fetch.put),
        });
        if copy == Err(LoadError::Unreadable) {
            add(&inner.counters.reads_failed, 1);
        }
        match fetch.purpose {
            Purpose::Load(reply) | Purpose::Examine(_, reply) => {
                // Whoever stopped waiting needs no answer.
                let _ = reply.send(copy);
            }
            Purpose::Renew(renewal) => {
                if let Ok(copy) = copy {
                    inner.renew_read(fetch.put, &copy, &renewal);
                }
            }
        }
    }
}

/// Reads what lay there for a key, although another copy may have taken its place since.
fn examine(
    inner: &Inner,
    queue: &Queue,
    disk: &dyn Disk,
    put: Put,
    key: &CopyKey,
) -> Result<Arc<StoredCopy>, LoadError> {
    let record = record(queue, disk, put)?;
    let found = decode_copy(&record).ok().filter(|(id, found, _)| *id == put.id && *found == *key);
    let Some((_, _, copy)) = found else {
        if inner.index.read(put.shard).live(put.place, put.id).is_some() {
            inner.drop_damaged(put);
        }
        return Err(LoadError::Unreadable);
    };
    Ok(Arc::new(copy))
}

fn record(queue: &Queue, disk: &dyn Disk, put: Put) -> Result<Bytes, LoadError> {
    match contain(|| disk.read(put.id)) {
        Ok(Some(record)) => Ok(record),
        Ok(None) => Err(LoadError::Gone),
        Err(error) => {
            queue.report(error);
            Err(LoadError::Unreadable)
        }
    }
}

/// Reads one copy back, unless it left meanwhile.
fn read(inner: &Inner, queue: &Queue, disk: &dyn Disk, put: Put) -> Result<Arc<StoredCopy>, LoadError> {
    let (key, vary) = {
        let shard = inner.index.read(put.shard);
        let (key, variant) = shard.live(put.place, put.id).ok_or(LoadError::Gone)?;
        (key.unpack().ok_or(LoadError::Gone)?, variant.vary.clone())
    };
    let record = record(queue, disk, put)?;
    let copy = decode_copy(&record)
        .ok()
        .filter(|(id, found, copy)| *id == put.id && *found == key && copy.vary[..] == vary[..])
        .map(|(_, _, copy)| Arc::new(copy));
    let Some(copy) = copy else {
        inner.drop_damaged(put);
        return Err(LoadError::Unreadable);
    };
    if inner.keep_read(put, &copy) { Ok(copy) } else { Err(LoadError::Gone) }
}

impl Inner {
    /// Keeps what was read in memory; `false` if it was withdrawn while it was read.
    fn keep_read(&self, put: Put, copy: &Arc<StoredCopy>) -> bool {
        let mut shard = self.index.write(put.shard);
        if shard.live(put.place, put.id).is_none() {
            return false;
        }
        let Some(variant) = shard.variant_mut(put.place, put.id) else { return false };
        if variant.resident || variant.facts != copy.facts {
            return variant.covers(&copy.facts);
        }
        variant.resident = true;
        let evicted = self.bodies.insert(put.id, copy.clone(), put.shard, put.place);
        drop(shard);
        self.evicted(&evicted);
        true
    }

    /// Drops a damaged record.
    fn drop_damaged(&self, put: Put) {
        add(&self.counters.corrupt, 1);
        let mut shard = self.index.write(put.shard);
        let before = (shard.bytes(), shard.len());
        if let Some(queue) = &self.queue {
            queue.delete_found(&[put.id]);
        }
        self.not_on_disk(&mut shard, put.place, put.id);
        self.account(before, (shard.bytes(), shard.len()));
    }
}
