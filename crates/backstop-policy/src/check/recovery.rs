//! Recovery: only behind a breaker, upwards on green, and with bands in their order.

use std::time::Duration;

use crate::check::View;
use crate::check::view::DependencyView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::read::{At, Context};
use crate::shape::{GreenTable, RecoveryTable, RedTable};
use crate::value::{Factor, Percent, PositiveTime, factor_text, percent_text};

const ONE: u32 = 1000;

pub(crate) fn check(view: &View<'_>, cx: &mut Context<'_>) {
    for dependency in view.dependencies() {
        let Some(recovery) = &dependency.table.value.recovery else { continue };
        behind_breaker(dependency, recovery, cx);
        steps(&recovery.value, cx);
        bands(dependency, &recovery.value, cx);
    }
}

fn behind_breaker(dependency: DependencyView<'_>, recovery: &At<RecoveryTable>, cx: &mut Context<'_>) {
    if dependency.table.value.breaker.is_none() && !dependency.is_unreadable("breaker", cx) {
        let message = format!("`{}` has no breaker to recover from", dependency.text());
        cx.report(
            Finding::new(Code::RecoveryWithoutBreaker, recovery.bytes.clone(), message)
                .help("add `breaker = {}` (every default), or remove `recovery`"),
        );
    }
}

fn steps(recovery: &RecoveryTable, cx: &mut Context<'_>) {
    if let Some(up) = recovery.up.as_ref().filter(|up| up.value.0 <= ONE) {
        let message = format!("`up` is {}, so the rate never grows", factor_text(up.value.0));
        cx.report(
            Finding::new(Code::StepDirection, up.bytes.clone(), message)
                .help("write more than 1, such as `1.5`: it is multiplied after every green tick"),
        );
    }
    if let Some(back) = recovery.back.as_ref().filter(|back| back.value.0 >= ONE) {
        let message = format!("`back` is {}, so the rate never shrinks", factor_text(back.value.0));
        cx.report(
            Finding::new(Code::StepDirection, back.bytes.clone(), message)
                .help("write less than 1, such as `0.7`: it is multiplied on red"),
        );
    }
}

fn bands(dependency: DependencyView<'_>, recovery: &RecoveryTable, cx: &mut Context<'_>) {
    let green = recovery.green.as_ref().map(|green| &green.value);
    let red = recovery.red.as_ref().map(|red| &red.value);
    let pair = |of_green: fn(&GreenTable) -> Option<&At<Percent>>,
                of_red: fn(&RedTable) -> Option<&At<Percent>>| {
        (green.and_then(of_green), red.and_then(of_red))
    };
    let by_default = (default::GREEN, default::RED);
    let percent = |at: &Percent| at.0;
    let errors = pair(|green| green.errors.as_ref(), |red| red.errors.as_ref());
    order(
        dependency,
        "errors",
        errors,
        percent,
        (by_default.0.errors, by_default.1.errors),
        percent_text,
        cx,
    );
    let in_use = pair(|green| green.in_use.as_ref(), |red| red.in_use.as_ref());
    order(
        dependency,
        "in_use",
        in_use,
        percent,
        (by_default.0.in_use, by_default.1.in_use),
        percent_text,
        cx,
    );

    let p95 = (green.and_then(|green| green.p95.as_ref()), red.and_then(|red| red.p95.as_ref()));
    order(dependency, "p95", p95, |at: &Factor| at.0, (by_default.0.p95, by_default.1.p95), factor_text, cx);

    let time = |at: &PositiveTime| at.0;
    let shown = |time: Duration| format!("{time:?}");
    let db_wait = (green.and_then(|green| green.db_wait.as_ref()), red.and_then(|red| red.db_wait.as_ref()));
    order(dependency, "db_wait", db_wait, time, (by_default.0.db_wait, by_default.1.db_wait), shown, cx);
    let backlog = (green.and_then(|green| green.backlog.as_ref()), red.and_then(|red| red.backlog.as_ref()));
    order(dependency, "backlog", backlog, time, (by_default.0.backlog, by_default.1.backlog), shown, cx);
}

/// Green ends at or below where red begins; what lies between holds the rate.
fn order<V, T: Ord + Copy>(
    dependency: DependencyView<'_>,
    signal: &str,
    (green, red): (Option<&At<V>>, Option<&At<V>>),
    value: impl Fn(&V) -> T,
    by_default: (T, T),
    shown: impl Fn(T) -> String,
    cx: &mut Context<'_>,
) {
    let is_unreadable = |band| dependency.is_unreadable(&format!("recovery.{band}.{signal}"), cx);
    if ["green", "red"].into_iter().any(is_unreadable) {
        return;
    }
    let green_ends = green.map_or(by_default.0, |green| value(&green.value));
    let red_begins = red.map_or(by_default.1, |red| value(&red.value));
    let Some(place) = green.or(red).filter(|_| green_ends > red_begins) else { return };
    let message =
        format!("`{signal}` is green up to {} and red from {} on", shown(green_ends), shown(red_begins));
    let finding = Finding::new(Code::BandOrder, place.bytes.clone(), message);
    cx.report(match (green, red) {
        (Some(_), Some(red)) => finding
            .related(red.bytes.clone(), "red begins here")
            .help("lower the green value, or raise the red one"),
        (Some(_), None) => {
            finding.help(format!("lower it, or set `red.{signal}` as well: its default is lower"))
        }
        _ => finding.help(format!("raise it, or set `green.{signal}` as well: its default is higher")),
    });
}
