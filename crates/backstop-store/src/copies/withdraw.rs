//! Withdrawing copies.

use backstop_engine::time::{Mono, Now};

use super::{Copies, Inner};
use crate::confirm::Confirmation;
use crate::key::{Target, site};

/// What is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// Every copy of one target, whatever its route, partition and variant.
    Target(Target),
    /// Every copy below a path of a host, whatever its query.
    Path {
        /// The host, in lower case.
        host: Box<str>,
        /// The path.
        path: Box<str>,
    },
    /// Every copy of a route.
    Route(Box<str>),
}

/// What became of a withdrawal.
#[derive(Debug)]
pub enum Withdrawn {
    /// No copy was stored, neither in memory nor on disk, and none of it is still leaving the disk, after an earlier
    /// withdrawal or because there was no room. Reads that began before are refused all the same.
    NothingStored,
    /// In memory the copies are gone; the confirmation completes once they are gone from disk for good.
    Pending(Confirmation),
}

impl Copies {
    /// Withdraws copies after a write whose end is unknown: as [`Copies::withdraw`], and reads that begin before `until`
    /// are refused as well, because the write may still be carried out.
    pub fn withdraw_until(&self, withdrawal: Withdrawal, now: Now, until: Mono) -> Withdrawn {
        // First: a read that is stored before this is removed by what follows.
        self.inner.holds.hold(&withdrawal, now.mono, until);
        self.withdraw(withdrawal, now)
    }

    /// Withdraws copies: from memory at once, from disk as soon as it confirms. Reads that began before are refused
    /// from now on. Never waits, and is never dropped.
    pub fn withdraw(&self, withdrawal: Withdrawal, now: Now) -> Withdrawn {
        let inner = &*self.inner;
        inner.note_mono(now);
        let generation = inner.new_generation();
        match withdrawal {
            Withdrawal::Target(target) => {
                inner.withdraw_target(target.site(), Some(&target), generation, now)
            }
            Withdrawal::Path { host, path } => {
                inner.withdraw_target(&site(&host, &path), None, generation, now)
            }
            Withdrawal::Route(route) => inner.withdraw_route(route, generation, now.mono),
        }
    }
}

/// Where copies lie in memory only.
const fn in_memory(stored: bool) -> Withdrawn {
    if stored { Withdrawn::Pending(Confirmation::immediate()) } else { Withdrawn::NothingStored }
}

impl Inner {
    /// Withdraws one target, or a whole path.
    fn withdraw_target(&self, site: &[u8], target: Option<&Target>, generation: u64, now: Now) -> Withdrawn {
        let query = target.map(Target::query);
        let located = self.index.locate_below(site, query);
        let mut shard = self.index.write(located.shard());
        let before = (shard.bytes(), shard.len());
        shard.marks.prune(self.mark_horizon(now));
        shard.marks.set(site, query, generation, now.mono);
        let mut removed = Vec::new();
        shard.remove_below(located, site, query, &mut removed);
        let gone = self.release(&removed);
        self.account(before, (shard.bytes(), shard.len()));
        let stored = !removed.is_empty();
        // Still under the lock: whoever finds nothing here any more finds it there.
        match &self.queue {
            None => in_memory(stored),
            Some(queue) if stored || queue.may_hold_unknown(Some(located.site)) => {
                Withdrawn::Pending(queue.erase(&gone))
            }
            Some(_) => Withdrawn::NothingStored,
        }
    }

    /// Withdraws a route.
    fn withdraw_route(&self, name: Box<str>, generation: u64, now: Mono) -> Withdrawn {
        let route = self.routes.get(&name);
        if route.is_none() {
            self.routes.raise_horizon(generation);
        }
        let withdraw = || route.is_some_and(|route| route.withdraw(generation, now));
        let Some(queue) = &self.queue else {
            let stored = withdraw();
            if stored {
                self.stale_everywhere();
            }
            return in_memory(stored);
        };
        // Before it is taken note of that the route has no copies any more: whoever withdraws it next may see that.
        let undecided = queue.undecided();
        if withdraw() {
            return Withdrawn::Pending(queue.erase_route(name, true));
        }
        drop(undecided);
        if queue.may_hold_unknown(None) {
            return Withdrawn::Pending(queue.erase_route(name, false));
        }
        Withdrawn::NothingStored
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::CopyKey;
    use crate::disk::DiskError;
    use crate::index::SHARDS;
    use crate::marks::tests::SHARD_BYTES;
    use crate::options::StoreOptions;
    use crate::testing::{FakeMedium, now};

    /// What clients choose the size of must not be remembered at that size: withdrawals of targets that have no copy.
    fn withdraw_long_names(store: &Copies) -> usize {
        let long = "x".repeat(30_000);
        for number in 0..10_000 {
            let (path, query) = (format!("/{number}/{long}"), format!("{number}&{long}"));
            let withdrawal = match number % 3 {
                0 => Withdrawal::Target(Target::new("h", &path, None)),
                1 => Withdrawal::Target(Target::new("h", "/p", Some(&query))),
                _ => Withdrawal::Path { host: "h".into(), path: path.into() },
            };
            drop(store.withdraw(withdrawal, now(1)));
        }
        (0..SHARDS as u16).map(|shard| store.inner.index.read(shard).marks.bytes()).sum()
    }

    #[test]
    fn an_answer_that_lies_elsewhere_is_withdrawn_by_path_target_route_and_hold() {
        let key =
            CopyKey { target: Target::new("h", "/p", Some("q")), route: "r".into(), partition: [].into() };
        let path = || Withdrawal::Path { host: "h".into(), path: "/p".into() };
        for withdrawal in [Withdrawal::Target(key.target.clone()), path(), Withdrawal::Route("r".into())] {
            let store = Copies::memory(1024 * 1024);
            assert!(!store.withdrawn_since(&key, Mono::from_ns(0)));
            drop(store.withdraw(withdrawal, now(1_000)));
            let at = now(1_000).mono;
            assert!(store.withdrawn_since(&key, at));
            assert!(!store.withdrawn_since(&key, at.after(Duration::from_nanos(1))));
        }
        let store = Copies::memory(1024 * 1024);
        let at = now(1_000).mono;
        drop(store.withdraw_until(path(), now(1_000), at.after(Duration::from_nanos(10))));
        assert!(store.withdrawn_since(&key, at.after(Duration::from_nanos(9))));
        assert!(!store.withdrawn_since(&key, at.after(Duration::from_nanos(10))));
    }

    #[test]
    fn marks_of_long_names_take_no_more_than_those_of_short_ones() {
        let bytes = withdraw_long_names(&Copies::memory(1024 * 1024));
        assert!((500_000..2_000_000).contains(&bytes), "{bytes}");
        assert_eq!(SHARDS * SHARD_BYTES, 26 * 1024 * 1024, "the most, as documented");
    }

    #[test]
    fn withdrawals_that_wait_for_an_unreadable_disk_keep_no_names() {
        let disk = FakeMedium::default();
        disk.fail(Some(DiskError::Failed("broken".into())));
        let options = StoreOptions {
            retry_pause: (Duration::from_secs(600), Duration::from_secs(600)),
            ..StoreOptions::new("")
        };
        let (store, _) = Copies::open_on(Box::new(disk), options, now(0));
        let marks = withdraw_long_names(&store);
        let queued = store.inner.queue.as_ref().map_or(0, |queue| queue.erase_bytes());
        assert_eq!(store.health().withdrawals_unconfirmed, 10_000);
        assert!(marks < 2_000_000 && queued < 16_384, "{marks} {queued}");
    }
}
