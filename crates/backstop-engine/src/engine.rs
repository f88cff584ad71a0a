//! The living state behind a policy: limits, counters, coverage. Shared by all threads, without a lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::admission::Limit;
use crate::alternative::{Signal, StandIn, UsedResource, Verified};
use crate::coverage::Coverage;
use crate::exercise::Exercises;
use crate::failure::Failure;
use crate::fills::Fills;
use crate::health::{Band, Health};
use crate::policy::{
    CacheId, CacheRules, Dependency, DependencyId, Origin, Policy, PolicyError, ResourceId, Route, RouteId,
};
use crate::resource::Resource;
use crate::retry::Budget;
use crate::sync::Ordering;
use crate::tally::{AuthorizationTally, DependencyTally, RouteTally};
use crate::time::Mono;
use crate::watched::Watched;

/// Calls per second that stand for the good times of a dependency, per connection, while they are unknown: 50 ms a call.
const CALLS_PER_CONNECTION: u64 = 20;

/// A policy with its limits and counters.
#[derive(Debug)]
pub struct Engine {
    process: Arc<Limit>,
    process_origin: Origin,
    instances: u32,
    resources: Box<[Arc<Resource>]>,
    draining: AtomicBool,
    in_incident: AtomicBool,
    routes: Box<[RouteState]>,
    dependencies: Box<[DependencyState]>,
    caches: Box<[CacheState]>,
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
    /// What came of asking whether callers may.
    pub authorizations: AuthorizationTally,
    /// Reads for what a shared cache does not have, on a route that has one.
    pub fills: Option<Arc<Fills>>,
    /// What came of trying its alternatives.
    pub exercises: Exercises,
}

/// One shared cache.
#[derive(Debug)]
pub struct CacheState {
    /// The accepted rules.
    pub rules: CacheRules,
    /// Its breaker.
    pub health: Arc<Health>,
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
    /// Its breaker and its way back.
    pub health: Arc<Health>,
    /// What pays for retries.
    pub retries: Budget,
    /// What its calls use, in the order of its rules.
    pub resources: Box<[Arc<Resource>]>,
    /// What is heard of each of them.
    pub watched: Box<[Arc<Watched>]>,
    /// Its part as a stand-in for others.
    pub stand_in: StandIn,
}

impl DependencyState {
    /// A call that began at `called` failed. If it was not answered in time, what the dependency uses may be what kept it
    /// waiting, and what was heard of that before says nothing any more.
    pub(crate) fn was_late(&self, failure: Failure, called: Mono) {
        if failure.kind.is_late() {
            self.watched.iter().for_each(|watched| watched.late(called));
        }
    }

    /// What is known of the resources that it uses, when it is to stand in for `own`. `full` is the one that refused.
    pub(crate) fn as_stand_in_for<'a>(
        &'a self,
        own: &'a DependencyState,
        full: Option<ResourceId>,
        now: Mono,
    ) -> impl Iterator<Item = UsedResource> + 'a {
        let bands = self.rules.recovery.unwrap_or_default();
        let resources = self.watched.iter().zip(&self.resources);
        self.rules.uses.iter().zip(resources).map(move |(id, (watched, resource))| UsedResource {
            is_shared: own.rules.uses.contains(id),
            is_cause: full == Some(*id),
            signal: watched.signal(now, &bands.green, &bands.red).or_worse(use_of(
                resource,
                &bands.green,
                &bands.red,
            )),
        })
    }
}

/// What the use of a resource's places says about it.
fn use_of(resource: &Resource, green: &Band, red: &Band) -> Signal {
    let in_use = resource.in_use_per_mille();
    Signal::of(in_use > green.in_use.0, in_use > red.in_use.0)
}

impl Engine {
    /// Brings a policy to life.
    ///
    /// # Errors
    /// A policy that breaks what the engine relies on ([`Policy::validate`]).
    pub fn new(policy: Policy) -> Result<Arc<Self>, PolicyError> {
        policy.validate()?;
        let limit = |places| Arc::new(Limit::new(places));
        let mut evidence = BTreeMap::new();
        for alternative in policy.routes.iter().filter_map(|route| route.alternative) {
            if let Some(verified) = alternative.verified {
                // One dependency has one capacity, whoever turns to it.
                let known: &mut Verified =
                    evidence.entry(usize::from(alternative.dependency.0)).or_insert(verified);
                *known = known.narrowed_by(&verified);
            }
        }
        let routes = policy.routes.into_iter().map(|rules| RouteState {
            in_flight: limit(rules.in_flight),
            fallback_lane: limit(rules.fallback_in_flight),
            tally: RouteTally::new(),
            coverage: Coverage::new(),
            authorizations: AuthorizationTally::default(),
            exercises: Exercises::default(),
            fills: rules.class.cached().map(|cached| Arc::new(Fills::new(&rules.name, &cached.fill))),
            rules,
        });
        let caches = policy
            .caches
            .into_iter()
            .map(|rules| CacheState { health: Arc::new(Health::new(Some(rules.breaker), None, 0)), rules });
        let caches = caches.collect();
        let resources: Box<[Arc<Resource>]> =
            policy.resources.into_iter().map(|rules| Arc::new(Resource::new(rules))).collect();
        let watched: Box<[Arc<Watched>]> = resources.iter().map(|_| Arc::default()).collect();
        let dependencies = policy.dependencies.into_iter().enumerate().map(|(index, rules)| {
            let used = rules.uses.iter().map(|id| usize::from(id.0));
            DependencyState {
                in_flight: limit(rules.connections),
                tally: DependencyTally::new(),
                health: Arc::new(Health::new(
                    rules.breaker,
                    rules.recovery,
                    u64::from(rules.connections).saturating_mul(CALLS_PER_CONNECTION),
                )),
                retries: Budget::default(),
                resources: used.clone().filter_map(|used| resources.get(used)).cloned().collect(),
                watched: used.filter_map(|used| watched.get(used)).cloned().collect(),
                stand_in: StandIn::new(evidence.get(&index).copied()),
                rules,
            }
        });
        Ok(Arc::new(Self {
            process: limit(policy.in_flight),
            process_origin: policy.in_flight_origin,
            instances: policy.instances.max(1),
            draining: AtomicBool::new(false),
            in_incident: AtomicBool::new(false),
            routes: routes.collect(),
            dependencies: dependencies.collect(),
            caches,
            resources: resources.clone(),
        }))
    }

    /// The limit of the whole process.
    pub fn process(&self) -> &Arc<Limit> {
        &self.process
    }

    /// Where the limit of the whole process was written.
    pub fn process_origin(&self) -> Origin {
        self.process_origin
    }

    /// How many processes with this policy stand side by side, this one included.
    pub fn instances(&self) -> u32 {
        self.instances
    }

    /// Every resource, in the policy's order.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Every route, in the policy's order.
    pub fn routes(&self) -> &[RouteState] {
        &self.routes
    }

    /// Every dependency, in the policy's order.
    pub fn dependencies(&self) -> &[DependencyState] {
        &self.dependencies
    }

    /// Every shared cache, in the policy's order.
    pub fn caches(&self) -> &[CacheState] {
        &self.caches
    }

    /// One cache.
    ///
    /// # Panics
    /// If the policy has fewer: ids belong to the engine that they were made for.
    pub fn cache(&self, id: CacheId) -> &CacheState {
        &self.caches[usize::from(id.0)]
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

    /// Whoever looks after incidents says whether one is under way.
    pub fn set_in_incident(&self, is_open: bool) {
        self.in_incident.store(is_open, Ordering::Relaxed);
    }

    /// Whether an incident is under way, as far as anybody has said.
    pub fn is_in_incident(&self) -> bool {
        self.in_incident.load(Ordering::Relaxed)
    }

    /// Whether new requests are refused because the service is stopping.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
