//! What the tests share: small policies to complete, and files to read.

#![allow(dead_code, clippy::panic, clippy::allow_attributes, reason = "every test file uses its own part")]

use std::io;
use std::path::Path;

use backstop_engine::time::Wall;
use backstop_policy::{Code, Diagnostic, FileSource, Loaded, Severity, parse, render_human};

/// The files that policies in tests may name.
pub(crate) struct Files;

impl FileSource for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("general.json") => Ok(br#"{"items":[]}"#.to_vec()),
            Some("broken.json") => Ok(br#"{"items":["#.to_vec()),
            // One byte above 1 MiB.
            Some("large.json") => Ok(format!("\"{}\"", "x".repeat((1 << 20) - 1)).into()),
            Some("general.bin") => Ok(vec![0, 1]),
            Some("secrets/token") => Ok(b"Bearer from-a-file\r\n".to_vec()),
            Some("secrets/long") => Ok(vec![b'x'; 8193]),
            Some("secrets/longest") => Ok(vec![b'x'; 8192]),
            Some("secrets/binary") => Ok(vec![0xff]),
            Some("evidence/replica.toml") => Ok(evidence("").into()),
            Some("evidence/old.toml") => Ok(evidence("valid_until = 2026-11-29").into()),
            Some("evidence/reviews.toml") => Ok(evidence("dependency = \"reviews\"").into()),
            Some("evidence/before.toml") => Ok(evidence("policy = \"5f0c\"").into()),
            Some("evidence/date.toml") => Ok(evidence("valid_until = 2027-02-28T12:00:00").into()),
            Some("evidence/slow.toml") => Ok(evidence("p95 = \"80\"").into()),
            Some("evidence/binary.toml") => Ok(vec![0xff]),
            Some("evidence/locked.toml") => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            Some(path) => {
                // Anything below `written/` holds what its name says, so that a test can state a file in one place.
                let line = path.strip_prefix("written/").ok_or(io::ErrorKind::NotFound)?;
                Ok(evidence(line).into())
            }
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("Bearer t0p-secret".into()),
            "EMPTY" => Some(String::new()),
            "TWO_LINES" => Some("s3cret\nx-other: 1".into()),
            _ => None,
        }
    }

    /// Noon of 2026-11-30 in UTC.
    fn now(&self) -> Wall {
        Wall::from_unix_ns((1_795_996_800 + 12 * 3600) * 1_000_000_000)
    }
}

/// An evidence file, with this line in place of the one of the same key or added to it.
fn evidence(line: &str) -> String {
    const LINES: [&str; 7] = [
        "dependency  = \"replica\"",
        "rate        = \"500/s\"",
        "concurrency = 20",
        "p95         = \"80ms\"",
        "measured    = 2026-10-01",
        "valid_until = 2027-01-01",
        "load        = \"reads of the back office\"",
    ];
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let mut lines: Vec<&str> = LINES.into_iter().filter(|other| key(other) != key(line)).collect();
    lines.push(line);
    lines.join("\n") + "\n"
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

/// A route that reads, whose dependency follows from what it stands in.
pub(crate) const READ: &str = "[route.x.public_read]\nmatch = \"GET /x\"\ndependency = \"catalog\"\n\
    deadline = \"300ms\"\nin_flight = 10\nmax_age = \"60s\"\nkey = []\ncorrect = { type = \"application/json\" }\n";
/// A dependency that may be an alternative.
pub(crate) const REPLICA: &str = "[dependency.replica]\nurl = \"http://replica\"\nconnections = 20\n";

/// The dependency that is asked, with these lines, and a route that reads it.
pub(crate) fn dependency(lines: &str) -> String {
    format!("[dependency.catalog]\nurl = \"http://x\"\nconnections = 20\n{lines}\n{READ}")
}

/// A route that reads, with these lines, at a dependency that has a replica.
pub(crate) fn read(lines: &str) -> String {
    format!("[dependency.catalog]\nurl = \"http://x\"\nconnections = 20\n{REPLICA}{READ}{lines}\n")
}

/// Another route that reads, at `/y`.
pub(crate) fn other_read() -> String {
    READ.replace("route.x", "route.y").replace("/x", "/y")
}

/// Asserts that exactly these codes are said, besides the note on drills and what [`read`] leaves without a use.
#[track_caller]
pub(crate) fn says(fragment: &str, expected: &[Code]) {
    let (_, diagnostics) = diagnosed(fragment);
    let is_usual = |code: Code| matches!(code, Code::Unmeasured | Code::UnusedDependency);
    let codes: Vec<_> =
        diagnostics.into_iter().map(|found| found.code).filter(|&code| !is_usual(code)).collect();
    assert_eq!(codes, expected, "{fragment}");
}

/// A completed fragment that is accepted.
#[track_caller]
pub(crate) fn loaded(fragment: &str) -> Loaded {
    let (text, result) = parsed(fragment);
    result.unwrap_or_else(|diagnostics| panic!("{}", render_human(&diagnostics, &text, false)))
}

/// The codes of all errors.
pub(crate) fn errors(fragment: &str) -> Vec<Code> {
    let (_, diagnostics) = diagnosed(fragment);
    diagnostics.iter().filter(|d| d.severity() == Severity::Error).map(|d| d.code).collect()
}

#[track_caller]
pub(crate) fn refused(fragment: &str, code: Code) {
    assert_eq!(errors(fragment), [code], "{fragment}");
}

/// An authorizer that names whom it verified.
pub(crate) const AUTHORIZER: &str = "[authorizer.sessions]\nurl = \"http://127.0.0.1:9003/check\"\n\
    allow = { header = \"x-allowed: yes\" }\nprincipal = \"header.x-user\"\ntimeout = \"100ms\"\nin_flight = 60\n";

/// A route that writes operations and asks for their status, with these lines in place of those of the same keys or added
/// to them. A line `KEY =` leaves the key out.
pub(crate) fn effect(lines: &str) -> String {
    const LINES: [&str; 10] = [
        "match = \"POST /pay\"",
        "authorizer = \"sessions\"",
        "dependency = \"catalog\"",
        "deadline = \"10s\"",
        "in_flight = 10",
        "shared_account = false",
        "outcome = { succeeded = [{ status = 201 }], refused = [{ status = [400, 402, 422] }] }",
        "status_query = { path = \"/operations/{operation_id}\", succeeded = [{ status = 200, json = { \"/status\" = \"succeeded\" } }], absent = [{ status = 404, json = { \"/error\" = \"not_found\" } }] }",
        "upstream_retention = \"24h\"",
        "unknown_answer = \"auto\"",
    ];
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let given: Vec<String> = lines.lines().map(key).collect();
    let kept = LINES.into_iter().filter(|line| !given.contains(&key(line)));
    let added = lines.lines().filter(|line| !line.trim_end().ends_with('='));
    let table: Vec<_> = kept.chain(added).collect();
    let authorizer = if table.contains(&LINES[1]) { AUTHORIZER } else { "" };
    format!("{authorizer}[route.pay.effect]\n{}\n", table.join("\n"))
}

/// Asserts that exactly these codes are said of a fragment, besides the note on drills.
#[track_caller]
pub(crate) fn says_exactly(fragment: &str, expected: &[Code]) {
    let (_, result) = parsed(fragment);
    let diagnostics = result.map_or_else(|refused| refused, |loaded| loaded.warnings);
    let codes: Vec<_> =
        diagnostics.into_iter().map(|found| found.code).filter(|&code| code != Code::Unmeasured).collect();
    assert_eq!(codes, expected, "{fragment}");
}
