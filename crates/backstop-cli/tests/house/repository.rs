//! The files of this repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const ELSEWHERE: [&str; 4] = ["target", ".git", "backstop-data", "node_modules"];

/// The folder of everything.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// A text file, by its path below the root.
pub(crate) fn text(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One file with its path below the root.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Whether it is Rust that only tests need.
    pub(crate) fn is_test(&self) -> bool {
        let parts = || self.path.trim_end_matches(".rs").split('/');
        parts().any(|part| matches!(part, "tests" | "benches" | "testing"))
            || self.path.ends_with("_tests.rs")
    }

    /// Its text above the tests that it holds itself.
    pub(crate) fn without_tests(&self) -> &str {
        match self.text.find("#[cfg(test)]\nmod ") {
            Some(tests) => &self.text[..tests],
            None => &self.text,
        }
    }
}

/// Every text file whose path satisfies a condition, in the order of the paths.
pub(crate) fn files(wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !ELSEWHERE.contains(&name.as_str()) {
                    folders.push(path);
                }
                continue;
            }
            let below = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            // Somebody may be writing files while the tests run.
            if wanted(&below)
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push(File { path: below, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Every Rust file.
pub(crate) fn rust() -> Vec<File> {
    files(|path| path.ends_with(".rs"))
}

/// Every document.
pub(crate) fn documents() -> Vec<File> {
    files(|path| path.ends_with(".md"))
}

/// The fenced blocks of one language in a document.
pub(crate) fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    document.split(&open).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The part of a document below a heading, up to the next one of the same or a higher level.
pub(crate) fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let start = document.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    let body = &document[start + heading.len() + 2..];
    let level = heading.chars().take_while(|character| *character == '#').count();
    let ends = (1..=level).filter_map(|level| body.find(&format!("\n{} ", "#".repeat(level))));
    &body[..ends.min().unwrap_or(body.len())]
}

/// The text between backticks.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The first cell of every table row that begins with a word in backticks.
pub(crate) fn first_cells(section: &str) -> Vec<&str> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).collect()
}
