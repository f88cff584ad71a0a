//! What a drill needs to know of a policy.

use std::{sync::Arc, time::Duration};

use backstop_engine::policy::{KeyPart, Otherwise, Policy, Route, RouteClass, StatusSet, UnavailableStatus};
use backstop_policy::{AuthorizerKind, AuthorizerSettings, Loaded, RouteSettings};

use crate::proxy;

/// A policy, seen from outside.
#[derive(Clone, Debug)]
pub struct Facts {
    loaded: Arc<Loaded>,
    routes: Vec<RouteFacts>,
    upstreams: Vec<Upstream>,
}

/// Something that the policy calls: dependencies first, authorizers among them, then caches.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name.
    pub name: Box<str>,
    /// Calls under way at once.
    pub connections: u32,
    /// Whether it is a shared cache.
    pub is_cache: bool,
    /// Whether it says who may.
    pub is_authorizer: bool,
    /// Where it is.
    pub addresses: Vec<String>,
}

/// One route.
#[derive(Clone, Debug)]
pub struct RouteFacts {
    /// Its name.
    pub name: Box<str>,
    /// Its class, as the policy file has it.
    pub class: &'static str,
    /// What is asked first, by place among the upstreams; none on a composed route.
    pub dependency: Option<usize>,
    /// What is asked when that fails.
    pub alternative: Option<usize>,
    /// Its shared cache.
    pub cache: Option<usize>,
    /// The authorizer that is asked about each request.
    pub authorizer: Option<usize>,
    /// Whether callers show tokens.
    pub takes_tokens: bool,
    /// From the request's head to the last byte.
    pub deadline: Duration,
    /// Requests at once.
    pub in_flight: u32,
    /// The oldest copy that may be served, of a route that keeps copies.
    pub max_age: Option<Duration>,
    /// Calls of one request.
    pub attempts: u32,
    /// Reads under way for its cache, and per second.
    pub fill: Option<(u32, Option<u64>)>,
    /// How long its cache may answer instead.
    pub ttl: Duration,
    /// Whether it streams without end.
    pub streams: bool,
}

impl Facts {
    /// What is known of this policy.
    #[must_use]
    pub fn new(loaded: Loaded) -> Self {
        let dependencies = loaded.dependencies.len();
        let routes = loaded.routes.iter().zip(&loaded.policy.routes);
        let routes = routes.map(|(settings, rules)| route(settings, rules, &loaded, dependencies)).collect();
        let upstreams = upstreams(&loaded);
        Self { loaded: Arc::new(loaded), routes, upstreams }
    }

    /// The policy itself.
    #[must_use]
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// What the engine decides by.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.loaded.policy
    }

    /// Every route, in the policy's order.
    #[must_use]
    pub fn routes(&self) -> &[RouteFacts] {
        &self.routes
    }

    /// Everything that is called.
    #[must_use]
    pub fn upstreams(&self) -> &[Upstream] {
        &self.upstreams
    }

    /// Its name; empty where there is none.
    #[must_use]
    pub fn upstream_name(&self, upstream: usize) -> &str {
        self.upstreams.get(upstream).map_or("", |upstream| &upstream.name)
    }

    /// The engine's rules of a route.
    #[must_use]
    pub fn rules(&self, route: usize) -> Option<&Route> {
        self.loaded.policy.routes.get(route)
    }

    /// The statuses by which an authorizer says no.
    #[must_use]
    pub fn denies(&self, route: usize) -> StatusSet {
        let settings = self.loaded.routes.get(route).and_then(|route| route.authorizer);
        let authorizer = settings.and_then(|index| self.loaded.authorizers.get(index));
        match authorizer.map(|authorizer| &authorizer.kind) {
            Some(AuthorizerKind::Asked(asked)) => asked.deny,
            _ => StatusSet::EMPTY,
        }
    }

    /// Whether a status of its dependency passes through this route unchanged.
    #[must_use]
    pub fn passes_through(&self, route: usize, status: u16) -> bool {
        let Some(rules) = self.rules(route) else { return false };
        let is_answer = (400..500).contains(&status) || (status >= 500 && !matches!(status, 502..=504));
        is_answer && !rules.declared.contains(status)
    }

    /// A status that no rule of these routes classifies.
    #[must_use]
    pub fn unclassified(&self, routes: &[usize]) -> Option<u16> {
        let known = |status: u16| routes.iter().all(|route| self.passes_through(*route, status));
        [500, 507, 508, 501, 599].into_iter().find(|status| known(*status))
    }

    /// The statuses that an unusable alternative is answered with.
    #[must_use]
    pub fn unavailable(&self, route: usize) -> Vec<u16> {
        let rules = self.rules(route);
        let keeps = self.routes.get(route).is_some_and(|route| route.max_age.is_some());
        match rules.map(|rules| rules.unavailable_status) {
            Some(UnavailableStatus::Contract) if keeps => vec![503],
            _ => vec![502, 503, 504],
        }
    }

    /// The route for a request with this `Host`, found as the gateway finds it.
    #[must_use]
    pub fn find(&self, host: &str, method: &str, target: &str) -> Option<usize> {
        super::find::find(&self.loaded.routes, host, method, target)
    }
}

fn route(settings: &RouteSettings, rules: &Route, loaded: &Loaded, dependencies: usize) -> RouteFacts {
    let place = |id: u16| usize::from(id);
    let authorizer = settings.authorizer.and_then(|index| loaded.authorizers.get(index));
    let asked = authorizer.filter(|authorizer| matches!(authorizer.kind, AuthorizerKind::Asked(_)));
    RouteFacts {
        name: settings.name.clone(),
        class: rules.class.name(),
        dependency: Some(place(rules.dependency.0)).filter(|place| *place < dependencies),
        alternative: rules.alternative.map(|alternative| place(alternative.dependency.0)),
        cache: rules.class.cached().map(|cached| dependencies + place(cached.cache.0)),
        authorizer: asked.map(|authorizer: &AuthorizerSettings| place(authorizer.dependency.0)),
        takes_tokens: authorizer.is_some() && asked.is_none(),
        deadline: rules.deadline,
        in_flight: rules.in_flight,
        max_age: rules.class.read().filter(|_| rules.class.keeps_copies()).map(|read| read.max_age),
        attempts: rules.retry.map_or(1, |retry| retry.attempts.max(1)),
        fill: rules.class.cached().map(|cached| (cached.fill.concurrency, cached.fill.rate)),
        ttl: rules.class.cached().map_or(Duration::ZERO, |cached| cached.ttl),
        streams: matches!(&rules.class, RouteClass::Direct(direct) if direct.idle.is_some()),
    }
}

fn upstreams(loaded: &Loaded) -> Vec<Upstream> {
    let authorizers = loaded.authorizers.iter().map(|authorizer| usize::from(authorizer.dependency.0));
    let authorizers: Vec<usize> = authorizers.collect();
    let address = |address: &backstop_policy::Address| match address.host.contains(':') {
        true => format!("[{}]:{}", address.host, address.port),
        false => format!("{}:{}", address.host, address.port),
    };
    let dependencies = loaded.dependencies.iter().enumerate().map(|(index, dependency)| Upstream {
        name: dependency.name.clone(),
        connections: dependency.connections,
        is_cache: false,
        is_authorizer: authorizers.contains(&index),
        addresses: dependency.addresses.iter().map(address).collect(),
    });
    let caches = loaded.caches.iter().map(|cache| Upstream {
        name: cache.name.clone(),
        connections: u32::MAX,
        is_cache: true,
        is_authorizer: false,
        addresses: vec![address(&cache.address)],
    });
    dependencies.chain(caches).collect()
}

impl RouteFacts {
    /// Everything that it may ask.
    pub fn asks(&self) -> impl Iterator<Item = usize> {
        self.dependency.into_iter().chain(self.alternative).chain(self.cache)
    }

    /// Whether it has effects, which are never called outside of a sandbox.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        self.class == "effect"
    }

    /// Whether answers of this source are accepted alternatives of it.
    #[must_use]
    pub fn accepts(&self, source: &str, rules: &Route) -> bool {
        match source {
            "snapshot" => self.max_age.is_some() || self.class == "composed",
            // Another gateway behind this one may have answered with its own.
            "alternative" => self.class != "effect",
            "prepared" => is_prepared(rules, true) || self.class == "composed",
            "omitted" => is_prepared(rules, false) || self.class == "composed",
            "cache" => self.class == "cached_read" || self.class == "composed",
            "ledger" => self.class == "effect",
            _ => false,
        }
    }
}

fn is_prepared(rules: &Route, wanted: bool) -> bool {
    match &rules.class {
        RouteClass::Optional(optional) => matches!(optional.otherwise, Otherwise::Prepared(_)) == wanted,
        _ => false,
    }
}

/// The header fields that tell copies of a route apart.
pub(crate) fn key_headers(rules: &Route) -> Vec<&str> {
    let parts = rules.class.read().into_iter().flat_map(|read| &read.key);
    parts
        .filter_map(|part| match part {
            KeyPart::Header(name) => Some(&**name),
            _ => None,
        })
        .collect()
}

/// What the proxies stand in front of.
pub(crate) fn behind_proxies(facts: &Facts) -> Vec<proxy::Upstream> {
    let upstream = |upstream: &Upstream| proxy::Upstream {
        name: upstream.name.to_string(),
        addresses: upstream.addresses.clone(),
        protocol: if upstream.is_cache { proxy::Protocol::Raw } else { proxy::Protocol::Http },
    };
    facts.upstreams.iter().map(upstream).collect()
}
