//! Where a key is to be looked for.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use super::SHARDS;
use crate::key::CopyKey;

/// The hashes of a key, taken once. Keyed, so that nobody outside can choose paths that collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// Of host and path.
    pub(crate) site: u64,
    /// Of the target; tells most targets of a path apart.
    pub(crate) target: u32,
    /// Of the whole key.
    pub(crate) key: u64,
}

impl Located {
    pub(super) fn new(hash: &RandomState, key: &CopyKey) -> Self {
        let mut hasher = hash.build_hasher();
        hasher.write(key.target.site());
        let site = hasher.finish();
        key.target.query().hash(&mut hasher);
        let target = hasher.finish() as u32;
        key.route.hash(&mut hasher);
        hasher.write(&key.partition);
        Self { site, target, key: hasher.finish() }
    }

    /// The number of the shard.
    pub(crate) fn shard(self) -> u16 {
        shard(self.site)
    }
}

/// Where what lies below a path is to be looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocatedBelow {
    /// Of host and path.
    pub(crate) site: u64,
    /// Of the target, if it is one.
    pub(crate) target: Option<u32>,
}

impl LocatedBelow {
    pub(super) fn new(hash: &RandomState, site: &[u8], query: Option<Option<&str>>) -> Self {
        let mut hasher = hash.build_hasher();
        hasher.write(site);
        let site = hasher.finish();
        let target = query.map(|query| {
            query.hash(&mut hasher);
            hasher.finish() as u32
        });
        Self { site, target }
    }

    /// The number of the shard.
    pub(crate) fn shard(self) -> u16 {
        shard(self.site)
    }
}

/// The shard of a path. From the middle of its hash: the maps use both ends.
fn shard(site: u64) -> u16 {
    (site >> 32) as u16 % SHARDS as u16
}

/// Hashes what is a hash already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
