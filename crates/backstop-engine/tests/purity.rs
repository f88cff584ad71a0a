//! The engine decides and does nothing else: no dependency, no clock, no files, no sockets, no threads, no waiting.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of a test")]

use std::path::{Path, PathBuf};

/// What stays outside, by the name that the source would need to use.
const FORBIDDEN: [&str; 14] = [
    "Instant",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::io",
    "std::env",
    "std::process",
    "thread::spawn",
    "thread::sleep",
    "thread_rng",
    "RandomState",
    "async fn",
    ".await",
    "Mutex",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::disallowed_methods, reason = "a test reads the source that it judges")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every source file that is not a test.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("the source is there") {
        let path = entry.expect("the source is readable").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The part of a file above its tests, without comments.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_engine_has_no_dependencies() {
    let manifest = read(&root().join("Cargo.toml"));
    let mut table = "";
    let mut used = Vec::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            table = line;
        } else if table.contains("dependencies") && !table.contains("dev-dependencies") {
            used.push((table, line));
        }
    }
    // The checker of interleavings replaces the atomics while it runs, and is never built otherwise.
    assert_eq!(used, [("[target.'cfg(loom)'.dependencies]", "loom.workspace = true")]);
}

#[test]
fn the_engine_reads_no_clock_and_does_no_work_but_deciding() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let code = code(&read(&file));
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{} mentions {word}", file.display());
        }
    }
}
