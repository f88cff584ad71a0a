//! Files stay small, and nothing is left open in them.

use crate::repository::{File, files, rust};

const MEDIAN_LINES: usize = 150;
const MOST_LINES: usize = 500;

/// Longer files, each with the reason.
const LONGER: [(&str, &str); 0] = [];

#[test]
fn files_are_small() {
    let files = rust();
    let mut lines: Vec<usize> = files.iter().map(|file| file.text.lines().count()).collect();
    lines.sort_unstable();
    let median = lines.get(lines.len() / 2).copied().unwrap_or_default();
    assert!(median <= MEDIAN_LINES, "the median file has {median} lines, {MEDIAN_LINES} are enough");

    let is_listed = |file: &File| LONGER.iter().any(|(path, _reason)| *path == file.path);
    let is_long = |file: &File| file.without_tests().lines().count() > MOST_LINES;
    let long: Vec<_> =
        files.iter().filter(|file| is_long(file) && !is_listed(file)).map(|file| &file.path).collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines without tests: {long:#?}");
    for (path, _reason) in LONGER {
        assert!(files.iter().any(|file| file.path == path && is_long(file)), "{path} is not long any more");
    }
}

#[test]
fn nothing_is_postponed() {
    // In pieces, so that this file does not hold what it looks for.
    let words = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X:"),
        concat!("#[ig", "nore"),
        concat!("dbg", "!("),
    ];
    for file in rust() {
        for word in words {
            assert!(!file.text.contains(word), "{} holds {word}", file.path);
        }
    }
}

/// Clippy holds this too; a lint can be silenced, this cannot.
#[test]
fn nothing_outside_tests_panics_on_purpose() {
    let mut found = Vec::new();
    for file in rust().iter().filter(|file| file.path.starts_with("crates/") && !file.is_test()) {
        for (number, line) in file.without_tests().lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains(".unwrap()") || code.contains(".expect(\"") || code.contains("panic!(") {
                found.push(format!("{}:{}: {}", file.path, number + 1, code.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What a snapshot test writes down where it found something else: it is accepted or deleted, and never kept.
#[test]
fn no_snapshot_waits_to_be_accepted() {
    let is_pending = |path: &str| path.ends_with(".pending-snap") || path.ends_with(".snap.new");
    let found: Vec<_> = files(is_pending).into_iter().map(|file| file.path).collect();
    assert!(found.is_empty(), "accept or delete them: {found:#?}");
}
