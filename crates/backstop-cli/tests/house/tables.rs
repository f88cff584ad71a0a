//! Every word that goes out is documented, and nothing else is.

use std::collections::BTreeSet;

use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::status::Problem;

use crate::repository::{File, files, first_cells, section, text};

type Words = BTreeSet<String>;

fn set<'a>(words: impl IntoIterator<Item = &'a str>) -> Words {
    let mut set = Words::new();
    for word in words {
        assert!(set.insert(word.to_owned()), "{word} stands there twice");
    }
    set
}

#[test]
fn every_word_of_the_field_is_documented() {
    let page = text("docs/reference/headers.md");
    let documented = |heading| set(first_cells(section(&page, heading)));
    assert_eq!(documented("### Outcomes"), set(Outcome::ALL.map(Outcome::token)));
    assert_eq!(documented("### Sources"), set(Source::ALL.map(Source::token)));
    assert_eq!(documented("### Reasons"), set(Reason::TOKENS));
    let early = faults("fn token(");
    // A word that stands there too means the same in both places.
    let own = early.iter().map(String::as_str).filter(|token| !Reason::TOKENS.contains(token));
    assert_eq!(documented("### Before a route is known"), set(own));
}

#[test]
fn every_problem_type_is_documented() {
    const PREFIX: &str = "urn:backstop:problem:";
    let page = text("docs/problems.md");
    let documented = |heading| {
        let types = first_cells(section(&page, heading)).into_iter();
        set(types
            .map(|kind| kind.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{kind} is no problem type"))))
    };
    assert_eq!(documented("## After a decision"), set(Problem::ALL.map(Problem::token)));
    let early = faults("fn problem(");
    assert_eq!(documented("## Before a route is known"), set(early.iter().map(String::as_str)));
}

/// Every word that the engine has is written, so that whoever reads one may look for it in an answer of today.
#[test]
fn no_word_is_called_reserved() {
    for page in ["docs/reference/headers.md", "docs/problems.md"] {
        let rows = text(page);
        let is_row = |line: &&str| line.starts_with("| `") && line.contains("reserved");
        assert_eq!(rows.lines().filter(is_row).collect::<Vec<_>>(), [""; 0], "{page}");
    }
}

/// The words for what is refused before a route is known, as a function in the gateway's source lists them.
fn faults(function: &str) -> Vec<String> {
    let source = text("crates/backstop-gateway/src/strict.rs");
    let tokens = source.split(function).nth(1).and_then(|rest| rest.split("\n    }").next());
    let arms =
        tokens.expect("strict.rs names its faults").lines().filter_map(|line| line.split("=> \"").nth(1));
    let tokens: Vec<String> = arms.filter_map(|arm| arm.split('"').next()).map(str::to_owned).collect();
    assert!(tokens.len() >= 5, "{tokens:?}");
    tokens
}

/// The names that the source of the metrics writes.
fn emitted() -> Words {
    let is_source = |path: &str| {
        path == "crates/backstop-gateway/src/metrics.rs" || path.contains("backstop-gateway/src/metrics/")
    };
    let sources: Vec<File> = files(is_source);
    let mut names = Words::new();
    for source in &sources {
        let literals = source.without_tests().split('"').skip(1).step_by(2);
        let is_name = |literal: &&str| {
            literal.starts_with("backstop_")
                && literal
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        names.extend(literals.filter(is_name).map(str::to_owned));
    }
    names
}

#[test]
fn every_metric_is_documented() {
    let page = text("docs/reference/metrics.md");
    let mut documented = Words::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().unwrap_or_default().trim_end_matches('`');
        let kind = cells.next().unwrap_or_default();
        assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{name} is a {kind}");
        let base = name.strip_suffix("_total");
        assert_eq!(base.is_some(), kind == "counter", "{name}: only counters end in _total, and all do");
        assert!(documented.insert(base.unwrap_or(name).to_owned()), "{name} stands there twice");
    }
    assert_eq!(documented, emitted());
}
