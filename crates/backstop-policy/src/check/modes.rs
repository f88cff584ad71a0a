//! What can only be observed, and what cannot.
//!
//! A route that observes forwards every request as if nothing were decided. Where that would let somebody in, send
//! something twice, or where no dependency could answer in its place, the route has to say `enforce`.

use backstop_engine::policy::Mode;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::value::ModeChoice;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    let general = view.gateway().and_then(|gateway| gateway.mode.as_ref());
    for route in view.routes() {
        if view.mode_of(route) == Mode::Observe
            && let Some(why) = not_observed(route)
        {
            cx.report(refused(route, general, why));
        }
        parts(view, route, cx);
    }
    for mode in view.routes().filter_map(|route| route.common().mode.as_ref()).chain(general) {
        if mode.value.0 == Mode::Observe {
            let message = "nothing that is decided is carried out: requests are forwarded, and what would have been is counted";
            cx.report(Finding::new(Code::Observed, mode.bytes.clone(), message).help(
                "once the status page shows what you expect, write `enforce` route by route, then for all",
            ));
        }
    }
}

/// Why a route cannot be observed, and what it would mean.
fn not_observed(route: RouteView<'_>) -> Option<&'static str> {
    match route.class() {
        "guarded" => Some("callers who are not allowed would come in"),
        "effect" => Some("what must happen once would be forwarded each time"),
        "composed" => Some("no dependency has the whole, so there is nothing to forward instead"),
        "cached_read" => Some("what the shared cache would have answered is not known without asking it"),
        _ if route.common().authorizer.is_some() => Some("callers who are not allowed would come in"),
        _ => None,
    }
}

fn refused(route: RouteView<'_>, general: Option<&At<ModeChoice>>, why: &str) -> Finding {
    let (own, message) =
        (route.common().mode.as_ref(), format!("`{}` cannot be observed only: {why}", route.text()));
    let finding = match own {
        Some(own) => Finding::new(Code::NotObserved, own.bytes.clone(), message),
        None => Finding::new(Code::NotObserved, route.name.bytes.clone(), message),
    };
    let finding = match general.filter(|_| own.is_none()) {
        Some(general) => {
            finding.related(general.bytes.clone(), "for every route that says nothing of its own")
        }
        None => finding,
    };
    finding
        .help("write `mode = \"enforce\"` in this route, or leave the route to a catch-all without its class")
}

/// Parts are asked for under their own routes, whose decisions the whole is made of.
fn parts(view: &View<'_>, route: RouteView<'_>, cx: &mut Context<'_>) {
    let parts = route.composed().and_then(|table| table.parts.as_ref());
    for part in parts.into_iter().flat_map(|parts| &parts.value.0) {
        let Some(name) = &part.value.route else { continue };
        let Some(asked) = view.route(&name.value.0) else { continue };
        if view.mode_of(asked) != Mode::Observe || not_observed(asked).is_some() {
            continue;
        }
        let message = format!("`{}` is a part of `{}`, and is observed only", asked.text(), route.text());
        let place = asked.common().mode.as_ref().map_or(asked.name.bytes.clone(), |mode| mode.bytes.clone());
        cx.report(
            Finding::new(Code::PartObserved, name.bytes.clone(), message).related(place, "observed").help(
                "the whole is made of what is decided about its parts: write `mode = \"enforce\"` there",
            ),
        );
    }
}
