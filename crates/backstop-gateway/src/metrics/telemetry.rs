//! What was told of requests, and what was lost.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};

impl Everything {
    pub(super) fn telemetry(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let telemetry = &self.0.shared.telemetry;
        let help = "Lines of the access log that were written and spans that were taken";
        let mut told = series(encoder, "backstop_telemetry_sent", help, MetricType::Counter)?;
        for (signal, counts) in telemetry.counts() {
            told.count(&vec![("signal", signal)], counts.told())?;
        }
        let help = "Lines and spans that were lost because nobody took them in time";
        let mut dropped = series(encoder, "backstop_telemetry_dropped", help, MetricType::Counter)?;
        for (signal, counts) in telemetry.counts() {
            dropped.count(&vec![("signal", signal)], counts.dropped())?;
        }
        Ok(())
    }
}
