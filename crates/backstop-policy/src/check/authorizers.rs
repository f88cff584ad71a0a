//! Authorizers: whether a yes and a no can be told apart, and whose copies are behind one.

use backstop_engine::admission::ClassShare;
use backstop_engine::policy::KeyPart;

use crate::check::View;
use crate::check::references::unknown;
use crate::check::view::{AuthorizerView, RouteView};
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::AuthorizerTable;
use crate::value::Name;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for authorizer in view.authorizers() {
        own_name(view, authorizer, cx);
        one_path(authorizer, cx);
        statuses(authorizer, cx);
        is_named(view, authorizer, cx);
    }
    told_by_both(view, cx);
    let names: Vec<_> = view.authorizer_names().collect();
    for route in view.routes() {
        credentials_for_all(route, cx);
        match &route.common().authorizer {
            Some(name) if !names.contains(&&*name.value.0) => {
                cx.report(unknown("authorizer", &name.value, name.bytes.clone(), &names, cx.has_room()));
            }
            Some(name) => behind(view, route, name, cx),
            None => without(route, cx),
        }
    }
}

/// Metrics, breakers and operators call both by their names.
fn own_name(view: &View<'_>, authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let Some(dependency) = view.dependency(&authorizer.name.value) else { return };
    let message = format!("`{}` is a dependency too", authorizer.name.value.0);
    cx.report(
        Finding::new(Code::SameName, authorizer.name.bytes.clone(), message)
            .related(dependency.name.bytes.clone(), "named here")
            .help("give one of them another name: both have a breaker, and both are told in metrics by it"),
    );
}

fn one_path(authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let mut urls = authorizer.table.value.url.iter().flat_map(|url| &url.value.0);
    let Some(first) = urls.next() else { return };
    for other in urls.filter(|other| other.value.path != first.value.path) {
        let message = format!("`{}` is asked at two paths", authorizer.name.value.0);
        cx.report(
            Finding::new(Code::AuthorizerPaths, other.bytes.clone(), message)
                .related(first.bytes.clone(), format!("`{}` here", first.value.path))
                .help("several hosts are one authorizer only if they are asked the same"),
        );
    }
}

fn statuses(authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let table = &authorizer.table.value;
    let allow = table.allow.as_ref().and_then(|allow| allow.value.status.as_ref());
    for status in allow.into_iter().flat_map(|list| &list.value.0) {
        if !(200..300).contains(&status.value.0) {
            let message = format!("{} is never an explicit yes", status.value.0);
            cx.report(Finding::new(Code::AllowStatus, status.bytes.clone(), message).help(
                "name statuses from 200 to 299: a redirect leads to a login page, an error is an outage",
            ));
        }
    }
    for status in table.deny.iter().flat_map(|list| &list.value.0) {
        if !matches!(status.value.0, 401 | 403) {
            let message = format!("{} is never an explicit no", status.value.0);
            cx.report(
                Finding::new(Code::DenyStatus, status.bytes.clone(), message).help(
                    "only 401 and 403 say that a caller may not (RFC 9110 sections 15.5.2 and 15.5.4); everything else is answered with 503",
                ),
            );
        }
    }
}

fn is_named(view: &View<'_>, authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let names = |route: RouteView<'_>| {
        route.common().authorizer.as_ref().is_some_and(|name| name.value == authorizer.name.value)
    };
    if !view.routes().any(names) {
        let message = format!("no route names the authorizer `{}`", authorizer.name.value.0);
        cx.report(
            Finding::new(Code::UnusedAuthorizer, authorizer.name.bytes.clone(), message)
                .help("name it in `authorizer` of the routes that it protects, or remove it"),
        );
    }
}

/// What an authorizer tells is taken from every client beforehand: no authorizer would get it to look at.
fn told_by_both(view: &View<'_>, cx: &mut Context<'_>) {
    let told = view.authorizers().flat_map(|authorizer| {
        let table = &authorizer.table.value;
        let principal = table.principal.iter().map(|field| (&*field.value.0, &field.bytes));
        let tells = table.tells.iter().flat_map(|tells| &tells.value.0);
        principal.chain(tells.map(|field| (&*field.value.0, &field.bytes)))
    });
    for (name, bytes) in told {
        let asks_with = |authorizer: &AuthorizerView<'_>| match &authorizer.table.value {
            // A token stands in `Authorization`, and nowhere else.
            table if table.jwt.is_some() => name == "authorization",
            AuthorizerTable { send: Some(send), .. } => {
                send.value.0.iter().any(|field| *field.value.0 == *name)
            }
            _ => default::SEND.contains(&name),
        };
        let Some(asked) = view.authorizers().find(asks_with) else { continue };
        let place = asked.table.value.send.as_ref().map_or(&asked.name.bytes, |send| &send.bytes);
        let message =
            format!("`{name}` is taken from every client, and `{}` is to look at it", asked.name.value.0);
        cx.report(
            Finding::new(Code::ToldByClients, bytes.clone(), message)
                .related(place.clone(), "it gets this field of the client's")
                .help("let the authorizer tell who asks in a field that no client sends, such as `x-user`"),
        );
    }
}

/// No browser takes `*` together with credentials (the Fetch standard, section 3.2.5); and whoever writes it may mean it.
fn credentials_for_all(route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(cors) = &route.common().cors else { return };
    let Some(credentials) = cors.value.credentials.as_ref().filter(|credentials| credentials.value) else {
        return;
    };
    let mut origins = cors.value.origins.iter().flat_map(|origins| &origins.value.0);
    if let Some(all) = origins.find(|origin| *origin.value.0 == *"*") {
        let message = "a page of any origin could read what its user's credentials show";
        cx.report(
            Finding::new(Code::CredentialsForAll, credentials.bytes.clone(), message)
                .related(all.bytes.clone(), "every origin")
                .help("name the origins, such as `origins = [\"https://shop.example\"]`"),
        );
    }
}

/// A route that names its authorizer.
fn behind(view: &View<'_>, route: RouteView<'_>, name: &At<Name>, cx: &mut Context<'_>) {
    let Some(authorizer) = view.authorizer_of(route) else { return };
    let table = &authorizer.table.value;
    if let (Some(timeout), Some(deadline)) = (&table.timeout, &route.common().deadline)
        && timeout.value.0 >= deadline.value.0
    {
        let message = format!(
            "a request of `{}` may wait for `{}` until its deadline",
            route.text(),
            authorizer.name.value.0
        );
        cx.report(
            Finding::new(Code::AuthorizerTimeout, timeout.bytes.clone(), message)
                .related(deadline.bytes.clone(), "everything, the authorizer included, has this long")
                .help("make `timeout` shorter than the deadline of every route that it protects"),
        );
    }
    bears(route, authorizer, cx);
    let Some(kept) = route.kept() else { return };
    let key = kept.key.iter().flat_map(|key| &key.value.0);
    let principal = key.clone().find(|part| part.value.0 == KeyPart::Principal);
    let is_shared = kept.shared.as_ref().is_some_and(|shared| shared.value);
    match principal {
        Some(part) if table.principal.is_none() => cx.report(
            Finding::new(
                Code::NoPrincipal,
                part.bytes.clone(),
                format!("`{}` names no principal", authorizer.name.value.0),
            )
            .related(authorizer.name.bytes.clone(), "the route's authorizer")
            .help("say which field of its answer names the caller, such as `principal = \"header.x-user\"`"),
        ),
        None if !is_shared => {
            let message = format!("one caller's answer of `{}` would be another's copy", route.text());
            let place = kept.key.as_ref().map_or(route.entry.at.bytes.clone(), |key| key.bytes.clone());
            cx.report(
                Finding::new(Code::CopiesOfEverybody, place, message)
                    .related(name.bytes.clone(), "only some callers may see it")
                    .help("add `\"principal\"` to the key, or write `shared = true` if everybody who is allowed sees the same"),
            );
        }
        Some(_) | None => {}
    }
}

/// The authorizer refuses what is beyond its own limit: a route behind it that admits more is refused there.
fn bears(route: RouteView<'_>, authorizer: AuthorizerView<'_>, cx: &mut Context<'_>) {
    let (Some(own), Some(limit)) = (&route.common().in_flight, &authorizer.table.value.in_flight) else {
        return;
    };
    let share = match () {
        () if route.optional().is_some() => ClassShare::Optional,
        () if route.is_guarded() => ClassShare::Guarded,
        () if route.may_write() => ClassShare::Effect,
        () => ClassShare::Read,
    };
    let places = share.places(limit.value.0);
    if own.value.0 > places {
        let message = format!(
            "`{}` lets {} requests in, of which `{}` is asked about {places} at once",
            route.text(),
            own.value.0,
            authorizer.name.value.0
        );
        cx.report(
            Finding::new(Code::AuthorizerBehindRoute, limit.bytes.clone(), message)
                .related(own.bytes.clone(), "the route's limit")
                .help("the rest is refused with 503 while the authorizer is slow: raise its `in_flight` to what it was measured to bear, or lower the route's"),
        );
    }
}

/// A route that names none.
fn without(route: RouteView<'_>, cx: &mut Context<'_>) {
    let is_unreadable = cx.is_unreadable(&format!("route.{}.{}.authorizer", route.text(), route.class()));
    if is_unreadable {
        return;
    }
    if route.is_guarded() {
        let message = format!("`{}` is guarded by nobody", route.text());
        cx.report(Finding::new(Code::MissingKey, route.entry.at.bytes.clone(), message).help(
            "add `authorizer = \"NAME\"` and a table `[authorizer.NAME]`, or make it a `direct` route",
        ));
    }
    let Some(kept) = route.kept() else { return };
    let key = kept.key.iter().flat_map(|key| &key.value.0);
    for part in key.filter(|part| part.value.0 == KeyPart::Principal) {
        cx.report(
            Finding::new(
                Code::NoPrincipal,
                part.bytes.clone(),
                format!("nobody says who the callers of `{}` are", route.text()),
            )
            .help("name an `authorizer`, or remove the key part"),
        );
    }
    if let Some(shared) = kept.shared.as_ref().filter(|shared| shared.value) {
        cx.report(
            Finding::new(
                Code::SharedWithoutAuthorizer,
                shared.bytes.clone(),
                "every caller shares these copies already",
            )
            .help("remove `shared`: it is for routes with an `authorizer`"),
        );
    }
}
