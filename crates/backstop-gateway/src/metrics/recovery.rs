//! Breakers, ramps, retries, shared resources and stand-ins.

use std::collections::BTreeSet;
use std::fmt;

use backstop_engine::alternative::NoAlternative;
use backstop_engine::health::{Phase, Signal};
use backstop_engine::policy::DependencyId;
use backstop_engine::resource::ResourceRefusal;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};
use crate::breakers::{PHASES, name};

impl Everything {
    pub(super) fn recovery(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.phases(encoder)?;
        self.steps(encoder)?;
        self.missing_signals(encoder)?;
        self.retries(encoder)?;
        self.resources(encoder)?;
        self.stand_ins(encoder)
    }

    fn phases(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.backstop.clock().mono();
        let help = "1 for the phase that a dependency is in, 0 for all others";
        let mut phases = series(encoder, "backstop_breaker_phase", help, MetricType::Gauge)?;
        for dependency in self.0.backstop.engine().dependencies() {
            let present = name(dependency.health.phase(now));
            for phase in PHASES {
                let labels = vec![("dependency", &*dependency.rules.name), ("phase", phase)];
                phases.gauge(&labels, f64::from(u8::from(phase == present)))?;
            }
        }
        let help = "Share of its usual load that a dependency is given, 1 unless it is open or ramping";
        let mut shares = series(encoder, "backstop_ramp_share", help, MetricType::Gauge)?;
        for dependency in self.0.backstop.engine().dependencies() {
            let share = match dependency.health.phase(now) {
                Phase::Ramp { share } => f64::from(share.0) / 1000.0,
                Phase::Open { .. } | Phase::HalfOpen | Phase::ForcedOpen => 0.0,
                Phase::Closed | Phase::Watch { .. } | Phase::ForcedClosed => 1.0,
            };
            shares.gauge(&vec![("dependency", &*dependency.rules.name)], share)?;
        }
        Ok(())
    }

    fn steps(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "What breakers and ramps did";
        let mut events = series(encoder, "backstop_breaker_events", help, MetricType::Counter)?;
        for dependency in self.0.backstop.engine().dependencies() {
            let totals = dependency.health.totals();
            let counts = [
                ("trip", totals.trips),
                ("probe", totals.probes),
                ("refused_open", totals.refused_open),
                ("refused_ramping", totals.refused_ramping),
                ("step_up", totals.step_ups),
                ("step_back", totals.step_backs),
            ];
            for (event, count) in counts {
                events.count(&vec![("dependency", &*dependency.rules.name), ("event", event)], count)?;
            }
        }
        Ok(())
    }

    fn missing_signals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.backstop.clock().mono();
        let help = "1 for what a recovering dependency told of itself before and has not for a minute";
        let mut missing = series(encoder, "backstop_recovery_signal_missing", help, MetricType::Gauge)?;
        for dependency in self.0.backstop.engine().dependencies() {
            for (signal, is_missing) in Signal::TOKENS.into_iter().zip(dependency.health.missing_signals(now))
            {
                let labels = vec![("dependency", &*dependency.rules.name), ("signal", signal)];
                missing.gauge(&labels, f64::from(u8::from(is_missing)))?;
            }
        }
        Ok(())
    }

    fn retries(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls made once more, and those for which no earlier success could pay";
        let mut retries = series(encoder, "backstop_retries", help, MetricType::Counter)?;
        for dependency in self.0.backstop.engine().dependencies() {
            let counts = [("made", dependency.retries.made()), ("unpaid", dependency.retries.exhausted())];
            for (result, count) in counts {
                retries.count(&vec![("dependency", &*dependency.rules.name), ("result", result)], count)?;
            }
        }
        Ok(())
    }

    fn resources(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let resources = self.0.backstop.engine().resources();
        let help = "Places of a resource taken now";
        let mut in_use = series(encoder, "backstop_resource_in_use", help, MetricType::Gauge)?;
        for resource in resources {
            in_use.gauge(&vec![("resource", resource.name())], f64::from(resource.in_use()))?;
        }
        let help = "Places that a resource has";
        let mut places = series(encoder, "backstop_resource_limit", help, MetricType::Gauge)?;
        for resource in resources {
            if let Some(limit) = resource.concurrency() {
                places.gauge(&vec![("resource", resource.name())], f64::from(limit))?;
            }
        }
        let help = "How often a resource refused";
        let mut refused = series(encoder, "backstop_resource_refused", help, MetricType::Counter)?;
        for resource in resources {
            for why in [ResourceRefusal::Concurrency, ResourceRefusal::Rate, ResourceRefusal::Share] {
                let labels = vec![("resource", resource.name()), ("reason", why.token())];
                refused.count(&labels, resource.refused(why))?;
            }
        }
        Ok(())
    }

    fn stand_ins(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How often a dependency did not stand in for another";
        let mut refused = series(encoder, "backstop_stand_in_refused", help, MetricType::Counter)?;
        let engine = self.0.backstop.engine();
        let named: BTreeSet<u16> =
            engine.routes().iter().filter_map(|route| Some(route.rules.alternative?.dependency.0)).collect();
        for dependency in named.into_iter().map(|id| engine.dependency(DependencyId(id))) {
            for why in NoAlternative::ALL {
                let labels = vec![("dependency", &*dependency.rules.name), ("reason", why.token())];
                refused.count(&labels, dependency.stand_in.refused(why))?;
            }
        }
        Ok(())
    }
}
