//! Syntax errors, all of them in one pass.
//!
//! The parser goes on after an error, so several are found at once. A list or inline table that is never closed
//! swallows the rest of the text, line by line; what is reported then is the bracket, not the lines.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::code::Code;
use crate::diagnostic::Finding;
use crate::read::Context;

/// Parses the text as far as it goes and reports what is not TOML.
pub(crate) fn parse<'a>(cx: &mut Context<'a>) -> Spanned<DeTable<'a>> {
    let (table, errors) = DeTable::parse_recoverable(cx.text());
    let open = errors
        .iter()
        .filter(|error| error.message().starts_with("unclosed array") || is_unclosed_table(error))
        .filter_map(|error| unclosed(table.get_ref(), error.span()?.start))
        .min_by_key(|open| open.start);
    for error in &errors {
        let bytes = error.span().unwrap_or(0..0);
        if open.as_ref().is_none_or(|open| bytes.start < open.start) {
            let finding = finding(error, bytes.clone(), cx.text());
            cx.report_syntax(finding, bytes);
        }
    }
    if let Some(open) = open {
        let bracket = open.start..open.start + 1;
        let (what, close) =
            if cx.text().get(bracket.clone()) == Some("{") { ("table", '}') } else { ("list", ']') };
        let finding = Finding::new(Code::Syntax, bracket, format!("this {what} is never closed"))
            .help(format!("add `{close}`; what follows could not be read"));
        cx.report_syntax(finding, open.start..cx.text().len());
    }
    table
}

fn is_unclosed_table(error: &Error) -> bool {
    error.message().starts_with("unclosed inline table")
}

fn finding(error: &Error, bytes: Range<usize>, text: &str) -> Finding {
    if error.message() == "duplicate key" {
        let written = text.get(bytes.clone()).unwrap_or_default();
        return Finding::new(
            Code::DuplicateKey,
            bytes,
            format!("`{written}` is already defined in this table"),
        )
        .help("keep one of the two; which of them counts is never guessed");
    }
    let finding = Finding::new(Code::Syntax, bytes, error.message().to_owned());
    match hint(error.message()) {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn hint(message: &str) -> Option<&'static str> {
    message
        .contains("must be quoted")
        .then_some("put it in double quotes, durations and sizes too: `\"300ms\"`")
}

/// The outermost list or inline table that reaches to this byte, where the parser gave up waiting for its end.
fn unclosed(table: &DeTable<'_>, at: usize) -> Option<Range<usize>> {
    table.iter().filter_map(|(_, value)| unclosed_value(value, at)).min_by_key(|bytes| bytes.start)
}

fn unclosed_value(value: &Spanned<DeValue<'_>>, at: usize) -> Option<Range<usize>> {
    let bytes = value.span();
    match value.get_ref() {
        DeValue::Array(_) | DeValue::Table(_) if bytes.contains(&at) || bytes.end == at => Some(bytes),
        DeValue::Table(table) => unclosed(table, at),
        DeValue::Array(array) => {
            array.iter().filter_map(|value| unclosed_value(value, at)).min_by_key(|bytes| bytes.start)
        }
        _ => None,
    }
}
