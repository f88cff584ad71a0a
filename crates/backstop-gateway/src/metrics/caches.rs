//! Shared caches, and the reads behind them.

use std::fmt;

use backstop_engine::fills::FillEnd;
use backstop_engine::resource::ResourceRefusal;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Everything, series};
use crate::breakers::{PHASES, name};

impl Everything {
    pub(super) fn caches(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.backstop.clock().mono();
        let caches = self.0.backstop.engine().caches();
        let help = "1 for the phase that a cache's breaker is in, 0 for all others";
        let mut phases = series(encoder, "backstop_cache_phase", help, MetricType::Gauge)?;
        for cache in caches {
            let present = name(cache.health.phase(now));
            for phase in PHASES {
                let labels = vec![("cache", &*cache.rules.name), ("phase", phase)];
                phases.gauge(&labels, f64::from(u8::from(phase == present)))?;
            }
        }
        self.commands(encoder)
    }

    /// Without the feature there is no cache to ask.
    #[cfg(not(feature = "redis"))]
    fn commands(&self, _: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let crate::caches::Caches = self.0.caches;
        Ok(())
    }

    #[cfg(feature = "redis")]
    fn commands(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        use crate::cache::CacheError;
        let caches = self.0.backstop.engine().caches().iter();
        let counts: Vec<_> = caches
            .map(|cache| &*cache.rules.name)
            .zip(self.0.caches.iter().map(|cache| cache.counts()))
            .collect();
        let help = "What a cache had for the reads that asked it";
        let mut lookups = series(encoder, "backstop_cache_lookups", help, MetricType::Counter)?;
        for (name, counts) in &counts {
            let results = [
                ("hit", counts.hits),
                ("miss", counts.misses),
                ("other_variant", counts.other_variants),
                ("damaged", counts.damaged),
            ];
            for (result, count) in results {
                lookups.count(&vec![("cache", *name), ("result", result)], count)?;
            }
        }
        let help = "Commands to a cache that had no result, by what was the matter";
        let mut errors = series(encoder, "backstop_cache_errors", help, MetricType::Counter)?;
        for (name, counts) in &counts {
            for error in CacheError::all() {
                errors.count(&vec![("cache", *name), ("error", error.token())], counts.errors_of(error))?;
            }
        }
        let help = "Answers that a cache confirmed to have stored";
        let mut stored = series(encoder, "backstop_cache_stored", help, MetricType::Counter)?;
        for (name, counts) in &counts {
            stored.count(&vec![("cache", *name)], counts.stored)?;
        }
        let help = "Connections to a cache, at most one for each thread";
        let mut connections = series(encoder, "backstop_cache_connections", help, MetricType::Gauge)?;
        for (name, counts) in &counts {
            connections.gauge(&vec![("cache", *name)], counts.connections as f64)?;
        }
        let help = "Commands to a cache under way, abandoned ones included";
        let mut in_flight = series(encoder, "backstop_cache_in_flight", help, MetricType::Gauge)?;
        for (name, counts) in &counts {
            in_flight.gauge(&vec![("cache", *name)], counts.in_flight as f64)?;
        }
        Ok(())
    }

    pub(super) fn fills(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let routes = self.0.backstop.engine().routes().iter();
        let filled: Vec<_> =
            routes.filter_map(|route| Some((&*route.rules.name, route.fills.as_ref()?))).collect();
        let help = "Reads of a dependency for what a cache did not have, by what they came to";
        let mut ended = series(encoder, "backstop_fills", help, MetricType::Counter)?;
        for (route, fills) in &filled {
            for end in FillEnd::ALL {
                ended.count(&vec![("route", *route), ("result", end.token())], fills.ended_count(end))?;
            }
        }
        let help = "Reads behind a cache under way, those of single requests included";
        let mut in_flight = series(encoder, "backstop_fills_in_flight", help, MetricType::Gauge)?;
        for (route, fills) in &filled {
            in_flight.gauge(&vec![("route", *route)], f64::from(fills.budget.in_use()))?;
        }
        let help = "Reads behind a cache that may be under way at once";
        let mut limit = series(encoder, "backstop_fill_limit", help, MetricType::Gauge)?;
        for (route, fills) in &filled {
            limit
                .gauge(&vec![("route", *route)], f64::from(fills.budget.concurrency().unwrap_or(u32::MAX)))?;
        }
        let help = "Reads behind a cache that the budget refused";
        let mut refused = series(encoder, "backstop_fill_refused", help, MetricType::Counter)?;
        for (route, fills) in &filled {
            for why in [ResourceRefusal::Concurrency, ResourceRefusal::Rate] {
                refused
                    .count(&vec![("route", *route), ("reason", why.token())], fills.budget.refused(why))?;
            }
        }
        let help = "Requests that wait for a read that another request began";
        let mut waiting = series(encoder, "backstop_fill_waiting", help, MetricType::Gauge)?;
        for (route, fills) in &filled {
            waiting.gauge(&vec![("route", *route)], fills.waiting() as f64)?;
        }
        let help =
            "Requests that joined a read that another request began, and those that found too many waiting";
        let mut joined = series(encoder, "backstop_fill_joined", help, MetricType::Counter)?;
        for (route, fills) in &filled {
            for (result, count) in [("joined", fills.joined_count()), ("refused", fills.not_joined_count())] {
                joined.count(&vec![("route", *route), ("result", result)], count)?;
            }
        }
        Ok(())
    }
}
