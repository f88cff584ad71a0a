//! What the engine relies on.

use crate::composed::{Composed, MOST_PARTS};

use super::{CachedRead, DependencyId, Policy, RouteClass, RouteId};

/// A policy that the engine cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// A route names a dependency that does not exist.
    UnknownDependency {
        /// The route.
        route: Box<str>,
    },
    /// A dependency names a resource that does not exist.
    UnknownResource {
        /// The dependency.
        dependency: Box<str>,
    },
    /// A composed route has no parts, too many, or one of a route that does not exist or is composed itself.
    Parts {
        /// The route.
        route: Box<str>,
    },
    /// A limit or a time that must be positive is zero.
    Zero {
        /// The route or dependency.
        name: Box<str>,
        /// The field.
        field: &'static str,
    },
    /// A route names a cache that does not exist.
    UnknownCache {
        /// The route.
        route: Box<str>,
    },
    /// A guarded route names nobody who says who may.
    NoAuthorizer {
        /// The route.
        route: Box<str>,
    },
    /// A route names its own dependency as the one that stands in for it.
    StandsInForItself {
        /// The route.
        route: Box<str>,
    },
    /// A route with effects has a rule by which a request would be sent again, or to another dependency.
    RepeatsEffects {
        /// The route.
        route: Box<str>,
    },
    /// More routes, dependencies, caches or resources than can be numbered (65 535).
    TooMany,
}

impl std::fmt::Display for PolicyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PolicyError::UnknownDependency { route } => {
                write!(f, "route `{route}` names a dependency that the policy does not define")
            }
            PolicyError::UnknownResource { dependency } => {
                write!(f, "dependency `{dependency}` names a resource that the policy does not define")
            }
            PolicyError::Parts { route } => {
                write!(f, "`{route}` needs 1 to {MOST_PARTS} parts, each a route that is not composed")
            }
            PolicyError::UnknownCache { route } => {
                write!(f, "route `{route}` names a cache that the policy does not define")
            }
            PolicyError::NoAuthorizer { route } => {
                write!(f, "guarded route `{route}` names no authorizer")
            }
            PolicyError::StandsInForItself { route } => {
                write!(f, "the alternative of route `{route}` is its own dependency")
            }
            PolicyError::RepeatsEffects { route } => {
                write!(f, "route `{route}` has effects, so nothing may be sent again and nobody may stand in")
            }
            PolicyError::Zero { name, field } => write!(f, "`{field}` of `{name}` must be greater than zero"),
            PolicyError::TooMany => f.write_str(
                "a policy holds at most 65535 routes, and as many dependencies, caches and resources",
            ),
        }
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// Checks what the engine relies on.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), PolicyError> {
        let zero = |name: &str, field| PolicyError::Zero { name: name.into(), field };
        let most = usize::from(u16::MAX);
        if [self.routes.len(), self.dependencies.len(), self.caches.len(), self.resources.len()]
            .iter()
            .any(|&count| count > most)
        {
            return Err(PolicyError::TooMany);
        }
        if self.in_flight == 0 {
            return Err(zero("gateway", "in_flight"));
        }
        for dependency in &self.dependencies {
            if dependency.connections == 0 {
                return Err(zero(&dependency.name, "connections"));
            }
            if dependency.uses.iter().any(|resource| usize::from(resource.0) >= self.resources.len()) {
                return Err(PolicyError::UnknownResource { dependency: dependency.name.clone() });
            }
        }
        for route in &self.routes {
            let authorizer = route.authorizer.and_then(|authorizer| authorizer.dependency);
            let mut asked =
                route.alternative.iter().map(|alternative| alternative.dependency).chain(authorizer);
            let is_unknown = |id: DependencyId| usize::from(id.0) >= self.dependencies.len();
            let asks_itself = !matches!(route.class, RouteClass::Composed(_));
            if (asks_itself && is_unknown(route.dependency)) || asked.any(is_unknown) {
                return Err(PolicyError::UnknownDependency { route: route.name.clone() });
            }
            if route.alternative.is_some_and(|alternative| alternative.dependency == route.dependency) {
                return Err(PolicyError::StandsInForItself { route: route.name.clone() });
            }
            if route.class.effect().is_some() && (route.retry.is_some() || route.alternative.is_some()) {
                return Err(PolicyError::RepeatsEffects { route: route.name.clone() });
            }
            if matches!(route.class, RouteClass::Guarded) && route.authorizer.is_none() {
                return Err(PolicyError::NoAuthorizer { route: route.name.clone() });
            }
            if route.authorizer.is_some_and(|authorizer| authorizer.timeout.is_zero()) {
                return Err(zero(&route.name, "authorizer.timeout"));
            }
            if let RouteClass::Composed(composed) = &route.class
                && !self.has_parts(composed)
            {
                return Err(PolicyError::Parts { route: route.name.clone() });
            }
            if route.deadline.is_zero() {
                return Err(zero(&route.name, "deadline"));
            }
            if route.in_flight == 0 {
                return Err(zero(&route.name, "in_flight"));
            }
            if route.class.read().is_some_and(|read| read.max_age.is_zero()) {
                return Err(zero(&route.name, "max_age"));
            }
            if let Some(cached) = route.class.cached() {
                self.validate_cached(&route.name, cached)?;
            }
        }
        Ok(())
    }

    /// Whether there are parts, not too many, and each is a route that is not composed itself.
    fn has_parts(&self, composed: &Composed) -> bool {
        let is_plain = |id: RouteId| {
            let route = self.routes.get(usize::from(id.0));
            route.is_some_and(|route| !matches!(route.class, RouteClass::Composed(_)))
        };
        (1..=MOST_PARTS).contains(&composed.parts.len())
            && composed.parts.iter().all(|part| is_plain(part.route))
    }

    fn validate_cached(&self, route: &str, cached: &CachedRead) -> Result<(), PolicyError> {
        if usize::from(cached.cache.0) >= self.caches.len() {
            return Err(PolicyError::UnknownCache { route: route.into() });
        }
        let fill = &cached.fill;
        let zero = [
            ("ttl", cached.ttl.is_zero()),
            ("timeout", cached.timeout.is_zero()),
            ("fill.concurrency", fill.concurrency == 0),
            ("fill.rate", fill.rate == Some(0)),
            ("fill.deadline", fill.deadline.is_zero()),
            ("fill.waiters", fill.waiters == 0),
        ];
        match zero.iter().find(|(_, is_zero)| *is_zero) {
            Some((field, _)) => Err(PolicyError::Zero { name: route.into(), field }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{AlternativeRules, Dependency, Origin, ResourceId, Route};
    use crate::resource::ResourceRules;
    use std::time::Duration;

    /// A policy that is valid but for what a test adds.
    fn policy() -> Policy {
        let dependency = Dependency { name: "catalog".into(), connections: 1, ..Dependency::default() };
        let route =
            Route { name: "x".into(), deadline: Duration::from_secs(1), in_flight: 1, ..Route::default() };
        Policy { in_flight: 1, dependencies: vec![dependency], routes: vec![route], ..Policy::default() }
    }

    #[test]
    fn a_position_beyond_the_end_is_refused() {
        let mut uses = policy();
        assert_eq!(uses.validate(), Ok(()));
        uses.dependencies[0].uses.push(ResourceId(0));
        assert_eq!(uses.validate(), Err(PolicyError::UnknownResource { dependency: "catalog".into() }));
        uses.resources.push(ResourceRules {
            name: "db".into(),
            concurrency: Some(1),
            rate: None,
            origin: Origin::NONE,
        });
        assert_eq!(uses.validate(), Ok(()));

        let mut asks = policy();
        let alternative =
            |id| AlternativeRules { dependency: DependencyId(id), verified: None, origin: Origin::NONE };
        asks.routes[0].alternative = Some(alternative(1));
        assert_eq!(asks.validate(), Err(PolicyError::UnknownDependency { route: "x".into() }));
        asks.dependencies.push(Dependency { name: "other".into(), ..asks.dependencies[0].clone() });
        assert_eq!(asks.validate(), Ok(()));
    }

    #[test]
    fn nobody_stands_in_for_itself() {
        let mut policy = policy();
        let itself = AlternativeRules { dependency: DependencyId(0), verified: None, origin: Origin::NONE };
        policy.routes[0].alternative = Some(itself);
        assert_eq!(policy.validate(), Err(PolicyError::StandsInForItself { route: "x".into() }));
    }
}
