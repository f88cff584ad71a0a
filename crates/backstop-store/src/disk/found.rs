//! Taking over what a disk holds.
//!
//! An entry that is not what was written, or not in its place, says that the disk is damaged, and then nothing of it is
//! taken over: in a damaged tree a deletion may miss, and what was withdrawn would come back with the next life.
//!
//! The first time, everything that is whole and was not withdrawn enters the index. Whatever was withdrawn since the
//! process began, while the disk could not be read, is refused by the same marks that refuse late reads. A disk that cannot be
//! read to its end is not taken over at all: what had entered the index leaves it, or the next attempt would take the same
//! entries for others that stand in their place.
//!
//! Every further time the index already knows better: what the disk holds is compared with it. A record that the
//! index does not know was deleted or replaced, and the deletion was lost with the failure, so it is deleted again; a
//! variant of which the disk holds nothing lives on only if it is in memory.

use std::collections::{HashMap, HashSet};

use super::failure::contain;
use super::{Disk, DiskError, Found};
use crate::codec::{CodecError, Entry, decode_entry};
use crate::copies::Inner;
use crate::health::add;
use crate::index::{Place, SHARDS, Shard, Stored, Variant};

/// What was taken over.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) copies: u64,
    pub(super) next_sequence: u64,
    /// Records to delete.
    pub(super) unwanted: Vec<u64>,
}

/// Takes over what `disk` holds; `first` says that nothing was taken over before.
pub(super) fn take(inner: &Inner, disk: &dyn Disk, first: bool) -> Result<Taken, DiskError> {
    let taken = contain(|| take_all(inner, disk, first));
    if first && taken.is_err() {
        inner.drop_unless(&HashSet::new());
    }
    taken
}

fn take_all(inner: &Inner, disk: &dyn Disk, first: bool) -> Result<Taken, DiskError> {
    let mut taken = Taken::default();
    let mut withdrawn: HashMap<Box<str>, u64> = HashMap::new();
    let mut seen = HashSet::new();
    let mut damaged = 0_u64;
    let mut last = None;
    disk.scan(&mut |found| match found {
        Found::Wall(wall) => inner.adopt_wall(wall),
        Found::Withdrawn { route, sequence } => {
            taken.next_sequence = taken.next_sequence.max(sequence.saturating_add(1));
            withdrawn.insert(route.into(), sequence);
        }
        Found::Entry { id, bytes } => {
            let in_order = last.replace(id).is_none_or(|last| last < id);
            let entry = match decode_entry(bytes) {
                Ok(entry) if in_order && entry.id == id => entry,
                Err(CodecError::Version) if in_order => {
                    taken.unwanted.push(id);
                    return;
                }
                Ok(_) | Err(_) => {
                    damaged += 1;
                    return;
                }
            };
            taken.next_sequence = taken.next_sequence.max(entry.sequence.saturating_add(1));
            let gone = withdrawn.get(&entry.key.route).is_some_and(|mark| entry.sequence < *mark);
            let wanted = !gone
                && if first { inner.adopt(entry, &mut taken.unwanted) } else { inner.recognise(&entry) };
            if wanted {
                taken.copies += 1;
                seen.insert(id);
            } else {
                taken.unwanted.push(id);
            }
        }
    })?;
    if damaged > 0 {
        inner.drop_unless(&HashSet::new());
        return Err(DiskError::Corrupt(format!("{damaged} records are not what was written")));
    }
    if !first {
        inner.drop_unless(&seen);
    }
    Ok(taken)
}

impl Inner {
    /// Lets an entry of an earlier life into the index. `false` if it is not wanted.
    fn adopt(&self, entry: Entry, unwanted: &mut Vec<u64>) -> bool {
        let Some(route) = self.routes.get(&entry.key.route) else { return false };
        let located = self.index.locate(&entry.key);
        let mut shard = self.index.write(located.shard());
        let before = (shard.bytes(), shard.len());
        route.about_to_store();
        if route.refuse(0) || self.routes.refuse(0) || shard.marks.refuse(&entry.key.target, 0) {
            return false;
        }
        let place = shard.place_or_insert(located, &entry.key, &route);
        if let Some(variant) = shard.variant_mut(place, entry.id) {
            // Known since an attempt to read the disk that failed, and read anew since.
            variant.set_stored(Some(entry.facts));
            return true;
        }
        let variant = Variant {
            id: entry.id,
            vary: entry.vary.into_boxed_slice(),
            facts: entry.facts,
            order: entry.sequence,
            generation: 0,
            resident: false,
            queued: None,
            stored: Stored::Same,
        };
        let twin = shard.variants(place).find(|twin| twin.vary == variant.vary);
        if twin.is_some_and(|twin| !variant.began_after(twin)) {
            return false;
        }
        let twin = twin.map(|twin| twin.id);
        let mut removed = Vec::new();
        shard.push(place, variant, &mut removed);
        if let Some(id) = twin {
            shard.remove_variant(place, id, &mut removed);
        }
        let kept = removed.len();
        shard.shrink_to(self.index.bytes_per_shard(), place, &mut removed);
        add(&self.counters.index_evictions, (removed.len() - kept) as u64);
        unwanted.extend(self.release(&removed).iter().map(|gone| gone.id));
        self.account(before, (shard.bytes(), shard.len()));
        true
    }

    /// Whether the index knows this entry; what it thinks of the disk is then set right. A write that was lost with the
    /// failure leaves an older version there, with the older date.
    fn recognise(&self, entry: &Entry) -> bool {
        let located = self.index.locate(&entry.key);
        let mut shard = self.index.write(located.shard());
        let Some(place) =
            shard.place(located, &entry.key).filter(|place| shard.live(*place, entry.id).is_some())
        else {
            return false;
        };
        if let Some(variant) = shard.variant_mut(place, entry.id) {
            variant.set_stored(Some(entry.facts));
            variant.settle();
        }
        true
    }

    /// Takes note that the disk holds nothing but `seen`.
    fn drop_unless(&self, seen: &HashSet<u64>) {
        for shard in 0..SHARDS as u16 {
            let mut shard = self.index.write(shard);
            let before = (shard.bytes(), shard.len());
            let missing: Vec<_> = shard
                .all()
                .filter(|(_, variant)| variant.stored != Stored::No && !seen.contains(&variant.id))
                .map(|(place, variant)| (place, variant.id))
                .collect();
            for (place, id) in missing {
                self.not_on_disk(&mut shard, place, id);
            }
            self.account(before, (shard.bytes(), shard.len()));
        }
    }

    /// The disk holds nothing of a variant: it lives on only if it is in memory or on its way.
    pub(super) fn not_on_disk(&self, shard: &mut Shard, place: Place, id: u64) {
        let mut removed = Vec::new();
        if let Some(variant) = shard.variant_mut(place, id) {
            variant.set_stored(None);
            if !variant.settle() {
                shard.remove_variant(place, id, &mut removed);
            }
        }
        self.forget(&removed);
    }

    /// An entry left the disk, or could not be read.
    pub(super) fn lost(&self, entry: &Entry) {
        let located = self.index.locate(&entry.key);
        let mut shard = self.index.write(located.shard());
        let before = (shard.bytes(), shard.len());
        if let Some(place) = shard.place(located, &entry.key) {
            self.not_on_disk(&mut shard, place, entry.id);
        }
        self.account(before, (shard.bytes(), shard.len()));
    }
}
