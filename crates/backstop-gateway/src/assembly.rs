//! From a policy to everything that its requests go through: routes, authorizers, ways to dependencies and caches.
//!
//! Nothing is bound, opened or asked here. Whoever serves brings copies and a ledger that survive a restart, and the system's
//! network; whoever explains brings such as live in memory, and a script.

use std::sync::Arc;
use std::time::Duration;

use backstop::clock::Clock;
use backstop::fields::Speaker;
use backstop::{Backstop, SetupError};
use backstop_engine::policy::{KeyPart, Mode, RouteClass, RouteId};
use backstop_policy::{AuthorizerSettings, DependencySettings, HostHeader, Loaded, RouteSettings};
use backstop_store::Copies;
use http::HeaderName;
use http::header::ACCEPT_LANGUAGE;

use crate::authorizer::{self, identities};
use crate::caches::Caches;
use crate::client_body::RequestContent;
use crate::cors::Cors;
use crate::edits::Edits;
use crate::forward::{self, own_host};
use crate::gateway::BindError;
use crate::log::Decisions;
use crate::observe::{self, ObservedRoute};
use crate::operations::{self, Operations};
use crate::parts::PartRules;
use crate::router::Router;
use crate::stack::{RouteStack, Shared};
use crate::steps::Words;
use crate::tallies::Tallies;
use crate::telemetry::{self, Telemetry};
use crate::upstream::{Address, Network, Pool, Settings};
use crate::via::pseudonym;
use crate::withdraws::withdraws;

/// What requests go through.
pub(crate) struct Assembly {
    pub(crate) backstop: Backstop,
    pub(crate) shared: Arc<Shared>,
    pub(crate) pools: Vec<Pool<RequestContent>>,
    pub(crate) caches: Caches,
}

impl Assembly {
    /// As the policy has it. `network` is what the connections of each dependency are opened on.
    pub(crate) fn new(
        loaded: &Loaded,
        clock: &Clock,
        copies: Copies,
        operations: Option<Arc<Operations>>,
        telemetry: Telemetry,
        network: impl Fn(&DependencySettings) -> Network,
    ) -> Result<Self, BindError> {
        let Loaded { policy, gateway, dependencies, authorizers, caches, routes, sources, .. } = loaded;
        let speaker = Speaker { name: gateway.name.clone(), is_gateway: true };
        let backstop = Backstop::new(policy.clone(), clock.clone(), copies, speaker)?;
        backstop.set_buffer_memory(gateway.buffer_memory);
        let router = Router::new(routes)?;
        let mut pools: Vec<_> = dependencies
            .iter()
            .map(|asked| pool(asked, asked.connections, asked.connect, clock, network(asked)))
            .collect();
        if backstop.engine().routes().iter().any(|route| route.rules.mode == Mode::Observe) {
            // Forwarded however many there are and however long it takes, beside those of other routes.
            let observed = |asked| pool(asked, MOST_OBSERVED, observe::PATIENCE, clock, network(asked));
            pools.extend(dependencies.iter().map(observed));
        }
        let caches = Caches::new(caches, clock);
        let hosts: Vec<(HostHeader, String)> =
            dependencies.iter().map(|dependency| (dependency.host.clone(), own_host(dependency))).collect();
        let route_stacks = routes
            .iter()
            .map(|route| route_stack(&backstop, route, routes, &hosts, dependencies, authorizers))
            .collect::<Result<Vec<_>, SetupError>>()?;
        let shared = Shared {
            name: gateway.name.clone(),
            head_bytes: usize::try_from(gateway.limits.head_bytes).unwrap_or(usize::MAX),
            via: pseudonym(&gateway.name),
            clock: clock.clone(),
            engine: Arc::clone(backstop.engine()),
            router,
            words: Words::new(dependencies, sources),
            decisions: Decisions::new(sources.clone(), route_stacks.len()),
            observed: observe::Counts::new(route_stacks.len()),
            routes: route_stacks,
            hosts: hosts.iter().map(|(host, own)| forward::Rules::new(None, host, own)).collect(),
            authorizers: authorizer::ready(authorizers, &hosts, backstop.clock())?,
            operations,
            looks: Arc::new(backstop_engine::admission::Limit::new(operations::LOOKS)),
            trusted: gateway.trusted.clone(),
            tallies: Tallies::default(),
            telemetry,
            addresses: dependencies.iter().map(telemetry::address).collect(),
        };
        Ok(Self { backstop, shared: Arc::new(shared), pools, caches })
    }
}

/// Connections to a dependency of observed routes: more than one process can open, and no bound of theirs.
const MOST_OBSERVED: u32 = 1 << 20;

fn pool(
    dependency: &DependencySettings,
    connections: u32,
    connect: Duration,
    clock: &Clock,
    network: Network,
) -> Pool<RequestContent> {
    let addresses =
        dependency.addresses.iter().map(|address| Address::new(&address.host, address.port)).collect();
    let settings =
        Settings { idle: dependency.idle, network, ..Settings::new(addresses, connections, connect) };
    Pool::new(settings, clock.clone())
}

/// The fields by which copies of a route, or its prepared answers, are told apart.
fn keyed(class: &RouteClass) -> Arc<[HeaderName]> {
    let parts = class.read().into_iter().flat_map(|read| &read.key);
    let name = |part: &KeyPart| match part {
        KeyPart::Header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
        KeyPart::Path(_) | KeyPart::Language | KeyPart::Principal | KeyPart::Query(_) => None,
    };
    let languages = match class {
        RouteClass::Optional(optional) => &optional.languages[..],
        _ => class.read().map_or(&[][..], |read| &read.languages),
    };
    let language = (!languages.is_empty()).then_some(ACCEPT_LANGUAGE);
    let of_effect = class.effect().into_iter().flat_map(operations::fields);
    let of_effect = of_effect.filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok());
    parts.filter_map(name).chain(language).chain(of_effect).collect()
}

fn route_stack(
    backstop: &Backstop,
    route: &RouteSettings,
    all: &[RouteSettings],
    hosts: &[(HostHeader, String)],
    dependencies: &[DependencySettings],
    authorizers: &[AuthorizerSettings],
) -> Result<RouteStack, SetupError> {
    let id: RouteId = route.id;
    let dependency = usize::from(backstop.engine().route(id).rules.dependency.0);
    let (host, own_host) = hosts.get(dependency).cloned().unwrap_or_default();
    let rules = &backstop.engine().route(id).rules;
    let behind = route.authorizer.and_then(|index| {
        let settings = authorizers.get(index)?;
        let asked = usize::from(settings.dependency.0);
        Some(authorizer::word(settings, &dependencies.get(asked)?.addresses, hosts.get(asked)?))
    });
    Ok(RouteStack {
        id,
        protected: backstop.route_by_id(
            id,
            withdraws(route, all),
            &makes_a_copy(route, rules.mode, &host, behind.as_deref()),
        )?,
        dependency,
        observed: (rules.mode == Mode::Observe).then(|| ObservedRoute {
            lane: dependencies.len() + dependency,
            connect: dependencies.get(dependency).map_or(Duration::MAX, |asked| asked.connect),
        }),
        limits: route.limits,
        forward: forward::Rules::new(route.strip_prefix.as_deref(), &host, &own_host),
        // Who asks is told by an authorizer alone, on every route.
        request_edits: Arc::new(Edits::new(&route.request_headers).and_remove(&identities(authorizers))),
        keyed: keyed(&rules.class),
        is_principals: rules.class.read().is_some_and(|read| read.key.contains(&KeyPart::Principal)),
        ignore_cookie: route.ignore_cookie,
        authorizer: route.authorizer,
        cors: route.cors.as_ref().map(Cors::new),
        is_read: rules.class.read().is_some(),
        response_edits: Arc::new(Edits::new(&route.response_headers)),
        parts: route.parts.iter().map(PartRules::new).collect(),
        template: telemetry::template(route),
    })
}

/// What the dependency is asked, beyond what the client asked: another question has other copies. And who said that its caller
/// may: another authorizer's principal of the same name is another one. A route that is only observed asks as its clients ask, in
/// languages and with fields that it would not have asked with: what it keeps is compared and counted, and never served.
fn makes_a_copy(route: &RouteSettings, mode: Mode, host: &HostHeader, behind: Option<&str>) -> String {
    let asked = (host, &route.strip_prefix, &route.request_headers, route.ignore_cookie, behind);
    match mode {
        Mode::Enforce => format!("{asked:?}"),
        Mode::Observe => format!("{asked:?} observed"),
    }
}
