//! Counts samples while a run goes on.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;

use super::{Failure, KindSummary, LoadError, Plan, Progress, Sample, Summary, summary::Latency};

/// Longest duration told apart, in nanoseconds; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a recorded duration.
const DIGITS: u8 = 3;
/// Most different outcomes and sources counted apart.
const NAMES_MAX: usize = 64;

#[derive(Debug)]
struct Count {
    counts: KindSummary,
    latency: Histogram<u64>,
    send_lag: Histogram<u64>,
}

/// The counts of a run.
#[derive(Debug)]
pub(crate) struct Tally {
    total: Count,
    kinds: Vec<(String, Count)>,
    in_flight: u64,
    samples: Vec<Sample>,
    samples_max: usize,
    unkept_samples: u64,
}

impl Tally {
    pub(crate) fn new(plan: &Plan) -> Result<Self, LoadError> {
        let count = |name: &String| Ok((name.clone(), Count::new()?));
        Ok(Self {
            total: Count::new()?,
            kinds: plan.kinds.iter().map(|kind| count(&kind.name)).collect::<Result<_, LoadError>>()?,
            in_flight: 0,
            samples: Vec::new(),
            samples_max: plan.samples_max,
            unkept_samples: 0,
        })
    }

    pub(crate) fn offered(&mut self, kind: usize) {
        self.each(kind, |count| count.counts.offered += 1);
    }

    pub(crate) fn excess(&mut self, kind: usize) {
        self.each(kind, |count| count.counts.excess += 1);
    }

    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) fn done(&mut self, sample: Sample) {
        self.in_flight -= 1;
        self.each(sample.kind, |count| count.add(&sample));
        if self.samples.len() < self.samples_max {
            self.samples.push(sample);
        } else if self.samples_max > 0 {
            self.unkept_samples += 1;
        }
    }

    fn each(&mut self, kind: usize, mut count: impl FnMut(&mut Count)) {
        count(&mut self.total);
        if let Some((_, of_kind)) = self.kinds.get_mut(kind) {
            count(of_kind);
        }
    }

    pub(crate) fn progress(&self, elapsed: Duration, waiting: u64, over: bool) -> Progress {
        Progress { elapsed, waiting, in_flight: self.in_flight, total: self.total.summary(), over }
    }

    pub(crate) fn summary(&mut self, took: Duration) -> Summary {
        Summary {
            total: self.total.summary(),
            kinds: self.kinds.iter().map(|(name, count)| (name.clone(), count.summary())).collect(),
            took,
            samples: std::mem::take(&mut self.samples),
            unkept_samples: self.unkept_samples,
        }
    }
}

impl Count {
    fn new() -> Result<Self, LoadError> {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
                .map_err(|_wrong| LoadError::Plan("no such histogram"))
        };
        Ok(Self { counts: KindSummary::default(), latency: histogram()?, send_lag: histogram()? })
    }

    fn add(&mut self, sample: &Sample) {
        // What was never sent says nothing of how late the generator is: a zero would make it look punctual.
        if let Some(send_lag) = sample.send_lag {
            self.send_lag.saturating_record(nanoseconds(send_lag));
        }
        let counts = &mut self.counts;
        counts.body_bytes += sample.body_bytes;
        if let Some(failure) = sample.failure {
            counts.failed += 1;
            *counts.failures.entry(Failure::name(failure)).or_default() += 1;
            return;
        }
        self.latency.saturating_record(nanoseconds(sample.latency));
        counts.answered += 1;
        counts.wrong += u64::from(sample.right == Some(false));
        *counts.by_status.entry(sample.status.unwrap_or_default()).or_default() += 1;
        count_name(&mut counts.by_outcome, sample.outcome.as_deref().unwrap_or("unmarked"));
        if let Some(source) = &sample.source {
            count_name(&mut counts.by_source, source);
        }
    }

    fn summary(&self) -> KindSummary {
        KindSummary {
            latency: Latency::of(&self.latency),
            send_lag: Latency::of(&self.send_lag),
            ..self.counts.clone()
        }
    }
}

fn count_name(counts: &mut BTreeMap<String, u64>, name: &str) {
    let name = if counts.contains_key(name) || counts.len() < NAMES_MAX { name } else { "other" };
    *counts.entry(name.to_owned()).or_default() += 1;
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
