//! `[authorizer.NAME]`: a dependency like any other to the engine, with a question of its own.

use std::time::Duration;

use backstop_engine::health::BreakerRules;
use backstop_engine::policy::{AuthorizerRules, Dependency, DependencyId};

use super::{health, origin, position, statuses};
use crate::check::{AuthorizerView, RouteView, View};
use crate::default;
use crate::settings::{AuthorizerSettings, DependencySettings, HostHeader};
use crate::value::Status;

/// All of them, as dependencies that come after those of the file.
pub(super) fn authorizers(view: &View<'_>) -> Vec<(Dependency, DependencySettings, AuthorizerSettings)> {
    let first = view.dependencies().count();
    view.authorizers().enumerate().map(|(index, authorizer)| one(first + index, authorizer)).collect()
}

fn one(index: usize, view: AuthorizerView<'_>) -> (Dependency, DependencySettings, AuthorizerSettings) {
    let table = &view.table.value;
    let (id, name) = (DependencyId(position(index)), view.name.value.0.clone());
    let connections = table.in_flight.as_ref().map_or(0, |count| count.value.0);
    let timeout = timeout(view);
    let breaker = match &table.breaker {
        Some(breaker) => {
            let slow = breaker.value.slow.as_ref().map_or(timeout, |slow| slow.value.0);
            health::breaker(breaker, slow)
        }
        None => BreakerRules { slow: timeout, ..BreakerRules::default() },
    };
    let engine = Dependency {
        name: name.clone(),
        connections,
        breaker: Some(breaker),
        connections_origin: origin(table.in_flight.as_ref()),
        ..Dependency::default()
    };
    let urls = || table.url.iter().flat_map(|url| &url.value.0).map(|url| &url.value);
    let dependency = DependencySettings {
        id,
        name: name.clone(),
        addresses: urls().map(|url| url.address.clone()).collect(),
        connections,
        queue: Duration::ZERO,
        connect: table.connect.as_ref().map_or(default::CONNECT, |connect| connect.value.0),
        host: HostHeader::Fixed(match &table.host {
            Some(host) => host.value.0.clone(),
            None => urls().next().map_or_else(Box::default, |url| url.address.to_string().into()),
        }),
        idle: table.idle.as_ref().map_or(default::IDLE, |idle| idle.value.0),
        probe: None,
        origin: view.table.origin,
    };
    let allow = table.allow.as_ref().map(|allow| &allow.value);
    let status = |list: Option<&crate::read::At<crate::read::List<Status>>>, otherwise: &[u16]| match list {
        Some(list) => statuses(list.value.0.iter().map(|status| status.value.0)),
        None => statuses(otherwise.iter().copied()),
    };
    let names = |list: Option<&crate::read::At<crate::read::List<crate::value::TellingHeader>>>| {
        list.map(|list| list.value.0.iter().map(|name| name.value.0.clone()).collect())
    };
    let sign = allow.and_then(|allow| allow.header.as_ref()).map(|sign| &sign.value);
    let settings = AuthorizerSettings {
        dependency: id,
        name,
        path: urls().next().map_or_else(|| "/".into(), |url| url.path.clone()),
        allow: status(allow.and_then(|allow| allow.status.as_ref()), &default::ALLOW),
        sign: sign.map_or_else(Box::default, |sign| sign.name.clone()),
        sign_value: sign.and_then(|sign| sign.value.clone()),
        deny: status(table.deny.as_ref(), &default::DENY),
        principal: table.principal.as_ref().map(|principal| principal.value.0.clone()),
        tells: names(table.tells.as_ref()).unwrap_or_default(),
        send: names(table.send.as_ref())
            .unwrap_or_else(|| default::SEND.iter().map(|&name| name.into()).collect()),
        origin: view.table.origin,
    };
    (engine, dependency, settings)
}

fn timeout(view: AuthorizerView<'_>) -> Duration {
    view.table.value.timeout.as_ref().map_or(Duration::ZERO, |timeout| timeout.value.0)
}

/// Who says whether the callers of a route may.
pub(super) fn rules(view: &View<'_>, route: RouteView<'_>) -> Option<AuthorizerRules> {
    let name = route.common().authorizer.as_ref()?;
    let index = view.authorizers().position(|authorizer| authorizer.name.value == name.value)?;
    Some(AuthorizerRules {
        dependency: Some(DependencyId(position(view.dependencies().count() + index))),
        timeout: timeout(view.authorizers().nth(index)?),
        origin: name.origin,
    })
}
