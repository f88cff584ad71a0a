//! What answers prove: none more than it says, and none two things.

use super::EffectView;
use crate::check::keys::repeated;
use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::{At, Context, List, OneOrMany};
use crate::shape::{AnswerTable, RefusedTable, StatusQueryTable};
use crate::value::{LiteralValue, Pointer, Status};

/// One kind of answer and the list that it stands in.
type Rule<'a> = (&'static str, &'a AnswerTable, std::ops::Range<usize>);

pub(super) fn check(effect: EffectView<'_>, cx: &mut Context<'_>) {
    if let Some(outcome) = effect.table.outcome.as_ref().map(|outcome| &outcome.value) {
        let refused = || outcome.refused.iter().flat_map(|list| &list.value.0);
        let rules: Vec<Rule<'_>> = rules("succeeded", outcome.succeeded.as_ref())
            .chain(rules("pending", outcome.pending.as_ref()))
            .chain(refused().map(|rule| ("refused", &rule.value.answer, rule.bytes.clone())))
            .collect();
        no_success(effect, outcome.succeeded.as_ref(), cx);
        for (list, rule, _) in &rules {
            statuses_once(rule, cx);
            if *list == "succeeded" {
                errors_are_no_success(rule, cx);
            }
        }
        refused().for_each(|rule| refusal(rule, cx));
        two_meanings(&rules, cx);
    }
    if let Some(query) = effect.table.status_query.as_ref().map(|query| &query.value) {
        let rules: Vec<Rule<'_>> = rules("succeeded", query.succeeded.as_ref())
            .chain(rules("failed", query.failed.as_ref()))
            .chain(rules("pending", query.pending.as_ref()))
            .chain(rules("absent", query.absent.as_ref()))
            .collect();
        no_success(effect, query.succeeded.as_ref(), cx);
        matches_nothing(query, cx);
        for rule in &rules {
            statuses_once(rule.1, cx);
            says_nothing(rule, query.list.is_some(), cx);
            any_page(query, rule, cx);
        }
        two_meanings(&rules, cx);
    }
}

fn rules<'a>(
    name: &'static str,
    list: Option<&'a At<List<AnswerTable>>>,
) -> impl Iterator<Item = Rule<'a>> + use<'a> {
    let rules = list.into_iter().flat_map(|list| &list.value.0);
    rules.map(move |rule| (name, &rule.value, rule.bytes.clone()))
}

fn statuses(rule: &AnswerTable) -> impl Iterator<Item = &At<Status>> {
    rule.status.iter().flat_map(|status| &status.value.0)
}

fn members(rule: &AnswerTable) -> &[(At<Pointer>, At<OneOrMany<LiteralValue>>)] {
    rule.json.as_ref().map_or(&[], |json| &json.value.entries)
}

/// Whether a rule looks into the body, readable or not.
pub(super) fn looks_into_body(rule: &AnswerTable) -> bool {
    rule.json.as_ref().is_some_and(|json| !json.value.names.is_empty())
}

/// Whether a part of what it says about the body could not be read.
fn is_broken(rule: &AnswerTable) -> bool {
    rule.json.as_ref().is_some_and(|json| json.value.names.len() > json.value.entries.len())
}

fn statuses_once(rule: &AnswerTable, cx: &mut Context<'_>) {
    repeated(statuses(rule), |status| status.value.0.to_string(), cx);
}

fn no_success(effect: EffectView<'_>, list: Option<&At<List<AnswerTable>>>, cx: &mut Context<'_>) {
    let Some(list) = list.filter(|list| list.value.0.is_empty()) else { return };
    let message = format!("no answer would ever prove that an operation of `{}` succeeded", effect.text());
    cx.report(
        Finding::new(Code::Empty, list.bytes.clone(), message).help(
            "name what does, such as `{ status = [200, 201], json = { \"/status\" = [\"succeeded\"] } }`",
        ),
    );
}

fn no_proof(status: &At<Status>, message: String, help: &str, cx: &mut Context<'_>) {
    cx.report(Finding::new(Code::NoProof, status.bytes.clone(), message).help(help));
}

fn errors_are_no_success(rule: &AnswerTable, cx: &mut Context<'_>) {
    for status in statuses(rule).filter(|status| status.value.0 >= 400) {
        let message = format!("{} does not prove a success", status.value.0);
        no_proof(
            status,
            message,
            "leave it out: what matches no rule is unknown, and its status is asked for",
            cx,
        );
    }
}

/// Answers that many send after an effect, or about an earlier request with the same key.
fn refusal(rule: &At<RefusedTable>, cx: &mut Context<'_>) {
    let table = &rule.value;
    let is_promised = table.no_effect.as_ref().is_some_and(|promised| promised.value);
    for status in statuses(&table.answer) {
        let number = status.value.0;
        if matches!(number, 408 | 409 | 425 | 429 | 500..) && !is_promised {
            let message = format!("{number} does not prove that there was no effect");
            let help = "leave it out (then it is unknown), or write `no_effect = true` beside it if the upstream promises so";
            no_proof(status, message, help, cx);
        } else if number < 300 && !looks_into_body(&table.answer) {
            let message = format!("{number} alone does not prove a refusal");
            no_proof(
                status,
                message,
                "say in `json` what in the body tells it, such as `{ \"/status\" = [\"declined\"] }`",
                cx,
            );
        }
    }
}

/// Answers of a status query that are about the query, not about the operation.
fn says_nothing((kind, rule, _): &Rule<'_>, is_listed: bool, cx: &mut Context<'_>) {
    if *kind == "pending" {
        return;
    }
    for status in statuses(rule) {
        let number = status.value.0;
        if matches!(number, ..200 | 206 | 300..=399 | 401 | 403 | 407 | 408 | 425 | 429 | 500..) {
            let message = format!("{number} is about the query, and says nothing of the operation");
            no_proof(status, message, "leave it out: it is asked for again", cx);
        } else if *kind == "succeeded" && number >= 400 {
            let message = format!("{number} does not show that there is such an operation");
            no_proof(status, message, "leave it out: it is asked for again", cx);
        } else if is_listed && *kind == "absent" && number == 200 {
            let message =
                "200 is a list here, and only an empty one says that there is no such operation".to_owned();
            no_proof(status, message, "leave it out: an empty list counts without a rule", cx);
        }
    }
}

/// A page of a proxy, or of a route that does not exist, has a status too.
fn any_page(query: &StatusQueryTable, (list, rule, _): &Rule<'_>, cx: &mut Context<'_>) {
    let is_verdict = matches!(*list, "succeeded" | "failed");
    let echoes = query.echo.as_ref().is_some_and(|echo| !echo.value.entries.is_empty());
    // An item that is found by the operation's id is about it.
    if !is_verdict || echoes || query.list.is_some() || looks_into_body(rule) {
        return;
    }
    if let Some(status) = statuses(rule).next() {
        let message = format!("any page with {} would prove what became of an operation", status.value.0);
        no_proof(
            status,
            message,
            "say in `json` what in the body tells it, or in `echo` what it must repeat",
            cx,
        );
    }
}

/// An item that nothing tells from another's would be anybody's.
fn matches_nothing(query: &StatusQueryTable, cx: &mut Context<'_>) {
    let matching = query.list.as_ref().and_then(|list| list.value.matching.as_ref());
    let Some(matching) = matching.filter(|matching| matching.value.names.is_empty()) else { return };
    cx.report(
        Finding::new(Code::Empty, matching.bytes.clone(), "no item of a list would ever be the operation's")
            .help(
                "name where an item has the operation's id, such as `{ \"/reference\" = \"operation_id\" }`",
            ),
    );
}

fn two_meanings(rules: &[Rule<'_>], cx: &mut Context<'_>) {
    for (index, (list, rule, place)) in rules.iter().enumerate() {
        for (other_list, other, other_place) in rules.iter().take(index).filter(|(name, ..)| name != list) {
            let same = |status: &&At<Status>| statuses(other).any(|known| known.value == status.value);
            let Some(status) = statuses(rule).find(same) else { continue };
            if are_apart(rule, other) || is_broken(rule) || is_broken(other) {
                continue;
            }
            let message = format!("an answer with {} may be `{other_list}` and `{list}`", status.value.0);
            cx.report(
                Finding::new(Code::TwoMeanings, place.clone(), message)
                    .related(other_place.clone(), format!("`{other_list}`"))
                    .help("tell them apart by `json`: one member in both, with different values"),
            );
        }
    }
}

/// Whether a member that both name can never have a value of both.
fn are_apart(one: &AnswerTable, other: &AnswerTable) -> bool {
    members(one).iter().any(|(pointer, values)| {
        let same = members(other).iter().find(|(known, _)| known.value == pointer.value);
        same.is_some_and(|(_, others)| {
            let is_of_both =
                |value: &At<LiteralValue>| others.value.0.iter().any(|other| other.value == value.value);
            !values.value.0.iter().any(is_of_both)
        })
    })
}
