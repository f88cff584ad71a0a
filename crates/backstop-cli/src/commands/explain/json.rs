//! An explanation as one JSON document: `docs/reference/explain.md`.

use std::time::Duration;

use backstop::walk::Role;
use backstop_gateway::{Explanation, Line, Question, Told, Way};
use serde_json::{Map, Value, json};

/// The form of the document. Members are added without a new number; none changes its meaning.
const VERSION: u32 = 1;

/// The whole explanation.
pub(super) fn document(question: &Question, explanation: &Explanation) -> Value {
    let route = explanation.route.as_ref().map(|route| {
        let parameters: Map<String, Value> =
            route.parameters.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
        json!({
            "name": route.name,
            "class": route.class,
            "rule": route.rule,
            "parameters": parameters,
            "line": line(route.line.as_ref()),
        })
    });
    let limits = explanation.limits.iter().map(|limit| {
        let (time, line) = (ns(limit.time), line(limit.line.as_ref()));
        json!({ "name": limit.name, "time_ns": time, "includes": limit.includes, "line": line })
    });
    let answer = &explanation.answer;
    let fields = answer.fields.iter().map(|(name, value)| json!([name, value]));
    let calls = explanation.calls.iter().map(|call| {
        json!({ "dependency": call.dependency, "at_ns": ns(call.at), "request": call.request, "what": call.what })
    });
    json!({
        "version": VERSION,
        "request": { "method": question.method, "target": question.target },
        "route": route,
        "limits": limits.collect::<Vec<_>>(),
        "before": explanation.before,
        "ways": explanation.ways.iter().map(way).collect::<Vec<_>>(),
        "answer": {
            "outcome": answer.outcome,
            "source": answer.source,
            "reason": answer.reason,
            "status": answer.status,
            "fields": fields.collect::<Vec<_>>(),
            "cut": answer.is_cut,
            "took_ns": ns(answer.took),
        },
        "calls": calls.collect::<Vec<_>>(),
    })
}

fn way(way: &Way) -> Value {
    let role = match way.role {
        Role::Request => "request",
        Role::Part => "part",
        Role::Fill => "fill",
    };
    let steps = way.steps.iter().map(|(step, at)| {
        let mut told = Map::new();
        for (name, value) in &step.told {
            match value {
                Told::Word(word) => told.insert((*name).to_owned(), json!(word)),
                Told::Number(number) => told.insert((*name).to_owned(), json!(number)),
                Told::Age(time) | Told::At(time) => told.insert(format!("{name}_ns"), json!(ns(*time))),
            };
        }
        json!({ "at_ns": ns(step.at), "step": step.name, "told": told, "line": line(at.as_ref()) })
    });
    json!({ "route": way.route, "role": role, "decided": way.has_decided, "steps": steps.collect::<Vec<_>>() })
}

fn line(line: Option<&Line>) -> Value {
    line.map_or(
        Value::Null,
        |line| json!({ "file": line.file, "line": line.line, "column": line.column, "text": line.text }),
    )
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
