//! A step as a sentence.

use backstop_gateway::{Step, Told, written};

/// What happened, for a person.
pub(super) fn of(step: &Step) -> String {
    let said = |name: &str| match step.get(name) {
        Some(Told::Word(word)) => word.to_string(),
        Some(Told::Number(number)) => number.to_string(),
        Some(Told::Age(time) | Told::At(time)) => written(*time),
        None => String::new(),
    };
    let copy = |answers: &str| match (step.get("age"), said("unusable").as_str()) {
        (Some(Told::Age(age)), _) => format!("there is a copy, {} old{answers}", written(*age)),
        (_, "missing") => "there is no copy".to_owned(),
        (_, "age") => "there is a copy, and it is too old".to_owned(),
        (_, why) => format!("there is a copy, and it cannot answer: {why}"),
    };
    match step.name {
        "admitted" => "admitted: a place at the process and one at the route".into(),
        "refused" => format!("refused: no place at the limit `{}`", said("limit")),
        "fallback_lane" => "admitted to the lane for alternatives".into(),
        "authorizer" => match step.get("cause") {
            Some(_) => format!("the authorizer: {} ({})", said("is"), said("cause")),
            None => format!("the authorizer: {}", said("is")),
        },
        "copy_known" => copy(""),
        "copy" => copy(": it answers"),
        "cache" => format!("the shared cache: {}", copy(": it answers")),
        "cache_silent" => "the shared cache did not answer in its time".into(),
        "cache_not_asked" => format!("the shared cache is not asked: {}", said("because")),
        "joined" => "it has the dependency read for everybody who asks for the same".into(),
        "brought" => format!("that read brought: {}", said("is")),
        "no_place" => format!("no place at the dependency: {}", said("because")),
        "waiting" => format!("waits for a place at the dependency, until {} at most", said("until")),
        "called" => {
            let (name, until) = (said("dependency"), said("until"));
            format!("calls `{name}` (call {}), until {until} at most", said("attempt"))
        }
        "answered" => format!("it answers: status {}", said("status")),
        "body" => format!("its answer, held back to its end: {}", said("is")),
        "failed" => match step.get("status") {
            Some(_) => format!("the call failed: {}, status {}", said("cause"), said("status")),
            None => format!("the call failed: {}", said("cause")),
        },
        "not_asked" => format!("the dependency is not asked: {}", said("because")),
        "retry" => format!("the call is made again at {}", said("due")),
        "no_retry" => format!("it is not made again: {}", said("because")),
        "alternative" => format!("`{}` stands in", said("dependency")),
        "no_alternative" => format!("no other dependency stands in: {}", said("because")),
        "ledger" => format!("the ledger has: {}", said("has")),
        "key_known" => format!("the key was used before, nothing is sent: {}", said("is")),
        "recorded" => {
            let durable = if said("durable") == "1" { "durable" } else { "not durable in time" };
            format!("the ledger is told what came of it ({}): {}, {durable}", said("came"), said("is"))
        }
        "parts" => format!("its parts are asked side by side, until {} at most", said("until")),
        "part" => format!("part {} came: status {}, {}", said("number"), said("status"), said("outcome")),
        "parts_time_up" => "no part is waited for any longer".into(),
        "copy_kept" => match said("is").as_str() {
            "stored" => "its answer becomes the copy".into(),
            "renewed" => "the copy's date is renewed".into(),
            "withdrawn_for_a_while" => "copies of it are withdrawn, and for a while none is kept".into(),
            _ => "copies of it are withdrawn".into(),
        },
        "decided" => match (said("source").as_str(), said("reason").as_str()) {
            (source, "none") => format!("decided: {}, from {source}", said("outcome")),
            ("none", reason) => format!("decided: {}, because of {reason}", said("outcome")),
            (source, reason) => format!("decided: {}, from {source}, because of {reason}", said("outcome")),
        },
        other => other.replace('_', " "),
    }
}
