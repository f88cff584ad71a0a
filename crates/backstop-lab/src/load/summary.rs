//! What came of a load.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Sample;

/// A distribution of durations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// 90 % are at most this.
    pub p90_ns: u64,
    /// 95 % are at most this.
    pub p95_ns: u64,
    /// 99 % are at most this.
    pub p99_ns: u64,
    /// 99.9 % are at most this.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            count: histogram.len(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p95_ns: histogram.value_at_quantile(0.95),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}

/// What came of the requests of one kind, or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindSummary {
    /// Requests whose time came.
    pub offered: u64,
    /// Whole answers, of any status.
    pub answered: u64,
    /// Requests without a whole answer.
    pub failed: u64,
    /// Requests not sent, because too many waited or the drain was over.
    pub excess: u64,
    /// Whole answers that the kind's check found wrong.
    pub wrong: u64,
    /// Whole answers by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Whole answers by `outcome` of the `Backstop` field; `unmarked` without one.
    pub by_outcome: BTreeMap<String, u64>,
    /// Whole answers by `source` of the `Backstop` field, where it has one.
    pub by_source: BTreeMap<String, u64>,
    /// Failures by name ([`super::Failure::name`]).
    pub failures: BTreeMap<&'static str, u64>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// From the intended time until the answer was whole; failures are not in it.
    pub latency: Latency,
    /// From the intended time until the request was handed to the kernel; those without a connection are not in it.
    pub send_lag: Latency,
}

/// What came of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Of all requests.
    pub total: KindSummary,
    /// Of each kind, in the order of the plan.
    pub kinds: Vec<(String, KindSummary)>,
    /// From the start of the run until its last answer.
    pub took: Duration,
    /// The samples, as many as were to be kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Samples over that number.
    pub unkept_samples: u64,
}

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// From the start of the run.
    pub elapsed: Duration,
    /// Requests waiting for a connection.
    pub waiting: u64,
    /// Requests sent and not yet answered.
    pub in_flight: u64,
    /// Of all requests so far.
    pub total: KindSummary,
    /// Whether the run is over.
    pub over: bool,
}
