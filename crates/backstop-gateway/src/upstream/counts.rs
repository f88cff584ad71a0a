//! What is counted about the connections to one dependency.
//!
//! Every thread counts on its own cache lines; a reader adds them up. Nothing here is locked and nothing is reset.

use std::sync::atomic::{AtomicU64, Ordering};

use backstop_engine::time::Mono;

use super::settings::Address;

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// It rested longer than allowed.
    Idle,
    /// The other side had closed it, or sent what nobody asked for, while it rested.
    Peer,
    /// The answer did not allow another one: `Connection: close`, HTTP/1.0, a body that ends with the connection, or an
    /// answer that came before the whole request was sent.
    Answered,
    /// The exchange failed.
    Failed,
    /// The request broke off, or its thread ended, before the exchange was over.
    Left,
    /// The call was abandoned, and its answer did not come within the hold or was too large.
    Abandoned,
    /// The pool or its thread is being stopped.
    Stopped,
}

impl Closed {
    /// Every reason as one word, in declaration order.
    pub const TOKENS: [&'static str; 7] =
        ["idle", "peer", "answered", "failed", "left", "abandoned", "stopped"];
}

/// A part of a call that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timed {
    /// Looking up a name.
    Resolve,
    /// Establishing a connection.
    Connect,
    /// Sending a request that has a body.
    Send,
    /// Waiting for the head of the answer.
    Head,
}

impl Timed {
    /// Every part as one word, in declaration order.
    pub const TOKENS: [&'static str; 4] = ["resolve", "connect", "send", "head"];
}

/// How long something took, over many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Nanoseconds in all.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// How many took less than [`Durations::bound_ns`] of their position, and not less than that of the one before.
    /// The last holds whatever took longer.
    pub buckets: [u64; Durations::BUCKETS],
}

impl Durations {
    fn add(&mut self, more: &Self) {
        self.sum_ns = self.sum_ns.saturating_add(more.sum_ns);
        self.max_ns = self.max_ns.max(more.max_ns);
        self.buckets.iter_mut().zip(more.buckets).for_each(|(sum, more)| *sum += more);
    }

    /// Number of buckets: from 1 microsecond by doubling to 8.4 seconds, and one for the rest.
    pub const BUCKETS: usize = 25;
    const FIRST_NS: u64 = 1_000;

    /// The upper bound of a bucket, or `None` for the last one.
    pub const fn bound_ns(bucket: usize) -> Option<u64> {
        if bucket + 1 < Self::BUCKETS { Some(Self::FIRST_NS << bucket) } else { None }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    fn bucket(ns: u64) -> usize {
        let doublings = (ns / Self::FIRST_NS).checked_ilog2().map_or(0, |log| log as usize + 1);
        doublings.min(Self::BUCKETS - 1)
    }
}

/// What there is now and what there was so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open, or being opened or closed.
    pub open: u32,
    /// Connections at rest, ready for a call.
    pub idle: u32,
    /// Connections that are neither.
    pub in_use: u32,
    /// Calls that wait for a connection to be closed.
    pub waiting: u32,
    /// Abandoned calls that go on occupying the dependency.
    pub abandoned_now: u64,
    /// Calls abandoned so far, after the request was handed over and before the answer's end came.
    pub abandoned: u64,
    /// Connections opened so far.
    pub opened: u64,
    /// Calls made on a connection that had rested.
    pub reused: u64,
    /// Of those, on a connection of another thread.
    pub stolen: u64,
    /// Connections found dead by a call before any byte of its request was sent.
    pub replaced: u64,
    /// Connections closed so far, by [`Closed`].
    pub closed: [u64; 7],
    /// How long the parts of calls took, by [`Timed`].
    pub durations: [Durations; 4],
    /// Every address.
    pub addresses: Vec<AddressCounts>,
}

impl Counts {
    /// Those of two pools together.
    #[must_use]
    pub fn and(mut self, more: &Self) -> Self {
        let Self {
            open,
            idle,
            in_use,
            waiting,
            abandoned_now,
            abandoned,
            opened,
            reused,
            stolen,
            replaced,
            ..
        } = &mut self;
        for (sum, more) in
            [(open, more.open), (idle, more.idle), (in_use, more.in_use), (waiting, more.waiting)]
        {
            *sum += more;
        }
        let sums = [
            (abandoned_now, more.abandoned_now),
            (abandoned, more.abandoned),
            (opened, more.opened),
            (reused, more.reused),
            (stolen, more.stolen),
            (replaced, more.replaced),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
        self.closed.iter_mut().zip(more.closed).for_each(|(sum, more)| *sum += more);
        self.durations.iter_mut().zip(&more.durations).for_each(|(sum, more)| sum.add(more));
        self.addresses.extend(more.addresses.iter().cloned());
        self
    }
}

/// One address of a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressCounts {
    /// Which.
    pub address: Address,
    /// Calls under way.
    pub in_flight: u32,
    /// Until when it is passed over because it could not be connected to.
    pub passed_over_until: Option<Mono>,
    /// When its name was last looked up with success.
    pub resolved_at: Option<Mono>,
}

/// What one thread counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Tally {
    pub(super) abandoned: AtomicU64,
    pub(super) abandoned_ended: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) reused: AtomicU64,
    pub(super) stolen: AtomicU64,
    pub(super) replaced: AtomicU64,
    closed: [AtomicU64; 7],
    durations: [Histogram; 4],
}

impl Tally {
    pub(super) fn closed(&self, why: Closed) {
        if let Some(count) = self.closed.get(why as usize) {
            add(count);
        }
    }

    /// Records how long a part took. A clock that stood still or was moved back gives zero.
    pub(super) fn took(&self, part: Timed, from: Mono, to: Mono) {
        if let Some(histogram) = self.durations.get(part as usize) {
            histogram.record(to.as_ns().saturating_sub(from.as_ns()));
        }
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        counts.abandoned += read(&self.abandoned);
        counts.abandoned_now += read(&self.abandoned).saturating_sub(read(&self.abandoned_ended));
        counts.opened += read(&self.opened);
        counts.reused += read(&self.reused);
        counts.stolen += read(&self.stolen);
        counts.replaced += read(&self.replaced);
        for (sum, count) in counts.closed.iter_mut().zip(&self.closed) {
            *sum += read(count);
        }
        for (sum, histogram) in counts.durations.iter_mut().zip(&self.durations) {
            sum.sum_ns += read(&histogram.sum_ns);
            sum.max_ns = sum.max_ns.max(read(&histogram.max_ns));
            for (sum, count) in sum.buckets.iter_mut().zip(&histogram.buckets) {
                *sum += read(count);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Histogram {
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
    buckets: [AtomicU64; Durations::BUCKETS],
}

impl Histogram {
    fn record(&self, ns: u64) {
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
        if let Some(count) = self.buckets.get(Durations::bucket(ns)) {
            add(count);
        }
    }
}

pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_below_the_bound_of_its_bucket_and_not_below_the_one_before() {
        for ns in
            [0, 1, 999, 1_000, 1_999, 2_000, 4_095_999, 4_096_000, 8_388_607_999, 8_388_608_000, u64::MAX]
        {
            let bucket = Durations::bucket(ns);
            assert!(Durations::bound_ns(bucket).is_none_or(|bound| ns < bound), "{ns}");
            let below = bucket.checked_sub(1).and_then(Durations::bound_ns);
            assert!(below.is_none_or(|bound| ns >= bound), "{ns}");
        }
    }

    #[test]
    fn threads_add_up() {
        let (one, two) = (Tally::default(), Tally::default());
        one.took(Timed::Head, Mono::from_ns(10), Mono::from_ns(40));
        two.took(Timed::Head, Mono::from_ns(10), Mono::from_ns(60));
        two.took(Timed::Head, Mono::from_ns(10), Mono::from_ns(5));
        two.closed(Closed::Stopped);
        let mut counts = Counts::default();
        one.add_to(&mut counts);
        two.add_to(&mut counts);
        let head = counts.durations[Timed::Head as usize];
        assert_eq!((head.count(), head.sum_ns, head.max_ns), (3, 80, 50));
        assert_eq!(counts.closed, [0, 0, 0, 0, 0, 0, 1]);
    }
}
