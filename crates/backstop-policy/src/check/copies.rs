//! Rules on copies: those that nothing can satisfy, those that are missing, and risks that are taken.

use std::time::Duration;

use backstop_engine::policy::{AfterRestart, Incorrect};

use crate::check::View;
use crate::check::view::RouteView;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Context;
use crate::shape::KeptTable;
use crate::value::is_json;

const LONG_AGE: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    let reads: Vec<_> = view.routes().filter(|route| route.kept().is_some()).collect();
    for route in view.routes() {
        if let Some(read) = route.kept() {
            missing_rules(route, read, cx);
            not_json(read, cx);
            risks(route, read, cx);
        }
        same_target_only(&reads, route, cx);
    }
}

/// Whether a rule looks at more than completeness.
fn has_rule(read: &KeptTable) -> bool {
    read.correct.as_ref().is_some_and(|correct| {
        let correct = &correct.value;
        correct.media_type.is_some()
            || correct.has.as_ref().is_some_and(|has| !has.value.0.is_empty())
            || correct.echo.as_ref().is_some_and(|echo| !echo.value.entries.is_empty())
    })
}

fn missing_rules(route: RouteView<'_>, read: &KeptTable, cx: &mut Context<'_>) {
    let place = route.entry.at.bytes.clone();
    if !has_rule(read) {
        let message = format!(
            "any complete answer of `{}` becomes its copy, an error page with status 200 too",
            route.text()
        );
        cx.report(Finding::new(Code::NoCorrect, place.clone(), message).help(
            "say what is correct, such as `correct = { type = \"application/json\", has = [\"/id\"] }`",
        ));
        if let Some(incorrect) =
            read.incorrect.as_ref().filter(|incorrect| incorrect.value.0 == Incorrect::Fallback)
        {
            cx.report(
                Finding::new(
                    Code::IncorrectWithoutRule,
                    incorrect.bytes.clone(),
                    "no rule of `correct` could fail",
                )
                .help("add a rule to `correct`, or remove `incorrect`"),
            );
        }
    }
    if read.key.is_none() {
        let message = format!("every caller of one URL of `{}` shares a copy", route.text());
        cx.report(
            Finding::new(Code::KeyNotStated, place, message).help(
                "add what answers depend on (tenant, language), or write `key = []` to say: nothing more",
            ),
        );
    }
}

/// Rules that look into JSON, where the media type is another: nothing would ever be correct.
fn not_json(read: &KeptTable, cx: &mut Context<'_>) {
    let Some(correct) = read.correct.as_ref().map(|correct| &correct.value) else { return };
    let Some(media_type) = correct.media_type.as_ref().filter(|given| !is_json(&given.value.0)) else {
        return;
    };
    let has = correct.has.as_ref().filter(|has| !has.value.0.is_empty());
    let echo = correct.echo.as_ref().filter(|echo| !echo.value.entries.is_empty());
    let rules = has.map(|has| ("has", &has.bytes)).into_iter().chain(echo.map(|echo| ("echo", &echo.bytes)));
    for (rule, bytes) in rules {
        let message = format!("`{rule}` looks into JSON, and `{}` is none", media_type.value.0);
        cx.report(
            Finding::new(Code::NotJson, bytes.clone(), message)
                .related(media_type.bytes.clone(), "no answer of this type would be correct")
                .help(format!("remove `{rule}`, or ask for `application/json`")),
        );
    }
}

fn risks(route: RouteView<'_>, read: &KeptTable, cx: &mut Context<'_>) {
    if let Some(place) = read.override_origin.as_ref().filter(|override_origin| override_origin.value) {
        let message = "copies are served although the origin may forbid old ones";
        cx.report(
            Finding::new(Code::OverrideOrigin, place.bytes.clone(), message)
                .help("better let the origin grant it: `Backstop-Cache-Control: stale-if-error=60`"),
        );
    }
    if let Some(place) = read.after_restart.as_ref().filter(|trust| trust.value.0 == AfterRestart::Trust) {
        let message = "after a reboot, ages are computed from a clock that may be wrong";
        cx.report(
            Finding::new(Code::TrustClock, place.bytes.clone(), message)
                .help("run a time service and keep `verify`, unless this machine cannot have one"),
        );
    }
    let ttl = route.cached_read().and_then(|cached| cached.cache.as_ref()?.value.ttl.as_ref());
    for (age, message) in [
        (route.max_age(), "copies of more than a day may be served"),
        (ttl, "the cache may give answers of more than a day"),
    ] {
        let Some(age) = age.filter(|age| age.value.0 > LONG_AGE) else { continue };
        cx.report(
            Finding::new(Code::LongMaxAge, age.bytes.clone(), message)
                .help("ask whoever owns this data how old an answer may be before it does harm"),
        );
    }
}

/// A write on the path of a public read, without `withdraws`.
fn same_target_only(reads: &[RouteView<'_>], route: RouteView<'_>, cx: &mut Context<'_>) {
    if !route.may_write() {
        return;
    }
    let withdraws = || route.withdraws().into_iter().flat_map(|withdraws| &withdraws.value.0);
    for read in reads {
        let shares = |template| read.matches().iter().find(|rule| rule.value.template.same_shape(template));
        let mut writes = route.matches().iter().filter(|rule| rule.value.method.may_write());
        let Some((write, shared)) = writes.find_map(|rule| Some((rule, shares(&rule.value.template)?)))
        else {
            continue;
        };
        if withdraws().any(|name| *name.value.0 == *read.text()) {
            continue;
        }
        let message = format!("a write withdraws the copies of `{}` for its own path only", read.text());
        cx.report(
            Finding::new(Code::SameTargetOnly, write.bytes.clone(), message)
                .related(shared.bytes.clone(), "read here")
                .help(format!(
                    "if it changes what other paths show, add `withdraws = [\"{}\"]`",
                    read.text()
                )),
        );
    }
}
