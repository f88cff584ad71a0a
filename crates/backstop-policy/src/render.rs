//! Diagnostics for people and for programs.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};
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

/// A longer line is not shown: nobody could read it, and it would take long to lay out.
const LONGEST_LINE: usize = 4096;

fn report<'a>(diagnostic: &'a Diagnostic, text: &'a str) -> Vec<Group<'a>> {
    let text = diagnostic.text.as_deref().unwrap_or(text);
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    let related = || diagnostic.related.iter().map(|related| &related.place);
    let excerpt = Excerpt::around(std::iter::once(&diagnostic.place).chain(related()), text);
    let fix = diagnostic.fix.as_ref().and_then(|fix| Some((fix, Excerpt::around([&fix.place], text)?)));
    if let Some(excerpt) = &excerpt {
        let primary = AnnotationKind::Primary.span(excerpt.inside(&diagnostic.place));
        let related = diagnostic.related.iter().map(|related| {
            AnnotationKind::Context.span(excerpt.inside(&related.place)).label(related.message.as_str())
        });
        group = group.element(
            excerpt
                .snippet()
                .path(diagnostic.file.as_str())
                .annotation(primary.label(diagnostic.label.as_deref()))
                .annotations(related),
        );
    } else if !text.is_empty() {
        let start = diagnostic.place.start;
        let origin = Origin::path(diagnostic.file.as_str()).line(start.line as usize);
        group = group.element(origin.char_column(start.column as usize));
    }
    let help = diagnostic.help.as_deref();
    let Some((fix, excerpt)) = fix else {
        let unseen = diagnostic.fix.as_ref().map(|fix| match fix.replacement.as_str() {
            "" => "remove it".to_owned(),
            replacement => format!("write `{replacement}`"),
        });
        let help = help.map(str::to_owned).or(unseen);
        return vec![group.elements(help.map(|help| Level::HELP.message(help)))];
    };
    let title = help.unwrap_or(if fix.replacement.is_empty() { "remove it" } else { "write" });
    let patch = Patch::new(excerpt.inside(&fix.place), fix.replacement.as_str());
    vec![group, Level::HELP.secondary_title(title).element(excerpt.snippet().patch(patch))]
}

/// The lines that hold some places. To lay out the whole text for each diagnostic would take as long as the text is.
#[derive(Debug)]
struct Excerpt<'a> {
    text: &'a str,
    /// Where the lines begin in the whole text.
    start: usize,
    /// The first line's number, from 1.
    line: usize,
}

impl<'a> Excerpt<'a> {
    /// `None` where nothing could be read or a line is too long.
    fn around<'p>(places: impl IntoIterator<Item = &'p Place>, text: &'a str) -> Option<Self> {
        let (mut start, mut end, mut line) = (text.len(), 0, u32::MAX);
        for place in places {
            let bytes = inside(place, text);
            (start, end) = (start.min(bytes.start), end.max(bytes.end));
            line = line.min(place.start.line);
        }
        let start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
        let end = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
        let lines = text.get(start..end).filter(|_| !text.is_empty())?;
        let is_readable = lines.split('\n').all(|line| line.len() <= LONGEST_LINE);
        is_readable.then_some(Self { text: lines, start, line: line as usize })
    }

    fn snippet<T: Clone>(&self) -> Snippet<'a, T> {
        Snippet::source(self.text).line_start(self.line)
    }

    fn inside(&self, place: &Place) -> std::ops::Range<usize> {
        let moved = |byte: usize| byte.saturating_sub(self.start);
        let end = self.text.ceil_char_boundary(moved(place.bytes.end));
        self.text.floor_char_boundary(moved(place.bytes.start)).min(end)..end
    }
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
///   "docs": "docs/diagnostics/BS0101.md", "not_shown": null
/// }
/// ```
///
/// Lines and columns count from 1, columns in characters; `end` is the first position after the text. `label`,
/// `help` and `fix` are null where there is none. `not_shown` has the numbers of further `errors`, `warnings` and `notes`
/// where a finding says that there are (BS0610). Keys are only ever added.
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
        "not_shown": diagnostic.not_shown.map(|counts| {
            json!({ "errors": counts.errors, "warnings": counts.warnings, "notes": counts.notes })
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
