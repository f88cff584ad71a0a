//! What is not kept for a while, because a write of unknown end may still change it.
//!
//! A withdrawal refuses the reads that began *before* it. After a write whose end is unknown that is not enough: the
//! dependency may carry it out later, and a read that began in between would be kept as the last correct answer. So
//! such a withdrawal also **holds** what it names until a stated moment: no read that begins before that moment is
//! stored, whatever it brings.
//!
//! Holds are few, and a read that begins after the last of them costs one atomic load. They are bounded in number: one
//! too many holds everything until the last of them ends, so more is refused, never less. They are not kept on disk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstop_engine::time::Mono;

use crate::copies::Withdrawal;
use crate::key::{CopyKey, site};
use crate::marks::{Hash128, Name};

/// Names that are held at once: at most 5 MiB.
const MAX_HOLDS: usize = 65_536;

/// Everything that is held.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// When the last hold ends, in ns of the boot clock.
    last_end: AtomicU64,
    hash: Hash128,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    until: BTreeMap<Name, Mono>,
    /// Holds everything, once there were too many names.
    everything_until: Option<Mono>,
}

impl Holds {
    /// Holds what `withdrawal` names until `until`. A later end wins.
    pub(crate) fn hold(&self, withdrawal: &Withdrawal, now: Mono, until: Mono) {
        let name = self.name(withdrawal);
        let mut held = self.lock();
        if held.until.len() >= MAX_HOLDS && !held.until.contains_key(&name) {
            held.forget(now);
        }
        let end = held.until.entry(name).or_insert(until);
        *end = until.max(*end);
        // Under the lock, so that whoever sees the new end finds the name as well.
        self.last_end.fetch_max(until.as_ns(), Ordering::SeqCst);
    }

    /// Whether a read for `key` that began at `began` may not be kept.
    pub(crate) fn refuse(&self, key: &CopyKey, began: Mono) -> bool {
        if began.as_ns() >= self.last_end.load(Ordering::SeqCst) {
            return false;
        }
        let (path, target) = self.hash.names(key.target.site(), key.target.query());
        let names = [path, target, self.hash.name(&Of::Route(&key.route))];
        let held = self.lock();
        let holds = |until: &Mono| began < *until;
        held.everything_until.as_ref().is_some_and(holds)
            || names.iter().any(|name| held.until.get(name).is_some_and(holds))
    }

    fn name(&self, withdrawal: &Withdrawal) -> Name {
        match withdrawal {
            Withdrawal::Target(target) => self.hash.names(target.site(), target.query()).1,
            Withdrawal::Path { host, path } => self.hash.names(&site(host, path), None).0,
            Withdrawal::Route(route) => self.hash.name(&Of::Route(route)),
        }
    }

    /// Whoever asks waits until that is dropped.
    #[cfg(test)]
    pub(crate) fn block(&self) -> impl Drop + '_ {
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the hash of a route's name apart from those of paths.
#[derive(Hash)]
enum Of<'a> {
    Route(&'a str),
}

impl Held {
    /// Makes room: what has ended goes, and if that is less than half, all names go, and everything is held until the
    /// last one's end.
    ///
    /// A read that began before an end and is still under way would find nothing any more; so what goes holds
    /// everything until its own end, which lies in the past for every read that begins now.
    fn forget(&mut self, now: Mono) {
        let ended = self.until.values().filter(|until| **until <= now).count();
        let has_room = ended >= self.until.len() / 2;
        let gone = self.until.extract_if(.., |_, until| !has_room || *until <= now);
        self.everything_until = gone.map(|(_, until)| until).chain(self.everything_until).max();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Target;

    fn at(ns: u64) -> Mono {
        Mono::from_ns(ns)
    }

    fn key(path: &str, query: Option<&str>) -> CopyKey {
        CopyKey { route: "r".into(), target: Target::new("h", path, query), partition: Box::default() }
    }

    fn path(path: &str) -> Withdrawal {
        Withdrawal::Path { host: "h".into(), path: path.into() }
    }

    #[test]
    fn a_read_that_begins_before_the_end_is_refused_and_one_at_the_end_is_not() {
        let holds = Holds::default();
        holds.hold(&path("/p"), at(5), at(10));
        assert!(holds.refuse(&key("/p", None), at(0)) && holds.refuse(&key("/p", Some("q")), at(9)));
        assert!(!holds.refuse(&key("/p", None), at(10)) && !holds.refuse(&key("/q", None), at(9)));
    }

    #[test]
    fn a_target_a_path_and_a_route_hold_what_they_name() {
        let refused = |withdrawal: &Withdrawal| {
            let holds = Holds::default();
            holds.hold(withdrawal, at(0), at(10));
            [key("/p", None), key("/p", Some("q")), key("/o", None)].map(|key| holds.refuse(&key, at(9)))
        };
        assert_eq!(refused(&path("/p")), [true, true, false]);
        assert_eq!(refused(&Withdrawal::Target(Target::new("h", "/p", Some("q")))), [false, true, false]);
        assert_eq!(refused(&Withdrawal::Route("r".into())), [true; 3]);
        assert_eq!(refused(&Withdrawal::Route("s".into())), [false; 3]);
    }

    #[test]
    fn an_earlier_end_never_shortens_a_hold() {
        let holds = Holds::default();
        holds.hold(&path("/p"), at(0), at(10));
        holds.hold(&path("/p"), at(0), at(5));
        assert!(holds.refuse(&key("/p", None), at(9)));
    }

    #[test]
    fn too_many_holds_refuse_more_never_less() {
        let holds = Holds::default();
        for number in 0..MAX_HOLDS {
            holds.hold(&path(&format!("/{number}")), at(0), at(10));
        }
        assert!(!holds.refuse(&key("/other", None), at(9)));
        holds.hold(&path("/one-more"), at(1), at(20));
        for held in ["/0", "/65535", "/other", "/one-more"] {
            assert!(holds.refuse(&key(held, None), at(9)), "{held}");
        }
        assert!(!holds.refuse(&key("/0", None), at(10)) && holds.refuse(&key("/one-more", None), at(19)));
        assert_eq!(holds.lock().until.len(), 1);
    }

    #[test]
    fn what_has_ended_makes_room_for_what_has_not() {
        let holds = Holds::default();
        for number in 0..MAX_HOLDS as u64 {
            holds.hold(&path(&format!("/{number}")), at(0), at(10 + number % 2));
        }
        holds.hold(&path("/one-more"), at(10), at(20));
        assert_eq!(holds.lock().until.len(), MAX_HOLDS / 2 + 1);
        // Still under way since before the end, so it is not known any more what held it.
        assert!(holds.refuse(&key("/0", None), at(9)) && holds.refuse(&key("/other", None), at(9)));
        assert!(holds.refuse(&key("/1", None), at(10)) && !holds.refuse(&key("/other", None), at(10)));
    }
}
