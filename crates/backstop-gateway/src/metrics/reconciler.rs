//! What whoever asks for the status of unknown operations has done.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};
use crate::reconciler::{Counts, RouteCounts};

/// The name of a figure, what it is, and where it is counted.
type Of<C> = (&'static str, &'static str, fn(&C) -> &AtomicU64);

/// Of each route of the policy.
const COUNTERS: [Of<RouteCounts>; 6] = [
    ("backstop_status_sample_queries", "Status queries about known successes", |route| &route.sample_queries),
    (
        "backstop_status_second_looks",
        "Status queries about operations that were decided by absence",
        |route| &route.second_looks,
    ),
    ("backstop_status_executed_late", "Of those, how many said that it was executed after all", |route| {
        &route.executed_late
    }),
    ("backstop_status_put_back", "Claims that could not be asked for and were put back", |route| {
        &route.put_back
    }),
    ("backstop_status_breaker_opened", "How often the breaker of status queries opened", |route| {
        &route.breaker_opened
    }),
    (
        "backstop_status_absences_suspended",
        "Absences that did not count: credentials or calibration were not known to be good",
        |route| &route.absences_suspended,
    ),
];

/// Of each route of the policy, and of all others together.
const COUNTERS_OF_ALL: [Of<RouteCounts>; 2] = [
    ("backstop_status_not_askable", "Operations for which there is no status query", |route| {
        &route.not_askable
    }),
    (
        "backstop_status_not_recorded",
        "Reports that somebody else was faster than, or that the ledger did not take",
        |route| &route.not_recorded,
    ),
];

const GAUGES: [Of<RouteCounts>; 2] = [
    ("backstop_status_breaker_open", "1 while the breaker of status queries is not closed", |route| {
        &route.breaker_is_open
    }),
    (
        "backstop_status_calibration_failing",
        "1 while the last known success was not shown in time, and no absence counts for that",
        |route| &route.calibration_is_failing,
    ),
];

impl Everything {
    /// Nothing where no route has operations.
    pub(super) fn reconciler(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.0.reconciler.as_ref().map_or(Ok(()), |counts| encode(counts, encoder))
    }
}

fn encode(counts: &Counts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    queries(counts, encoder)?;
    samples(counts, encoder)?;
    for (name, help, read) in COUNTERS {
        let mut counter = series(encoder, name, help, MetricType::Counter)?;
        for route in &counts.routes {
            counter.count(&vec![("route", &*route.route)], now(read(route)))?;
        }
    }
    for (name, help, read) in COUNTERS_OF_ALL {
        let mut counter = series(encoder, name, help, MetricType::Counter)?;
        for route in counts.routes.iter().chain([&counts.gone]) {
            counter.count(&vec![("route", &*route.route)], now(read(route)))?;
        }
    }
    for (name, help, read) in GAUGES {
        let mut gauge = series(encoder, name, help, MetricType::Gauge)?;
        for route in &counts.routes {
            gauge.gauge(&vec![("route", &*route.route)], now(read(route)) as f64)?;
        }
    }
    of_all(counts, encoder)
}

fn queries(counts: &Counts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Status queries about unknown operations, by what they came to";
    let mut queries = series(encoder, "backstop_status_queries", help, MetricType::Counter)?;
    for route in &counts.routes {
        for (word, count) in RouteCounts::WORDS.into_iter().zip(&route.queries) {
            queries.count(&vec![("route", &*route.route), ("result", word)], now(count))?;
        }
    }
    Ok(())
}

fn samples(counts: &Counts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Known successes, by whether the status query showed them in time";
    let mut samples = series(encoder, "backstop_status_samples", help, MetricType::Counter)?;
    for route in &counts.routes {
        for (word, count) in [
            ("shown", &route.samples_seen),
            ("not_shown", &route.samples_not_seen),
            ("left_out", &route.samples_left_out),
        ] {
            samples.count(&vec![("route", &*route.route), ("result", word)], now(count))?;
        }
    }
    Ok(())
}

fn of_all(counts: &Counts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Turns in which unknown operations were looked after, by whether the ledger did its part";
    let mut turns = series(encoder, "backstop_reconciler_turns", help, MetricType::Counter)?;
    for (word, count) in [("done", &counts.turns), ("failed", &counts.turns_failed)] {
        turns.count(&vec![("result", word)], now(count))?;
    }
    let help = "How often whoever follows unknown operations panicked and was started again";
    series(encoder, "backstop_reconciler_restarts", help, MetricType::Counter)?
        .count(&Vec::new(), now(&counts.restarts))?;
    let help = "Operations that came to need a person";
    series(encoder, "backstop_operations_raised", help, MetricType::Counter)?
        .count(&Vec::new(), now(&counts.raised))?;
    let help = "Words to the webhook that operations need a person, by what came of them";
    let mut webhook = series(encoder, "backstop_attention_webhook", help, MetricType::Counter)?;
    for (word, count) in [
        ("delivered", &counts.webhook_delivered),
        ("failed", &counts.webhook_failed),
        ("given_up", &counts.webhook_given_up),
        ("left_out", &counts.webhook_left_out),
    ] {
        webhook.count(&vec![("result", word)], now(count))?;
    }
    Ok(())
}

fn now(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::collector::Collector;
    use prometheus_client::registry::Registry;
    use std::sync::Arc;

    #[derive(Debug)]
    struct One(Arc<Counts>);

    impl Collector for One {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    /// Every figure is another one, so that none can stand in the place of another.
    #[test]
    fn each_figure_has_its_own_name() {
        let counts = Counts::of(["pay"]);
        let route = &counts.routes[0];
        let of_route = [
            &route.sample_queries,
            &route.second_looks,
            &route.executed_late,
            &route.put_back,
            &route.breaker_opened,
            &route.absences_suspended,
            &route.not_askable,
            &route.not_recorded,
            &route.breaker_is_open,
            &route.calibration_is_failing,
            &route.samples_seen,
            &route.samples_not_seen,
            &route.samples_left_out,
        ];
        let of_all = [
            &counts.turns,
            &counts.turns_failed,
            &counts.restarts,
            &counts.raised,
            &counts.webhook_delivered,
            &counts.webhook_failed,
            &counts.webhook_given_up,
            &counts.webhook_left_out,
            &counts.gone.not_askable,
            &counts.gone.not_recorded,
        ];
        let all = of_route.into_iter().chain(of_all).chain(&route.queries);
        all.zip(11..).for_each(|(count, value)| count.store(value, Ordering::Relaxed));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(One(Arc::new(counts))));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "backstop_status_sample_queries_total{route=\"pay\"} 11",
            "backstop_status_second_looks_total{route=\"pay\"} 12",
            "backstop_status_executed_late_total{route=\"pay\"} 13",
            "backstop_status_put_back_total{route=\"pay\"} 14",
            "backstop_status_breaker_opened_total{route=\"pay\"} 15",
            "backstop_status_absences_suspended_total{route=\"pay\"} 16",
            "backstop_status_not_askable_total{route=\"pay\"} 17",
            "backstop_status_not_recorded_total{route=\"pay\"} 18",
            "backstop_status_breaker_open{route=\"pay\"} 19.0",
            "backstop_status_calibration_failing{route=\"pay\"} 20.0",
            "backstop_status_samples_total{route=\"pay\",result=\"shown\"} 21",
            "backstop_status_samples_total{route=\"pay\",result=\"not_shown\"} 22",
            "backstop_status_samples_total{route=\"pay\",result=\"left_out\"} 23",
            "backstop_reconciler_turns_total{result=\"done\"} 24",
            "backstop_reconciler_turns_total{result=\"failed\"} 25",
            "backstop_reconciler_restarts_total 26",
            "backstop_operations_raised_total 27",
            "backstop_attention_webhook_total{result=\"delivered\"} 28",
            "backstop_attention_webhook_total{result=\"failed\"} 29",
            "backstop_attention_webhook_total{result=\"given_up\"} 30",
            "backstop_attention_webhook_total{result=\"left_out\"} 31",
            "backstop_status_not_askable_total{route=\"\"} 32",
            "backstop_status_not_recorded_total{route=\"\"} 33",
            "backstop_status_queries_total{route=\"pay\",result=\"succeeded\"} 34",
            "backstop_status_queries_total{route=\"pay\",result=\"absent\"} 37",
            "backstop_status_queries_total{route=\"pay\",result=\"answered_declared\"} 58",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }
}
