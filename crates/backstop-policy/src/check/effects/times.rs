//! Times of verification and retention against each other and against the lease of an operation.

use std::ops::Range;
use std::time::Duration;

use backstop_engine::policy::effect::EffectRules;

use super::EffectView;
use crate::code::Code;
use crate::default;
use crate::diagnostic::Finding;
use crate::lower::{effect, verify};
use crate::read::Context;
use crate::shape::AbsenceTable;
use crate::value::time_text;

const ONE: u32 = 1000;

pub(super) fn check(effect: EffectView<'_>, cx: &mut Context<'_>) {
    forgotten(effect, cx);
    if effect.table.status_query.is_none() {
        return;
    }
    too_long(effect, cx);
    waits(effect, cx);
    query(effect, cx);
    if let Some(absence) = effect.table.absence.as_ref() {
        settles(effect, &absence.value, cx);
        in_time(effect, &absence.value, absence.bytes.clone(), cx);
    }
}

fn unfit(place: Range<usize>, message: String, help: &str, cx: &mut Context<'_>) {
    cx.report(Finding::new(Code::VerifyTimes, place, message).help(help));
}

/// Where the end of verification is written, or else the route.
fn place_of_deadline(effect: EffectView<'_>) -> Range<usize> {
    let written = effect.table.verify.as_ref().and_then(|verify| verify.value.deadline.as_ref());
    written.map_or_else(|| effect.place(), |deadline| deadline.bytes.clone())
}

fn forgotten(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let retention = effect::retention(effect.table);
    let written = effect.table.retention.as_ref();
    let tombstone = written.and_then(|written| written.value.tombstone.as_ref());
    let place = tombstone.map(|at| &at.bytes).or(written.map(|at| &at.bytes));
    let place = place.cloned().unwrap_or_else(|| effect.place());
    let followed = verify::schedule(effect.table).deadline;
    let report = |message: String, help: &str, cx: &mut Context<'_>| {
        cx.report(Finding::new(Code::ForgottenTooSoon, place.clone(), message).help(help));
    };
    if retention.tombstone < retention.body {
        let message = format!(
            "an answer of `{}` is kept for {}, and that there was an operation for {}",
            effect.text(),
            time_text(retention.body),
            time_text(retention.tombstone)
        );
        report(message, "make `tombstone` at least `body`", cx);
    }
    if effect.table.status_query.is_some() && retention.tombstone < followed {
        let message = format!(
            "`{}` forgets operations after {}, and follows one for up to {}",
            effect.text(),
            time_text(retention.tombstone),
            time_text(followed)
        );
        report(
            message,
            "make `tombstone` at least the `deadline` of `verify`: what is forgotten is executed again",
            cx,
        );
    }
}

fn too_long(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let Some(known) = &effect.table.upstream_retention else { return };
    let followed = verify::schedule(effect.table).deadline;
    if followed < known.value.0 {
        return;
    }
    let message = format!(
        "`{}` follows an operation for {}, and its upstream knows it for {}",
        effect.text(),
        time_text(followed),
        time_text(known.value.0)
    );
    cx.report(
        Finding::new(Code::VerifyTooLong, place_of_deadline(effect), message)
            .related(known.bytes.clone(), "what the upstream does not know after that says nothing")
            .help(
                "shorten the `deadline` of `verify`, or leave it out: then it is four fifths of that at most",
            ),
    );
}

fn waits(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let Some(table) = effect.table.verify.as_ref().map(|verify| &verify.value) else { return };
    let schedule = verify::schedule(effect.table);
    if schedule.first > schedule.cap {
        let place = table.first.as_ref().or(table.cap.as_ref()).map_or(effect.place(), |at| at.bytes.clone());
        let message = format!(
            "the first wait is up to {}, and none is longer than {}",
            time_text(schedule.first),
            time_text(schedule.cap)
        );
        unfit(place, message, "make `cap` at least `first`", cx);
    }
    if let Some(factor) = table.factor.as_ref().filter(|factor| factor.value.0 < ONE) {
        let message = "the upstream is asked faster and faster".to_owned();
        unfit(
            factor.bytes.clone(),
            message,
            "write 1 or more, such as `2`: the longest wait is multiplied by it",
            cx,
        );
    }
}

/// A query ends before the operation is given up, and so does what the owner of an operation may take.
fn query(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let followed = verify::schedule(effect.table).deadline;
    let written = effect.table.status_query.as_ref().and_then(|query| query.value.timeout.as_ref());
    let timeout = written.map_or(default::STATUS_TIMEOUT, |timeout| timeout.value.0);
    if timeout >= followed {
        let place = written.map_or_else(|| effect.place(), |timeout| timeout.bytes.clone());
        let message = format!(
            "one query may take {}, and an operation is followed for {}",
            time_text(timeout),
            time_text(followed)
        );
        unfit(place, message, "shorten `timeout`, or lengthen the `deadline` of `verify`", cx);
    }
    let Some(deadline) = &effect.route.common().deadline else { return };
    let lease = EffectRules::lease(deadline.value.0);
    if lease >= followed {
        let message = format!(
            "an operation of `{}` has {} to end by itself, and is followed for {}",
            effect.text(),
            time_text(lease),
            time_text(followed)
        );
        unfit(
            place_of_deadline(effect),
            message,
            "lengthen the `deadline` of `verify`: nothing is asked before the route's `deadline` and 5s are over",
            cx,
        );
    }
}

fn settles(effect: EffectView<'_>, absence: &AbsenceTable, cx: &mut Context<'_>) {
    let Some(settle) = &absence.settle else { return };
    let seen = absence.calibrate.as_ref().and_then(|calibrate| calibrate.value.must_see_within.as_ref());
    if let Some(seen) = seen.filter(|seen| seen.value.0 > settle.value.0) {
        let message = format!(
            "an absence counts after {}, and a success may show only after {}",
            time_text(settle.value.0),
            time_text(seen.value.0)
        );
        unfit(seen.bytes.clone(), message, "make `settle` at least `must_see_within`", cx);
    }
    let Some(deadline) = &effect.route.common().deadline else { return };
    if settle.value.0 < deadline.value.0 && absence.not_after.is_none() {
        let message = format!(
            "`{}` waits {} for an answer, and {} later nothing more may begin",
            effect.text(),
            time_text(deadline.value.0),
            time_text(settle.value.0)
        );
        unfit(
            settle.bytes.clone(),
            message,
            "make `settle` at least the route's `deadline`, or tell the upstream until when it may execute: `not_after`",
            cx,
        );
    }
}

/// Absence can be confirmed before the operation is given up.
fn in_time(effect: EffectView<'_>, absence: &AbsenceTable, place: Range<usize>, cx: &mut Context<'_>) {
    let Some(settle) = &absence.settle else { return };
    let between = verify::spacing(absence).saturating_mul(verify::confirmations(absence).saturating_sub(1));
    let lease =
        effect.route.common().deadline.as_ref().map_or(Duration::ZERO, |at| EffectRules::lease(at.value.0));
    let needed = lease.saturating_add(settle.value.0).saturating_add(between);
    let followed = verify::schedule(effect.table).deadline;
    if needed < followed {
        return;
    }
    let message = format!(
        "absence is confirmed after {} at the earliest, and an operation is followed for {}",
        time_text(needed),
        time_text(followed)
    );
    unfit(
        place,
        message,
        "lease, `settle` and the `spacing` between `confirmations` together must be less than the `deadline` of `verify`",
        cx,
    );
}
