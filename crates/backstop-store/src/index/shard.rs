//! One shard of the index.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use http::HeaderMap;

use super::located::{AsIs, Located, LocatedBelow};
use super::variant::Variant;
use super::variants::Variants;
use crate::key::{CopyKey, PackedKey};
use crate::marks::Marks;
use crate::routes::Route;
use crate::vary::all_match;

/// Variants of one key; the oldest makes room for one more.
const MAX_VARIANTS: usize = 16;
/// What an entry takes beside its key and variants: its slot, its places in two maps, allocations.
const ENTRY_OVERHEAD: usize = 168;
/// Entries under the hand, of which the oldest is dropped.
const SAMPLE: usize = 8;

/// Where an entry lies in its shard; another may lie there later, so the variant's identity is compared as well.
pub(crate) type Place = u32;

/// By a hash that was taken before.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// A variant that left the index.
#[derive(Debug)]
pub(crate) struct Removed {
    pub(crate) variant: Variant,
    /// The hash of its host and path.
    pub(crate) site: u64,
}

#[derive(Debug)]
struct Entry {
    located: Located,
    key: PackedKey,
    route: Arc<Route>,
    /// Where the path's list names this entry.
    member: usize,
    /// Another entry whose key has the same hash.
    next: Option<Place>,
    variants: Variants,
}

/// One entry of a path. The hash of its target tells most of them apart without looking at the entry.
#[derive(Clone, Copy, Debug)]
struct Member {
    place: Place,
    target: u32,
}

/// One shard of the index.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    by_key: ByHash<Place>,
    by_path: ByHash<Vec<Member>>,
    slots: Vec<Option<Entry>>,
    free: Vec<Place>,
    hand: usize,
    bytes: usize,
    variants: usize,
    /// What was withdrawn in this shard.
    pub(crate) marks: Marks,
}

impl Shard {
    /// The memory that the shard takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The variants that it holds.
    pub(crate) fn len(&self) -> usize {
        self.variants
    }

    /// The place of a key.
    pub(crate) fn place(&self, located: Located, key: &CopyKey) -> Option<Place> {
        let mut at = self.by_key.get(&located.key).copied();
        while let Some(place) = at {
            let entry = self.entry(place)?;
            if entry.key.is(key) {
                return Some(place);
            }
            at = entry.next;
        }
        None
    }

    /// The most recent variant that the request selects, unless its route was withdrawn since.
    pub(crate) fn select(
        &self,
        located: Located,
        key: &CopyKey,
        request: &HeaderMap,
    ) -> Option<(Place, &Variant)> {
        let place = self.place(located, key)?;
        let entry = self.entry(place)?;
        let variant = entry
            .variants
            .iter()
            .filter(|variant| !entry.route.refuse(variant.generation) && all_match(&variant.vary, request))
            .reduce(|a, b| if b.began_after(a) { b } else { a })?;
        Some((place, variant))
    }

    /// A variant by place and identity, unless its route was withdrawn since.
    pub(crate) fn live(&self, place: Place, id: u64) -> Option<(&PackedKey, &Variant)> {
        let entry = self.entry(place)?;
        let variant = entry.variants.iter().find(|variant| variant.id == id)?;
        (!entry.route.refuse(variant.generation)).then_some((&entry.key, variant))
    }

    /// A variant by place and identity, to change. Its `vary` must stay as it is.
    pub(crate) fn variant_mut(&mut self, place: Place, id: u64) -> Option<&mut Variant> {
        self.slots.get_mut(place as usize)?.as_mut()?.variants.get_mut(id)
    }

    /// The variants of a key.
    pub(crate) fn variants(&self, place: Place) -> impl Iterator<Item = &Variant> {
        self.entry(place).into_iter().flat_map(|entry| entry.variants.iter())
    }

    /// The place of `key`, which is made if there is none.
    pub(crate) fn place_or_insert(&mut self, located: Located, key: &CopyKey, route: &Arc<Route>) -> Place {
        if let Some(place) = self.place(located, key) {
            return place;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Place::try_from(self.slots.len() - 1).unwrap_or(Place::MAX)
        });
        let members = self.by_path.entry(located.site).or_default();
        members.push(Member { place, target: located.target });
        let entry = Entry {
            located,
            key: PackedKey::new(key),
            route: route.clone(),
            member: members.len() - 1,
            next: self.by_key.insert(located.key, place),
            variants: Variants::default(),
        };
        self.bytes += entry.bytes();
        self.slots[place as usize] = Some(entry);
        place
    }

    /// Adds a variant; the oldest leaves if the key has too many.
    pub(crate) fn push(&mut self, place: Place, variant: Variant, removed: &mut Vec<Removed>) {
        let Some(entry) = self.slots[place as usize].as_mut() else { return };
        if entry.variants.len() == MAX_VARIANTS
            && let Some(oldest) = entry.variants.oldest().map(|oldest| oldest.id)
            && let Some(oldest) = entry.variants.remove(oldest)
        {
            self.bytes -= oldest.bytes();
            self.variants -= 1;
            removed.push(Removed { variant: oldest, site: entry.located.site });
        }
        self.bytes += variant.bytes();
        self.variants += 1;
        entry.variants.push(variant);
    }

    /// Removes one variant, and its key with the last.
    pub(crate) fn remove_variant(&mut self, place: Place, id: u64, removed: &mut Vec<Removed>) {
        let Some(entry) = self.slots.get_mut(place as usize).and_then(Option::as_mut) else { return };
        if let Some(variant) = entry.variants.remove(id) {
            self.bytes -= variant.bytes();
            self.variants -= 1;
            removed.push(Removed { variant, site: entry.located.site });
        }
        if entry.variants.len() == 0 {
            self.remove(place, removed);
        }
    }

    /// Removes a key with all its variants.
    pub(crate) fn remove(&mut self, place: Place, removed: &mut Vec<Removed>) {
        let Some(entry) = self.slots.get_mut(place as usize).and_then(Option::take) else { return };
        self.unlink_key(place, &entry);
        self.unlink_path(&entry);
        self.free.push(place);
        self.bytes -= entry.bytes();
        for variant in entry.variants.into_iter() {
            self.bytes -= variant.bytes();
            self.variants -= 1;
            removed.push(Removed { variant, site: entry.located.site });
        }
    }

    /// Removes every key of a path, or those of one target of it (`Some(query)`).
    pub(crate) fn remove_below(
        &mut self,
        located: LocatedBelow,
        site: &[u8],
        query: Option<Option<&str>>,
        removed: &mut Vec<Removed>,
    ) {
        let Some(members) = self.by_path.get(&located.site) else { return };
        let places: Vec<Place> = members
            .iter()
            .filter(|member| located.target.is_none_or(|target| target == member.target))
            .map(|member| member.place)
            .filter(|place| self.entry(*place).is_some_and(|entry| entry.key.is_below(site, query)))
            .collect();
        for place in places {
            self.remove(place, removed);
        }
    }

    /// Drops old entries other than `keep` until at most `limit` bytes are taken.
    pub(crate) fn shrink_to(&mut self, limit: usize, keep: Place, removed: &mut Vec<Removed>) {
        while self.bytes > limit && self.free.len() + 1 < self.slots.len() {
            let mut oldest: Option<(Place, &Variant)> = None;
            let mut seen = 0;
            for _ in 0..self.slots.len() {
                self.hand = (self.hand + 1) % self.slots.len();
                let Some(entry) = self.slots[self.hand].as_ref().filter(|_| self.hand != keep as usize)
                else {
                    continue;
                };
                if let Some(variant) = entry.variants.oldest()
                    && oldest.is_none_or(|(_, oldest)| oldest.began_after(variant))
                {
                    oldest = Some((self.hand as Place, variant));
                }
                seen += 1;
                if seen == SAMPLE {
                    break;
                }
            }
            let Some((place, _)) = oldest else { return };
            self.remove(place, removed);
        }
    }

    /// Removes variants whose route was withdrawn since they were read.
    pub(crate) fn sweep(&mut self, removed: &mut Vec<Removed>) {
        for place in 0..self.slots.len() as Place {
            let Some(entry) = self.entry(place) else { continue };
            let stale = entry.variants.iter().filter(|variant| entry.route.refuse(variant.generation));
            for id in stale.map(|variant| variant.id).collect::<Vec<_>>() {
                self.remove_variant(place, id, removed);
            }
        }
    }

    /// Every variant, with its place.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Place, &Variant)> {
        (0..self.slots.len() as Place)
            .flat_map(move |place| self.variants(place).map(move |variant| (place, variant)))
    }

    fn entry(&self, place: Place) -> Option<&Entry> {
        self.slots.get(place as usize)?.as_ref()
    }

    /// Takes an entry that left its slot out of the chain of its hash.
    fn unlink_key(&mut self, place: Place, entry: &Entry) {
        let hash = entry.located.key;
        if self.by_key.get(&hash) == Some(&place) {
            match entry.next {
                Some(next) => self.by_key.insert(hash, next),
                None => self.by_key.remove(&hash),
            };
            return;
        }
        let mut at = self.by_key.get(&hash).copied();
        while let Some(other) = at.and_then(|at| self.slots.get_mut(at as usize)?.as_mut()) {
            if other.next == Some(place) {
                other.next = entry.next;
                return;
            }
            at = other.next;
        }
    }

    /// Takes an entry that left its slot out of the list of its path.
    fn unlink_path(&mut self, entry: &Entry) {
        let Some(members) = self.by_path.get_mut(&entry.located.site) else { return };
        members.swap_remove(entry.member);
        if let Some(moved) = members.get(entry.member)
            && let Some(moved) = self.slots[moved.place as usize].as_mut()
        {
            moved.member = entry.member;
        }
        if members.is_empty() {
            self.by_path.remove(&entry.located.site);
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_OVERHEAD + self.key.bytes()
    }
}

#[cfg(test)]
#[path = "shard_tests.rs"]
mod tests;
