//! Which reads came too late: the memory of withdrawals.
//!
//! Every withdrawal takes the next **generation** from one counter, and a read takes a [`ReadTicket`] with the current
//! generation before it asks its upstream. An answer may be stored only if no withdrawal that touches it has a later
//! generation than its ticket. So whatever a read saw before a change is never kept after it.
//!
//! Marks of targets and paths live in the shard of their path and are bounded in time and in number. Forgetting one
//! raises the shard's **horizon** to its generation, and an answer whose ticket lies below the horizon is refused:
//! what is not known counts as withdrawn.
//!
//! A mark names its target or path by a keyed hash of 128 bits, never by the bytes themselves: hosts, paths and queries
//! are chosen by whoever sends requests, and a mark is kept whether or not there was a copy. So every mark takes the same,
//! and the bound in number is one in bytes: 104 bytes a mark, 416 KiB a shard, **26 MiB** in all 64 shards, reached
//! only by 262 144 withdrawals within the lifetime of a mark. Two names with the same hash share their marks: then an
//! answer is refused that could have been stored, and none is stored that should have been refused.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::time::Duration;

use backstop_engine::snapshot::ObservedAt;
use backstop_engine::time::{Mono, Now};

use crate::key::Target;

/// Marks kept in one shard.
pub(crate) const MARKS_PER_SHARD: usize = 4096;

/// Proof of when a read began, taken before its upstream is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTicket {
    pub(crate) generation: u64,
    pub(crate) began: Now,
}

impl ReadTicket {
    pub(crate) const fn new(generation: u64, began: Now) -> Self {
        Self { generation, began }
    }

    /// The date of an answer that this read brings and that was already `received_age` old when it came.
    pub const fn observed_at(&self, received_age: Duration) -> ObservedAt {
        ObservedAt::new(self.began, received_age)
    }
}

/// The marks of one shard.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    hash: Hash128,
    /// The generation of the latest withdrawal of each. A tree, because one gives its memory back and has no slack.
    latest: BTreeMap<Name, u64>,
    /// In the order of their generations.
    order: VecDeque<Mark>,
    horizon: u64,
    /// When the latest of the forgotten marks was set.
    horizon_set: Option<Mono>,
}

/// What was withdrawn, and when.
#[derive(Clone, Copy, Debug)]
struct Mark {
    generation: u64,
    set: Mono,
    name: Name,
}

/// The hash of a path, or of one target of it.
pub(crate) type Name = [u64; 2];

/// A hash of 128 bits with random keys, so that nobody outside can choose names that share their marks.
#[derive(Debug, Default)]
pub(crate) struct Hash128([RandomState; 2]);

impl Hash128 {
    /// The name of anything.
    pub(crate) fn name(&self, what: &impl Hash) -> Name {
        self.0.each_ref().map(|hash| hash.hash_one(what))
    }

    /// The name of a path, and that of one target of it.
    pub(crate) fn names(&self, site: &[u8], query: Option<&str>) -> (Name, Name) {
        let both = self.0.each_ref().map(|hash| {
            let mut hasher = hash.build_hasher();
            site.hash(&mut hasher);
            let path = hasher.finish();
            query.hash(&mut hasher);
            (path, hasher.finish())
        });
        (both.map(|(path, _)| path), both.map(|(_, target)| target))
    }
}

impl Marks {
    /// Whether an answer for `target` may no longer be stored under a ticket of `generation`.
    pub(crate) fn refuse(&self, target: &Target, generation: u64) -> bool {
        if generation < self.horizon {
            return true;
        }
        if self.order.is_empty() {
            return false;
        }
        let (path, target) = self.hash.names(target.site(), target.query());
        [path, target].iter().any(|name| self.latest.get(name).is_some_and(|mark| generation < *mark))
    }

    /// Whether something that touches `target` was withdrawn at `moment` or later, or may have been.
    pub(crate) fn withdrawn_since(&self, target: &Target, moment: Mono) -> bool {
        if self.horizon_set.is_some_and(|set| set >= moment) {
            return true;
        }
        if self.order.is_empty() {
            return false;
        }
        let (path, target) = self.hash.names(target.site(), target.query());
        [path, target]
            .iter()
            .filter(|name| self.latest.contains_key(*name))
            .any(|name| self.order.iter().any(|mark| mark.name == *name && mark.set >= moment))
    }

    /// Remembers the withdrawal of one target (`Some(query)`) or of all targets of a path (`None`).
    pub(crate) fn set(&mut self, site: &[u8], query: Option<Option<&str>>, generation: u64, now: Mono) {
        let (path, target) = self.hash.names(site, query.flatten());
        let name = if query.is_some() { target } else { path };
        while self.order.len() >= MARKS_PER_SHARD {
            self.forget_oldest();
        }
        let latest = self.latest.entry(name).or_default();
        *latest = generation.max(*latest);
        self.order.push_back(Mark { generation, set: now, name });
    }

    /// Forgets the marks that were set before `moment`.
    pub(crate) fn prune(&mut self, moment: Mono) {
        while self.order.front().is_some_and(|mark| mark.set < moment) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(Mark { generation, name, set }) = self.order.pop_front() else { return };
        self.horizon = self.horizon.max(generation);
        self.horizon_set = self.horizon_set.max(Some(set));
        if self.latest.get(&name).is_some_and(|latest| *latest <= self.horizon) {
            self.latest.remove(&name);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The most that a name takes in the tree: a leaf holds 11 names and generations and a head of 16 bytes, and is
    /// never filled with less than 5; of an inner node, 12 pointers more, there is at most one for 6 leaves.
    const NAME_BYTES: usize = 72;

    /// The most memory that the marks of a shard take, in bytes.
    pub(crate) const SHARD_BYTES: usize = MARKS_PER_SHARD * (NAME_BYTES + size_of::<Mark>());

    impl Marks {
        /// The memory that the marks take, in bytes. What they are made of owns nothing elsewhere.
        pub(crate) fn bytes(&self) -> usize {
            fn owning_nothing<T: Copy>(count: usize, bytes: usize) -> usize {
                count * bytes.max(size_of::<T>())
            }
            owning_nothing::<(Name, u64)>(self.latest.len(), NAME_BYTES)
                + owning_nothing::<Mark>(self.order.capacity(), 0)
        }
    }

    fn at(ns: u64) -> Mono {
        Mono::from_ns(ns)
    }

    #[test]
    fn a_mark_refuses_what_began_before_it_and_touches_it() {
        let mut marks = Marks::default();
        let (a, b) = (Target::new("h", "/p", Some("a")), Target::new("h", "/p", Some("b")));
        marks.set(a.site(), Some(Some("a")), 5, at(0));
        assert!(marks.refuse(&a, 4) && !marks.refuse(&a, 5) && !marks.refuse(&b, 4));
        marks.set(a.site(), None, 7, at(0));
        assert!(marks.refuse(&a, 6) && marks.refuse(&b, 6) && !marks.refuse(&b, 7));
        assert!(!marks.refuse(&Target::new("h", "/q", None), 0));
    }

    #[test]
    fn no_query_an_empty_one_and_the_whole_path_are_told_apart() {
        let (none, empty) = (Target::new("h", "/p", None), Target::new("h", "/p", Some("")));
        let refused = |query| {
            let mut marks = Marks::default();
            marks.set(none.site(), query, 5, at(0));
            [marks.refuse(&none, 4), marks.refuse(&empty, 4)]
        };
        assert_eq!(refused(Some(None)), [true, false]);
        assert_eq!(refused(Some(Some(""))), [false, true]);
        assert_eq!(refused(None), [true, true]);
    }

    #[test]
    fn what_was_forgotten_counts_as_withdrawn() {
        let mut marks = Marks::default();
        let (gone, other) = (Target::new("h", "/p", None), Target::new("h", "/q", None));
        marks.set(gone.site(), None, 5, at(10));
        marks.prune(at(10));
        assert!(!marks.refuse(&other, 4));
        marks.prune(at(11));
        assert!(marks.refuse(&other, 4) && marks.refuse(&gone, 4) && !marks.refuse(&gone, 5));
        assert!(marks.latest.is_empty());
    }

    /// Answers that lie elsewhere have no ticket: they are told by the moment at which their read began.
    #[test]
    fn what_began_at_or_before_a_withdrawal_was_withdrawn() {
        let mut marks = Marks::default();
        let (a, b) = (Target::new("h", "/p", Some("a")), Target::new("h", "/p", Some("b")));
        marks.set(a.site(), Some(Some("a")), 5, at(10));
        assert!(marks.withdrawn_since(&a, at(10)) && !marks.withdrawn_since(&a, at(11)));
        assert!(!marks.withdrawn_since(&b, at(0)));
        marks.set(a.site(), None, 6, at(20));
        assert!(marks.withdrawn_since(&b, at(20)) && !marks.withdrawn_since(&b, at(21)));
        marks.prune(at(11));
        let other = Target::new("h", "/q", None);
        assert!(marks.withdrawn_since(&other, at(10)), "what was forgotten counts as withdrawn");
        assert!(!marks.withdrawn_since(&other, at(11)));
    }

    #[test]
    fn too_many_marks_refuse_more_never_less() {
        let mut marks = Marks::default();
        for generation in 1..=3 * MARKS_PER_SHARD as u64 {
            let query = generation.to_string();
            let target = Target::new("h", "/p", Some(&query));
            marks.set(target.site(), Some(Some(&query)), generation, at(0));
            assert!(marks.refuse(&target, generation - 1) && !marks.refuse(&target, generation));
        }
        assert_eq!(marks.order.len(), MARKS_PER_SHARD);
    }

    #[test]
    fn a_bound_in_marks_is_a_bound_in_bytes() {
        let mut marks = Marks::default();
        // Every path again and again, each time another target: what is still marked keeps nothing that no longer is.
        for generation in 1..=5 * MARKS_PER_SHARD as u64 {
            let site = format!("/{}", generation % MARKS_PER_SHARD as u64);
            marks.set(site.as_bytes(), Some(Some(&generation.to_string())), generation, at(0));
            assert!(marks.latest.len() <= marks.order.len());
        }
        assert_eq!(marks.bytes(), SHARD_BYTES);
        assert_eq!(SHARD_BYTES, 416 * 1024);
        marks.prune(at(1));
        assert!(marks.latest.is_empty());
    }
}
