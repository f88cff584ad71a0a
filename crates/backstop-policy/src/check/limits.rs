//! Lints on limits: which of them never acts, and who may crowd out whom.

use backstop_engine::resource::ClassShare;

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Context;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for route in view.routes() {
        above_process(view, route, cx);
        above_connections(view, route, cx);
        optional_neighbour(view, route, cx);
        separate_lane(route, cx);
    }
    optional_share(view, cx);
    one_connection(view, cx);
    unmeasured(view, cx);
}

fn above_process(view: &View<'_>, route: RouteView<'_>, cx: &mut Context<'_>) {
    let Some(process) = view.gateway().and_then(|gateway| gateway.in_flight.as_ref()) else { return };
    let Some(own) = &route.common().in_flight else { return };
    let share = share(route).places(process.value.0);
    if own.value.0 > share {
        let message = format!("the process refuses before the route `{}` reaches its limit", route.text());
        let label = match share == process.value.0 {
            true => "the limit of the whole process".to_owned(),
            false => format!("the limit of the whole process, of which its class may take {share}"),
        };
        cx.report(
            Finding::new(Code::RouteAboveProcess, own.bytes.clone(), message)
                .related(process.bytes.clone(), label)
                .help("lower the route's limit: one route alone should not fill the process"),
        );
    }
}

/// The share of the process and of connections that the most favoured of a route's requests has.
fn share(route: RouteView<'_>) -> ClassShare {
    match () {
        () if route.optional().is_some() => ClassShare::Optional,
        () if route.is_guarded() => ClassShare::Guarded,
        () if !route.may_write() => ClassShare::Read,
        () => ClassShare::Effect,
    }
}

fn optional_share(view: &View<'_>, cx: &mut Context<'_>) {
    let Some(process) = view.gateway().and_then(|gateway| gateway.in_flight.as_ref()) else { return };
    let optional = view.routes().filter(|route| route.optional().is_some());
    let sum: u64 = optional.filter_map(|route| route.in_flight()).map(u64::from).sum();
    let sum = sum.min(ClassShare::Optional.places(process.value.0).into());
    if sum * 2 > u64::from(process.value.0) {
        let message = format!("optional routes may take {sum} of the {} requests in flight", process.value.0);
        cx.report(
            Finding::new(Code::OptionalShare, process.bytes.clone(), message)
                .help("keep their sum below half, so that main reads never wait behind what can be left out"),
        );
    }
}

fn above_connections(view: &View<'_>, route: RouteView<'_>, cx: &mut Context<'_>) {
    let (Some(own), Some(dependency)) = (&route.common().in_flight, view.dependency_of(route)) else {
        return;
    };
    let waits = dependency.table.value.queue.as_ref().is_some_and(|queue| !queue.value.0.is_zero());
    // What an operation is worth is known; a `direct` route also has requests that only read.
    let of_class = if route.effect().is_some() { ClassShare::Effect } else { ClassShare::Read };
    let share = of_class.places(dependency.connections());
    if !route.may_write() || waits || own.value.0 <= share {
        return;
    }
    let for_reads = match own.value.0 <= dependency.connections() {
        true => format!(", {share} of them for reads,"),
        false => String::new(),
    };
    let message = format!(
        "`{}` lets {} requests in, but `{}` has {} connections{for_reads} and no queue",
        route.text(),
        own.value.0,
        dependency.name.value.0,
        dependency.connections()
    );
    cx.report(
        Finding::new(Code::FewConnections, own.bytes.clone(), message)
            .related(dependency.connections_place(), "the dependency's connections")
            .help("lower the route's limit, or give the dependency a bounded `queue`"),
    );
}

fn optional_neighbour(view: &View<'_>, route: RouteView<'_>, cx: &mut Context<'_>) {
    if route.optional().is_none() {
        return;
    }
    let (Some(own), Some(dependency)) = (&route.common().in_flight, view.dependency_of(route)) else {
        return;
    };
    let shares = |other: &RouteView<'_>| {
        other.optional().is_none()
            && view.dependency_of(*other).is_some_and(|d| d.name.value == dependency.name.value)
    };
    let share = ClassShare::Optional.places(dependency.connections());
    let Some(neighbour) = view.routes().find(shares).filter(|_| own.value.0 >= share) else { return };
    let message = format!(
        "`{}` may take {share} of the {} connections of `{}`, which `{}` needs",
        route.text(),
        dependency.connections(),
        dependency.name.value.0,
        neighbour.text()
    );
    cx.report(
        Finding::new(Code::OptionalNeighbour, own.bytes.clone(), message)
            .related(neighbour.entry.at.bytes.clone(), "a main route of the same dependency")
            .help("lower the optional route's limit well below the connections"),
    );
}

fn one_connection(view: &View<'_>, cx: &mut Context<'_>) {
    for dependency in view.dependencies() {
        let Some(connections) = dependency.table.value.connections.as_ref().filter(|c| c.value.0 == 1) else {
            continue;
        };
        let message = format!("`{}` is called over a single connection", dependency.name.value.0);
        cx.report(
            Finding::new(Code::OneConnection, connections.bytes.clone(), message)
                .help("one slow or abandoned call refuses everything else until it ends; use a few"),
        );
    }
}

fn separate_lane(route: RouteView<'_>, cx: &mut Context<'_>) {
    let lane = match (route.kept(), route.optional()) {
        // Without a copy of its own it has nothing to answer with there.
        (Some(_), _) if route.max_age().is_none() => None,
        (Some(read), _) => read.fallback_in_flight.as_ref(),
        (_, Some(optional)) => optional.fallback_in_flight.as_ref(),
        _ => None,
    };
    if let Some(lane) = lane {
        let message =
            format!("`{}` answers up to {} more requests than its `in_flight`", route.text(), lane.value.0);
        cx.report(
            Finding::new(Code::SeparateLane, lane.bytes.clone(), message)
                .help("count them in what the process and its clients can bear"),
        );
    }
}

fn unmeasured(view: &View<'_>, cx: &mut Context<'_>) {
    let Some(first) = view.routes().next() else { return };
    let each = view.routes().map(|route| {
        let ttl = if route.cached_read().is_some() { ", ttl" } else { "" };
        let max_age = if route.max_age().is_some() { ", max_age" } else { "" };
        format!("`{}` (deadline, in_flight{ttl}{max_age})", route.text())
    });
    let listed = each.collect::<Vec<_>>().join(", ");
    cx.report(
        Finding::new(Code::Unmeasured, first.entry.at.bytes.clone(), "no drill has measured these limits")
            .help(format!("rehearse a failure of each dependency before you rely on them: {listed}")),
    );
}
