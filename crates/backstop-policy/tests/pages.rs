//! Every code has a page, every page a code, and the examples on it are true: the first is diagnosed exactly as
//! shown, the second is accepted without that code, both with the classes that are checked but not accepted yet.
//! `UPDATE_REFERENCE=1` writes what is shown anew.

#![expect(clippy::panic, reason = "helpers of tests stop the test")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use backstop_policy::{Code, render_human};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnostics")
}

fn page(code: Code) -> (PathBuf, String) {
    let path = folder().join(format!("{code}.md"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, text)
}

/// The fenced blocks of this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let open = format!("```{language}\n");
    page.split(&open).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Codes without an example in TOML: they are about the file itself or about a hundred other findings.
fn has_example(code: Code) -> bool {
    !matches!(code, Code::Unreadable | Code::NotShown)
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("BS") && name.ends_with(".md"))
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    assert_eq!(pages, codes);
    let overview = fs::read_to_string(folder().join("README.md")).unwrap();
    for &code in Code::ALL {
        assert_eq!(code.docs(), format!("docs/diagnostics/{code}.md"));
        let (path, text) = page(code);
        assert!(text.starts_with(&format!("# {code}: {}\n", code.title())), "{}", path.display());
        for heading in ["\n## Why\n", "\n## What to do\n"] {
            assert!(text.contains(heading), "{} lacks {heading:?}", path.display());
        }
        let row = format!("| [{code}]({code}.md) | {} | {} |", code.severity().name(), code.title());
        assert!(overview.contains(&row), "docs/diagnostics/README.md lacks {row}");
    }
}

#[test]
fn every_example_is_diagnosed_as_its_page_shows() {
    let update = std::env::var_os("UPDATE_REFERENCE").is_some();
    let mut wrong = Vec::new();
    for &code in Code::ALL.iter().filter(|&&code| has_example(code)) {
        let (path, text) = page(code);
        let examples = blocks(&text, "toml");
        assert_eq!(examples.len(), 2, "{} shows one wrong and one right example", path.display());
        let (policy, result) = support::parsed(examples[0]);
        let diagnostics = result.map_or_else(|refused| refused, |loaded| loaded.warnings);
        let found: Vec<_> = diagnostics.into_iter().filter(|diagnostic| diagnostic.code == code).collect();
        assert!(!found.is_empty(), "{}: the first example does not lead to {code}", path.display());
        let shown = render_human(&found, &policy, false);
        let written = blocks(&text, "text");
        assert_eq!(written.len(), 1, "{} shows one output", path.display());
        if update {
            let old = format!("```text\n{}```", written[0]);
            let draft = path.with_extension("draft");
            fs::write(&draft, text.replace(&old, &format!("```text\n{shown}```"))).unwrap();
            fs::rename(&draft, &path).unwrap();
        } else if written[0] != shown {
            wrong.push(format!("{}:\n{shown}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_REFERENCE=1 to write these anew:\n{}", wrong.join("\n"));
}

#[test]
fn every_repaired_example_is_accepted() {
    for &code in Code::ALL.iter().filter(|&&code| has_example(code)) {
        let (path, text) = page(code);
        let examples = blocks(&text, "toml");
        let (policy, result) = support::parsed(examples[1]);
        match result {
            Ok(loaded) => {
                let still = loaded.warnings.iter().any(|warning| warning.code == code);
                assert!(!still, "{}: {code} is still there", path.display());
            }
            Err(diagnostics) => {
                panic!(
                    "{}: the second example is refused:\n{}",
                    path.display(),
                    render_human(&diagnostics, &policy, false)
                );
            }
        }
    }
}
