//! What is wrong, where, and what to do about it.

use std::ops::Range;
use std::sync::Arc;

use crate::code::{Code, Severity};
use crate::lines::{LineIndex, Position};

/// One thing to say about the policy file, or about an evidence file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its stable code.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The policy file, as it was named to the parser, or the other file that this is about.
    pub file: String,
    /// The text of `file`, if that is not the policy file. All places lie in it.
    pub text: Option<Arc<str>>,
    /// The offending text.
    pub place: Place,
    /// What stands at that place, if the message needs it.
    pub label: Option<String>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// What to do about it.
    pub help: Option<String>,
    /// A replacement that repairs it.
    pub fix: Option<Fix>,
    /// How many findings are not shown, if that is what this one says.
    pub not_shown: Option<Counts>,
}

/// How many findings there are of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that refuse the file.
    pub errors: usize,
    /// Those that a person should look at.
    pub warnings: usize,
    /// Those that are only said.
    pub notes: usize,
}

impl Counts {
    /// How many there are, those included that one of them says are not shown. What says so does not count itself.
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        diagnostics.iter().fold(Self::default(), |sum, diagnostic| {
            let one = |severity| usize::from(diagnostic.severity() == severity);
            let counts = diagnostic.not_shown.unwrap_or(Self {
                errors: one(Severity::Error),
                warnings: one(Severity::Warning),
                notes: one(Severity::Note),
            });
            Self {
                errors: sum.errors + counts.errors,
                warnings: sum.warnings + counts.warnings,
                notes: sum.notes + counts.notes,
            }
        })
    }
}

impl Diagnostic {
    /// How grave it is.
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the text; both ends lie on character boundaries.
    pub bytes: Range<usize>,
    /// Where it begins.
    pub start: Position,
    /// Where it ends (the first character after it).
    pub end: Position,
}

/// Another place that has to do with a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub place: Place,
    /// What stands there.
    pub message: String,
}

/// A piece of text and what should stand there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What is replaced; empty to insert.
    pub place: Place,
    /// What takes its place; empty to delete.
    pub replacement: String,
}

/// A diagnostic in the making: bytes only, lines and columns come when it is reported.
#[derive(Debug)]
#[must_use = "a finding says nothing until it is reported"]
pub(crate) struct Finding {
    code: Code,
    bytes: Range<usize>,
    message: String,
    label: Option<String>,
    related: Vec<(Range<usize>, String)>,
    help: Option<String>,
    fix: Option<(Range<usize>, String)>,
}

impl Finding {
    pub(crate) fn new(code: Code, bytes: Range<usize>, message: impl Into<String>) -> Self {
        Self { code, bytes, message: message.into(), label: None, related: Vec::new(), help: None, fix: None }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn related(mut self, bytes: Range<usize>, message: impl Into<String>) -> Self {
        self.related.push((bytes, message.into()));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn fix(mut self, bytes: Range<usize>, replacement: impl Into<String>) -> Self {
        self.fix = Some((bytes, replacement.into()));
        self
    }

    /// Completes the finding with lines and columns.
    pub(crate) fn place(self, file: &str, lines: &LineIndex<'_>) -> Diagnostic {
        Diagnostic {
            code: self.code,
            message: self.message,
            file: file.to_owned(),
            text: None,
            place: lines.place(self.bytes),
            label: self.label,
            related: self
                .related
                .into_iter()
                .map(|(bytes, message)| Related { place: lines.place(bytes), message })
                .collect(),
            help: self.help,
            fix: self.fix.map(|(bytes, replacement)| Fix { place: lines.place(bytes), replacement }),
            not_shown: None,
        }
    }
}
