//! What is gathered while the file is read: diagnostics and the places of all rules.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use backstop_engine::policy::Origin;

use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Finding};
use crate::lines::LineIndex;
use crate::rest;
use crate::source::Source;

/// Gathers diagnostics and places.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    file: &'a str,
    text: &'a str,
    lines: LineIndex<'a>,
    diagnostics: Vec<Diagnostic>,
    sources: Vec<Source>,
    /// First and last lines of what is broken; none touches another.
    broken_lines: BTreeMap<usize, usize>,
    unreadable: Vec<String>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            lines: LineIndex::new(text),
            diagnostics: Vec::new(),
            sources: Vec::new(),
            broken_lines: BTreeMap::new(),
            unreadable: Vec::new(),
        }
    }

    /// Remembers a key that is written but could not be read.
    pub(crate) fn set_unreadable(&mut self, path: String) {
        self.unreadable.push(path);
    }

    /// Whether this key is written but could not be read: it is not missing, then.
    pub(crate) fn is_unreadable(&self, path: &str) -> bool {
        self.unreadable.iter().any(|unreadable| unreadable == path)
    }

    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Reports a finding, unless it only follows from a syntax error: on the same line, or as something missing.
    pub(crate) fn report(&mut self, finding: Finding) {
        let diagnostic = finding.place(self.file, &self.lines);
        if !self.follows_from_syntax(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports a syntax error and remembers the lines of these bytes as broken.
    pub(crate) fn report_syntax(&mut self, finding: Finding, broken: Range<usize>) {
        let (mut first, mut last) = (self.lines.line_of(broken.start), self.lines.line_of(broken.end));
        while let Some((earlier, end)) = self.broken_up_to(last).filter(|&(_, end)| end >= first) {
            self.broken_lines.remove(&earlier);
            (first, last) = (first.min(earlier), last.max(end));
        }
        self.broken_lines.insert(first, last);
        self.diagnostics.push(finding.place(self.file, &self.lines));
    }

    /// Takes over what was found in another file that the policy names.
    pub(crate) fn adopt(&mut self, found: Vec<Diagnostic>, text: &str) {
        let text: Arc<str> = text.into();
        let found =
            found.into_iter().map(|diagnostic| Diagnostic { text: Some(Arc::clone(&text)), ..diagnostic });
        self.diagnostics.extend(found);
    }

    /// What is broken and begins last up to this line.
    fn broken_up_to(&self, line: usize) -> Option<(usize, usize)> {
        self.broken_lines.range(..=line).next_back().map(|(&first, &last)| (first, last))
    }

    /// Whether one more finding would be told. Where not, what it could suggest is not looked for: that takes long.
    pub(crate) fn has_room(&self) -> bool {
        self.diagnostics.len() < rest::MOST
    }

    fn follows_from_syntax(&self, diagnostic: &Diagnostic) -> bool {
        if self.broken_lines.is_empty() {
            return false;
        }
        let line = self.lines.line_of(diagnostic.place.bytes.start);
        let about_absence = matches!(
            diagnostic.code,
            Code::MissingKey
                | Code::MissingContract
                | Code::UnknownReference
                | Code::RouteClass
                | Code::ExactlyOne
                | Code::AtLeastOne
                | Code::RecoveryWithoutBreaker
                | Code::ProbesNeverGo
                | Code::NoScope
                | Code::ScopeNotVerified
                | Code::NeedsStatusQuery
                | Code::NobodyFollows
                | Code::AbsenceNotWhole
        );
        about_absence
            || diagnostic.severity() < Severity::Error
            || self.broken_up_to(line).is_some_and(|(_, last)| line <= last)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    pub(crate) fn has(&self, code: Code) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.code == code)
    }

    /// Remembers where a rule was written.
    pub(crate) fn origin(&mut self, path: &str, bytes: Range<usize>) -> Origin {
        let Ok(id) = u32::try_from(self.sources.len()) else { return Origin::NONE };
        let text = self.text.get(bytes.clone()).and_then(|text| text.lines().next()).unwrap_or_default();
        let place = self.lines.place(bytes);
        self.sources.push(Source { path: path.to_owned(), place, text: text.to_owned() });
        Origin(id)
    }

    /// Everything gathered, as [`all`](Self::all) says; of many errors only the first are told.
    pub(crate) fn finish(self) -> (Vec<Diagnostic>, Vec<Source>) {
        let has_errors = self.has_errors();
        let (diagnostics, sources) = self.all();
        (if has_errors { rest::bounded(diagnostics) } else { diagnostics }, sources)
    }

    /// Everything gathered: diagnostics by place, those of other files last, and the places.
    ///
    /// Warnings and notes judge a policy that could be run, so they are left out while there is an error: half of
    /// them would only follow from it.
    pub(crate) fn all(mut self) -> (Vec<Diagnostic>, Vec<Source>) {
        if self.has_errors() {
            self.diagnostics.retain(|diagnostic| diagnostic.severity() == Severity::Error);
        }
        let other_file = |diagnostic: &Diagnostic| diagnostic.text.as_ref().map(|_| diagnostic.file.clone());
        self.diagnostics.sort_by_cached_key(|diagnostic| {
            (other_file(diagnostic), diagnostic.place.bytes.start, diagnostic.code)
        });
        (self.diagnostics, self.sources)
    }
}
