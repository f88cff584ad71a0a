//! Names that stand for something defined elsewhere.

use std::ops::Range;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::suggest;
use crate::value::Name;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    let dependencies: Vec<_> = view.dependency_names().collect();
    let resources: Vec<_> = view.resource_names().collect();
    let routes: Vec<_> = view.route_names().collect();
    for name in view.dependencies().flat_map(|dependency| dependency.uses()) {
        if !resources.contains(&&*name.value.0) {
            cx.report(unknown("resource", &name.value, name.bytes.clone(), &resources, cx.has_room()));
        }
    }
    for route in view.routes() {
        let alternative = route.alternative().and_then(|alternative| alternative.value.dependency.as_ref());
        for name in route.common().dependency.iter().chain(alternative) {
            if !dependencies.contains(&&*name.value.0) {
                cx.report(unknown(
                    "dependency",
                    &name.value,
                    name.bytes.clone(),
                    &dependencies,
                    cx.has_room(),
                ));
            }
        }
        let Some(withdraws) = route.withdraws() else { continue };
        for name in &withdraws.value.0 {
            if routes.contains(&&*name.value.0) {
                keeps_copies(view, name, cx);
            } else {
                cx.report(unknown("route", &name.value, name.bytes.clone(), &routes, cx.has_room()));
            }
        }
        writes(route, withdraws.bytes.clone(), cx);
    }
}

pub(crate) fn unknown(
    kind: &str,
    name: &Name,
    bytes: Range<usize>,
    known: &[&str],
    has_room: bool,
) -> Finding {
    let finding =
        Finding::new(Code::UnknownReference, bytes.clone(), format!("no {kind} is named `{}`", name.0));
    if !has_room {
        return finding;
    }
    match suggest::closest(&name.0, known.iter().copied()) {
        Some(close) => finding.help(format!("did you mean `{close}`?")).fix(bytes, format!("\"{close}\"")),
        None if known.is_empty() => finding.help(format!("define it in `[{kind}.{}]`", name.0)),
        None => finding.help(format!("defined: {}", suggest::listed(known.iter().copied()))),
    }
}

fn keeps_copies(view: &View<'_>, name: &At<Name>, cx: &mut Context<'_>) {
    let Some(target) = view.route(&name.value.0) else { return };
    if target.kept().is_none() {
        let message = format!("the route `{}` keeps no copies that could be withdrawn", name.value.0);
        cx.report(
            Finding::new(Code::NoCopies, name.bytes.clone(), message)
                .related(target.entry.at.bytes.clone(), "its class keeps none")
                .help("name routes of the class `public_read`, or `cached_read`"),
        );
    }
}

fn writes(route: RouteView<'_>, bytes: Range<usize>, cx: &mut Context<'_>) {
    let matches = route.matches();
    if !matches.is_empty() && !matches.iter().any(|rule| rule.value.method.may_write()) {
        let message = format!("the route `{}` never writes, so it never withdraws anything", route.text());
        cx.report(
            Finding::new(Code::WithdrawsOnRead, bytes, message)
                .help("put `withdraws` on the route that writes (PUT, POST, PATCH, DELETE)"),
        );
    }
}
