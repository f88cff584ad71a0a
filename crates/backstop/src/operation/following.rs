//! Whether whoever asks for statuses is at work, for those who tell clients so.

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
}

impl Default for Following {
    fn default() -> Self {
        Self { heartbeat_ns: AtomicU64::new(NEVER), oldest_due_ns: AtomicU64::new(NEVER) }
    }
}

impl Following {
    /// It is at work. `oldest_due`: since when the status query that has waited longest has been due.
    pub fn is_at_work(&self, oldest_due: Option<Mono>, now: Mono) {
        self.oldest_due_ns.store(oldest_due.map_or(NEVER, Mono::as_ns), Ordering::Relaxed);
        self.heartbeat_ns.store(now.as_ns(), Ordering::Relaxed);
    }

    /// What is known of it, for the operations of one route.
    pub fn of_route(&self, has_status_query: bool) -> Follower {
        let moment = |ns: &AtomicU64| {
            let ns = ns.load(Ordering::Relaxed);
            (ns != NEVER).then(|| Mono::from_ns(ns))
        };
        Follower {
            has_status_query,
            heartbeat: moment(&self.heartbeat_ns),
            oldest_due: moment(&self.oldest_due_ns),
            heartbeat_limit: HEARTBEAT_LIMIT,
            lag_limit: LAG_LIMIT,
        }
    }
}
