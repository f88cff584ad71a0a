//! One route of the policy, made ready to answer.

use std::sync::Arc;

use backstop::{Backstop, SetupError};
use backstop_engine::policy::{KeyPart, RouteClass, RouteId};
use backstop_policy::{AuthorizerSettings, DependencySettings, HostHeader, RouteSettings};
use http::HeaderName;
use http::header::ACCEPT_LANGUAGE;

use crate::authorizer::{self, identities};
use crate::cors::Cors;
use crate::edits::Edits;
use crate::forward;
use crate::operations;
use crate::parts::PartRules;
use crate::stack::RouteStack;
use crate::telemetry;
use crate::withdraws::withdraws;

pub(super) fn route_stack(
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
            &makes_a_copy(route, &host, behind.as_deref()),
        )?,
        dependency,
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
/// may: another authorizer's principal of the same name is another one.
fn makes_a_copy(route: &RouteSettings, host: &HostHeader, behind: Option<&str>) -> String {
    format!("{:?}", (host, &route.strip_prefix, &route.request_headers, route.ignore_cookie, behind))
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
