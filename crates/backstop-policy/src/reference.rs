//! The reference, generated from the tables themselves: a JSON Schema for editors and a page for people.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::read::{Field, Need, Shape, Table as _};
use crate::shape::{DrillTable, EvidenceTable, File};
use crate::suggest::listed;

/// The JSON Schema (draft 2020-12) of a policy file.
pub fn json_schema() -> Json {
    let mut schema = File::table_shape().schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!("Backstop policy"));
    }
    schema
}

/// The page with every key, its type, its default and its meaning, in Markdown.
pub fn reference_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    section(&mut page, "", &File::about(), &File::fields());
    let _ = write!(page, "\n## Evidence file\n\n{}\n", EvidenceTable::about());
    keys(&mut page, &EvidenceTable::fields());
    page
}

/// The page with every key of a drill file, in Markdown.
pub fn drill_page() -> String {
    let mut page = DRILL_INTRODUCTION.to_owned();
    keys(&mut page, &DrillTable::fields());
    for field in DrillTable::fields() {
        subsection(&mut page, &format!("[{}]", field.key), &field.shape);
    }
    page
}

const DRILL_INTRODUCTION: &str = "\
<!-- Generated from crates/backstop-policy. Change the doc comments there, then run
     `UPDATE_REFERENCE=1 cargo nextest run -p backstop-policy`. -->

# Drill file

One TOML file, read like a policy: refused as a whole if any part is wrong. What a drill does is told in [drill](drill.md); values
are written as in a [policy](policy.md).
";

const INTRODUCTION: &str = "\
<!-- Generated from crates/backstop-policy. Change the doc comments there, then run
     `UPDATE_REFERENCE=1 cargo nextest run -p backstop-policy`. -->

# Policy file

One TOML file. The whole file is refused if any part is wrong; `backstop check` says what, where and what to do.

- A **duration** is a whole number and one unit: `ns`, `us`, `ms`, `s`, `m`, `h`, such as `\"300ms\"`. `\"0\"` needs no unit.
  Any other is at least 1 ms.
- A **size** is a whole number and one unit: `B`, `KiB`, `MiB`, `GiB`, `TiB`, each 1024 of the one before, such as
  `\"64 MiB\"`. `\"0\"` needs no unit.
- A **rate** is a whole number per second or minute: `\"2000/s\"`, `\"600/m\"`.
- A **percentage** has at most one decimal: `\"0.5%\"`. A **factor** is a number or ends with `x`: `1.5`, `\"3x\"`.
- A **name** is a letter, then letters, digits, `_`, `-` or `.`, at most 64 characters.
- Keys marked **no default** are the operator's promise: only you can state them.
";

fn section(page: &mut String, path: &str, about: &str, fields: &[Field]) {
    if !path.is_empty() {
        let _ = write!(page, "\n## `[{path}]`\n\n{about}\n");
        keys(page, fields);
    }
    for field in fields {
        subsection(page, &join(path, field.key), &field.shape);
    }
}

fn keys(page: &mut String, fields: &[Field]) {
    page.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let default = match field.need {
            Need::Required => "required",
            Need::Contract => "**no default**, required",
            Need::Default(default) => default,
        };
        let value = field.shape.describe().replace('|', "\\|");
        let about = field.about.replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {value} | {default} | {about} |", field.key);
    }
}

fn subsection(page: &mut String, path: &str, shape: &Shape) {
    match shape {
        Shape::Table { about, fields } => section(page, path, about, fields),
        Shape::OneOf(choices) => one_of(page, path, choices),
        Shape::Map { placeholder, value } => subsection(page, &join(path, placeholder), value),
        Shape::List(entry) | Shape::OneOrMany(entry) => subsection(page, path, entry),
        Shape::Text { .. }
        | Shape::Either(..)
        | Shape::NumberOrText { .. }
        | Shape::Integer { .. }
        | Shape::Boolean
        | Shape::Literal
        | Shape::Choice(_) => {}
    }
}

/// What more than half of the choices share comes once, under `CLASS`, with the names of those that lack it; then each choice
/// with its own keys.
fn one_of(page: &mut String, path: &str, choices: &[Field]) {
    let tables: Vec<_> =
        choices.iter().filter_map(|choice| Some((choice, table_fields(&choice.shape)?))).collect();
    let has =
        |fields: &[Field], field: &Field| fields.iter().any(|f| f.key == field.key && f.about == field.about);
    let Some((_, first)) = tables.first() else { return };
    let lacking = |field: &Field| -> Vec<&str> {
        tables.iter().filter(|(_, fields)| !has(fields, field)).map(|(choice, _)| choice.key).collect()
    };
    let shared: Vec<_> =
        first.iter().filter(|field| lacking(field).len() * 2 < tables.len()).cloned().collect();
    let shown = shared.iter().map(|field| match lacking(field).as_slice() {
        [] => field.clone(),
        without => {
            let about = format!("{} Not in {}.", field.about, listed(without.iter().copied()));
            Field { about, ..field.clone() }
        }
    });
    let shown: Vec<_> = shown.collect();
    section(page, &join(path, "CLASS"), "What classes share, besides their own keys below.", &shown);
    for (choice, fields) in &tables {
        let own: Vec<_> = fields.iter().filter(|field| !has(&shared, field)).cloned().collect();
        section(page, &join(path, choice.key), &choice.about, &own);
    }
}

fn table_fields(shape: &Shape) -> Option<&[Field]> {
    match shape {
        Shape::Table { fields, .. } => Some(fields),
        _ => None,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
