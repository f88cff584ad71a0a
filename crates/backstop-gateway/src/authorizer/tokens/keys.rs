//! The keys that are believed now, shared by all threads: what the last fetch brought, and for how long.
//!
//! ```text
//! never fetched, fetch under way -> wait for its end
//! age <= max_age ----------------> believed
//! older, fetch under way --------> wait for its end
//! older, none under way ---------> outage: what the last fetch failed with
//! ```

use std::sync::Arc;
use std::time::Duration;

use backstop::authorize::Verdict;
use backstop::clock::Clock;
use backstop_engine::failure::{Failure, NotAsked};
use backstop_engine::time::Mono;
use tokio::sync::{Notify, watch};

use super::key_set::KeySet;

/// Between two fetches that tokens with unknown keys cause, from begin to begin: such tokens cost an attacker nothing.
pub(super) const FORCED_PAUSE: Duration = Duration::from_secs(10);

/// An issuer's keys.
#[derive(Debug)]
pub(super) struct Keys {
    max_age: Duration,
    present: watch::Sender<Present>,
    /// Somebody showed a token with a key that is not known.
    pub(super) wanted: Notify,
}

/// What is known of them.
#[derive(Clone, Debug, Default)]
struct Present {
    newest: Option<Arc<Fetched>>,
    /// When the last fetch was begun.
    begun: Option<Mono>,
    is_under_way: bool,
    /// What the last fetch came to, if that was no set of keys.
    trouble: Option<Trouble>,
}

/// A set of keys as it was fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    set: KeySet,
    /// When it was asked for: what the issuer withdrew since then, nobody here knows.
    asked_at: Mono,
    /// How old it was by the word of caches between (RFC 9111 section 5.1).
    received_age: Duration,
}

/// Why a fetch brought no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The issuer failed.
    Failed(Failure),
    /// It was not asked: an operator holds it back, or earlier fetches still have their places.
    NotAsked(NotAsked),
    /// It answered, and with something else.
    Unusable,
}

/// What became of asking for newer keys.
pub(super) enum Renewed {
    /// There are none that are newer, or here they are.
    Keys(Arc<Fetched>),
    /// They cannot be had now.
    Outage(Verdict),
}

impl std::ops::Deref for Fetched {
    type Target = KeySet;

    fn deref(&self) -> &KeySet {
        &self.set
    }
}

impl Fetched {
    fn age(&self, now: Mono) -> Duration {
        now.since(self.asked_at).unwrap_or_default().saturating_add(self.received_age)
    }
}

impl Present {
    /// While a fetch is under way, and before the first one, it is worth waiting.
    fn is_settled(&self) -> bool {
        !self.is_under_way && self.begun.is_some()
    }

    fn outage(&self) -> Verdict {
        match self.trouble {
            Some(Trouble::Failed(failure)) => Verdict::Failed(failure),
            Some(Trouble::NotAsked(reason)) => Verdict::NotAsked(reason),
            Some(Trouble::Unusable) | None => Verdict::Unclear,
        }
    }

    /// A set without a key that verifies anything is the issuer's word that no token is valid; but that may as well be its
    /// slip, so it is told as an outage.
    fn believed(&self, now: Mono, max_age: Duration) -> Option<&Arc<Fetched>> {
        self.newest.as_ref().filter(|fetched| !fetched.is_empty() && fetched.age(now) <= max_age)
    }
}

impl Keys {
    /// None yet.
    pub(super) fn new(max_age: Duration) -> Self {
        Self { max_age, present: watch::Sender::new(Present::default()), wanted: Notify::new() }
    }

    /// How old they are; `None` while there are none.
    pub(super) fn age(&self, now: Mono) -> Option<Duration> {
        self.present.borrow().newest.as_ref().map(|fetched| fetched.age(now))
    }

    /// The keys that may be believed now. Waits for a fetch that is under way; whoever calls bounds the wait.
    pub(super) async fn believed(&self, clock: &Clock) -> Result<Arc<Fetched>, Verdict> {
        {
            let present = self.present.borrow();
            if let Some(fetched) = present.believed(clock.mono(), self.max_age) {
                return Ok(Arc::clone(fetched));
            }
            if present.is_settled() {
                return Err(present.outage());
            }
        }
        self.settled(clock, |_| true).await
    }

    /// Keys that are newer than these, because a token names one that is not among them.
    pub(super) async fn renewed(&self, known: &Arc<Fetched>, clock: &Clock) -> Renewed {
        let now = clock.mono();
        let begun = {
            let present = self.present.borrow();
            if let Some(newer) = present.believed(now, self.max_age).filter(|it| !Arc::ptr_eq(it, known)) {
                return Renewed::Keys(Arc::clone(newer));
            }
            let is_recent = |moment: Mono| now < moment.after(FORCED_PAUSE);
            if is_recent(known.asked_at) {
                return Renewed::Keys(Arc::clone(known));
            }
            if !present.is_under_way && present.begun.is_some_and(is_recent) {
                return Renewed::Outage(present.outage());
            }
            if present.is_under_way { None } else { present.begun }
        };
        self.wanted.notify_one();
        let has_tried = move |present: &Present| begun.is_none() || present.begun != begun;
        let newer = match self.settled(clock, has_tried).await {
            Ok(newer) => newer,
            Err(outage) => return Renewed::Outage(outage),
        };
        if Arc::ptr_eq(&newer, known) {
            return Renewed::Outage(self.present.borrow().outage());
        }
        Renewed::Keys(newer)
    }

    /// Waits until no fetch is under way and this holds.
    async fn settled(
        &self,
        clock: &Clock,
        holds: impl Fn(&Present) -> bool,
    ) -> Result<Arc<Fetched>, Verdict> {
        let mut present = self.present.subscribe();
        let Ok(present) = present.wait_for(|present| present.is_settled() && holds(present)).await else {
            return Err(Verdict::Unclear);
        };
        let believed = present.believed(clock.mono(), self.max_age).map(Arc::clone);
        believed.ok_or_else(|| present.outage())
    }

    /// A fetch begins.
    pub(super) fn begin(&self, now: Mono) {
        self.present.send_modify(|present| {
            present.begun = Some(now);
            present.is_under_way = true;
        });
    }

    /// It brought keys, which were asked for then. Older ones than those at hand, by the word of a cache between, change
    /// nothing.
    pub(super) fn fetched(&self, set: KeySet, asked_at: Mono, received_age: Duration) {
        let fetched = Fetched { set, asked_at, received_age };
        self.present.send_modify(|present| {
            let age = fetched.age(asked_at);
            let is_newest = present.newest.as_ref().is_none_or(|known| known.age(asked_at) >= age);
            if is_newest {
                present.newest = Some(Arc::new(fetched));
            }
            present.is_under_way = false;
            present.trouble = None;
        });
    }

    /// Whether keys that come this old are believed at all.
    pub(super) fn believes(&self, received_age: Duration) -> bool {
        received_age <= self.max_age
    }

    /// It brought none. Those that are there go on until they are too old.
    pub(super) fn failed(&self, trouble: Trouble) {
        self.present.send_modify(|present| {
            present.is_under_way = false;
            present.trouble = Some(trouble);
        });
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
