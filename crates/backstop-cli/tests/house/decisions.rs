//! Decisions are numbered and say what would change them.

use crate::repository::documents;

#[test]
fn decisions_have_one_form() {
    let decisions: Vec<_> =
        documents().into_iter().filter(|file| file.path.starts_with("docs/adr/")).collect();
    assert!(!decisions.is_empty());
    for (number, decision) in (1..).zip(&decisions) {
        let name = decision.path.trim_start_matches("docs/adr/");
        let (digits, _) = name.split_once('-').unwrap_or_default();
        assert_eq!(digits, format!("{number:04}"), "{name} has the next number");
        assert!(
            decision.text.starts_with(&format!("# {digits}: ")),
            "{name} begins with its number and title"
        );
        let headings: Vec<&str> = decision.text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## Context", "## Decision", "## Evidence", "## When to revisit"], "{name}");
        assert!(decision.text.contains("\nStatus: "), "{name} has a status");
    }
}
