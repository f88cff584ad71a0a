//! Counters as plain numbers, read alike by metrics, status page and tests.

use std::time::Duration;

use crate::failure::FailureKind;
use crate::flow::Authorization;
use crate::outcome::{Outcome, Reason, Source};
use crate::sync::{AtomicU64, Ordering};

const OUTCOMES: usize = Outcome::ALL.len();
const SOURCES: usize = Source::ALL.len();
const REASONS: usize = Reason::TOKENS.len();

/// Upper bounds of the age histogram's buckets, in seconds.
pub const AGE_BUCKETS_SECONDS: [u64; 12] = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21_600, 86_400];

/// What one route came to so far.
pub struct RouteTally {
    requests: Box<[AtomicU64]>,
    ages: [AtomicU64; AGE_BUCKETS_SECONDS.len() + 1],
    age_sum_ms: AtomicU64,
    oldest_ms: [AtomicU64; 2],
}

/// Who asks a route for the oldest copy that it served since they asked last. Each has an answer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeReader {
    /// What shows how the gateway stands.
    Status = 0,
    /// What keeps the record of an incident.
    Incidents = 1,
}

/// One non-zero request counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// What the requests came to.
    pub outcome: Outcome,
    /// Where the answers came from.
    pub source: Source,
    /// Why, as a word of [`Reason::TOKENS`].
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

impl RouteTally {
    /// Nothing counted.
    pub fn new() -> Self {
        Self {
            requests: (0..OUTCOMES * SOURCES * REASONS).map(|_| AtomicU64::new(0)).collect(),
            ages: std::array::from_fn(|_| AtomicU64::new(0)),
            age_sum_ms: AtomicU64::new(0),
            oldest_ms: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Counts one finished request.
    pub fn record(&self, outcome: Outcome, source: Source, reason: Reason) {
        let index = (outcome as usize * SOURCES + source as usize) * REASONS + reason.index();
        if let Some(counter) = self.requests.get(index) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the age of one copy that was served.
    pub fn record_age(&self, age: Duration) {
        let bucket = AGE_BUCKETS_SECONDS.iter().position(|&bound| age <= Duration::from_secs(bound));
        if let Some(counter) = self.ages.get(bucket.unwrap_or(AGE_BUCKETS_SECONDS.len())) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.age_sum_ms.fetch_add(age_ms, Ordering::Relaxed);
        // A copy of no age at all counts as one of 1 ms: 0 stands for none.
        self.oldest_ms.iter().for_each(|oldest| _ = oldest.fetch_max(age_ms.max(1), Ordering::Relaxed));
    }

    /// The oldest copy that was served since this reader took it last; none if none was.
    pub fn oldest(&self, reader: AgeReader) -> Option<Duration> {
        let oldest = self.oldest_ms.get(reader as usize)?.load(Ordering::Relaxed);
        (oldest > 0).then(|| Duration::from_millis(oldest))
    }

    /// The same, and it begins anew for this reader.
    pub fn take_oldest(&self, reader: AgeReader) -> Option<Duration> {
        let oldest = self.oldest_ms.get(reader as usize)?.swap(0, Ordering::Relaxed);
        (oldest > 0).then(|| Duration::from_millis(oldest))
    }

    /// Every counter that is not zero.
    pub fn requests(&self) -> Vec<RequestCount> {
        let mut counts = Vec::new();
        let mut counters = self.requests.iter();
        for outcome in Outcome::ALL {
            for source in Source::ALL {
                for reason in Reason::TOKENS {
                    let count = counters.next().map_or(0, |counter| counter.load(Ordering::Relaxed));
                    if count > 0 {
                        counts.push(RequestCount { outcome, source, reason, count });
                    }
                }
            }
        }
        counts
    }

    /// Requests with this outcome.
    pub fn total(&self, outcome: Outcome) -> u64 {
        self.requests().iter().filter(|count| count.outcome == outcome).map(|count| count.count).sum()
    }

    /// Copies served per bucket of [`AGE_BUCKETS_SECONDS`] (the last one is above all), and the sum of their ages in
    /// milliseconds.
    pub fn ages(&self) -> ([u64; AGE_BUCKETS_SECONDS.len() + 1], u64) {
        let counts = std::array::from_fn(|i| self.ages.get(i).map_or(0, |c| c.load(Ordering::Relaxed)));
        (counts, self.age_sum_ms.load(Ordering::Relaxed))
    }
}

impl Default for RouteTally {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RouteTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteTally").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

/// What came of asking whether callers may, on one route.
#[derive(Debug, Default)]
pub struct AuthorizationTally([AtomicU64; AuthorizationTally::TOKENS.len()]);

impl AuthorizationTally {
    /// Every word, in the order of [`AuthorizationTally::counts`]. A no and an outage are never one number.
    pub const TOKENS: [&'static str; 5] = ["allowed", "denied", "unclear", "failed", "not_asked"];

    pub(crate) fn count(&self, came: Authorization) {
        let index = match came {
            Authorization::Allowed => 0,
            Authorization::Denied => 1,
            Authorization::Unclear => 2,
            Authorization::Failed(_) => 3,
            Authorization::NotAsked(_) => 4,
        };
        if let Some(counter) = self.0.get(index) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often each of [`AuthorizationTally::TOKENS`].
    pub fn counts(&self) -> [u64; AuthorizationTally::TOKENS.len()] {
        std::array::from_fn(|index| self.0.get(index).map_or(0, |counter| counter.load(Ordering::Relaxed)))
    }
}

/// What one dependency did so far.
#[derive(Debug)]
pub struct DependencyTally {
    attempts: AtomicU64,
    answers: AtomicU64,
    abandoned: AtomicU64,
    late: AtomicU64,
    failures: [AtomicU64; FailureKind::TOKENS.len()],
}

impl DependencyTally {
    /// Nothing counted.
    pub fn new() -> Self {
        Self {
            attempts: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            late: AtomicU64::new(0),
            failures: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// A call began.
    pub fn attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// A call was answered acceptably (an answer about the request, such as 404, is one).
    pub fn answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// A call was left because the client left: nobody's failure.
    pub fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// A result came with the number of another attempt or generation and changed nothing.
    pub fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// A call failed.
    pub fn failure(&self, kind: FailureKind) {
        if let Some(counter) = self.failures.get(kind.index()) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls begun.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Calls answered acceptably.
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Calls left by the client.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Results that came too late to count.
    pub fn late_results(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Failures per kind, in the order of [`FailureKind::TOKENS`].
    pub fn failures(&self) -> [u64; FailureKind::TOKENS.len()] {
        std::array::from_fn(|i| self.failures.get(i).map_or(0, |c| c.load(Ordering::Relaxed)))
    }
}

impl Default for DependencyTally {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back_under_their_own_names() {
        let tally = RouteTally::new();
        tally.record(Outcome::Rejected, Source::None, Reason::Unclassified);
        tally.record(Outcome::Normal, Source::Primary, Reason::None);
        tally.record(Outcome::Normal, Source::Primary, Reason::None);
        let rejected = RequestCount {
            outcome: Outcome::Rejected,
            source: Source::None,
            reason: "unclassified",
            count: 1,
        };
        let normal =
            RequestCount { outcome: Outcome::Normal, source: Source::Primary, reason: "none", count: 2 };
        assert_eq!(tally.requests(), [normal, rejected]);
        assert_eq!(tally.total(Outcome::Normal), 2);
    }

    /// Bounds are inclusive, as Prometheus histograms have them (`le`).
    #[test]
    fn ages_fall_into_inclusive_buckets() {
        let tally = RouteTally::new();
        tally.record_age(Duration::from_secs(60));
        tally.record_age(Duration::from_secs(60) + Duration::from_nanos(1));
        tally.record_age(Duration::from_secs(86_401));
        let (counts, sum_ms) = tally.ages();
        assert_eq!(counts, [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(sum_ms, 120_000 + 86_401_000);
    }

    #[test]
    fn the_oldest_copy_is_told_once_to_each_reader() {
        let tally = RouteTally::new();
        let oldest = |reader| tally.take_oldest(reader).map(|age| age.as_millis());
        assert_eq!(oldest(AgeReader::Status), None);
        for age_ms in [31_250, 7, 0] {
            tally.record_age(Duration::from_millis(age_ms));
        }
        assert_eq!(tally.oldest(AgeReader::Status), Some(Duration::from_millis(31_250)));
        assert_eq!((oldest(AgeReader::Status), oldest(AgeReader::Status)), (Some(31_250), None));
        tally.record_age(Duration::ZERO);
        assert_eq!((oldest(AgeReader::Status), oldest(AgeReader::Incidents)), (Some(1), Some(31_250)));
    }
}
