//! Copies in memory: a map bounded by the bytes it holds, in front of the disk.
//!
//! It knows no time: whether a copy is too old is for the policy to say, and a copy that is too old for one route may
//! be young enough for another. What leaves it is S3-FIFO's choice: copies that were never asked for go first.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};

use crate::copy::StoredCopy;
use crate::index::Place;

/// Each part of the map holds at least this much, so that one large copy does not empty it.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// The most parts.
const PARTS: u64 = 64;

/// A copy that had to leave: its identity and where the index has it.
pub(crate) type Evicted = Vec<(u64, u16, Place)>;

#[derive(Clone, Debug)]
struct Held {
    copy: Arc<StoredCopy>,
    weight: u64,
    shard: u16,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Weight;

impl Weighter<u64, Held> for Weight {
    fn weight(&self, _: &u64, held: &Held) -> u64 {
        held.weight
    }
}

#[derive(Clone, Copy, Debug)]
struct Collect;

impl Lifecycle<u64, Held> for Collect {
    type RequestState = Evicted;

    fn on_evict(&self, evicted: &mut Evicted, id: u64, held: Held) {
        evicted.push((id, held.shard, held.place));
    }
}

/// Copies in memory, by identity.
#[derive(Debug)]
pub(crate) struct Bodies {
    map: Cache<u64, Held, Weight, DefaultHashBuilder, Collect>,
    largest: u64,
}

impl Bodies {
    /// A map of at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let parts = (limit / PART_BYTES).clamp(1, PARTS);
        let parts = 1u64 << parts.ilog2();
        let items = usize::try_from(limit / 4096).unwrap_or(usize::MAX).clamp(64 * parts as usize, 1 << 20);
        let options = OptionsBuilder::new()
            .shards(parts as usize)
            .estimated_items_capacity(items)
            .weight_capacity(limit)
            .build();
        let map = match options {
            Ok(options) => Cache::with_options(options, Weight, DefaultHashBuilder::default(), Collect),
            Err(_) => Cache::with(items, limit, Weight, DefaultHashBuilder::default(), Collect),
        };
        Self { map, largest: limit / parts / 10 * 9 }
    }

    /// The heaviest copy that finds room.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.map.weight()
    }

    /// A copy; counts as used.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<StoredCopy>> {
        self.map.get(&id).map(|held| held.copy)
    }

    /// Whether a copy is held; does not count as used.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.map.contains_key(&id)
    }

    /// Holds a copy in place of an earlier one; says who had to leave.
    pub(crate) fn insert(&self, id: u64, copy: Arc<StoredCopy>, shard: u16, place: Place) -> Evicted {
        let mut evicted = Evicted::new();
        let weight = copy.weight();
        self.map.insert_with_lifecycle(id, Held { copy, weight, shard, place }, &mut evicted);
        // The map reports the content that was replaced as well.
        if evicted.iter().any(|(other, ..)| *other == id) && self.contains(id) {
            evicted.retain(|(other, ..)| *other != id);
        }
        evicted
    }

    /// Lets a copy go.
    pub(crate) fn remove(&self, id: u64) {
        self.map.remove(&id);
    }
}
