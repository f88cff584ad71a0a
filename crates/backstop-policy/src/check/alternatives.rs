//! Alternative dependencies: truly another one, on other resources, within what was verified.

use std::collections::HashSet;

use crate::check::addresses::destinations;
use crate::check::view::{DependencyView, RouteView};
use crate::check::{Evidence, Verified, View};
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::AlternativeTable;

pub(crate) fn check(view: &View<'_>, verified: &Verified, cx: &mut Context<'_>) {
    let mut told: Vec<&str> = Vec::new();
    for (route, evidence) in view.routes().zip(verified.of_routes()) {
        let Some(alternative) = route.alternative() else { continue };
        let Some(name) = &alternative.value.dependency else { continue };
        let Some(other) = view.dependency(&name.value) else { continue };
        if let Some(first) = view.dependency_of(route) {
            if is_same(first, other) {
                same(route, alternative, first, other, cx);
                continue;
            }
            shared(alternative, first, other, cx);
        }
        // What has expired is told already.
        if let Some(evidence) = evidence.filter(|_| verified.may_be_asked(route)) {
            route_limit(view, route, alternative, evidence, other, cx);
            if !told.contains(&other.text()) {
                told.push(other.text());
                connections(alternative, evidence, other, cx);
            }
        }
    }
}

/// The same name, or an address in common, in whatever spelling.
fn is_same(first: DependencyView<'_>, other: DependencyView<'_>) -> bool {
    let ours: HashSet<_> = first.addresses().flat_map(destinations).collect();
    first.name.value == other.name.value
        || other.addresses().flat_map(destinations).any(|theirs| ours.contains(&theirs))
}

fn same(
    route: RouteView<'_>,
    alternative: &At<AlternativeTable>,
    first: DependencyView<'_>,
    other: DependencyView<'_>,
    cx: &mut Context<'_>,
) {
    let message = if first.name.value == other.name.value {
        format!("`{}` would ask `{}` again", route.text(), first.text())
    } else {
        format!("`{}` and `{}` share an address", first.text(), other.text())
    };
    let place =
        alternative.value.dependency.as_ref().map_or(alternative.bytes.clone(), |at| at.bytes.clone());
    let finding = Finding::new(Code::SameDependency, place, message)
        .help("name a dependency that can work while the first does not; to ask the same again, use `retry`");
    cx.report(match &route.common().dependency {
        Some(asked) => finding.related(asked.bytes.clone(), "asked first"),
        None => finding,
    });
}

fn shared(
    alternative: &At<AlternativeTable>,
    first: DependencyView<'_>,
    other: DependencyView<'_>,
    cx: &mut Context<'_>,
) {
    for its in other.uses() {
        let Some(of_first) = first.uses().find(|of_first| of_first.value == its.value) else { continue };
        let message = format!("`{}` uses `{}`, as `{}` does", other.text(), its.value.0, first.text());
        let place =
            alternative.value.dependency.as_ref().map_or(alternative.bytes.clone(), |at| at.bytes.clone());
        cx.report(
            Finding::new(Code::SharedResource, place, message)
                .related(its.bytes.clone(), "used by the alternative")
                .related(of_first.bytes.clone(), "used by what is asked first")
                .help("while that resource is the cause, the alternative is not asked; one on another resource would be"),
        );
    }
}

fn route_limit(
    view: &View<'_>,
    route: RouteView<'_>,
    alternative: &At<AlternativeTable>,
    evidence: &Evidence,
    other: DependencyView<'_>,
    cx: &mut Context<'_>,
) {
    let Some(limit) = view.calls_at_once(route).filter(|limit| limit.value > evidence.concurrency) else {
        return;
    };
    let does = match limit.is_of_fill {
        true => format!("may read {} at once", limit.value),
        false => format!("lets {} requests in", limit.value),
    };
    let message = format!(
        "`{}` {does}, and `{}` was verified for {} calls at once",
        route.text(),
        other.text(),
        evidence.concurrency
    );
    cx.report(
        Finding::new(Code::AboveVerified, limit.bytes.clone(), message)
            .related(verified_place(alternative), "the evidence")
            .help(
                "the excess is never sent to the alternative: expect that, lower the limit, or measure more",
            ),
    );
}

fn connections(
    alternative: &At<AlternativeTable>,
    evidence: &Evidence,
    other: DependencyView<'_>,
    cx: &mut Context<'_>,
) {
    if other.connections() <= evidence.concurrency {
        return;
    }
    let message = format!(
        "`{}` has {} connections, and was verified for {} calls at once",
        other.text(),
        other.connections(),
        evidence.concurrency
    );
    cx.report(
        Finding::new(Code::AboveVerified, other.connections_place(), message)
            .related(verified_place(alternative), "the evidence")
            .help("set its `connections` to what was verified"),
    );
}

fn verified_place(alternative: &At<AlternativeTable>) -> std::ops::Range<usize> {
    alternative.value.verified.as_ref().map_or(alternative.bytes.clone(), |verified| verified.bytes.clone())
}
