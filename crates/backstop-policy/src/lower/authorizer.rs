//! `[authorizer.NAME]`: a dependency like any other to the engine, with a question of its own.

use std::time::Duration;

use backstop_engine::health::BreakerRules;
use backstop_engine::policy::{AuthorizerRules, Dependency, DependencyId};

use super::{health, origin, position, statuses};
use crate::check::{AuthorizerView, RouteView, View};
use crate::default;
use crate::read::{At, List};
use crate::settings::{
    AskedSettings, AuthorizerKind, AuthorizerSettings, DependencySettings, HostHeader, TokenSettings,
};
use crate::shape::JwtTable;
use crate::value::{NonEmptyText, Status, TellingHeader};

/// Fetches of an issuer's keys at once. One that was given up may still occupy its connection.
const FETCHES: u32 = 2;

/// All of them, as dependencies that come after those of the file.
pub(super) fn authorizers(view: &View<'_>) -> Vec<(Dependency, DependencySettings, AuthorizerSettings)> {
    let first = view.dependencies().count();
    view.authorizers().enumerate().map(|(index, authorizer)| one(first + index, authorizer)).collect()
}

fn one(index: usize, view: AuthorizerView<'_>) -> (Dependency, DependencySettings, AuthorizerSettings) {
    let table = &view.table.value;
    let (id, name) = (DependencyId(position(index)), view.name.value.0.clone());
    let (engine, dependency, kind) = match &table.jwt {
        Some(jwt) => tokens(id, view, &jwt.value),
        None => asked(id, view),
    };
    let settings = AuthorizerSettings {
        dependency: id,
        name,
        principal: table.principal.as_ref().map(|principal| principal.value.0.clone()),
        kind,
        origin: view.table.origin,
    };
    (engine, dependency, settings)
}

fn asked(id: DependencyId, view: AuthorizerView<'_>) -> (Dependency, DependencySettings, AuthorizerKind) {
    let (table, name) = (&view.table.value, view.name.value.0.clone());
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
        name,
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
    let status = |list: Option<&At<List<Status>>>, otherwise: &[u16]| match list {
        Some(list) => statuses(list.value.0.iter().map(|status| status.value.0)),
        None => statuses(otherwise.iter().copied()),
    };
    let names = |list: Option<&At<List<TellingHeader>>>| {
        list.map(|list| list.value.0.iter().map(|name| name.value.0.clone()).collect())
    };
    let sign = allow.and_then(|allow| allow.header.as_ref()).map(|sign| &sign.value);
    let settings = AskedSettings {
        path: urls().next().map_or_else(|| "/".into(), |url| url.path.clone()),
        allow: status(allow.and_then(|allow| allow.status.as_ref()), &default::ALLOW),
        sign: sign.map_or_else(Box::default, |sign| sign.name.clone()),
        sign_value: sign.and_then(|sign| sign.value.clone()),
        deny: status(table.deny.as_ref(), &default::DENY),
        tells: names(table.tells.as_ref()).unwrap_or_default(),
        send: names(table.send.as_ref())
            .unwrap_or_else(|| default::SEND.iter().map(|&name| name.into()).collect()),
    };
    (engine, dependency, AuthorizerKind::Asked(settings))
}

/// The issuer's keys are fetched by one task, one fetch after the other and with a pause between: nothing for a breaker to
/// spare.
fn tokens(
    id: DependencyId,
    view: AuthorizerView<'_>,
    jwt: &JwtTable,
) -> (Dependency, DependencySettings, AuthorizerKind) {
    let name = view.name.value.0.clone();
    let address = jwt.keys.as_ref().map(|keys| keys.value.address.clone());
    let max_age = jwt.max_age.as_ref().map_or(Duration::ZERO, |max_age| max_age.value.0);
    let quarter = max_age / 4;
    let timeout = jwt.timeout.as_ref().map_or(default::KEYS_TIMEOUT.min(quarter), |timeout| timeout.value.0);
    let engine = Dependency {
        name: name.clone(),
        connections: FETCHES,
        breaker: None,
        connections_origin: origin(jwt.keys.as_ref()),
        ..Dependency::default()
    };
    let dependency = DependencySettings {
        id,
        name,
        host: HostHeader::Fixed(address.as_ref().map_or_else(Box::default, |it| it.to_string().into())),
        addresses: address.into_iter().collect(),
        connections: FETCHES,
        queue: Duration::ZERO,
        connect: default::CONNECT.min(timeout),
        idle: default::IDLE,
        probe: None,
        origin: view.table.origin,
    };
    let text = |text: Option<&At<NonEmptyText>>| text.map(|text| text.value.0.clone());
    let audience = jwt.audience.iter().flat_map(|list| &list.value.0);
    let algorithms = jwt.algorithms.iter().flat_map(|list| &list.value.0);
    let settings = TokenSettings {
        path: jwt.keys.as_ref().map_or_else(|| "/".into(), |keys| keys.value.path.clone()),
        issuer: text(jwt.issuer.as_ref()).unwrap_or_default(),
        audience: audience.map(|audience| audience.value.0.clone()).collect(),
        algorithms: algorithms.map(|algorithm| algorithm.value.0).collect(),
        max_age,
        refresh: jwt.refresh.as_ref().map_or(quarter, |refresh| refresh.value.0),
        timeout,
        skew: jwt.skew.as_ref().map_or(Duration::ZERO, |skew| skew.value.0),
        claim: text(jwt.claim.as_ref()).unwrap_or_else(|| default::CLAIM.into()),
        trusts_date: jwt.unsynchronised.as_ref().is_some_and(|choice| choice.value.0),
    };
    (engine, dependency, AuthorizerKind::Tokens(settings))
}

fn timeout(view: AuthorizerView<'_>) -> Duration {
    view.table.value.timeout.as_ref().map_or(Duration::ZERO, |timeout| timeout.value.0)
}

/// Who says whether the callers of a route may: its position among the authorizers.
pub(super) fn of(view: &View<'_>, route: RouteView<'_>) -> Option<usize> {
    let name = route.common().authorizer.as_ref()?;
    view.authorizers().position(|authorizer| authorizer.name.value == name.value)
}

/// Its rules for the engine. One that verifies tokens asks nobody.
pub(super) fn rules(view: &View<'_>, route: RouteView<'_>) -> Option<AuthorizerRules> {
    let name = route.common().authorizer.as_ref()?;
    let index = of(view, route)?;
    let authorizer = view.authorizers().nth(index)?;
    let dependency = DependencyId(position(view.dependencies().count() + index));
    Some(AuthorizerRules {
        dependency: authorizer.table.value.jwt.is_none().then_some(dependency),
        timeout: timeout(authorizer),
        origin: name.origin,
    })
}
