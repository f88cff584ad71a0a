//! From text or a file to everything a process needs, or to all that is wrong with it.

use std::path::Path;

use backstop_engine::policy::Policy;
use toml::de::DeValue;

use crate::code::{Code, Severity};
use crate::diagnostic::{Diagnostic, Finding};
use crate::read::{Context, Node, Value};
use crate::settings::{
    AuthorizerSettings, CacheSettings, DependencySettings, GatewaySettings, RouteSettings, StoreSettings,
};
use crate::shape::File;
use crate::source::{Disk, FileSource, SourceMap};
use crate::{check, lower, render_human, rest, syntax, waiver};

/// A policy that holds in every part.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the engine decides by.
    pub policy: Policy,
    /// The process as a whole.
    pub gateway: GatewaySettings,
    /// Where copies are kept.
    pub store: StoreSettings,
    /// What is called: the same order as `policy.dependencies`.
    pub dependencies: Vec<DependencySettings>,
    /// Those of the dependencies, the last ones, that say whether callers may.
    pub authorizers: Vec<AuthorizerSettings>,
    /// What is asked before that: the same order as `policy.caches`.
    pub caches: Vec<CacheSettings>,
    /// What is answered: the same order as `policy.routes`.
    pub routes: Vec<RouteSettings>,
    /// Where every rule was written.
    pub sources: SourceMap,
    /// Warnings and notes, by place; of more than 100, 100 and a note with the number of the rest, warnings first.
    pub warnings: Vec<Diagnostic>,
    /// Warnings and notes that the file waives, with its reasons.
    pub waived: Vec<Waived>,
}

/// A warning that the policy waives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waived {
    /// What was found.
    pub diagnostic: Diagnostic,
    /// Why it is accepted.
    pub reason: String,
}

/// A policy file that is refused as a whole.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the policy is refused\n\n{}", render_human(.diagnostics, .text, false))]
pub struct Refused {
    /// The file's text, as the renderers need it; empty if it could not be read, and with replacement characters where it
    /// is not UTF-8.
    pub text: String,
    /// Errors, by place; at least one. Of more than 100, the first 100 and a note with the number of the rest.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads and parses a policy file; prepared answers and evidence are read from the disk, relative to it.
///
/// # Errors
/// Everything that is wrong with the file, or that it cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Refused> {
    let file = path.to_string_lossy();
    let refused = |text: String, finding: Finding| {
        let mut cx = Context::new(&file, &text);
        cx.report(finding);
        Refused { diagnostics: cx.finish().0, text }
    };
    let bytes = std::fs::read(path).map_err(|error| {
        let finding = Finding::new(Code::Unreadable, 0..0, format!("cannot read `{file}`: {error}"));
        refused(String::new(), finding.help("check the path and the permissions"))
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| refused(String::from_utf8_lossy(error.as_bytes()).into_owned(), not_utf8(&error)))?;
    parse(&text, &file, &Disk).map_err(|diagnostics| Refused { text, diagnostics })
}

/// Says which byte is wrong: the first that belongs to no character, counted from 0. What precedes it is unchanged in the
/// text with replacement characters, so line and column hold there.
fn not_utf8(error: &std::string::FromUtf8Error) -> Finding {
    let at = error.utf8_error().valid_up_to();
    let message = match error.as_bytes().get(at) {
        Some(byte) => format!("the file is not UTF-8: byte 0x{byte:02X} at offset {at}"),
        None => format!("the file is not UTF-8 from offset {at} on"),
    };
    Finding::new(Code::Unreadable, at..at + 1, message)
        .help("save it as UTF-8, the one encoding that TOML has")
}

/// Parses a policy. `file` names it in diagnostics, and its folder is where relative paths begin.
///
/// # Errors
/// Everything that is wrong, in the order of the text: errors only, for warnings judge a policy that could be run. Of
/// more than 100, the first 100 and a note with the number of the rest.
pub fn parse(text: &str, file: &str, files: &dyn FileSource) -> Result<Loaded, Vec<Diagnostic>> {
    let mut cx = Context::new(file, text);
    let document = syntax::parse(&mut cx);
    let root = toml::Spanned::new(0..0, DeValue::Table(document.into_inner()));
    let Some(shape) = File::read(Node { path: "", value: &root }, &mut cx) else {
        return Err(cx.finish().0);
    };
    let checked = check::run(&shape, files, &mut cx);
    let waivers = waiver::read(&shape, &mut cx);
    if cx.has_errors() {
        return Err(cx.finish().0);
    }
    let lowered = lower::lower(&shape, &checked);
    waiver::report_unused(&waivers, &mut cx);
    let (diagnostics, sources) = cx.finish();
    let (warnings, waived) = waiver::apply(&waivers, diagnostics);
    debug_assert!(warnings.iter().all(|warning| warning.severity() < Severity::Error));
    Ok(Loaded {
        policy: lowered.policy,
        gateway: lowered.gateway,
        store: lowered.store,
        dependencies: lowered.dependencies,
        authorizers: lowered.authorizers,
        caches: lowered.caches,
        routes: lowered.routes,
        sources: SourceMap::new(file, text, sources),
        warnings: rest::bounded(warnings),
        waived,
    })
}
