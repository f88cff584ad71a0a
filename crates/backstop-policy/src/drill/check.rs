//! What a drill file names must be in its policy, and its times must fit together.

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::drill::DrillFaultKind;
use crate::load::Loaded;
use crate::read::{At, Context};
use crate::shape::{DrillExpectTable, DrillFaultTable, DrillTable};
use crate::suggest;
use crate::value::time_text;

/// A drill sends for at most this long: what is longer is a slip.
const LONGEST_S: u64 = 3600;

pub(super) fn run(table: &DrillTable, policy: &Loaded, cx: &mut Context<'_>) {
    let duration = table.duration.as_ref();
    if let Some(duration) = duration.filter(|duration| duration.value.0.as_secs() > LONGEST_S) {
        let message = "a drill lasts at most an hour";
        cx.report(
            Finding::new(Code::OutOfRange, duration.bytes.clone(), message).help("write at most `\"1h\"`"),
        );
    }
    if let Some(load) = table.load.as_ref().filter(|load| load.value.0.is_empty()) {
        let message = "`load` asks nothing";
        cx.report(Finding::new(Code::Empty, load.bytes.clone(), message).help("name at least one request"));
    }
    for at in table.fault.iter().flat_map(|faults| &faults.value.0) {
        fault(at, policy, cx);
        if let (Some(duration), Some(to)) = (duration, &at.value.to)
            && to.value.0 > duration.value.0
        {
            let message = format!("the fault ends after the drill's {}", time_text(duration.value.0));
            cx.report(
                Finding::new(Code::OutOfRange, to.bytes.clone(), message)
                    .related(duration.bytes.clone(), "requests end then"),
            );
        }
    }
    for at in table.expect.iter().flat_map(|expects| &expects.value.0) {
        expect(at, policy, cx);
    }
}

fn fault(at: &At<DrillFaultTable>, policy: &Loaded, cx: &mut Context<'_>) {
    let table = &at.value;
    if let Some(name) = &table.dependency {
        known("dependency, authorizer or cache", &name.value.0, name.bytes.clone(), &upstreams(policy), cx);
    }
    if let (Some(from), Some(to)) = (&table.from, &table.to)
        && to.value.0 <= from.value.0
    {
        let message = "the fault ends before it begins";
        cx.report(
            Finding::new(Code::OutOfRange, to.bytes.clone(), message)
                .related(from.bytes.clone(), "it begins then"),
        );
    }
    let Some(kind) = &table.kind else { return };
    if let Some(share) = &table.share
        && share.value.0 < 1000
        && matches!(kind.value.0, DrillFaultKind::Refuse | DrillFaultKind::Full(_))
    {
        let message = "a connection is refused before anybody knows whose call it carries";
        cx.report(
            Finding::new(Code::OutOfRange, share.bytes.clone(), message)
                .help("leave `share` out, or use `reset`, which befalls single calls"),
        );
    }
    let is_cache = table
        .dependency
        .as_ref()
        .is_some_and(|name| policy.caches.iter().any(|cache| cache.name == name.value.0));
    let needs_http = !matches!(
        kind.value.0,
        DrillFaultKind::Refuse
            | DrillFaultKind::Reset
            | DrillFaultKind::Hang
            | DrillFaultKind::HangUp
            | DrillFaultKind::Slow(_)
            | DrillFaultKind::Garbage
            | DrillFaultKind::Flap(_)
            | DrillFaultKind::Full(_)
    );
    if is_cache && needs_http {
        let message = "a cache speaks no HTTP, so this cannot befall it";
        cx.report(
            Finding::new(Code::UnknownChoice, kind.bytes.clone(), message)
                .help("`refuse`, `reset`, `hang`, `hang_up`, `slow`, `garbage`, `flap` and `full` can"),
        );
    }
}

fn expect(at: &At<DrillExpectTable>, policy: &Loaded, cx: &mut Context<'_>) {
    let table = &at.value;
    if let Some(route) = &table.route {
        let routes: Vec<&str> = policy.routes.iter().map(|route| &*route.name).collect();
        known("route", &route.value.0, route.bytes.clone(), &routes, cx);
    }
    if let Some(name) = &table.dependency {
        known("dependency, authorizer or cache", &name.value.0, name.bytes.clone(), &upstreams(policy), cx);
    }
    let counts = table.calls.is_some() || table.calls_per_second.is_some();
    if counts && table.dependency.is_none() {
        let message = "calls are counted of a dependency, and none is named";
        cx.report(Finding::new(Code::MissingKey, at.bytes.clone(), message).help("add `dependency`"));
    }
    if let Some(outcome) = &table.outcome {
        for word in &outcome.value.0 {
            known(
                "outcome",
                &word.value.0,
                word.bytes.clone(),
                &["normal", "fallback", "rejected", "failed"],
                cx,
            );
        }
    }
    let selects =
        table.status.is_some() || table.outcome.is_some() || table.source.is_some() || table.reason.is_some();
    let holds = counts || table.max_age.is_some() || table.latency.is_some() || table.recovered_by.is_some();
    if !selects && !holds {
        let message = "this expects nothing";
        cx.report(Finding::new(Code::AtLeastOne, at.bytes.clone(), message).help(
            "name what answers must be (`status`, `outcome`, `source`, `reason`), or `max_age`, `latency`, `calls`, `calls_per_second` or `recovered_by`",
        ));
    }
}

/// The names of everything that a policy calls.
fn upstreams(policy: &Loaded) -> Vec<&str> {
    let dependencies = policy.dependencies.iter().map(|dependency| &*dependency.name);
    dependencies.chain(policy.caches.iter().map(|cache| &*cache.name)).collect()
}

fn known(what: &str, name: &str, bytes: std::ops::Range<usize>, all: &[&str], cx: &mut Context<'_>) {
    if all.contains(&name) {
        return;
    }
    let finding = Finding::new(Code::UnknownReference, bytes.clone(), format!("there is no {what} `{name}`"));
    cx.report(match suggest::closest(name, all.iter().copied()) {
        Some(close) => finding.help(format!("did you mean `{close}`?")).fix(bytes, format!("\"{close}\"")),
        None => finding.help(format!("there are {}", suggest::listed(all.iter().copied()))),
    });
}
