//! Retries: one layer only, and time for both attempts.

use std::time::Duration;

use backstop_engine::retry::{BACKOFF_FIRST as BACKOFF, Owner};

use crate::check::view::RouteView;
use crate::check::{Verified, View};
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::RetryTable;

/// With less than this left, no attempt is begun.
const USEFUL: Duration = Duration::from_millis(10);

pub(crate) fn check(view: &View<'_>, verified: &Verified, cx: &mut Context<'_>) {
    for route in view.routes() {
        let Some(retry) = route.retry() else { continue };
        owner(&retry.value, cx);
        if route.retries() {
            upstream_too(view, route, retry, cx);
            time(view, verified, route, retry, cx);
        }
    }
}

fn owner(retry: &RetryTable, cx: &mut Context<'_>) {
    let (Some(owner), Some(attempts)) = (&retry.owner, &retry.attempts) else { return };
    if owner.value.0 != Owner::Backstop && attempts.value.0 > 1 {
        let message = "another layer owns retries, and two attempts here would multiply its own";
        cx.report(
            Finding::new(Code::TwoRetryLayers, attempts.bytes.clone(), message)
                .related(owner.bytes.clone(), "the layer that repeats")
                .help("leave `attempts` out, or let `owner` be `\"backstop\"` and end retries there"),
        );
    }
}

/// Another route says that the same dependency repeats what it asks for.
fn upstream_too(view: &View<'_>, route: RouteView<'_>, retry: &At<RetryTable>, cx: &mut Context<'_>) {
    let Some(dependency) = view.dependency_of(route) else { return };
    let says_so = |other: &RouteView<'_>| other.retry_owner() == Owner::Upstream;
    let same = |other: &RouteView<'_>| {
        view.dependency_of(*other).is_some_and(|its| its.name.value == dependency.name.value)
    };
    let Some(other) = view.routes().find(|other| says_so(other) && same(other)) else { return };
    let message =
        format!("`{}` repeats calls itself, and `{}` would repeat those", dependency.text(), route.text());
    let finding = Finding::new(Code::TwoRetryLayers, retry.bytes.clone(), message)
        .help("name one owner for all routes of a dependency: two layers of two attempts make four calls");
    cx.report(match other.retry().and_then(|retry| retry.value.owner.as_ref()) {
        Some(owner) => finding.related(owner.bytes.clone(), format!("`{}` says so", other.text())),
        None => finding,
    });
}

fn time(
    view: &View<'_>,
    verified: &Verified,
    route: RouteView<'_>,
    retry: &At<RetryTable>,
    cx: &mut Context<'_>,
) {
    let (Some(end), Some(all), Some(first)) =
        (route.last_end(), route.call_time(), route.first_call_time(verified))
    else {
        return;
    };
    if all.saturating_sub(first) < BACKOFF + USEFUL {
        let message = format!(
            "of {:?}, {:?} are left for a second attempt and the wait before it",
            end.value,
            all.saturating_sub(first)
        );
        cx.report(
            Finding::new(Code::ShortForTwo, retry.bytes.clone(), message)
                .related(end.bytes.clone(), "the deadline holds both")
                .help(format!("that takes {:?}: lengthen the deadline, or send it once", BACKOFF + USEFUL)),
        );
    }
    sum(view, route, retry, end.value, cx);
}

/// Phases that are written down and, one after the other, take all the time that calls have.
fn sum(
    view: &View<'_>,
    route: RouteView<'_>,
    retry: &At<RetryTable>,
    deadline: Duration,
    cx: &mut Context<'_>,
) {
    let Some(dependency) = view.dependency_of(route) else { return };
    let table = &dependency.table.value;
    let queue = table.queue.as_ref().map(|queue| ("queue", queue.value.0, queue.bytes.clone()));
    let connect = table.connect.as_ref().map(|connect| ("connect", connect.value.0, connect.bytes.clone()));
    let phases: Vec<_> = queue.into_iter().chain(connect).filter(|(_, time, _)| !time.is_zero()).collect();
    let total = phases.iter().fold(BACKOFF, |total, (_, time, _)| total.saturating_add(*time));
    if phases.is_empty() || total < deadline || phases.iter().any(|(_, time, _)| *time >= deadline) {
        return;
    }
    let message =
        format!("the first attempt may use up the deadline of `{}` before the second begins", route.text());
    let finding = Finding::new(Code::NoTimeToRetry, retry.bytes.clone(), message).help(format!(
        "with a backoff of {BACKOFF:?} that makes {total:?} of {deadline:?}: shorten them, or send it once"
    ));
    cx.report(phases.into_iter().fold(finding, |finding, (phase, time, bytes)| {
        finding.related(bytes, format!("`{phase}` may take {time:?}"))
    }));
}
