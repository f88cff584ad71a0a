//! Incidents, and what is written of them and of breakers.

use std::fmt;

use backstop_engine::incident::Phase;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};

/// Every phase that an incident can be seen in, and the word for none.
const PHASES: [&str; 4] = ["none", "degraded", "recovering", "observing"];

impl Everything {
    pub(super) fn incidents(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let state = &self.0.state;
        let standing = state.book.standing();
        let help = "Incidents that are not over: one or none";
        series(encoder, "backstop_incidents_open", help, MetricType::Gauge)?
            .gauge(&Vec::new(), f64::from(u8::from(standing.phase.is_some())))?;
        let help = "1 for the phase of the present incident, 0 for all others";
        let mut phases = series(encoder, "backstop_incident_phase", help, MetricType::Gauge)?;
        let present = standing.phase.map_or("none", Phase::token);
        for phase in PHASES {
            phases.gauge(&vec![("phase", phase)], f64::from(u8::from(phase == present)))?;
        }
        let help = "Incidents so far, over all restarts that are remembered";
        series(encoder, "backstop_incidents", help, MetricType::Counter)?
            .count(&Vec::new(), standing.begun)?;
        let failed = state.keeper.as_ref().map_or(0, |keeper| keeper.failures());
        let help = "Attempts to write incidents or the states of breakers that failed";
        series(encoder, "backstop_state_writes_failed", help, MetricType::Counter)?.count(&Vec::new(), failed)
    }
}
