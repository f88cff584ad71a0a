//! Routes that are only observed: what would have been, beside what really was.

use std::fmt;

use backstop_engine::outcome::Outcome;
use backstop_engine::policy::{Mode, RouteId};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};
use crate::observe::Really;

impl Everything {
    pub(super) fn observed(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let routes = self.0.backstop.engine().routes();
        let help = "1 for a route that is only observed, 0 for one whose decisions are carried out";
        let mut observed = series(encoder, "backstop_route_observed", help, MetricType::Gauge)?;
        for route in routes {
            let is_observed = route.rules.mode == Mode::Observe;
            observed.gauge(&vec![("route", &*route.rules.name)], f64::from(u8::from(is_observed)))?;
        }
        let help =
            "Requests of observed routes by what they would have come to and what their clients really got";
        let mut requests = series(encoder, "backstop_observed_requests", help, MetricType::Counter)?;
        for (position, route) in routes.iter().enumerate() {
            if route.rules.mode != Mode::Observe {
                continue;
            }
            let Ok(id) = u16::try_from(position) else { continue };
            for outcome in Outcome::ALL {
                for really in Really::ALL {
                    let count = self.0.shared.observed.count(RouteId(id), outcome, really);
                    let labels = vec![
                        ("route", &*route.rules.name),
                        ("outcome", outcome.token()),
                        ("really", really.token()),
                    ];
                    requests.count(&labels, count)?;
                }
            }
        }
        Ok(())
    }
}
