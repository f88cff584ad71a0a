//! The repository speaks of the product alone.

use crate::repository::files;

fn is_text(path: &str) -> bool {
    const KINDS: [&str; 10] = ["md", "rs", "toml", "json", "svg", "sh", "html", "css", "snap", "conf"];
    const WITHOUT: [&str; 10] = [
        "Makefile",
        "run",
        "run-tests",
        "test-servers",
        "bench",
        "LICENSE-MIT",
        ".gitignore",
        "soak",
        "demo",
        "stress",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    kind.is_some_and(|kind| KINDS.contains(&kind)) || WITHOUT.contains(&name)
}

/// Whether a text holds a word that begins where another one does not go on. Both are in lower case.
fn has_word(text: &str, word: &str) -> bool {
    let mut rest = 0;
    while let Some(at) = text[rest..].find(word).map(|at| at + rest) {
        let begins = text[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric());
        let after = text[at + word.len()..].chars().next();
        let ends = !word.ends_with(|last: char| last.is_ascii_alphanumeric())
            || after.is_none_or(|after| !after.is_ascii_alphanumeric());
        if begins && ends {
            return true;
        }
        rest = at + word.len();
    }
    false
}

#[test]
fn no_file_speaks_of_where_it_was_written() {
    // In pieces, so that this file does not hold what it looks for.
    let words = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("../sha", "red"),
        concat!("crates", ".io"),
        concat!("static.cra", "tes"),
        concat!("pypi", ".org"),
        concat!("npm", "js"),
        concat!("proxy.go", "lang"),
        concat!("sub", "agent"),
        concat!("sub-", "agent"),
        concat!("this ses", "sion"),
        concat!("other ses", "sion"),
        concat!("earlier ses", "sion"),
        concat!("language mo", "del"),
        concat!("assis", "tant"),
        concat!("cla", "ude"),
        concat!("ch", "atgpt"),
        concat!("design sec", "tion"),
        concat!("design.", "md"),
        concat!("the se", "ed's"),
        concat!("the se", "ed"),
        concat!("the br", "ief"),
        concat!("public-rep", "orts"),
    ];
    let numbered = (1..=15).map(|number| format!("a{number:02}"));
    let words: Vec<String> = words.into_iter().map(str::to_owned).chain(numbered).collect();
    let mut found = Vec::new();
    for file in files(is_text) {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for word in words.iter().filter(|word| has_word(&line, word)) {
                found.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_word_is_found_whole() {
    assert!(has_word("see b07", "b07") && has_word("(b07)", "b07") && has_word("in /x/y", "/x/"));
    assert!(!has_word("0xb070", "b07") && !has_word("ab07", "b07"));
}
