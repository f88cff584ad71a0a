//! From tables without errors to the engine's policy and the gateway's settings: defaults are filled in, names become
//! positions.

mod authorizer;
pub(crate) mod cache;
mod composed;
mod dependency;
pub(crate) mod effect;
mod gateway;
mod health;
mod route;
mod second;
pub(crate) mod verify;

use backstop_engine::policy::{CacheRules, Dependency, Origin, Policy, Route, StatusSet};

use crate::check::{Checked, View};
use crate::read::At;
use crate::settings::{
    AuthorizerSettings, CacheSettings, DependencySettings, GatewaySettings, RouteSettings, StoreSettings,
};
use crate::shape::File;

/// Everything a process needs.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) policy: Policy,
    pub(crate) gateway: GatewaySettings,
    pub(crate) store: StoreSettings,
    pub(crate) dependencies: Vec<DependencySettings>,
    pub(crate) authorizers: Vec<AuthorizerSettings>,
    pub(crate) caches: Vec<CacheSettings>,
    pub(crate) routes: Vec<RouteSettings>,
}

/// Lowers a file that has no errors.
pub(crate) fn lower(file: &File, checked: &Checked) -> Lowered {
    let view = View::new(file);
    let traces = gateway::traces(file.telemetry.as_ref().map(|telemetry| &telemetry.value));
    let gateway = GatewaySettings { traces, ..gateway::gateway(view.gateway()) };
    let (mut engine_dependencies, mut dependencies): (Vec<Dependency>, Vec<_>) = view
        .dependencies()
        .enumerate()
        .map(|(index, dependency)| dependency::dependency(&view, index, dependency))
        .unzip();
    let mut authorizers = Vec::new();
    for (engine, dependency, settings) in authorizer::authorizers(&view) {
        engine_dependencies.push(engine);
        dependencies.push(dependency);
        authorizers.push(settings);
    }
    let otherwise = checked.answers.iter().cloned().chain(std::iter::repeat(None));
    let verified = checked.verified.of_routes().chain(std::iter::repeat(None));
    let (engine_routes, routes): (Vec<Route>, Vec<_>) = view
        .routes()
        .zip(otherwise.zip(verified))
        .enumerate()
        .map(|(index, (view_of, (otherwise, verified)))| {
            let lowering =
                route::Lowering { view: &view, gateway: &gateway, route: view_of, secrets: &checked.secrets };
            (lowering.engine(otherwise, verified), lowering.settings(index, verified))
        })
        .unzip();
    let (engine_caches, caches): (Vec<CacheRules>, Vec<_>) = cache::caches(&view).into_iter().unzip();
    let policy = Policy {
        caches: engine_caches,
        in_flight: gateway.in_flight,
        in_flight_origin: origin(view.gateway().and_then(|gateway| gateway.in_flight.as_ref())),
        instances: view
            .gateway()
            .and_then(|gateway| gateway.instances.as_ref())
            .map_or(1, |count| count.value.0),
        resources: view.resources().map(second::resource).collect(),
        dependencies: engine_dependencies,
        routes: engine_routes,
    };
    debug_assert_eq!(policy.validate(), Ok(()));
    Lowered {
        policy,
        gateway,
        store: gateway::store(view.store(), view.has_effects()),
        dependencies,
        authorizers,
        caches,
        routes,
    }
}

/// Where a value was written, if it was.
fn origin<T>(at: Option<&At<T>>) -> Origin {
    at.map_or(Origin::NONE, |at| at.origin)
}

fn statuses(statuses: impl IntoIterator<Item = u16>) -> StatusSet {
    statuses.into_iter().fold(StatusSet::EMPTY, |mut set, status| {
        set.insert(status);
        set
    })
}

/// Position of an entry; `check` holds that there are few enough.
fn position(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}
