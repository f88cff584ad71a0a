//! A bound on what is said: [`MOST`] findings, and how many more there are.
//!
//! A hundred thousand findings have a few causes (another format, a table under the wrong name), and those show in the
//! first ones. Nobody reads the others, and looking for what was meant by each would take longer than anybody waits.
//!
//! What is graver goes first: a warning is told before any note, wherever it stands. What is told stands in the order of
//! the file.

use crate::code::{Code, Severity};
use crate::diagnostic::{Counts, Diagnostic};

/// Findings that are told, each with what was probably meant.
pub(crate) const MOST: usize = 100;

/// The gravest ones, and a last one with the number of the rest. They are in order already, and stay in it.
pub(crate) fn bounded(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if diagnostics.len() <= MOST {
        return diagnostics;
    }
    let mut by_gravity: Vec<usize> = (0..diagnostics.len()).collect();
    let severity = |index: &usize| diagnostics.get(*index).map(Diagnostic::severity);
    // Stable: within one severity the order of the file holds.
    by_gravity.sort_by_key(|index| std::cmp::Reverse(severity(index)));
    let mut is_told = vec![false; diagnostics.len()];
    for index in by_gravity.into_iter().take(MOST) {
        if let Some(told) = is_told.get_mut(index) {
            *told = true;
        }
    }
    let mut is_told = is_told.into_iter();
    let (mut told, rest): (Vec<_>, Vec<_>) =
        diagnostics.into_iter().partition(|_| is_told.next().unwrap_or(false));
    told.extend(rest.first().map(|next| not_shown(next, Counts::of(&rest))));
    told
}

/// How many are not shown; it stands where the first of them would.
fn not_shown(next: &Diagnostic, counts: Counts) -> Diagnostic {
    let one_kind = |count: usize, what: &str| {
        (count > 0).then(|| format!("{count} more {what}{}", if count == 1 { "" } else { "s" }))
    };
    let kinds = [
        one_kind(counts.errors, Severity::Error.name()),
        one_kind(counts.warnings, Severity::Warning.name()),
        one_kind(counts.notes, Severity::Note.name()),
    ];
    let kinds = kinds.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let is = if counts.errors + counts.warnings + counts.notes == 1 { "is" } else { "are" };
    Diagnostic {
        code: Code::NotShown,
        message: format!("{kinds} {is} not shown"),
        label: Some("the next one is here".to_owned()),
        related: Vec::new(),
        help: Some("repair those above first: many of a kind have one cause".to_owned()),
        fix: None,
        not_shown: Some(counts),
        ..next.clone()
    }
}
