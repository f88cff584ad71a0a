//! A bound on what is said: the first [`MOST`] findings by place, and how many more there are.
//!
//! A hundred thousand findings have a few causes (another format, a table under the wrong name), and those show in the
//! first ones. Nobody reads the others, and looking for what was meant by each would take longer than anybody waits.

use crate::code::Code;
use crate::diagnostic::Diagnostic;

/// Findings that are told, each with what was probably meant.
pub(crate) const MOST: usize = 100;

/// The first ones, and a last one with the number of the rest. They are in order already.
pub(crate) fn bounded(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let rest = diagnostics.len().saturating_sub(MOST);
    let (Some(first), 1..) = (diagnostics.get(MOST), rest) else { return diagnostics };
    let more = Diagnostic {
        code: Code::NotShown,
        message: format!("{rest} more {} not shown", if rest == 1 { "finding is" } else { "findings are" }),
        label: Some("the next one is here".to_owned()),
        related: Vec::new(),
        help: Some("repair those above first: many of a kind have one cause".to_owned()),
        fix: None,
        ..first.clone()
    };
    diagnostics.truncate(MOST);
    diagnostics.push(more);
    diagnostics
}
