//! What this version does not have is refused before anything runs, never silently ignored; and a policy with faults is
//! refused as a whole, with all of them at once.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Policy;
use crate::support::gateway::{folder, output};

/// A policy file in a folder of its own, gone with the test.
struct Written(PathBuf);

impl std::ops::Deref for Written {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

fn written(text: &str) -> Written {
    let folder = folder();
    std::fs::write(folder.join("policy.toml"), text).unwrap();
    Written(folder)
}

/// A policy that is accepted, to which a test adds something.
fn accepted() -> Policy {
    let address = "127.0.0.1:9".parse().unwrap();
    Policy::shop(address).gateway("listen = \"127.0.0.1:8080\"").gateway("admin = \"127.0.0.1:9901\"")
}

/// Asserts that `check` and `run` both refuse this text as not available, naming the place by these words.
#[track_caller]
fn not_available(text: &str, words: &str) {
    let folder = written(text);
    let (status, out, err) = output(&["check", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(1), "{out}{err}");
    assert!(out.contains("error[BS0106]"), "{words}: {out}");
    assert!(out.contains("not available in this version"), "{words}: {out}");
    assert!(out.lines().any(|line| line.contains(words)), "{words}: {out}");
    let (status, _, err) = output(&["run", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(2), "{err}");
    assert!(err.contains("BS0106") && !err.contains("listening on"), "{err}");
}

#[test]
fn a_right_policy_is_accepted() {
    let folder = written(&accepted().text());
    let (status, out, err) = output(&["check", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(0), "{out}{err}");
    assert!(out.contains("policy.toml: accepted"), "{out}");
}

#[test]
fn tables_and_keys_of_later_versions_are_not_available() {
    let table = |table: &str| format!("{}\n{table}\n", accepted().text());
    not_available(
        &table(
            "[authorizer.sessions]\nurl = \"http://127.0.0.1:9003/check\"\nallow = { header = \"x-allowed\" }\ntimeout = \"1ms\"\nin_flight = 1\ntls = { verify = true }",
        ),
        "tls = { verify = true }",
    );
    let dependency = |line: &str| {
        let address = "127.0.0.1:9".parse().unwrap();
        accepted().dependency("other", address, line).text()
    };
    not_available(&dependency("tls = { verify = false }"), "tls = { verify = false }");
}

/// The route negotiates languages and its key leaves them out: copies of all languages would be one.
#[test]
fn a_key_without_its_language_is_refused() {
    let read = Policy::description("key = [\"path.id\"]");
    let folder = written(&accepted().replace_route("description.public_read", &read).text());
    let (status, out, _) = output(&["check", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(1));
    assert!(out.contains("error[BS0305]"), "{out}");
}

/// Five faults of different kinds: all are told in one pass, each with its line, its column and, where there is one, a
/// suggestion.
#[test]
fn every_fault_is_told_in_one_pass_with_its_place() {
    let text = "\
[gateway]
listen = \"127.0.0.1:8080\"
in_flight = 10

[dependency.catalog]
url = \"http://127.0.0.1:9\"
conections = 4

[route.read.public_read]
match = \"GET /p/{id}\"
dependency = \"catalogue\"
deadline = \"300\"
in_flight = 0
max_age = \"60s\"

[route.pay.effect]
match = \"POST /pay\"
";
    let folder = written(text);
    let (status, out, _) = output(&["check", "--format", "json", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(1));
    let findings: Value = serde_json::from_str(&out).expect("one JSON document");
    let errors: Vec<(&str, u64, u64)> = findings
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| {
            let at = |key: &str| finding[key].as_u64().unwrap();
            (finding["code"].as_str().unwrap(), at("line"), at("column"))
        })
        .collect();
    for expected in
        [("BS0101", 7, 1), ("BS0201", 12, 12), ("BS0203", 13, 13), ("BS0301", 11, 14), ("BS0102", 16, 1)]
    {
        assert!(errors.contains(&expected), "{expected:?} in {errors:?}");
    }
    let typo = findings.as_array().unwrap().iter().find(|finding| finding["code"] == "BS0101").unwrap();
    assert!(typo["help"].as_str().unwrap().contains("connections"), "{typo}");
    assert_eq!(typo["docs"], "docs/diagnostics/BS0101.md");

    let (status, out, _) = output(&["check", "policy.toml"], &folder);
    assert_eq!(status.code(), Some(1));
    for place in ["policy.toml:7:1", "policy.toml:12:12", "policy.toml:13:13", "policy.toml:16:1"] {
        assert!(out.contains(place), "{place}: {out}");
    }
    assert!(out.contains("^^^"), "the offending text is underlined: {out}");
    assert!(out.contains("policy.toml: refused, "), "{out}");
}

/// `--strict` fails on warnings too; a file that is not there is an error of its own.
#[test]
fn exit_codes_tell_errors_warnings_and_neither_apart() {
    let read = Policy::description("max_age = \"48h\"");
    let folder = written(&accepted().replace_route("description.public_read", &read).text());
    let code = |arguments: &[&str]| output(arguments, &folder).0.code();
    assert_eq!(code(&["check", "policy.toml"]), Some(0));
    assert_eq!(code(&["check", "--strict", "policy.toml"]), Some(1));
    assert_eq!(code(&["check", "missing.toml"]), Some(1));
    // A warning behind more notes than are shown is a warning, and all are counted: 150 lanes of their own are noted, two
    // dependencies that nothing asks are warned of.
    let lane = |number: usize| {
        Policy::description(&format!("match = \"GET /n{number}/{{id}}\"\nfallback_in_flight = 1"))
    };
    let address = "127.0.0.1:9".parse().unwrap();
    let noted = (0..150)
        .fold(accepted(), |policy, number| policy.route(&format!("n{number}.public_read"), &lane(number)));
    let strict = |policy: &Policy| output(&["check", "--strict", "policy.toml"], &written(&policy.text()));
    let (status, out, _) = strict(&noted);
    assert_eq!(status.code(), Some(0), "{out}");
    assert!(out.ends_with("policy.toml: accepted, 0 warnings\n"), "{out}");
    let (status, out, _) = strict(&noted.dependency("idle", address, "").dependency("idler", address, ""));
    assert_eq!(status.code(), Some(1), "{out}");
    assert!(out.ends_with("policy.toml: accepted, 2 warnings\n"), "{out}");
    assert!(out.contains("warning[BS0514]") && out.contains("more notes are not shown"), "{out}");
    assert_eq!(code(&["run", "missing.toml"]), Some(2));
    assert_eq!(code(&["check"]), Some(2));
}
