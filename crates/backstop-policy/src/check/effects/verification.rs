//! Asking what became of an operation: only where there is a query, and absence only with its whole rule.

use backstop_engine::policy::effect::UnknownAnswer;

use super::EffectView;
use super::answers::looks_into_body;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::lower::verify::confirmations;
use crate::read::{At, Context};
use crate::shape::{AbsenceTable, AnswerTable, StatusQueryTable};
use crate::value::VerdictChoice;

pub(super) fn check(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let table = effect.table;
    let accepted = table.unknown_answer.as_ref().filter(|answer| answer.value.0 == UnknownAnswer::Accepted);
    if let Some(query) = &table.status_query {
        if let Some(accepted) = accepted {
            let message =
                format!("`{}` answers 202 to clients that may take it for a success", effect.text());
            cx.report(
                Finding::new(Code::AlwaysAccepted, accepted.bytes.clone(), message)
                    .help("leave it out, so that only clients with `Prefer: respond-async` get it, unless you know all clients"),
            );
        }
        if table.upstream_retention.is_none() && !effect.is_unreadable("upstream_retention", cx) {
            let message =
                format!("for how long the upstream of `{}` knows an operation is not said", effect.text());
            cx.report(
                Finding::new(Code::MissingContract, query.bytes.clone(), message)
                    .help("add `upstream_retention` to the route, from the upstream's documentation: after it, that something is not found says nothing"),
            );
        }
        absence(effect, &query.value, cx);
    } else if !effect.is_unreadable("status_query", cx) {
        nobody_asks(effect, cx);
    }
}

fn nobody_asks(effect: EffectView<'_>, cx: &mut Context<'_>) {
    let table = effect.table;
    let absence = table.absence.as_ref().map(|at| ("absence", &at.bytes));
    let verify = table.verify.as_ref().map(|at| ("verify", &at.bytes));
    let retention = table.upstream_retention.as_ref().map(|at| ("upstream_retention", &at.bytes));
    for (key, bytes) in absence.into_iter().chain(verify).chain(retention) {
        let message = format!("`{key}` is about status queries, and `{}` sends none", effect.text());
        cx.report(
            Finding::new(Code::NeedsStatusQuery, bytes.clone(), message)
                .help("say what is asked for in `status_query`, or leave this out"),
        );
    }
    match table.unknown_answer.as_ref().filter(|answer| answer.value.0 == UnknownAnswer::Accepted) {
        Some(accepted) => {
            let message =
                format!("`{}` would say that an operation is followed, and nobody follows it", effect.text());
            cx.report(
                Finding::new(Code::NobodyFollows, accepted.bytes.clone(), message)
                    .help("say what is asked for in `status_query`, or leave this out"),
            );
        }
        None => {
            let message =
                format!("what becomes of a lost operation of `{}` is found out by nobody", effect.text());
            cx.report(Finding::new(Code::NobodyAsks, effect.place(), message).help(
                "add a `status_query` if the upstream has any; without one a person has to decide each time",
            ));
        }
    }
}

/// Whether confirmed absence is to say that nothing was executed, and where that is written.
fn verdict(absence: Option<&AbsenceTable>) -> Option<&At<VerdictChoice>> {
    absence.and_then(|absence| absence.verdict.as_ref()).filter(|verdict| verdict.value.0)
}

fn absence(effect: EffectView<'_>, query: &StatusQueryTable, cx: &mut Context<'_>) {
    let table = effect.table.absence.as_ref().map(|absence| &absence.value);
    let verdict = verdict(table);
    let rules = || query.absent.iter().flat_map(|absent| &absent.value.0);
    let is_bare = |rule: &&At<AnswerTable>| !looks_into_body(&rule.value);
    for rule in rules().filter(is_bare) {
        let by = "an unknown path, a lagging replica and a wrong account answer so too";
        let finding = |code, message: &str| Finding::new(code, rule.bytes.clone(), message.to_owned());
        cx.report(match verdict {
            Some(verdict) => {
                finding(Code::AbsenceNotWhole, "a status alone would say that nothing was executed")
                    .related(verdict.bytes.clone(), "what absence leads to")
                    .help(format!("say in `json` what in the body tells it: {by}"))
            }
            None => finding(Code::BareAbsence, "a status alone is taken for absence")
                .help(format!("say in `json` what in the body tells it: {by}")),
        });
    }
    let Some(verdict) = verdict else { return };
    let mut lacks = |what: &str, help: &str| {
        let message = format!("`not_executed` needs {what}");
        cx.report(Finding::new(Code::AbsenceNotWhole, verdict.bytes.clone(), message).help(help));
    };
    // An empty list says it too.
    if rules().next().is_none() && query.list.is_none() {
        lacks(
            "an answer by which the upstream says that it does not know an operation",
            "add `absent` to `status_query`, or `list` if it is a search",
        );
    }
    if table.is_some_and(|table| confirmations(table) < 2) {
        lacks("more than one absence", "make `confirmations` at least 2: one alone may be a moment's");
    }
    if table.is_some_and(|table| table.calibrate.is_none()) {
        lacks(
            "proof that the status query sees what has just happened",
            "add `calibrate = { must_see_within = \"5m\" }`: known successes are looked for, and while they are not found no absence counts",
        );
    }
}
