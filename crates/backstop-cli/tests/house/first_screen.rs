//! What the README says can be done.

use backstop_policy::{NoFiles, parse, render_human};

use crate::repository::{blocks, documents, text};

#[test]
fn the_two_commands_are_on_the_first_screen() {
    let readme = text("README.md");
    let screen: Vec<&str> = readme.lines().take(30).collect();
    for command in ["make demo", "make test"] {
        assert!(screen.iter().any(|line| line.starts_with(command)), "{command} is not on the first screen");
    }
}

#[test]
fn every_make_command_in_a_document_is_in_the_makefile() {
    let makefile = text("Makefile");
    let targets: Vec<&str> =
        makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap_or_default();
    for document in documents() {
        let lines = blocks(&document.text, "sh").into_iter().flat_map(str::lines);
        for command in lines.filter_map(|line| line.strip_prefix("make ")) {
            let target = command.split_ascii_whitespace().next().unwrap_or_default();
            assert!(targets.contains(&target), "{}: the Makefile has no {target}", document.path);
            assert!(phony.split_ascii_whitespace().any(|name| name == target), "{target} is not phony");
        }
    }
}

#[test]
fn the_gate_is_the_test_command() {
    let run = text(".ci/run");
    let commands: Vec<&str> = run
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("set ") && !line.is_empty())
        // How cargo builds is no other test.
        .filter(|line| !line.starts_with("export CARGO_"))
        .collect();
    assert_eq!(commands.last(), Some(&"make test"));
    assert_eq!(commands.len(), 2, "nothing but the way there and the test command: {commands:?}");
}

#[test]
fn the_first_policy_is_the_example_and_is_accepted() {
    let readme = text("README.md");
    let first = text("examples/first.toml");
    let shown = blocks(&readme, "toml");
    assert_eq!(shown.first().copied(), Some(first.as_str()));
    // What else is shown is part of an example, and those are all accepted.
    let others = [
        "examples/page.toml",
        "examples/reviews.toml",
        "examples/account.toml",
        "examples/tokens.toml",
        "examples/payments.toml",
    ]
    .map(text);
    for table in shown.iter().skip(1) {
        assert!(others.iter().any(|other| other.contains(*table)), "no example holds\n{table}");
    }
    for name in [
        "examples/first.toml",
        "examples/reviews.toml",
        "examples/account.toml",
        "examples/tokens.toml",
        "examples/payments.toml",
    ] {
        let policy = text(name);
        if let Err(diagnostics) = parse(&policy, name, &NoFiles) {
            panic!("{}", render_human(&diagnostics, &policy, false));
        }
    }
}

/// The library's lines in the README are those that the documentation of the crate compiles and runs.
#[test]
fn the_library_in_ten_lines_is_compiled() {
    let source = text("crates/backstop/src/lib.rs");
    let lines = source.lines().skip_while(|line| *line != "//! ```").skip(1);
    let example = lines.take_while(|line| *line != "//! ```").map(|line| line.trim_start_matches("//!"));
    let shown =
        example.map(|line| line.strip_prefix(' ').unwrap_or(line)).filter(|line| !line.starts_with("# "));
    let shown: String = shown.map(|line| format!("{line}\n")).collect();
    assert_eq!(blocks(&text("README.md"), "rust"), [shown.as_str()]);
}

#[test]
fn both_licences_are_there() {
    assert!(text("LICENSE-MIT").starts_with("MIT License\n"));
    assert!(text("LICENSE-APACHE").contains("Version 2.0, January 2004"));
    assert!(text("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""));
}
