//! Every promise is held by tests that exist.

use std::collections::BTreeSet;

use crate::repository::{File, documents, quoted, rust, text};

/// The names of all tests.
fn tests(files: &[File]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for file in files {
        let mut is_next = false;
        for line in file.text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_next = true;
            } else if is_next && let Some(name) = line.split("fn ").nth(1) {
                names.insert(name.split(['(', '<']).next().unwrap_or_default());
                is_next = false;
            }
        }
    }
    names
}

/// What follows a mark, up to the end of its paragraph.
fn paragraphs<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    text.split(mark).skip(1).filter_map(|rest| rest.split("\n\n").next()).collect()
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.match_indices("G-").filter_map(|(at, _)| text.get(at..at + 4));
    parts.filter(|number| number[2..].bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    let page = text("GUARANTEES.md");
    let files = rust();
    let tests = tests(&files);
    let mut wrong = Vec::new();
    for guarantee in page.split("\n### ").skip(1) {
        let number = guarantee.split(' ').next().unwrap_or_default();
        let held_by = paragraphs(guarantee, "*Held by*:");
        assert_eq!(held_by.len(), 1, "{number} says once what holds it");
        let mut named = BTreeSet::new();
        for name in held_by.into_iter().flat_map(quoted) {
            if !named.insert(name) {
                wrong.push(format!("{number}: {name} is named twice"));
            }
            if !tests.contains(name) {
                wrong.push(format!("{number}: there is no test {name}"));
            }
        }
        assert!(!named.is_empty(), "{number} names no test");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_number_is_given_once_and_in_order() {
    let page = text("GUARANTEES.md");
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    let given: Vec<&str> = headings.filter_map(|heading| heading.split(' ').next()).collect();
    let expected: Vec<String> = (1..=given.len()).map(|number| format!("G-{number:02}")).collect();
    assert_eq!(given, expected);
    for document in documents() {
        for number in numbers(&document.text) {
            assert!(given.contains(&number), "{} speaks of {number}, which is not promised", document.path);
        }
    }
}

#[test]
fn every_decision_names_tests_that_exist() {
    let files = rust();
    let tests = tests(&files);
    let mut wrong = Vec::new();
    for document in documents().iter().filter(|document| document.path.starts_with("docs/adr/")) {
        for name in paragraphs(&document.text, "\nHeld by ").into_iter().flat_map(quoted) {
            if !tests.contains(name) {
                wrong.push(format!("{}: there is no test {name}", document.path));
            }
        }
        for name in quoted(evidence(&document.text)).filter(|name| is_sentence(name)) {
            if !tests.contains(name) {
                wrong.push(format!("{}: there is no test {name}", document.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a decision rests on.
fn evidence(decision: &str) -> &str {
    let after = decision.split("\n## Evidence\n").nth(1).unwrap_or_default();
    after.split("\n## ").next().unwrap_or_default()
}

/// Whether a name can only be a test's: a sentence of at least four words. Settings and functions have fewer, and metrics
/// begin with the product's name.
fn is_sentence(name: &str) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let is_word = |word: &&str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    words.len() >= 4 && !name.starts_with("backstop_") && words.iter().all(is_word)
}
