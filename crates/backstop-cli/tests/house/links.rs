//! Links between documents lead somewhere.

use std::path::Path;

use crate::repository::{documents, root};

/// The targets of a document's links and pictures.
fn targets(document: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut is_code = false;
    for line in document.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code {
            let parts = line.split("](").skip(1);
            targets.extend(parts.filter_map(|rest| rest.split(')').next()));
        }
    }
    targets
}

/// The anchor of a heading, as renderers make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn has_anchor(document: &str, wanted: &str) -> bool {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|anchor| anchor == wanted)
}

#[test]
fn links_resolve() {
    let root = root();
    let mut broken = Vec::new();
    for document in documents() {
        for target in targets(&document.text) {
            if target.starts_with("https://") || target.starts_with("http://") {
                continue;
            }
            let (path, wanted) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
            let file = match path {
                "" => root.join(&document.path),
                path => root.join(folder).join(path),
            };
            let is_found = file.exists()
                && (wanted.is_empty()
                    || std::fs::read_to_string(&file).is_ok_and(|document| has_anchor(&document, wanted)));
            if !is_found {
                broken.push(format!("{}: {target}", document.path));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn anchors_are_made_as_renderers_make_them() {
    assert_eq!(anchor(" Before a route is known"), "before-a-route-is-known");
    assert_eq!(anchor(" `Age`, `Cache-Status`"), "age-cache-status");
}
