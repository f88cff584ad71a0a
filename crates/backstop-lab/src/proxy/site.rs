//! One address of an upstream, and what all of them share.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

use super::{Window, call::Journal, schedule::Schedule};

/// What stands behind a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, in reports.
    pub name: String,
    /// Where it really is: host and port of each address.
    pub addresses: Vec<String>,
    /// What it speaks.
    pub protocol: Protocol,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http,
    /// Something else over TCP.
    Raw,
}

/// What becomes of requests that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They reach the upstream like all others: it is a sandbox.
    PassOn,
    /// They end here.
    Withhold,
}

impl Writes {
    /// Whether a request with this method may write: anything but `GET`, `HEAD`, `OPTIONS` and `TRACE`.
    #[must_use]
    pub fn is_write(method: &str) -> bool {
        !matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// Time since the beginning, once there was one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<OnceLock<Instant>>);

impl Clock {
    pub(crate) fn begin(&self) {
        self.0.get_or_init(Instant::now);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.0.get().is_some()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) journal: Arc<Journal>,
    pub(crate) schedule: Schedule,
    pub(crate) writes: Writes,
    pub(crate) clock: Clock,
    pub(crate) begun: tokio::sync::Notify,
}

impl Shared {
    pub(crate) fn new(windows: Vec<Window>, writes: Writes, seed: u64) -> Self {
        Self {
            journal: Arc::default(),
            schedule: Schedule::new(windows, seed),
            writes,
            clock: Clock::default(),
            begun: tokio::sync::Notify::new(),
        }
    }

    pub(crate) fn begin(&self) {
        self.clock.begin();
        self.begun.notify_waiters();
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

/// One address of an upstream.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) shared: Arc<Shared>,
    pub(crate) upstream: usize,
    pub(crate) protocol: Protocol,
    pub(crate) address: Arc<str>,
    /// Connections that are served.
    pub(crate) open: Arc<AtomicU32>,
}

impl Site {
    pub(crate) fn new(shared: Arc<Shared>, upstream: usize, protocol: Protocol, address: &str) -> Self {
        Self { shared, upstream, protocol, address: address.into(), open: Arc::default() }
    }

    /// Now, if time counts already.
    pub(crate) fn now(&self) -> Option<Duration> {
        self.shared.clock.has_begun().then(|| self.shared.elapsed())
    }

    /// Takes a place among the connections that are served, if there is room.
    pub(crate) fn take_place(&self) -> Option<Place> {
        let room = self.now().and_then(|now| self.shared.schedule.room(self.upstream, now));
        let most = room.unwrap_or(u32::MAX);
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < most).then(|| open + 1));
        taken.is_ok().then(|| Place(Arc::clone(&self.open)))
    }
}

/// One connection that is served.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicU32>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
