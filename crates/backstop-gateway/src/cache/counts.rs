//! What is counted about a cache.
//!
//! Every thread counts on its own cache lines; a reader adds them up. Nothing here is locked and nothing is reset.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::CacheError;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The server closed it, or the network did.
    Closed,
    /// A command had no answer in time. It is kept until the commands that are still under way on it have ended.
    Timeout,
    /// What came on it was no answer to what was sent.
    Protocol,
    /// The thread that had it is being stopped.
    Stopped,
}

impl Ended {
    /// Every reason as one word, in declaration order.
    pub const TOKENS: [&'static str; 4] = ["closed", "timeout", "protocol", "stopped"];
}

/// What there is now and what there was so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies that were found and fit the request.
    pub hits: u64,
    /// Keys under which nothing lay.
    pub misses: u64,
    /// Copies that were found and are of another variant: a field that the answer's `Vary` names differs.
    pub other_variants: u64,
    /// Values that are no copy of what was asked for: damaged, of another format, or of another key.
    pub damaged: u64,
    /// Values stored.
    pub stored: u64,
    /// Keys removed, whether something lay there or not.
    pub deleted: u64,
    /// Commands without a result, in the order of [`CacheError::all`].
    pub errors: [u64; CacheError::KINDS],
    /// Commands whose caller left, or whose caller's time was over before that of the command.
    pub abandoned: u64,
    /// Connections opened, on which the server answered.
    pub opened: u64,
    /// Of those, all but the first one of each thread.
    pub reconnects: u64,
    /// Tries to open a connection that failed.
    pub not_opened: u64,
    /// Connections that ended, by [`Ended`].
    pub ended: [u64; 4],
    /// Connections in use for new commands. A connection that ended may still be open for those under way on it.
    pub connections: u64,
    /// Commands under way, abandoned ones included.
    pub in_flight: u64,
}

impl Counts {
    /// How many commands ended so.
    pub fn errors_of(&self, error: CacheError) -> u64 {
        self.errors.get(error.index()).copied().unwrap_or(0)
    }
}

/// What one thread counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) other_variants: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) stored: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) not_opened: AtomicU64,
    pub(super) in_flight: AtomicU64,
    errors: [AtomicU64; CacheError::KINDS],
    ended: [AtomicU64; 4],
}

impl Tally {
    pub(super) fn failed(&self, error: CacheError) {
        if let Some(count) = self.errors.get(error.index()) {
            add(count);
        }
    }

    pub(super) fn ended(&self, why: Ended) {
        if let Some(count) = self.ended.get(why as usize) {
            add(count);
        }
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        counts.hits += read(&self.hits);
        counts.misses += read(&self.misses);
        counts.other_variants += read(&self.other_variants);
        counts.damaged += read(&self.damaged);
        counts.stored += read(&self.stored);
        counts.deleted += read(&self.deleted);
        counts.abandoned += read(&self.abandoned);
        counts.not_opened += read(&self.not_opened);
        counts.in_flight += read(&self.in_flight);
        // What has ended was opened before: read in this order, none is ever open less than not at all.
        let ended: u64 = self.ended.iter().map(read).sum();
        let opened = read(&self.opened);
        counts.opened += opened;
        counts.reconnects += opened.saturating_sub(1);
        counts.connections += opened.saturating_sub(ended);
        for (sum, count) in counts.ended.iter_mut().zip(&self.ended) {
            *sum += read(count);
        }
        for (sum, count) in counts.errors.iter_mut().zip(&self.errors) {
            *sum += read(count);
        }
    }
}

pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
