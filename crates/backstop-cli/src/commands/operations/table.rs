//! Operations for people.

use serde_json::Value;

const COLUMNS: [&str; 6] = ["ID", "STATE", "WHY", "ROUTE", "AGE", "SINCE"];

/// A table, one line for each.
pub(super) fn list(operations: &[Value]) -> String {
    let row = |operation: &Value| {
        [
            text(&operation["id"]),
            text(&operation["state"]),
            text(&operation["why"]),
            text(&operation["route"]),
            ago(&operation["age_seconds"]),
            text(&operation["since"]),
        ]
    };
    let rows: Vec<[String; 6]> =
        std::iter::once(COLUMNS.map(String::from)).chain(operations.iter().map(row)).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// One operation, and its history as a timeline.
pub(super) fn one(whole: &Value) -> String {
    let mut out = format!("operation  {}\n", text(&whole["id"]));
    let mut line = |name: &str, value: String| out.push_str(&format!("{name:<11}{value}\n"));
    line("state", state(whole));
    line("route", text(&whole["route"]));
    line("age", ago(&whole["age_seconds"]));
    let verification = &whole["verification"];
    if verification.is_object() {
        let until = text(&verification["until"]);
        let mut asked = match verification["asked"].as_u64() {
            Some(1) => format!("asked for once, until {until}"),
            count => format!("asked for {} times, until {until}", count.unwrap_or_default()),
        };
        if verification["next_seconds"].is_u64() {
            asked.push_str(&format!(", next in {}", ago(&verification["next_seconds"])));
        }
        line("status", asked);
    }
    let answer = &whole["answer"];
    if answer.is_object() {
        let content = if answer["has_content"] == true { "kept" } else { "not kept" };
        line("answer", format!("{}, its content is {content}", text(&answer["status"])));
    }
    out.push_str(&format!("\n{}  began\n", text(&whole["began"])));
    for event in whole["history"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (at, actor) = (text(&event["at"]), text(&event["actor"]));
        out.push_str(&format!("{at}  {} -> {}, by {actor}", state(&event["from"]), state(&event["to"])));
        if event["by"].is_string() {
            out.push_str(&format!(" {}: {}", text(&event["by"]), text(&event["reason"])));
        }
        out.push('\n');
    }
    out
}

/// What it was, what it is now, and who said so.
pub(super) fn resolved(said: &Value) -> String {
    format!(
        "operation {}\n  was  {}\n  is   {}\n  by   {}: {}\n",
        text(&said["id"]),
        state(&said["before"]),
        state(&said["after"]),
        text(&said["by"]),
        text(&said["reason"]),
    )
}

/// A state in words.
fn state(of: &Value) -> String {
    let (state, why) = (text(&of["state"]), text(&of["why"]));
    if why == "-" { state } else { format!("{state} ({why})") }
}

/// A word of the answer; `-` where there is none.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => shown(text),
        Value::Number(number) => number.to_string(),
        _ => "-".into(),
    }
}

/// A text as a terminal may have it: nothing in it moves the cursor.
pub(super) fn shown(text: &str) -> String {
    crate::harmless::harmless(text)
}

/// Whole seconds in the two largest units.
fn ago(seconds: &Value) -> String {
    let Some(seconds) = seconds.as_u64() else { return "-".into() };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
