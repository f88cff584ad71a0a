//! The living state behind a policy: limits, counters, coverage. Shared by all threads, without a lock.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::admission::Limit;
use crate::coverage::Coverage;
use crate::policy::{Dependency, DependencyId, Policy, PolicyError, Route, RouteId};
use crate::sync::Ordering;
use crate::tally::{DependencyTally, RouteTally};

/// A policy with its limits and counters.
#[derive(Debug)]
pub struct Engine {
    process: Arc<Limit>,
    draining: AtomicBool,
    routes: Box<[RouteState]>,
    dependencies: Box<[DependencyState]>,
}

/// One route and what is in flight on it.
#[derive(Debug)]
pub struct RouteState {
    /// The accepted rules.
    pub rules: Route,
    /// Requests in flight.
    pub in_flight: Arc<Limit>,
    /// Alternatives in flight that `in_flight` refused.
    pub fallback_lane: Arc<Limit>,
    /// What requests came to.
    pub tally: RouteTally,
    /// Whether copies existed.
    pub coverage: Coverage,
}

/// One dependency and the calls under way to it.
#[derive(Debug)]
pub struct DependencyState {
    /// The accepted rules.
    pub rules: Dependency,
    /// Calls under way.
    pub in_flight: Arc<Limit>,
    /// What calls came to.
    pub tally: DependencyTally,
}

impl Engine {
    /// Brings a policy to life.
    ///
    /// # Errors
    /// A policy that breaks what the engine relies on ([`Policy::validate`]).
    pub fn new(policy: Policy) -> Result<Arc<Self>, PolicyError> {
        policy.validate()?;
        let limit = |places| Arc::new(Limit::new(places));
        let routes = policy.routes.into_iter().map(|rules| RouteState {
            in_flight: limit(rules.in_flight),
            fallback_lane: limit(rules.fallback_in_flight),
            tally: RouteTally::new(),
            coverage: Coverage::new(),
            rules,
        });
        let dependencies = policy.dependencies.into_iter().map(|rules| DependencyState {
            in_flight: limit(rules.connections),
            tally: DependencyTally::new(),
            rules,
        });
        Ok(Arc::new(Self {
            process: limit(policy.in_flight),
            draining: AtomicBool::new(false),
            routes: routes.collect(),
            dependencies: dependencies.collect(),
        }))
    }

    /// The limit of the whole process.
    pub fn process(&self) -> &Arc<Limit> {
        &self.process
    }

    /// Every route, in the policy's order.
    pub fn routes(&self) -> &[RouteState] {
        &self.routes
    }

    /// Every dependency, in the policy's order.
    pub fn dependencies(&self) -> &[DependencyState] {
        &self.dependencies
    }

    /// One route.
    ///
    /// # Panics
    /// If the policy has fewer: ids belong to the engine that they were made for.
    pub fn route(&self, id: RouteId) -> &RouteState {
        &self.routes[usize::from(id.0)]
    }

    /// One dependency.
    ///
    /// # Panics
    /// If the policy has fewer: ids belong to the engine that they were made for.
    pub fn dependency(&self, id: DependencyId) -> &DependencyState {
        &self.dependencies[usize::from(id.0)]
    }

    /// From now on every new request is refused; those in flight go on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether new requests are refused because the service is stopping.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
