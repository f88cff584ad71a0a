//! A drill that has been played: what clients got beside what the dependencies received.

use std::{collections::HashMap, time::Duration};

use crate::proxy::{Call, Ended, Window};

use super::{Ask, Facts, RouteFacts, Sample};

/// What a client may wait beyond the deadline, and what the excess may take to be refused.
pub(crate) const TOLERANCE: Duration = Duration::from_millis(50);
/// A caller that closed is noticed by the proxy within this.
const NOTICED: Duration = Duration::from_millis(20);

/// Everything that is known of one drill.
#[derive(Debug)]
pub struct View<'a> {
    /// The policy.
    pub facts: &'a Facts,
    /// The different requests.
    pub asks: &'a [Ask],
    /// Every request with its answer, in the order in which they were sent.
    pub samples: &'a [Sample],
    /// Every call that reached a proxy, in the order in which they began.
    pub calls: &'a [Call],
    /// What failed.
    pub windows: &'a [Window],
    /// The calls of each request.
    of_marker: HashMap<u64, Vec<usize>>,
}

impl<'a> View<'a> {
    /// Puts them side by side.
    #[must_use]
    pub fn new(
        facts: &'a Facts,
        asks: &'a [Ask],
        samples: &'a [Sample],
        calls: &'a [Call],
        windows: &'a [Window],
    ) -> Self {
        let mut of_marker: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, call) in calls.iter().enumerate() {
            if let Some(marker) = call.marker {
                of_marker.entry(marker).or_default().push(index);
            }
        }
        Self { facts, asks, samples, calls, windows, of_marker }
    }

    /// The route that a request is for.
    #[must_use]
    pub fn route(&self, sample: &Sample) -> Option<&'a RouteFacts> {
        self.facts.routes().get(sample.route)
    }

    /// What was asked.
    #[must_use]
    pub fn ask(&self, sample: &Sample) -> Option<&'a Ask> {
        self.asks.get(sample.ask)
    }

    /// The calls that this request caused, in the order in which they began.
    pub fn calls_of(&self, sample: &Sample) -> impl Iterator<Item = &'a Call> {
        let calls = self.calls;
        let indices = self.of_marker.get(&sample.marker).map_or(&[][..], Vec::as_slice);
        indices.iter().filter_map(move |index| calls.get(*index))
    }

    /// The request that caused a call.
    #[must_use]
    pub fn cause(&self, call: &Call) -> Option<&'a Sample> {
        let marker = call.marker?;
        self.samples
            .binary_search_by_key(&marker, |sample| sample.marker)
            .ok()
            .and_then(|at| self.samples.get(at))
    }

    /// What its request's copy is told apart by.
    #[must_use]
    pub fn key(&self, call: &Call) -> Option<u64> {
        Some(self.ask(self.cause(call)?)?.key)
    }

    /// Calls of clients' requests to one upstream: those of probes and of the reconciler are not theirs.
    pub fn calls_to(&self, upstream: usize) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.upstream == upstream && call.marker.is_some())
    }

    /// When the first fault begins; the end of time without faults.
    #[must_use]
    pub fn first_fault(&self) -> Duration {
        self.windows.iter().map(|window| window.from).min().unwrap_or(Duration::MAX)
    }

    /// Whether an upstream meets a fault at some moment of this time.
    #[must_use]
    pub fn is_broken(&self, upstream: usize, from: Duration, to: Duration) -> bool {
        self.windows.iter().any(|window| window.upstream == upstream && window.from < to && from < window.to)
    }
}

/// When a call was certainly under way, as far as whoever made it knows.
#[must_use]
pub(crate) fn under_way(call: &Call) -> (Duration, Duration) {
    let end = match call.ended {
        Ended::UnderWay => Duration::MAX,
        Ended::Whole => call.finished,
        // The proxy learns later than the caller that a connection is gone.
        Ended::Broken | Ended::CallerLeft => call.finished.saturating_sub(NOTICED).max(call.began),
    };
    (call.began, end)
}

/// The most that were under way at one moment, and when that was first.
#[must_use]
pub(crate) fn peak(spans: impl IntoIterator<Item = (Duration, Duration)>) -> (u64, Duration) {
    let mut changes: Vec<(Duration, i64)> = Vec::new();
    for (from, to) in spans {
        if from < to {
            changes.push((from, 1));
            changes.push((to, -1));
        }
    }
    // What ends at a moment makes room for what begins then.
    changes.sort_unstable();
    let (mut now, mut most, mut when) = (0_i64, 0_i64, Duration::ZERO);
    for (at, change) in changes {
        now += change;
        if now > most {
            (most, when) = (now, at);
        }
    }
    (u64::try_from(most).unwrap_or(0), when)
}

/// The most that began within any second, and when it began.
#[must_use]
pub(crate) fn most_within_a_second(moments: &[Duration]) -> (u64, Duration) {
    let mut sorted = moments.to_vec();
    sorted.sort_unstable();
    let (mut first, mut most, mut when) = (0, 0, Duration::ZERO);
    for (index, at) in sorted.iter().enumerate() {
        while sorted.get(first).is_some_and(|start| *at - *start >= Duration::from_secs(1)) {
            first += 1;
        }
        let count = index + 1 - first;
        if count > most {
            (most, when) = (count, sorted.get(first).copied().unwrap_or_default());
        }
    }
    (most as u64, when)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_peak_counts_what_overlaps_and_not_what_follows() {
        assert_eq!(peak([(ms(0), ms(10)), (ms(10), ms(20))]), (1, ms(0)));
        assert_eq!(peak([(ms(0), ms(11)), (ms(10), ms(20)), (ms(10), ms(12))]), (3, ms(10)));
        assert_eq!(peak([]), (0, ms(0)));
    }

    #[test]
    fn a_second_is_half_open() {
        assert_eq!(most_within_a_second(&[ms(0), ms(999), ms(1000)]), (2, ms(0)));
        assert_eq!(
            most_within_a_second(&[ms(0), ms(5), ms(1004)]),
            (2, ms(0)),
            "0 and 1004 are further apart"
        );
    }

    #[test]
    fn a_call_whose_caller_left_ended_a_little_earlier() {
        let call = Call { began: ms(100), finished: ms(200), ended: Ended::CallerLeft, ..Call::default() };
        assert_eq!(under_way(&call), (ms(100), ms(180)));
        assert_eq!(under_way(&Call { ended: Ended::Whole, ..call }), (ms(100), ms(200)));
    }
}
