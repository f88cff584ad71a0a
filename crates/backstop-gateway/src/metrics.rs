//! The metrics of the operators' port, in OpenMetrics text.
//!
//! Everything shown is counted elsewhere, where it happens; here it only gets its name. Labels hold names from the policy
//! and words from closed lists, never anything that a client sent.

mod authorizations;
mod caches;
mod exercises;
mod incidents;
mod observed;
mod operations;
mod reconciler;
mod recovery;
mod telemetry;

use std::collections::BTreeMap;
use std::fmt;

use backstop_engine::admission::NoPlace;
use backstop_engine::failure::FailureKind;
use backstop_engine::outcome::Outcome;
use backstop_engine::tally::AGE_BUCKETS_SECONDS;
use backstop_store::DiskState;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::admin::Admin;
use crate::strict::Fault;
use crate::upstream::{Closed, Counts, Durations, Pool, Timed};

/// The media type of OpenMetrics text.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics at this moment.
pub(crate) fn encode(admin: &Admin) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Everything(admin.clone())));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

struct Everything(Admin);

impl fmt::Debug for Everything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Everything").finish_non_exhaustive()
    }
}

impl Collector for Everything {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.requests(&mut encoder)?;
        self.functions(&mut encoder)?;
        self.observed(&mut encoder)?;
        self.dependencies(&mut encoder)?;
        self.authorizations(&mut encoder)?;
        self.keys_of_issuers(&mut encoder)?;
        self.recovery(&mut encoder)?;
        self.caches(&mut encoder)?;
        self.fills(&mut encoder)?;
        self.exercises(&mut encoder)?;
        self.incidents(&mut encoder)?;
        self.operations(&mut encoder)?;
        self.reconciler(&mut encoder)?;
        self.in_flight(&mut encoder)?;
        self.held_back(&mut encoder)?;
        self.copies(&mut encoder)?;
        self.store(&mut encoder)?;
        self.pools(&mut encoder)?;
        self.connections(&mut encoder)?;
        self.telemetry(&mut encoder)
    }
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// One counter or gauge with its series.
struct Series<'e, 'm> {
    metric: MetricEncoder<'m>,
    _encoder: std::marker::PhantomData<&'e ()>,
}

impl Series<'_, '_> {
    fn count(&mut self, labels: &Labels<'_>, value: u64) -> fmt::Result {
        self.metric.encode_family(labels)?.encode_counter::<Labels<'_>, u64, u64>(&value, None)
    }

    fn gauge(&mut self, labels: &Labels<'_>, value: f64) -> fmt::Result {
        self.metric.encode_family(labels)?.encode_gauge(&value)
    }
}

fn series<'e, 'm>(
    encoder: &'e mut DescriptorEncoder<'m>,
    name: &'e str,
    help: &str,
    kind: MetricType,
) -> Result<Series<'e, 'e>, fmt::Error>
where
    'm: 'e,
{
    let metric = encoder.encode_descriptor(name, help, None, kind)?;
    Ok(Series { metric, _encoder: std::marker::PhantomData })
}

impl Everything {
    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Requests by what they came to, where the answer came from and why";
        let mut requests = series(encoder, "backstop_requests", help, MetricType::Counter)?;
        for route in self.0.backstop.engine().routes() {
            for count in route.tally.requests() {
                let labels = vec![
                    ("route", &*route.rules.name),
                    ("outcome", count.outcome.token()),
                    ("source", count.source.token()),
                    ("reason", count.reason),
                ];
                requests.count(&labels, count.count)?;
            }
        }
        Ok(())
    }

    /// A function is served by its routes; what it came to follows from what they came to.
    fn functions(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for route in self.0.backstop.engine().routes() {
            let Some(function) = &route.rules.function else { continue };
            for completion in ["completed", "reduced", "not_completed"] {
                sums.entry((function, completion)).or_default();
            }
            for count in route.tally.requests() {
                let completion = match count.outcome {
                    Outcome::Normal => "completed",
                    Outcome::Fallback => "reduced",
                    Outcome::Rejected | Outcome::Failed => "not_completed",
                    // Whoever left did not wait to see.
                    Outcome::Abandoned => continue,
                };
                *sums.entry((function, completion)).or_default() += count.count;
            }
        }
        let help = "Requests by business function and whether it was completed";
        let mut functions = series(encoder, "backstop_function_requests", help, MetricType::Counter)?;
        for ((function, completion), count) in sums {
            functions.count(&vec![("function", function), ("completion", completion)], count)?;
        }
        Ok(())
    }

    fn dependencies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let dependencies = self.0.backstop.engine().dependencies();
        let mut failures = series(
            encoder,
            "backstop_dependency_failures",
            "Failed calls of dependencies, by kind",
            MetricType::Counter,
        )?;
        for dependency in dependencies {
            for (kind, count) in FailureKind::TOKENS.into_iter().zip(dependency.tally.failures()) {
                failures.count(&vec![("dependency", &*dependency.rules.name), ("kind", kind)], count)?;
            }
        }
        let mut calls = series(
            encoder,
            "backstop_dependency_calls",
            "Calls of dependencies, by what came of them",
            MetricType::Counter,
        )?;
        for dependency in dependencies {
            let tally = &dependency.tally;
            let results = [
                ("begun", tally.attempts()),
                ("answered", tally.answers()),
                ("abandoned", tally.abandoned()),
                ("late", tally.late_results()),
            ];
            for (result, count) in results {
                calls.count(&vec![("dependency", &*dependency.rules.name), ("result", result)], count)?;
            }
        }
        Ok(())
    }

    fn in_flight(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let engine = self.0.backstop.engine();
        let routes = engine.routes().iter();
        let limits: Vec<(&str, &str, &backstop_engine::admission::Limit)> =
            std::iter::once(("process", "", &**engine.process()))
                .chain(routes.clone().map(|route| ("route", &*route.rules.name, &*route.in_flight)))
                .chain(
                    routes
                        .filter(|route| route.rules.fallback_in_flight > 0)
                        .map(|route| ("fallback_lane", &*route.rules.name, &*route.fallback_lane)),
                )
                .chain(engine.dependencies().iter().map(|d| ("dependency", &*d.rules.name, &*d.in_flight)))
                .collect();
        let mut in_flight = series(encoder, "backstop_in_flight", "Places taken now", MetricType::Gauge)?;
        for (scope, name, limit) in &limits {
            in_flight.gauge(&vec![("scope", *scope), ("name", *name)], f64::from(limit.in_flight()))?;
        }
        let mut size = series(encoder, "backstop_in_flight_limit", "Places there are", MetricType::Gauge)?;
        for (scope, name, limit) in &limits {
            size.gauge(&vec![("scope", *scope), ("name", *name)], f64::from(limit.limit()))?;
        }
        let mut refused = series(
            encoder,
            "backstop_in_flight_refused",
            "How often a place was asked for and there was none, by reason",
            MetricType::Counter,
        )?;
        for (scope, name, limit) in &limits {
            let kept = limit.kept();
            let by_reason = [(NoPlace::Full, limit.refused().saturating_sub(kept)), (NoPlace::Kept, kept)];
            for (reason, count) in by_reason {
                let labels = vec![("scope", *scope), ("name", *name), ("reason", reason.token())];
                refused.count(&labels, count)?;
            }
        }
        Ok(())
    }

    fn held_back(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let held = self.0.backstop.held_back();
        let gauges = [
            ("backstop_buffer_bytes", "Bytes of answers that are held back until complete", held.bytes),
            ("backstop_buffer_limit_bytes", "Bytes of answers that may be held back", held.limit_bytes),
        ];
        for (name, help, value) in gauges {
            series(encoder, name, help, MetricType::Gauge)?.gauge(&Vec::new(), value as f64)?;
        }
        let help = "Answers that streamed because no more could be held back";
        series(encoder, "backstop_buffer_full", help, MetricType::Counter)?.count(&Vec::new(), held.refused)
    }

    fn copies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let engine = self.0.backstop.engine();
        let now = self.0.backstop.clock().mono();
        let reads = || engine.routes().iter().filter(|route| route.rules.class.read().is_some());
        let mut coverage = series(
            encoder,
            "backstop_fallback_coverage_ratio",
            "Share of the last minute's reads that a copy would have answered",
            MetricType::Gauge,
        )?;
        for route in reads() {
            // Without reads there is no share: the series is absent.
            if let Some(ratio) = route.coverage.count(now).ratio() {
                coverage.gauge(&vec![("route", &*route.rules.name)], ratio)?;
            }
        }
        let help = "The oldest copy that may be served";
        let mut limits = series(encoder, "backstop_copy_max_age_seconds", help, MetricType::Gauge)?;
        for route in reads().filter(|route| route.rules.class.keeps_copies()) {
            if let Some(read) = route.rules.class.read() {
                limits.gauge(&vec![("route", &*route.rules.name)], read.max_age.as_secs_f64())?;
            }
        }
        let mut ages = encoder.encode_descriptor(
            "backstop_copy_age_seconds",
            "Ages of copies served",
            None,
            MetricType::Histogram,
        )?;
        for route in reads() {
            let (counts, sum_ms) = route.tally.ages();
            let bounds = AGE_BUCKETS_SECONDS.iter().map(|bound| *bound as f64).chain([f64::MAX]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
            let labels: Labels<'_> = vec![("route", &*route.rules.name)];
            let total = counts.iter().sum();
            ages.encode_family(&labels)?.encode_histogram::<Labels<'_>>(
                sum_ms as f64 / 1000.0,
                total,
                &buckets,
                None,
            )?;
        }
        Ok(())
    }

    fn store(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let health = self.0.backstop.copies().health();
        let gauges = [
            ("backstop_store_entries", "Copies known, in memory or on disk", health.entries),
            ("backstop_store_memory_bytes", "Memory taken by copies", health.memory_bytes),
            ("backstop_store_index_bytes", "Memory taken by the index of copies", health.index_bytes),
            ("backstop_store_disk_bytes", "Size of the file", health.disk_bytes),
            ("backstop_store_writes_queued", "Copies that wait to be written", health.writes_queued),
            (
                "backstop_withdrawals_unconfirmed",
                "Withdrawals not confirmed by the disk",
                health.withdrawals_unconfirmed,
            ),
            (
                "backstop_store_disk_ok",
                "1 while copies are written to disk or none is asked for",
                disk_ok(&health.disk),
            ),
        ];
        for (name, help, value) in gauges {
            series(encoder, name, help, MetricType::Gauge)?.gauge(&Vec::new(), value as f64)?;
        }
        let counters = [
            (
                "backstop_store_memory_evictions",
                "Copies that left memory because it was full",
                health.memory_evictions,
            ),
            (
                "backstop_store_index_evictions",
                "Copies that left the index because it was full",
                health.index_evictions,
            ),
            (
                "backstop_store_disk_evictions",
                "Copies that left the disk because it was full",
                health.disk_evictions,
            ),
            ("backstop_store_writes", "Copies written to disk", health.writes_done),
            (
                "backstop_store_writes_dropped",
                "Copies not written because the queue was full",
                health.writes_dropped,
            ),
            ("backstop_store_writes_failed", "Copies lost to a failed write", health.writes_failed),
            ("backstop_store_reads_failed", "Copies that could not be read back", health.reads_failed),
            (
                "backstop_store_corrupt_records",
                "Damaged files and copies that failed their checksum",
                health.corrupt,
            ),
            (
                "backstop_withdrawals_late",
                "Withdrawals that the disk did not confirm within the time that a request waits",
                self.0.backstop.withdrawals().late(),
            ),
        ];
        for (name, help, value) in counters {
            series(encoder, name, help, MetricType::Counter)?.count(&Vec::new(), value)?;
        }
        Ok(())
    }

    fn pools(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let dependencies = self.0.backstop.engine().dependencies();
        let counts = |index: usize| self.0.pools.get(index).map(Pool::counts).unwrap_or_default();
        // Requests that are only observed have connections of their own.
        let observed = dependencies.len();
        let both = |index: usize| counts(index).and(&counts(observed + index));
        let pools: Vec<_> =
            dependencies.iter().enumerate().map(|(index, d)| (&*d.rules.name, both(index))).collect();
        let mut open = series(
            encoder,
            "backstop_upstream_connections",
            "Connections to dependencies, by what they do now",
            MetricType::Gauge,
        )?;
        for (name, counts) in &pools {
            for (state, count) in [("open", counts.open), ("idle", counts.idle), ("in_use", counts.in_use)] {
                open.gauge(&vec![("dependency", *name), ("state", state)], f64::from(count))?;
            }
        }
        let help = "Calls that have no connection or nobody who waits for them, by which it is";
        let mut calls = series(encoder, "backstop_upstream_calls", help, MetricType::Gauge)?;
        for (name, counts) in &pools {
            for (state, count) in
                [("waiting", u64::from(counts.waiting)), ("abandoned", counts.abandoned_now)]
            {
                calls.gauge(&vec![("dependency", *name), ("state", state)], count as f64)?;
            }
        }
        type Read = fn(&Counts) -> u64;
        let counters: [(&str, &str, Read); 4] = [
            ("backstop_upstream_connections_opened", "Connections opened", |counts| counts.opened),
            ("backstop_upstream_connections_reused", "Calls on a connection that had rested", |counts| {
                counts.reused
            }),
            ("backstop_upstream_connections_stolen", "Of those, on one of another thread", |counts| {
                counts.stolen
            }),
            ("backstop_upstream_connections_replaced", "Connections that a call found dead", |counts| {
                counts.replaced
            }),
        ];
        for (metric, help, read) in counters {
            let mut counter = series(encoder, metric, help, MetricType::Counter)?;
            for (name, counts) in &pools {
                counter.count(&vec![("dependency", *name)], read(counts))?;
            }
        }
        let mut closed = series(
            encoder,
            "backstop_upstream_connections_closed",
            "Connections closed, by reason",
            MetricType::Counter,
        )?;
        for (name, counts) in &pools {
            for (reason, count) in Closed::TOKENS.into_iter().zip(counts.closed) {
                closed.count(&vec![("dependency", *name), ("reason", reason)], count)?;
            }
        }
        let mut phases = encoder.encode_descriptor(
            "backstop_upstream_phase_seconds",
            "Time spent in the phases of calls",
            None,
            MetricType::Histogram,
        )?;
        for (name, counts) in &pools {
            for (phase, durations) in Timed::TOKENS.into_iter().zip(&counts.durations) {
                let labels: Labels<'_> = vec![("dependency", *name), ("phase", phase)];
                let bound = |bucket| Durations::bound_ns(bucket).map_or(f64::MAX, |ns| ns as f64 / 1e9);
                let buckets: Vec<(f64, u64)> = durations
                    .buckets
                    .iter()
                    .enumerate()
                    .map(|(bucket, count)| (bound(bucket), *count))
                    .collect();
                let sum = durations.sum_ns as f64 / 1e9;
                phases.encode_family(&labels)?.encode_histogram::<Labels<'_>>(
                    sum,
                    durations.count(),
                    &buckets,
                    None,
                )?;
            }
        }
        Ok(())
    }

    fn connections(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let tallies = &self.0.shared.tallies;
        series(encoder, "backstop_client_connections", "Client connections open now", MetricType::Gauge)?
            .gauge(&Vec::new(), tallies.open_count() as f64)?;
        series(
            encoder,
            "backstop_client_connections_accepted",
            "Client connections accepted",
            MetricType::Counter,
        )?
        .count(&Vec::new(), tallies.accepted_count())?;
        series(
            encoder,
            "backstop_client_connections_refused",
            "Client connections closed at once because too many were open",
            MetricType::Counter,
        )?
        .count(&Vec::new(), tallies.connections_refused_count())?;
        series(
            encoder,
            "backstop_client_accept_failures",
            "Times that the system could not hand out the next client connection",
            MetricType::Counter,
        )?
        .count(&Vec::new(), tallies.accept_failures_count())?;
        series(
            encoder,
            "backstop_malformed",
            "Connections that ended because their bytes were no HTTP",
            MetricType::Counter,
        )?
        .count(&Vec::new(), tallies.malformed_count())?;
        let mut refused = series(
            encoder,
            "backstop_requests_refused_early",
            "Requests refused before they came to a route, by fault",
            MetricType::Counter,
        )?;
        for fault in Fault::ALL {
            refused.count(&vec![("fault", fault.token())], tallies.refused_count(fault))?;
        }
        Ok(())
    }
}

fn disk_ok(state: &DiskState) -> u64 {
    u64::from(matches!(state, DiskState::Ok | DiskState::Off))
}
