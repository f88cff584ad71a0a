//! Breakers: whether they can open, see what is slow, and close again.

use std::time::Duration;

use crate::check::view::{DependencyView, RouteView};
use crate::check::{Verified, View};
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::BreakerTable;
use crate::value::Method;

pub(crate) fn check(view: &View<'_>, verified: &Verified, cx: &mut Context<'_>) {
    for dependency in view.dependencies() {
        probe(dependency, cx);
        let Some(breaker) = &dependency.table.value.breaker else { continue };
        pause(&breaker.value, default::OPEN, cx);
        probes(dependency, &breaker.value, cx);
        closes(view, dependency, breaker, cx);
        minimum(view, verified, dependency, breaker, cx);
        slow(view, verified, dependency, &breaker.value, cx);
        slow_by_default(view, dependency, breaker, cx);
    }
}

fn probe(dependency: DependencyView<'_>, cx: &mut Context<'_>) {
    let Some(probe) = &dependency.table.value.probe else { return };
    if dependency.table.value.breaker.is_none() {
        let message = format!("`{}` has no breaker that could use this probe", dependency.text());
        cx.report(
            Finding::new(Code::ProbeWithoutBreaker, probe.bytes.clone(), message).help(
                "add a `breaker`, or remove the probe: while there is no breaker, every request is sent",
            ),
        );
    }
    let (timeout, interval) = (&probe.value.timeout, &probe.value.interval);
    let longest = timeout.as_ref().map_or(default::PROBE_TIMEOUT, |timeout| timeout.value.0);
    let every = interval.as_ref().map_or(default::PROBE_INTERVAL, |interval| interval.value.0);
    if longest > every {
        let place = timeout.as_ref().or(interval.as_ref()).map_or(probe.bytes.clone(), |at| at.bytes.clone());
        let message = format!("a probe may take {longest:?}, and the next one is due after {every:?}");
        cx.report(
            Finding::new(Code::ProbesOverlap, place, message)
                .help("make `timeout` at most `interval`: probes are never sent on top of each other"),
        );
    }
}

/// `by_default` is the first pause of one that says nothing about it.
pub(super) fn pause(breaker: &BreakerTable, by_default: Duration, cx: &mut Context<'_>) {
    let Some(longest) = &breaker.open_max else { return };
    let first = breaker.open.as_ref().map_or(by_default, |open| open.value.0);
    if longest.value.0 < first {
        let message = format!("the first pause is {first:?}, the longest only {:?}", longest.value.0);
        let finding = Finding::new(Code::OpenMaxTooShort, longest.bytes.clone(), message)
            .help("make `open_max` at least `open`");
        cx.report(match &breaker.open {
            Some(open) => finding.related(open.bytes.clone(), "the first pause"),
            None => finding,
        });
    }
}

fn probes(dependency: DependencyView<'_>, breaker: &BreakerTable, cx: &mut Context<'_>) {
    let probes = breaker.probes.as_ref().map_or(default::PROBES, |probes| probes.value.0);
    if probes <= dependency.connections() {
        return;
    }
    let place = breaker.probes.as_ref().map_or(dependency.connections_place(), |probes| probes.bytes.clone());
    let message = format!(
        "{probes} probes may go to `{}` at once, and it has {} connections",
        dependency.text(),
        dependency.connections()
    );
    cx.report(
        Finding::new(Code::ProbesAboveConnections, place, message)
            .help("lower `probes`: those without a connection are refused and prove nothing"),
    );
}

/// Whether a request may ever find out that the dependency works again.
fn closes(view: &View<'_>, dependency: DependencyView<'_>, breaker: &At<BreakerTable>, cx: &mut Context<'_>) {
    let reads = |method: &Method| method.only_reads() || *method == Method::Any;
    let mut rules = view.callers(dependency).flat_map(|route| route.matches()).peekable();
    let has_probe = dependency.table.value.probe.is_some() || dependency.is_unreadable("probe", cx);
    if has_probe || rules.peek().is_none() {
        return;
    }
    let written = rules.clone().next().map(|rule| rule.bytes.clone());
    if rules.any(|rule| reads(&rule.value.method)) {
        return;
    }
    let message = format!("once open, the breaker of `{}` can never close", dependency.text());
    let finding = Finding::new(Code::ProbesNeverGo, breaker.bytes.clone(), message).help(
        "add `probe = { path = \"/healthz\" }`: only reads may find out whether it works again, and no route sends it any",
    );
    cx.report(match written {
        Some(written) => finding.related(written, "not a read"),
        None => finding,
    });
}

/// While the dependency hangs, a place is taken for as long as a call may take, so that at most `window / time`, rounded
/// up, of its calls end in a window; and there are as many places as the routes may ask from, or as there are connections.
fn minimum(
    view: &View<'_>,
    verified: &Verified,
    dependency: DependencyView<'_>,
    breaker: &At<BreakerTable>,
    cx: &mut Context<'_>,
) {
    let table = &breaker.value;
    let window = table.window.as_ref().map_or(default::WINDOW, |window| window.value.0);
    let minimum = table.min_calls.as_ref().map_or(default::MIN_CALLS, |calls| calls.value.0);
    let ends = |time: Duration| window.as_nanos().div_ceil(time.as_nanos().max(1));
    let callers = view.may_ask(dependency, verified);
    let times = callers
        .clone()
        .filter_map(|route| Some((view.calls_at_once(route)?.value, route.time_at(dependency, verified)?)));
    let Some(shortest) = times.clone().map(|(_, time)| time).min() else { return };
    if times.clone().count() < callers.count() {
        return;
    }
    let by_routes: u128 = times.map(|(places, time)| u128::from(places).saturating_mul(ends(time))).sum();
    let by_connections = u128::from(dependency.connections()).saturating_mul(ends(shortest));
    let most = by_routes.min(by_connections);
    if u128::from(minimum) <= most {
        return;
    }
    let place = table.min_calls.as_ref().map_or(breaker.bytes.clone(), |calls| calls.bytes.clone());
    let message = format!(
        "while `{}` hangs, at most {most} calls end in {window:?}: fewer than the {minimum} that the breaker waits for",
        dependency.text()
    );
    cx.report(Finding::new(Code::UnreachableMinimum, place, message).help(
        "lower `min_calls` or lengthen `window`; the routes' limits and deadlines allow no more calls",
    ));
}

/// By default half of the shortest deadline is slow, for all who ask: a route that may take four times as long would have most of
/// its calls counted as slow.
fn slow_by_default(
    view: &View<'_>,
    dependency: DependencyView<'_>,
    breaker: &At<BreakerTable>,
    cx: &mut Context<'_>,
) {
    if breaker.value.slow.is_some() {
        return;
    }
    let deadlines = || {
        let of = |route: RouteView<'_>| {
            let end = route.last_end()?;
            Some((route.text().to_owned(), end.value, end.bytes))
        };
        view.callers(dependency).filter_map(of)
    };
    let (Some(shortest), Some(longest)) =
        (deadlines().min_by_key(|(_, time, _)| *time), deadlines().max_by_key(|(_, time, _)| *time))
    else {
        return;
    };
    if longest.1 <= shortest.1 * 4 {
        return;
    }
    let message = format!(
        "a call of `{}` counts as slow after {:?}, and it may take {:?}",
        longest.0,
        view.slow(dependency),
        longest.1
    );
    cx.report(
        Finding::new(Code::SlowByTheShortest, breaker.bytes.clone(), message)
            .related(shortest.2, format!("half of the deadline of `{}`, the shortest", shortest.0))
            .help("write `slow`, with the whole answer in mind, or give one of the routes a dependency of its own"),
    );
}

fn slow(
    view: &View<'_>,
    verified: &Verified,
    dependency: DependencyView<'_>,
    breaker: &BreakerTable,
    cx: &mut Context<'_>,
) {
    let Some(slow) = &breaker.slow else { return };
    let callers: Vec<_> = view
        .may_ask(dependency, verified)
        .filter_map(|route| Some((route, route.time_at(dependency, verified)?, route.last_end()?)))
        .collect();
    let blind: Vec<_> = callers.iter().filter(|(_, time, _)| slow.value.0 >= *time).collect();
    if blind.is_empty() {
        return;
    }
    if blind.len() == callers.len() {
        let message = format!("no call of `{}` ever lasts {:?}", dependency.text(), slow.value.0);
        let finding = Finding::new(Code::SlowNeverSeen, slow.bytes.clone(), message)
            .help("shorten `slow`, or leave it out: what is cut off earlier says nothing about slowness");
        cx.report(blind.iter().fold(finding, |finding, (route, time, end)| {
            finding
                .related(end.bytes.clone(), format!("cuts a call of `{}` off after {time:?}", route.text()))
        }));
        return;
    }
    for (route, time, end) in blind {
        let message =
            format!("a call of `{}` is cut off after {time:?}, before it counts as slow", route.text());
        cx.report(
            Finding::new(Code::SlowOfRouteNotSeen, slow.bytes.clone(), message)
                .related(end.bytes.clone(), "by this deadline, less what is reserved")
                .help("shorten `slow`, or give this route a dependency of its own"),
        );
    }
}
