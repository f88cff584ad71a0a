//! Which reads came too late: the memory of withdrawals.
//!
//! Every withdrawal takes the next **generation** from one counter, and a read takes a [`ReadTicket`] with the current
//! generation before it asks its upstream. An answer may be stored only if no withdrawal that touches it has a later
//! generation than its ticket. So whatever a read saw before a change is never kept after it.
//!
//! Marks of targets and paths live in the shard of their path and are bounded in time and in number. Forgetting one
//! raises the shard's **horizon** to its generation, and an answer whose ticket lies below the horizon is refused:
//! what is not known counts as withdrawn.

use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use backstop_engine::snapshot::ObservedAt;
use backstop_engine::time::{Mono, Now};

use crate::key::Target;

/// Marks kept in one shard.
const MARKS_PER_SHARD: usize = 4096;
/// Targets of one path that are told apart; more count as the whole path.
const TARGETS_PER_PATH: usize = 64;

/// Proof of when a read began, taken before its upstream is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTicket {
    pub(crate) generation: u64,
    began: Now,
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
    paths: HashMap<Arc<[u8]>, PathMarks, RandomState>,
    /// In the order of their generations.
    order: VecDeque<(u64, Mono, Arc<[u8]>)>,
    horizon: u64,
}

#[derive(Debug, Default)]
struct PathMarks {
    whole: u64,
    targets: Vec<(Option<Box<str>>, u64)>,
    latest: u64,
}

impl Marks {
    /// Whether an answer for `target` may no longer be stored under a ticket of `generation`.
    pub(crate) fn refuse(&self, target: &Target, generation: u64) -> bool {
        if generation < self.horizon {
            return true;
        }
        self.paths.get(target.site()).is_some_and(|path| {
            let target = path.targets.iter().find(|(query, _)| query.as_deref() == target.query());
            generation < path.whole || target.is_some_and(|(_, mark)| generation < *mark)
        })
    }

    /// Remembers the withdrawal of one target (`Some(query)`) or of all targets of a path (`None`).
    pub(crate) fn set(&mut self, site: &[u8], query: Option<Option<&str>>, generation: u64, now: Mono) {
        let site: Arc<[u8]> =
            self.paths.get_key_value(site).map_or_else(|| site.into(), |(site, _)| site.clone());
        let path = self.paths.entry(site.clone()).or_default();
        path.latest = path.latest.max(generation);
        match query {
            Some(query) => {
                let room = path.targets.len() < TARGETS_PER_PATH;
                match path.targets.iter_mut().find(|(known, _)| known.as_deref() == query) {
                    Some((_, mark)) => *mark = generation.max(*mark),
                    None if room => path.targets.push((query.map(Box::from), generation)),
                    None => path.whole = path.whole.max(generation),
                }
            }
            None => path.whole = path.whole.max(generation),
        }
        self.order.push_back((generation, now, site));
        if self.order.len() > MARKS_PER_SHARD {
            self.forget_oldest();
        }
    }

    /// Forgets the marks that were set before `moment`.
    pub(crate) fn prune(&mut self, moment: Mono) {
        while self.order.front().is_some_and(|(_, set, _)| *set < moment) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((generation, _, site)) = self.order.pop_front() else { return };
        self.horizon = self.horizon.max(generation);
        if self.paths.get(&site).is_some_and(|path| path.latest <= self.horizon) {
            self.paths.remove(&site);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_was_forgotten_counts_as_withdrawn() {
        let mut marks = Marks::default();
        let (gone, other) = (Target::new("h", "/p", None), Target::new("h", "/q", None));
        marks.set(gone.site(), None, 5, at(10));
        marks.prune(at(10));
        assert!(!marks.refuse(&other, 4));
        marks.prune(at(11));
        assert!(marks.refuse(&other, 4) && marks.refuse(&gone, 4) && !marks.refuse(&gone, 5));
        assert!(marks.paths.is_empty());
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
}
