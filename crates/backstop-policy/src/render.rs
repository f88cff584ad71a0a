//! Diagnostics for people and for programs.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use serde_json::{Value, json};

use crate::code::Severity;
use crate::diagnostic::{Diagnostic, Place};

/// The diagnostics as rustc would show them: code, message, the line with the offending text underlined, and what to
/// do. `text` is the policy file's text (what is said about another file brings its own); `colour` adds terminal colours. Ends with a line break unless empty.
pub fn render_human(diagnostics: &[Diagnostic], text: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let shown: Vec<_> =
        diagnostics.iter().map(|diagnostic| renderer.render(&report(diagnostic, text))).collect();
    if shown.is_empty() { String::new() } else { shown.join("\n\n") + "\n" }
}

fn report<'a>(diagnostic: &'a Diagnostic, text: &'a str) -> Vec<Group<'a>> {
    let text = diagnostic.text.as_deref().unwrap_or(text);
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    if !text.is_empty() {
        let primary = AnnotationKind::Primary.span(inside(&diagnostic.place, text));
        let related = diagnostic.related.iter().map(|related| {
            AnnotationKind::Context.span(inside(&related.place, text)).label(related.message.as_str())
        });
        group = group.element(
            Snippet::source(text)
                .path(diagnostic.file.as_str())
                .annotation(primary.label(diagnostic.label.as_deref()))
                .annotations(related),
        );
    }
    let fix = diagnostic.fix.as_ref().filter(|_| !text.is_empty());
    let help = diagnostic.help.as_deref();
    let Some(fix) = fix else {
        return vec![group.elements(help.map(|help| Level::HELP.message(help)))];
    };
    let title = help.unwrap_or(if fix.replacement.is_empty() { "remove it" } else { "write" });
    let patch = Patch::new(inside(&fix.place, text), fix.replacement.as_str());
    vec![group, Level::HELP.secondary_title(title).element(Snippet::source(text).patch(patch))]
}

/// The bytes of a place, kept inside the text whatever text the caller gives.
fn inside(place: &Place, text: &str) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(place.bytes.start);
    start..text.ceil_char_boundary(place.bytes.end).max(start)
}

/// The diagnostics as a JSON array, one object each:
///
/// ```json
/// {
///   "code": "BS0101", "severity": "error", "message": "...", "file": "shop.toml",
///   "line": 12, "column": 1, "end": { "line": 12, "column": 8 },
///   "help": "..." , "fix": { "line": 12, "column": 1, "end": { "line": 12, "column": 8 }, "replacement": "..." },
///   "related": [{ "message": "...", "line": 3, "column": 1, "end": { "line": 3, "column": 8 } }],
///   "docs": "docs/diagnostics/BS0101.md"
/// }
/// ```
///
/// Lines and columns count from 1, columns in characters; `end` is the first position after the text. `label`,
/// `help` and `fix` are null where there is none. Keys are only ever added.
pub fn render_json(diagnostics: &[Diagnostic]) -> Value {
    diagnostics.iter().map(one_json).collect()
}

fn one_json(diagnostic: &Diagnostic) -> Value {
    let mut object = json!({
        "code": diagnostic.code.as_str(),
        "severity": diagnostic.severity().name(),
        "message": diagnostic.message,
        "file": diagnostic.file,
        "label": diagnostic.label,
        "help": diagnostic.help,
        "docs": diagnostic.code.docs(),
        "related": diagnostic.related.iter().map(|related| {
            placed(json!({ "message": related.message }), &related.place)
        }).collect::<Value>(),
        "fix": diagnostic.fix.as_ref().map(|fix| {
            placed(json!({ "replacement": fix.replacement }), &fix.place)
        }),
    });
    object = placed(object, &diagnostic.place);
    object
}

fn placed(mut object: Value, place: &Place) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("line".to_owned(), json!(place.start.line));
        fields.insert("column".to_owned(), json!(place.start.column));
        fields.insert("end".to_owned(), json!({ "line": place.end.line, "column": place.end.column }));
    }
    object
}
