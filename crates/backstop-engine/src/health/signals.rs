//! What a dependency says about itself while it comes back.
//!
//! A signal that never came is not waited for. One that came and is then missing holds the share where it is: what is
//! not seen is not called good. After a minute without it the rest decides, and it is told that it is missing.
//!
//! The backlog is no word of the dependency's: it is this process's own work, told when a read is added to it. While none is
//! added there is less of it and not more, and so it holds nothing. (It did: where other requests took all that a ramp
//! gave, no read was added, and for want of the word nothing more was given.)

use std::time::Duration;

use super::bands::Light;
use super::rules::{Band, PerMille};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Mono, duration_ns};

/// A signal that has been missing for longer is no longer waited for.
pub(super) const WAITED_FOR: Duration = Duration::from_secs(60);

/// One observation of a resource behind the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// How long a database connection was waited for.
    DatabaseWait(Duration),
    /// What is used of the resource's limit.
    InUse(PerMille),
    /// Work that waits, as the time that it takes.
    Backlog(Duration),
}

impl Signal {
    /// Every signal once, in declaration order, as in metrics.
    pub const TOKENS: [&'static str; 3] = ["db_wait", "in_use", "backlog"];
}

// The value and its moment are two words. Read between the two writes they are a new value with an older moment, which
// at worst holds the share for one tick.
struct Last {
    value: AtomicU64,
    // Nanoseconds since boot, plus one: zero is never.
    seen: AtomicU64,
}

impl Last {
    fn new() -> Self {
        Self { value: AtomicU64::new(0), seen: AtomicU64::new(0) }
    }

    fn set(&self, now: Mono, value: u64) {
        self.value.store(value, Ordering::Release);
        self.seen.store(now.as_ns().saturating_add(1), Ordering::Release);
    }

    /// Whether it came once, and not for so long that it is no longer waited for.
    fn is_missing(&self, now: Mono) -> bool {
        let seen = self.seen.load(Ordering::Acquire).checked_sub(1);
        seen.is_some_and(|seen| Mono::from_ns(seen).until(now) > WAITED_FOR)
    }

    /// Of what says nothing while there is less of it.
    fn light_of_late(&self, now: Mono, fresh: Duration, green: u64, red: u64) -> Light {
        let seen = self.seen.load(Ordering::Acquire).checked_sub(1);
        match seen.filter(|seen| Mono::from_ns(*seen).until(now) <= fresh) {
            Some(_) => self.light(now, fresh, green, red),
            None => Light::Green,
        }
    }

    fn light(&self, now: Mono, fresh: Duration, green: u64, red: u64) -> Light {
        let Some(seen) = self.seen.load(Ordering::Acquire).checked_sub(1) else { return Light::Green };
        if self.is_missing(now) {
            return Light::Green;
        }
        if Mono::from_ns(seen).until(now) > fresh {
            return Light::Amber;
        }
        match self.value.load(Ordering::Acquire) {
            value if value > red => Light::Red,
            value if value > green => Light::Amber,
            _ => Light::Green,
        }
    }
}

pub(super) struct Signals {
    database_wait: Last,
    in_use: Last,
    backlog: Last,
}

impl Signals {
    pub(super) fn new() -> Self {
        Self { database_wait: Last::new(), in_use: Last::new(), backlog: Last::new() }
    }

    pub(super) fn set(&self, now: Mono, signal: Signal) {
        match signal {
            Signal::DatabaseWait(wait) => self.database_wait.set(now, duration_ns(wait)),
            Signal::InUse(share) => self.in_use.set(now, u64::from(share.0)),
            Signal::Backlog(work) => self.backlog.set(now, duration_ns(work)),
        }
    }

    /// Which are missing, in the order of [`Signal::TOKENS`].
    pub(super) fn missing(&self, now: Mono) -> [bool; Signal::TOKENS.len()] {
        [self.database_wait.is_missing(now), self.in_use.is_missing(now), false]
    }

    /// The worst of the three, each by its latest value. Two ticks without one and it is missing; a backlog then is none.
    pub(super) fn light(&self, now: Mono, tick: Duration, green: &Band, red: &Band) -> Light {
        let fresh = tick.saturating_mul(2);
        let wait = (duration_ns(green.db_wait), duration_ns(red.db_wait));
        let backlog = (duration_ns(green.backlog), duration_ns(red.backlog));
        let lights = [
            self.database_wait.light(now, fresh, wait.0, wait.1),
            self.in_use.light(now, fresh, u64::from(green.in_use.0), u64::from(red.in_use.0)),
            self.backlog.light_of_late(now, fresh, backlog.0, backlog.1),
        ];
        lights.into_iter().max().unwrap_or(Light::Green)
    }
}
