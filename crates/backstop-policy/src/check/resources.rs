//! What dependencies share.

use crate::check::View;
use crate::check::view::ResourceView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::value::Name;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for resource in view.resources() {
        limited(resource, cx);
        whole_rate(resource, cx);
        connections(view, resource, cx);
    }
}

/// The engine counts per second: another number than the written one is never put into force.
fn whole_rate(resource: ResourceView<'_>, cx: &mut Context<'_>) {
    let Some(rate) = resource.table.value.rate.as_ref().filter(|rate| !rate.value.is_whole_per_second())
    else {
        return;
    };
    let message = "a rate that is not a whole number per second: not available in this version";
    cx.report(
        Finding::new(Code::NotAvailable, rate.bytes.clone(), message)
            .help("write it per second, such as `\"2/s\"`, or as a multiple of `\"60/m\"`"),
    );
}

fn limited(resource: ResourceView<'_>, cx: &mut Context<'_>) {
    let table = &resource.table.value;
    let name = &resource.name.value.0;
    let is_unreadable = |key| cx.is_unreadable(&format!("resource.{name}.{key}"));
    let is_written = table.concurrency.is_some() || table.rate.is_some();
    if !is_written && !["concurrency", "rate"].into_iter().any(is_unreadable) {
        let message = format!("nothing limits the resource `{name}`");
        cx.report(
            Finding::new(Code::AtLeastOne, resource.table.bytes.clone(), message)
                .help("add `concurrency`, `rate` or both: how much it bears beside what others ask of it"),
        );
    }
}

fn connections(view: &View<'_>, resource: ResourceView<'_>, cx: &mut Context<'_>) {
    let Some(limit) = &resource.table.value.concurrency else { return };
    let uses = |name: &&At<Name>| name.value == resource.name.value;
    let users: Vec<_> =
        view.dependencies().filter(|dependency| dependency.uses().any(|name| uses(&name))).collect();
    let sum: u64 = users.iter().map(|dependency| u64::from(dependency.connections())).sum();
    if sum <= u64::from(limit.value.0) {
        return;
    }
    let message = format!(
        "dependencies may open {sum} connections, and `{}` bears {} calls at once",
        resource.name.value.0, limit.value.0
    );
    let finding = Finding::new(Code::ConnectionsAboveResource, limit.bytes.clone(), message)
        .help("calls beyond it are refused (`resource_full`): expect that, or lower the connections");
    cx.report(users.iter().fold(finding, |finding, dependency| {
        let says = format!("{} of `{}`", dependency.connections(), dependency.text());
        finding.related(dependency.connections_place(), says)
    }));
}
