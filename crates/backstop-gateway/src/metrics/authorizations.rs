//! What came of asking whether callers may.

use std::fmt;

use backstop_engine::tally::AuthorizationTally;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};
use crate::authorizer::{Authorizer, Tokens};

impl Everything {
    /// A no and an outage are told apart: an alert on the one must not be hidden by the other.
    pub(super) fn authorizations(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let engine = self.0.backstop.engine();
        let help = "Requests that an authorizer was asked about, by what came of it";
        let mut authorizations = series(encoder, "backstop_authorizations", help, MetricType::Counter)?;
        let of_routes = self.0.shared.routes.iter().map(|route| route.authorizer);
        for (route, authorizer) in engine.routes().iter().zip(of_routes) {
            let Some(rules) = &route.rules.authorizer else { continue };
            let tokens = authorizer.and_then(|index| self.0.shared.authorizers.get(index)?.tokens());
            let dependency = rules.dependency.or_else(|| tokens.map(Tokens::dependency));
            let name = dependency.map_or("", |id| &engine.dependency(id).rules.name);
            for (result, count) in AuthorizationTally::TOKENS.into_iter().zip(route.authorizations.counts()) {
                let labels = vec![("route", &*route.rules.name), ("authorizer", name), ("result", result)];
                authorizations.count(&labels, count)?;
            }
        }
        Ok(())
    }

    /// How much is left before an issuer that cannot be reached shuts everybody out.
    pub(super) fn keys_of_issuers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let engine = self.0.backstop.engine();
        let help = "Seconds since the keys were asked for by which an authorizer verifies tokens, or their age where that is more";
        let mut ages = series(encoder, "backstop_authorizer_keys_age_seconds", help, MetricType::Gauge)?;
        for tokens in self.0.shared.authorizers.iter().filter_map(Authorizer::tokens) {
            let Some(age) = tokens.keys_age() else { continue };
            let name = &*engine.dependency(tokens.dependency()).rules.name;
            ages.gauge(&vec![("authorizer", name)], age.as_secs_f64())?;
        }
        Ok(())
    }
}
