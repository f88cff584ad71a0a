//! How long a client keeps us waiting for the rest of its own request.
//!
//! That time is the client's: it moves the deadline back instead of counting as the dependency's slowness. It has a
//! limit of its own, which whoever receives the request enforces.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backstop_engine::time::Mono;

/// Shared by whoever reads the client's bytes and the driver.
#[derive(Debug, Default)]
pub struct UploadWatch {
    waited_ns: AtomicU64,
    /// Since when the next bytes are waited for; 0 while they are not.
    since_ns: AtomicU64,
    ended: AtomicBool,
}

impl UploadWatch {
    /// Bytes were asked for and have not come.
    pub fn wait(&self, now: Mono) {
        if self.since_ns.load(Ordering::Relaxed) == 0 {
            self.since_ns.store(now.as_ns().max(1), Ordering::Relaxed);
        }
    }

    /// Bytes came, or the upload ended.
    pub fn arrive(&self, now: Mono) {
        let since = self.since_ns.swap(0, Ordering::Relaxed);
        if since != 0 {
            self.waited_ns.fetch_add(now.as_ns().saturating_sub(since), Ordering::Relaxed);
        }
    }

    /// The last byte was read.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the last byte was read. Until then the client may still be sending.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Since when the next bytes are waited for, if they are.
    pub fn waiting_since(&self) -> Option<Mono> {
        Some(self.since_ns.load(Ordering::Relaxed)).filter(|since| *since != 0).map(Mono::from_ns)
    }

    /// The sum so far, the present wait included.
    pub fn waited(&self, now: Mono) -> Duration {
        let present = self.waiting_since().and_then(|since| now.since(since)).unwrap_or_default();
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)).saturating_add(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_without_bytes_counts() {
        let at = Mono::from_ns;
        let watch = UploadWatch::default();
        assert_eq!(watch.waited(at(100)), Duration::ZERO);
        watch.wait(at(100));
        watch.wait(at(150));
        assert_eq!(watch.waited(at(200)), Duration::from_nanos(100));
        watch.arrive(at(300));
        assert_eq!(watch.waited(at(900)), Duration::from_nanos(200));
        watch.arrive(at(950));
        watch.wait(at(1000));
        assert_eq!(watch.waited(at(1001)), Duration::from_nanos(201));
    }
}
