//! What came of asking whether callers may.

use std::fmt;

use backstop_engine::tally::AuthorizationTally;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};

impl Everything {
    /// A no and an outage are told apart: an alert on the one must not be hidden by the other.
    pub(super) fn authorizations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let engine = self.0.backstop.engine();
        let help = "Requests that an authorizer was asked about, by what came of it";
        let mut authorizations = series(encoder, "backstop_authorizations", help, MetricType::Counter)?;
        for route in engine.routes() {
            let Some(rules) = &route.rules.authorizer else { continue };
            let name = rules.dependency.map_or("", |id| &engine.dependency(id).rules.name);
            for (result, count) in AuthorizationTally::TOKENS.into_iter().zip(route.authorizations.counts()) {
                let labels = vec![("route", &*route.rules.name), ("authorizer", name), ("result", result)];
                authorizations.count(&labels, count)?;
            }
        }
        Ok(())
    }
}
