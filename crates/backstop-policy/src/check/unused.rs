//! Lints on what has no effect, and on a store that does not last.

use crate::check::View;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Context;

const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    resources(view, cx);
    dependencies(view, cx);
    declared(view, cx);
    store(view, cx);
    instances(view, cx);
}

fn instances(view: &View<'_>, cx: &mut Context<'_>) {
    let Some(instances) = view.gateway().and_then(|gateway| gateway.instances.as_ref()) else { return };
    let is_divided = view.resources().any(|resource| resource.table.value.rate.is_some());
    if instances.value.0 > 1 && !is_divided {
        let message = "no resource has a `rate` that could be divided among the gateways";
        cx.report(
            Finding::new(Code::UnusedInstances, instances.bytes.clone(), message)
                .help("give what they share a `rate`, or leave `instances` out"),
        );
    }
}

fn resources(view: &View<'_>, cx: &mut Context<'_>) {
    for resource in view.resources() {
        let mut used = view.dependencies().flat_map(|dependency| dependency.uses());
        if !used.any(|name| name.value == resource.name.value) {
            let message = format!("no dependency uses the resource `{}`", resource.name.value.0);
            cx.report(
                Finding::new(Code::UnusedResource, resource.name.bytes.clone(), message)
                    .help("name it in `uses` of the dependencies whose calls take it up, or remove it"),
            );
        }
    }
}

fn dependencies(view: &View<'_>, cx: &mut Context<'_>) {
    for dependency in view.dependencies() {
        if view.callers(dependency).next().is_none() {
            let message = format!("no route uses the dependency `{}`", dependency.name.value.0);
            cx.report(
                Finding::new(Code::UnusedDependency, dependency.name.bytes.clone(), message)
                    .help("remove it"),
            );
        }
    }
}

fn declared(view: &View<'_>, cx: &mut Context<'_>) {
    for status in
        view.routes().filter_map(|route| route.common().declared.as_ref()).flat_map(|list| &list.value.0)
    {
        if matches!(status.value.0, 502..=504) {
            let message = format!("{} is a failure without being declared", status.value.0);
            cx.report(
                Finding::new(Code::RedundantDeclared, status.bytes.clone(), message).help("leave it out"),
            );
        }
    }
}

fn store(view: &View<'_>, cx: &mut Context<'_>) {
    let Some(store) = view.store() else { return };
    if let Some(ledger) = store.ledger.as_ref().filter(|_| !view.has_effects()) {
        cx.report(
            Finding::new(Code::UnusedLedger, ledger.bytes.clone(), "no route writes operations")
                .help("leave it out until a route of the class `effect` needs it"),
        );
    }
    if let Some(path) = &store.path {
        let below = |folder: &&str| {
            path.value.0.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if TEMPORARY.iter().any(below) {
            let lost = if view.has_effects() { "the copies and the operations" } else { "the copies" };
            let message = format!("`{}` may be emptied at any restart, and {lost} with it", path.value.0);
            cx.report(
                Finding::new(Code::TemporaryStore, path.bytes.clone(), message)
                    .help("use a folder that lasts, such as `/var/lib/backstop`, or `disk = \"0\"` to keep copies in memory"),
            );
        }
    }
}
