//! A drill file: from text to what a drill asks, breaks and expects, or to all that is wrong with it.
//!
//! It is read like a policy: strictly, with line and column, and refused as a whole. It belongs to one policy, whose names it
//! uses.

mod check;
mod settings;

use std::path::Path;

use toml::de::DeValue;

use crate::diagnostic::Diagnostic;
use crate::load::{Loaded, Refused};
use crate::read::{Context, Node, Value as _};
use crate::shape::DrillTable;
use crate::source::{Disk, FileSource as _};
use crate::syntax;

pub use settings::{DrillExpect, DrillFault, DrillFaultKind, DrillLoad, DrillSettings};

/// Reads and parses a drill file.
///
/// # Errors
/// Everything that is wrong with the file, or that it cannot be read.
pub fn load_drill(path: &Path, policy: &Loaded) -> Result<DrillSettings, Refused> {
    let file = path.to_string_lossy();
    let read = Disk.read(path).map_err(|error| error.to_string());
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
    let text = text.map_err(|why| {
        let mut cx = Context::new(&file, "");
        let message = format!("cannot read `{file}`: {why}");
        let finding = crate::diagnostic::Finding::new(crate::code::Code::Unreadable, 0..0, message);
        cx.report(finding.help("check the path and the permissions; it is a TOML file in UTF-8"));
        Refused { diagnostics: cx.finish().0, text: String::new() }
    })?;
    parse_drill(&text, &file, policy).map_err(|diagnostics| Refused { text, diagnostics })
}

/// Parses a drill file for this policy. `file` names it in diagnostics.
///
/// # Errors
/// Everything that is wrong, in the order of the text.
pub fn parse_drill(text: &str, file: &str, policy: &Loaded) -> Result<DrillSettings, Vec<Diagnostic>> {
    let mut cx = Context::new(file, text);
    let document = syntax::parse(&mut cx);
    let root = toml::Spanned::new(0..0, DeValue::Table(document.into_inner()));
    let table = DrillTable::read(Node { path: "", value: &root }, &mut cx);
    if let Some(table) = &table {
        check::run(table, policy, &mut cx);
    }
    if cx.has_errors() {
        return Err(cx.finish().0);
    }
    let (diagnostics, sources) = cx.finish();
    table.and_then(|table| settings::lower(table, &sources)).ok_or(diagnostics)
}
