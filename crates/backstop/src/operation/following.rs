//! Whether whoever asks for statuses is at work, for those who tell clients so.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_engine::operation::Follower;
use backstop_engine::time::Mono;

/// The oldest sign of life that counts.
pub const HEARTBEAT_LIMIT: Duration = Duration::from_secs(10);
/// The furthest that it may be behind.
pub const LAG_LIMIT: Duration = Duration::from_secs(60);
/// No moment.
const NEVER: u64 = u64::MAX;

/// What whoever asks for statuses says of itself. Written by it alone, read by every thread.
#[derive(Debug)]
pub struct Following {
    heartbeat_ns: AtomicU64,
    oldest_due_ns: AtomicU64,
    /// The same for each route: one whose upstream cannot be asked makes no other late.
    routes: OnceLock<Box<[OfRoute]>>,
}

/// How far behind it is with one route, and when it may ask there again.
#[derive(Debug)]
struct OfRoute {
    name: Box<str>,
    oldest_due_ns: AtomicU64,
    asks_from_ns: AtomicU64,
}

impl Default for Following {
    fn default() -> Self {
        Self {
            heartbeat_ns: AtomicU64::new(NEVER),
            oldest_due_ns: AtomicU64::new(NEVER),
            routes: OnceLock::new(),
        }
    }
}

impl Following {
    /// These routes are followed. Said once; later ones change nothing.
    pub fn follows(&self, routes: impl IntoIterator<Item = Box<str>>) {
        let of_route =
            |name| OfRoute { name, oldest_due_ns: AtomicU64::new(NEVER), asks_from_ns: AtomicU64::new(0) };
        let _said_before = self.routes.set(routes.into_iter().map(of_route).collect());
    }

    /// Since when the status query of this route that has waited longest has been due.
    pub fn is_due(&self, route: &str, oldest_due: Option<Mono>) {
        if let Some(known) = self.route(route) {
            known.oldest_due_ns.store(oldest_due.map_or(NEVER, Mono::as_ns), Ordering::Relaxed);
        }
    }

    /// No status query of this route begins before `earliest`, whatever is due: its budget or its breaker is against it.
    pub fn asks_from(&self, route: &str, earliest: Mono) {
        if let Some(known) = self.route(route) {
            known.asks_from_ns.store(earliest.as_ns(), Ordering::Relaxed);
        }
    }

    /// How long it takes at least until an operation of this route is asked for that is due in `due`.
    pub fn until_asked(&self, route: &str, due: Duration, now: Mono) -> Duration {
        let earliest = self.route(route).map(|known| known.asks_from_ns.load(Ordering::Relaxed));
        earliest.map_or(due, |ns| now.until(Mono::from_ns(ns)).max(due))
    }

    fn route(&self, route: &str) -> Option<&OfRoute> {
        self.routes.get()?.iter().find(|known| *known.name == *route)
    }

    /// It is at work. `oldest_due`: since when the status query that has waited longest has been due.
    pub fn is_at_work(&self, oldest_due: Option<Mono>, now: Mono) {
        self.oldest_due_ns.store(oldest_due.map_or(NEVER, Mono::as_ns), Ordering::Relaxed);
        self.heartbeat_ns.store(now.as_ns(), Ordering::Relaxed);
    }

    /// What is known of it by how far it is behind with any route.
    pub fn of_all(&self, has_status_query: bool) -> Follower {
        Follower {
            has_status_query,
            heartbeat: moment(&self.heartbeat_ns),
            oldest_due: moment(&self.oldest_due_ns),
            heartbeat_limit: HEARTBEAT_LIMIT,
            lag_limit: LAG_LIMIT,
        }
    }

    /// What is known of it, for the operations of one route: by how far it is behind with that one.
    pub fn of_route(&self, route: &str, has_status_query: bool) -> Follower {
        let oldest_due = self.route(route).and_then(|known| moment(&known.oldest_due_ns));
        Follower { oldest_due, ..self.of_all(has_status_query) }
    }
}

fn moment(ns: &AtomicU64) -> Option<Mono> {
    let ns = ns.load(Ordering::Relaxed);
    (ns != NEVER).then(|| Mono::from_ns(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn nobody_is_told_an_earlier_query_than_one_may_begin() {
        let following = Following::default();
        let seconds = Duration::from_secs;
        assert_eq!(following.until_asked("pay", seconds(3), at(100)), seconds(3), "no route is followed yet");
        following.follows(["pay".into(), "refund".into()]);
        assert_eq!(following.until_asked("pay", seconds(3), at(100)), seconds(3));
        following.asks_from("pay", at(120));
        assert_eq!(following.until_asked("pay", seconds(3), at(100)), seconds(20));
        assert_eq!(following.until_asked("pay", seconds(30), at(100)), seconds(30), "it is due later still");
        assert_eq!(following.until_asked("pay", Duration::ZERO, at(121)), Duration::ZERO);
        assert_eq!(
            following.until_asked("refund", seconds(3), at(100)),
            seconds(3),
            "another route's breaker"
        );
    }
}
