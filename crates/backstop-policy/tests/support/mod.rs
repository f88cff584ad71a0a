//! What the tests share: small policies to complete, and files to read.

#![allow(dead_code, clippy::allow_attributes, reason = "every test file uses its own part")]

use std::io;
use std::path::Path;

use backstop_policy::{Diagnostic, FileSource, Loaded, parse};

/// The files that policies in tests may name.
pub(crate) struct Files;

impl FileSource for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("general.json") => Ok(br#"{"items":[]}"#.to_vec()),
            Some("broken.json") => Ok(br#"{"items":["#.to_vec()),
            Some("general.bin") => Ok(vec![0, 1]),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }
}

const GATEWAY: &str = "\n[gateway]\nlisten = \"127.0.0.1:8080\"\nin_flight = 1000\n";
const DEPENDENCY: &str = "\n[dependency.catalog]\nurl = \"http://127.0.0.1:9001\"\n";
const ROUTE: &str = "
[route.rest.direct]
match = \"*\"
dependency = \"catalog\"
deadline = \"1s\"
in_flight = 50
";

/// A whole policy: the fragment, then the tables that it leaves out.
pub(crate) fn completed(fragment: &str) -> String {
    let mut text = fragment.to_owned();
    for (table, default) in [("[gateway", GATEWAY), ("[dependency", DEPENDENCY), ("[route", ROUTE)] {
        if !fragment.contains(table) {
            text.push_str(default);
        }
    }
    text
}

/// Parses a completed fragment as `policy.toml`.
pub(crate) fn parsed(fragment: &str) -> (String, Result<Loaded, Vec<Diagnostic>>) {
    let text = completed(fragment);
    let result = parse(&text, "policy.toml", &Files);
    (text, result)
}

/// Everything said about a completed fragment, whether it is accepted or not.
pub(crate) fn diagnosed(fragment: &str) -> (String, Vec<Diagnostic>) {
    let (text, result) = parsed(fragment);
    (text, result.map_or_else(|diagnostics| diagnostics, |loaded| loaded.warnings))
}
