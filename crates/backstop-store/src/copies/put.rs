//! Storing an answer.

use std::borrow::Borrow;
use std::sync::Arc;

use backstop_engine::time::Now;

use super::{Copies, Inner};
use crate::bodies::Evicted;
use crate::copy::StoredCopy;
use crate::health::add;
use crate::index::{Place, Queued, Removed, Shard, Stored, THIS_LIFE, Variant};
use crate::key::CopyKey;
use crate::marks::ReadTicket;
use crate::queue::Put;
use crate::routes::Route;

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It is the copy now; in memory at once, on disk soon (unless the queue was full, which is counted).
    Stored,
    /// A read that began later has already stored its answer.
    OlderThanStored,
    /// Something that touches it was withdrawn after its read began, or may have been, or is held.
    Withdrawn,
    /// It is larger than a copy may be.
    TooLarge,
    /// It varies on everything (`Vary: *`), so no request could select it.
    Unselectable,
    /// There are too many routes to tell apart.
    TooManyRoutes,
}

impl Copies {
    /// Keeps an answer as the copy for its key and variant. Never waits.
    ///
    /// `ticket` was taken before the read began; an answer whose read began before a withdrawal that touches it, or
    /// before the read of what is already stored, is refused.
    pub fn put(
        &self,
        key: impl Borrow<CopyKey>,
        copy: StoredCopy,
        ticket: ReadTicket,
        now: Now,
    ) -> PutOutcome {
        self.inner.put(key.borrow(), copy, ticket, now)
    }
}

impl Inner {
    fn put(&self, key: &CopyKey, mut copy: StoredCopy, ticket: ReadTicket, now: Now) -> PutOutcome {
        self.note_mono(now);
        if copy.vary.iter().any(|field| field.name == "*") {
            return PutOutcome::Unselectable;
        }
        if copy.weight() + key.bytes() as u64 > self.options.copy_bytes.min(self.bodies.largest()) {
            return PutOutcome::TooLarge;
        }
        let Some(route) = self.routes.get(&key.route) else { return PutOutcome::TooManyRoutes };
        copy.vary.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));

        let located = self.index.locate(key);
        let number = located.shard();
        let mut shard = self.index.write(number);
        self.sweep_stale(number, &mut shard);
        shard.marks.prune(self.mark_horizon(now));
        route.about_to_store();
        if self.holds.refuse(key, ticket.began.mono)
            || route.refuse(ticket.generation)
            || self.routes.refuse(ticket.generation)
            || shard.marks.refuse(&key.target, ticket.generation)
        {
            return PutOutcome::Withdrawn;
        }
        let before = (shard.bytes(), shard.len());
        let mut removed = Vec::new();
        let place = shard.place_or_insert(located, key, &route);
        let Some(id) = self.variant_for(&mut shard, place, &route, &copy, ticket, &mut removed) else {
            return PutOutcome::OlderThanStored;
        };
        let evicted = self.replace(&mut shard, number, place, id, Arc::new(copy), ticket.generation);
        route.about_to_store();
        let kept = removed.len();
        shard.shrink_to(self.index.bytes_per_shard(), place, &mut removed);
        add(&self.counters.index_evictions, (removed.len() - kept) as u64);
        self.forget(&removed);
        self.account(before, (shard.bytes(), shard.len()));
        drop(shard);
        self.evicted(&evicted);
        PutOutcome::Stored
    }

    /// The variant that the answer becomes the content of, made if there is none. `None` if it holds a newer answer
    /// already. Variants whose route was withdrawn since leave: nothing may fall back to what the disk has of them.
    pub(crate) fn variant_for(
        &self,
        shard: &mut Shard,
        place: Place,
        route: &Route,
        copy: &StoredCopy,
        ticket: ReadTicket,
        removed: &mut Vec<Removed>,
    ) -> Option<u64> {
        let mut known = None;
        let mut stale = Vec::new();
        for variant in shard.variants(place) {
            if route.refuse(variant.generation) {
                stale.push(variant.id);
            } else if variant.vary[..] == copy.vary[..] {
                if variant.began_after_read(&copy.facts.observed_at) {
                    return None;
                }
                known = Some(variant.id);
            }
        }
        let id = known.unwrap_or_else(|| {
            let id = self.new_id();
            let variant = Variant {
                id,
                vary: copy.vary.clone().into_boxed_slice(),
                facts: copy.facts,
                order: THIS_LIFE,
                generation: ticket.generation,
                resident: false,
                queued: None,
                stored: Stored::No,
            };
            shard.push(place, variant, removed);
            id
        });
        for id in stale {
            shard.remove_variant(place, id, removed);
        }
        Some(id)
    }

    /// Gives a variant new content: in memory, and queued for the disk. Who had to leave memory for it is returned,
    /// to be followed up once the shard is free.
    pub(crate) fn replace(
        &self,
        shard: &mut Shard,
        number: u16,
        place: Place,
        id: u64,
        copy: Arc<StoredCopy>,
        generation: u64,
    ) -> Evicted {
        let Some(variant) = shard.variant_mut(place, id) else { return Evicted::new() };
        variant.renew_facts(copy.facts);
        variant.order = THIS_LIFE;
        variant.generation = generation;
        variant.resident = true;
        self.queue_write(variant, number, place, &copy);
        self.bodies.insert(id, copy, number, place)
    }

    /// Queues the content of a variant for the disk. If the queue is full the disk keeps what it has, or is just being
    /// given: what the writer has in its hands stays named here until it is written, because the disk will hold it.
    fn queue_write(&self, variant: &mut Variant, number: u16, place: Place, copy: &Arc<StoredCopy>) {
        let Some(queue) = &self.queue else { return };
        let bytes = copy.weight();
        let queued = match &variant.queued {
            Some(old) if old.waiting => queue.reserve(bytes, Some(old.copy.weight())),
            being_written => {
                let queued = queue.reserve(bytes, None)
                    && (queue.put(Put { id: variant.id, shard: number, place }) || {
                        queue.release(bytes);
                        false
                    });
                if let Some(old) = being_written.as_ref().filter(|_| queued) {
                    queue.release(old.copy.weight());
                }
                queued
            }
        };
        if queued {
            variant.queued = Some(Queued { copy: copy.clone(), waiting: true });
        } else {
            add(&self.counters.writes_dropped, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::copies::{Withdrawal, Withdrawn};
    use crate::testing::{copy, key, now};

    /// The withdrawal began before the read and ends between the look and the insertion: the copy stays, and there is one.
    #[test]
    fn a_withdrawal_from_before_a_read_does_not_hide_its_copy_from_the_next() {
        let store = Copies::memory(1 << 20);
        let key = key("/p", None);
        // Somebody else's: while there is any, each read is held against them.
        store.inner.holds.hold(&Withdrawal::Route("other".into()), now(1).mono, now(100).mono);
        let generation = store.inner.new_generation();
        let ticket = store.begin_read(now(2));
        let route = store.inner.routes.get(&key.route).unwrap();
        thread::scope(|scope| {
            let blocked = store.inner.holds.block();
            let put = scope.spawn(|| store.put(&key, copy(vec![1], ticket), ticket, now(2)));
            while !route.may_have_copies() {
                thread::yield_now();
            }
            assert!(route.withdraw(generation, now(2).mono));
            drop(blocked);
            assert_eq!(put.join().unwrap(), PutOutcome::Stored);
        });
        let withdrawn = store.withdraw(Withdrawal::Route(key.route.clone()), now(3));
        assert!(matches!(withdrawn, Withdrawn::Pending(_)), "there is a copy");
    }
}
