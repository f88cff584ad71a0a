//! The index: every copy that exists, also those that lie only on disk, so that asking for one is never a disk read.
//!
//! It is split into shards by the hash of host and path, each under its own lock, so that no lock is shared by all
//! requests and a withdrawal of a path touches one shard. Hashing is keyed with a random key per store, because paths
//! are chosen by whoever sends requests; keys are always compared in full.
//!
//! Within a shard a slab holds the entries; one map finds them by the hash of their key, another by that of their path.
//! An entry holds its key in one piece and its first variant in place, because what a look-up costs is the memory that it
//! touches. The index is bounded in bytes: the oldest of a few entries under a moving hand is dropped for a new one, which
//! approximates oldest first.
//!
//! **Lock order**: a shard, then bodies in memory or the queues of the disk. Never two shards at once, never a shard
//! from inside the others.

mod located;
mod shard;
mod variant;
mod variants;

pub(crate) use located::{Located, LocatedBelow};
pub(crate) use shard::{Place, Removed, Shard};
pub(crate) use variant::{Queued, Stored, THIS_LIFE, Variant};

use std::hash::RandomState;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::key::CopyKey;

/// Shards; a power of two.
pub(crate) const SHARDS: usize = 64;

/// All shards.
#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[RwLock<Shard>]>,
    hash: RandomState,
    bytes_per_shard: usize,
}

impl Index {
    /// An index of at most `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hash: RandomState::new(),
            bytes_per_shard: usize::try_from(bytes).unwrap_or(usize::MAX) / SHARDS,
        }
    }

    /// The most bytes that one shard may hold.
    pub(crate) fn bytes_per_shard(&self) -> usize {
        self.bytes_per_shard
    }

    /// Where a key is to be looked for.
    pub(crate) fn locate(&self, key: &CopyKey) -> Located {
        Located::new(&self.hash, key)
    }

    /// Where what lies below a path, or what belongs to one target of it (`Some(query)`), is to be looked for.
    pub(crate) fn locate_below(&self, site: &[u8], query: Option<Option<&str>>) -> LocatedBelow {
        LocatedBelow::new(&self.hash, site, query)
    }

    /// A shard, to read.
    pub(crate) fn read(&self, shard: u16) -> RwLockReadGuard<'_, Shard> {
        self.shards[usize::from(shard)].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A shard, to change.
    pub(crate) fn write(&self, shard: u16) -> RwLockWriteGuard<'_, Shard> {
        self.shards[usize::from(shard)].write().unwrap_or_else(PoisonError::into_inner)
    }
}
