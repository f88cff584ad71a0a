//! Operations that must happen once, and their ledger.

use std::fmt;
use std::time::Duration;

use backstop_engine::operation::Refused;
use backstop_store::ledger::LedgerStanding;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};

impl Everything {
    /// Nothing where no route has operations.
    pub(super) fn operations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(operations) = &self.0.operations else { return Ok(()) };
        encode(&operations.ledger.standing(self.0.backstop.clock().now()), encoder)
    }
}

fn encode(standing: &LedgerStanding, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Operations in the ledger, by state";
    let mut states = series(encoder, "backstop_operations", help, MetricType::Gauge)?;
    for state in &standing.states {
        states.gauge(&vec![("state", state.state)], state.count as f64)?;
    }
    let help = "Reports and decisions about operations that changed nothing, by reason";
    let mut refused = series(encoder, "backstop_operations_reports_refused", help, MetricType::Counter)?;
    for (why, count) in Refused::ALL.iter().zip(standing.refused) {
        refused.count(&vec![("reason", why.token())], count)?;
    }
    let help = "What the ledger refused to do, by reason";
    let mut refused = series(encoder, "backstop_ledger_refused", help, MetricType::Counter)?;
    for (reason, count) in [("queue_full", standing.queue_full), ("no_room", standing.no_room)] {
        refused.count(&vec![("reason", reason)], count)?;
    }
    // Zero where there is none: an alert on it cannot fall silent because the series is gone.
    let age = |oldest: Option<Duration>| oldest.unwrap_or_default().as_secs_f64();
    let flag = |is_so: bool| f64::from(u8::from(is_so));
    let gauges = [
        (
            "backstop_operations_unknown_oldest_seconds",
            "Age of the oldest operation whose outcome is unknown",
            age(standing.oldest_unknown),
        ),
        (
            "backstop_operations_attention_oldest_seconds",
            "Age of the oldest operation that needs a person",
            age(standing.oldest_attention),
        ),
        ("backstop_ledger_waiting", "What waits for the ledger's disk", standing.waiting as f64),
        (
            "backstop_ledger_full",
            "1 while new operations are refused for want of room",
            flag(standing.is_full),
        ),
        ("backstop_ledger_ended", "1 once the ledger's disk failed", flag(standing.failed.is_some())),
    ];
    for (name, help, value) in gauges {
        series(encoder, name, help, MetricType::Gauge)?.gauge(&Vec::new(), value)?;
    }
    let counters = [
        (
            "backstop_operations_contradicted",
            "Decisions that evidence contradicted: somebody has to look",
            standing.contradicted,
        ),
        ("backstop_ledger_commits", "Transactions of the ledger that were made durable", standing.commits),
        ("backstop_ledger_committed", "What those transactions held in all", standing.committed),
    ];
    for (name, help, value) in counters {
        series(encoder, name, help, MetricType::Counter)?.count(&Vec::new(), value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::operation::State;
    use backstop_store::ledger::StateCount;
    use prometheus_client::collector::Collector;
    use prometheus_client::registry::Registry;

    #[derive(Debug)]
    struct One(LedgerStanding);

    impl Collector for One {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    fn text(standing: LedgerStanding) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(One(standing)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    /// Every figure is another one, so that none can stand in the place of another.
    fn standing() -> LedgerStanding {
        LedgerStanding {
            states: std::array::from_fn(|at| StateCount { state: State::TOKENS[at], count: 11 + at as u64 }),
            oldest_unknown: Some(Duration::from_millis(21_500)),
            oldest_attention: Some(Duration::from_secs(22)),
            refused: [31, 32, 33, 34],
            contradicted: 41,
            commits: 42,
            committed: 43,
            queue_full: 44,
            no_room: 45,
            is_full: true,
            waiting: 46,
            failed: Some("disk I/O error".into()),
        }
    }

    #[test]
    fn each_figure_has_its_own_name() {
        let text = text(standing());
        for line in [
            "backstop_operations{state=\"dispatching\"} 11.0",
            "backstop_operations{state=\"unknown\"} 12.0",
            "backstop_operations{state=\"succeeded\"} 13.0",
            "backstop_operations{state=\"failed\"} 14.0",
            "backstop_operations{state=\"not_executed\"} 15.0",
            "backstop_operations{state=\"attention\"} 16.0",
            "backstop_operations_unknown_oldest_seconds 21.5",
            "backstop_operations_attention_oldest_seconds 22.0",
            "backstop_operations_reports_refused_total{reason=\"stale\"} 31",
            "backstop_operations_reports_refused_total{reason=\"decided\"} 32",
            "backstop_operations_reports_refused_total{reason=\"leased\"} 33",
            "backstop_operations_reports_refused_total{reason=\"not_now\"} 34",
            "backstop_operations_contradicted_total 41",
            "backstop_ledger_commits_total 42",
            "backstop_ledger_committed_total 43",
            "backstop_ledger_refused_total{reason=\"queue_full\"} 44",
            "backstop_ledger_refused_total{reason=\"no_room\"} 45",
            "backstop_ledger_full 1.0",
            "backstop_ledger_ended 1.0",
            "backstop_ledger_waiting 46.0",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn where_nothing_waits_the_ages_are_zero_and_still_there() {
        let empty = LedgerStanding {
            oldest_unknown: None,
            oldest_attention: None,
            is_full: false,
            failed: None,
            ..standing()
        };
        let text = text(empty);
        for name in [
            "backstop_operations_unknown_oldest_seconds",
            "backstop_operations_attention_oldest_seconds",
            "backstop_ledger_full",
            "backstop_ledger_ended",
        ] {
            let line = format!("{name} 0.0");
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }
}
