//! How a value looks, for the JSON Schema and the reference.

use serde_json::{Map, Value as Json, json};

/// How a value looks.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A string, by what it is called, with its pattern.
    Text { name: &'static str, pattern: Option<&'static str> },
    /// A number above zero, or a string, by what it is called, with its pattern.
    NumberOrText { name: &'static str, pattern: Option<&'static str> },
    /// A whole number within these bounds, both inclusive.
    Integer { min: u64, max: u64 },
    /// `true` or `false`.
    Boolean,
    /// A string, a whole number, `true` or `false`.
    Literal,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A list.
    List(Box<Shape>),
    /// One value or a list.
    OneOrMany(Box<Shape>),
    /// One of two; where it is a table, with these keys in any case.
    Either(Box<Shape>, Box<Shape>, &'static [&'static str]),
    /// Values by key.
    Map { placeholder: &'static str, value: Box<Shape> },
    /// A table with known keys.
    Table { about: String, fields: Vec<Field> },
    /// A table of which exactly one key is given, such as a route's class.
    OneOf(Vec<Field>),
}

/// Whether a key must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It must.
    Required,
    /// It must, because it is the operator's contract and has no sensible default.
    Contract,
    /// It need not; this is what stands for it, in words.
    Default(&'static str),
}

impl Need {
    pub(crate) fn is_required(self) -> bool {
        !matches!(self, Need::Default(_))
    }
}

/// One key of a table.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) about: String,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

impl Shape {
    /// The JSON Schema (draft 2020-12) of this value.
    pub(crate) fn schema(&self) -> Json {
        match self {
            Shape::Text { pattern: Some(pattern), .. } => json!({ "type": "string", "pattern": pattern }),
            Shape::Text { pattern: None, .. } => json!({ "type": "string" }),
            Shape::NumberOrText { name, pattern } => {
                let text = Shape::Text { name, pattern: *pattern }.schema();
                json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, text] })
            }
            Shape::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Literal => json!({ "type": ["string", "integer", "boolean"] }),
            Shape::Choice(allowed) => json!({ "enum": allowed }),
            Shape::List(entry) => json!({ "type": "array", "items": entry.schema() }),
            Shape::OneOrMany(entry) => {
                let entry = entry.schema();
                json!({ "anyOf": [entry, { "type": "array", "items": entry, "minItems": 1 }] })
            }
            Shape::Either(one, other, keys) => {
                let mut other = other.schema();
                if let Some(other) = other.as_object_mut() {
                    other.insert("required".to_owned(), json!(keys));
                }
                json!({ "anyOf": [one.schema(), other] })
            }
            Shape::Map { value, .. } => json!({ "type": "object", "additionalProperties": value.schema() }),
            Shape::Table { about, fields } => {
                let mut table = table_schema(fields);
                if let Some(table) = table.as_object_mut() {
                    table.insert("description".to_owned(), json!(about));
                }
                table
            }
            Shape::OneOf(fields) => {
                let mut table = table_schema(fields);
                if let Some(table) = table.as_object_mut() {
                    table.insert("minProperties".to_owned(), json!(1));
                    table.insert("maxProperties".to_owned(), json!(1));
                }
                table
            }
        }
    }

    /// What it is called in the reference.
    pub(crate) fn describe(&self) -> String {
        match self {
            Shape::Text { name, .. } | Shape::NumberOrText { name, .. } => (*name).to_owned(),
            Shape::Integer { min, max } if *max >= u64::from(u32::MAX) => format!("integer from {min}"),
            Shape::Integer { min, max } => format!("integer from {min} to {max}"),
            Shape::Boolean => "`true` or `false`".to_owned(),
            Shape::Literal => "string, integer, `true` or `false`".to_owned(),
            Shape::Choice(allowed) => {
                allowed.iter().map(|text| format!("`\"{text}\"`")).collect::<Vec<_>>().join(" or ")
            }
            Shape::List(entry) => format!("list of {}", entry.describe()),
            Shape::OneOrMany(entry) => format!("{}, or a list of them", entry.describe()),
            Shape::Either(one, other, _) => format!("{}, or {}", one.describe(), other.describe()),
            Shape::Map { placeholder, value } => format!("table from {placeholder} to {}", value.describe()),
            Shape::Table { .. } | Shape::OneOf(_) => "table".to_owned(),
        }
    }
}

fn table_schema(fields: &[Field]) -> Json {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = field.shape.schema();
        if let Some(schema) = schema.as_object_mut() {
            let about = match field.need {
                Need::Default(default) => format!("{} Default: {default}.", field.about),
                Need::Required | Need::Contract => field.about.clone(),
            };
            schema.insert("description".to_owned(), json!(about));
        }
        properties.insert(field.key.to_owned(), schema);
    }
    let required: Vec<_> =
        fields.iter().filter(|field| field.need.is_required()).map(|field| field.key).collect();
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty()
        && let Some(table) = table.as_object_mut()
    {
        table.insert("required".to_owned(), json!(required));
    }
    table
}
