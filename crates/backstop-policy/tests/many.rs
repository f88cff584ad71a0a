//! Very many findings: the first hundred are told, with the number of the rest, and soon.

mod support;

use backstop_policy::{Code, Counts, Severity, render_human, render_json};
use insta::assert_snapshot;
use support::{diagnosed, parsed};

/// This many keys that nobody knows, one a line from line 2 on.
fn unknown_keys(count: usize) -> String {
    let keys: String = (0..count).map(|number| format!("paht{number} = {number}\n")).collect();
    format!("[store]\n{keys}")
}

#[test]
fn the_first_hundred_findings_are_told_and_the_number_of_the_rest() {
    let (_, hundred) = diagnosed(&unknown_keys(100));
    assert_eq!(hundred.len(), 100);
    assert!(hundred.iter().all(|finding| finding.code == Code::UnknownKey));

    for (many, message) in [(101, "1 more error is not shown"), (5000, "4900 more errors are not shown")] {
        let (_, found) = diagnosed(&unknown_keys(many));
        assert_eq!(found.len(), 101, "{many}");
        for (finding, line) in found[..100].iter().zip(2..) {
            assert_eq!((finding.code, finding.place.start.line), (Code::UnknownKey, line));
            assert!(finding.help.is_some(), "{finding:?}");
        }
        assert_eq!((found[100].code, &*found[100].message), (Code::NotShown, message));
        assert_eq!(found[100].place.start.line, 102);
        assert_eq!(Counts::of(&found).errors, many);
        assert_eq!(render_json(&found)[100]["severity"], "note");
    }
}

#[test]
fn the_rest_is_told_as_a_note() {
    let (text, found) = diagnosed(&unknown_keys(300));
    assert_snapshot!(render_human(&found[100..], &text, false), @r#"
    note[BS0610]: 200 more errors are not shown
       --> policy.toml:102:1
        |
    102 | paht100 = 100
        | ^^^^^^^ the next one is here
        |
        = help: repair those above first: many of a kind have one cause
    "#);
}

#[test]
fn of_many_warnings_those_that_are_not_waived_are_told() {
    let many: String =
        (0..150).map(|number| format!("[dependency.d{number}]\nurl = \"http://x\"\n")).collect();
    let used = "[dependency.catalog]\nurl = \"http://127.0.0.1:9001\"\n";
    // 150 dependencies that nothing uses, and the note on drills.
    let warnings = parsed(&(many.clone() + used)).1.unwrap().warnings;
    assert_eq!(
        (warnings.len(), &*warnings[100].message),
        (101, "50 more warnings and 1 more note are not shown")
    );
    assert!(warnings.iter().all(|warning| warning.severity() < Severity::Error));

    let waiver = "[check]\nallow = [{ code = \"BS0514\", reason = \"kept for later\" }]\n";
    let loaded = parsed(&(many + used + waiver)).1.unwrap();
    assert_eq!((loaded.warnings.len(), loaded.waived.len()), (1, 150));
    let (_, refused) = diagnosed("[check]\nallow = [{ code = \"BS0610\", reason = \"x\" }]\n");
    assert_eq!(refused[0].code, Code::UnknownWaiver, "what is not shown cannot be waived");
}

/// What is graver is told first, wherever it stands: a hundred notes never hide a warning.
#[test]
fn a_warning_behind_a_hundred_notes_is_told() {
    let write = |number| {
        format!(
            "[route.w{number}.direct]\nmatch = \"PUT /w{number}\"\ndependency = \"catalog\"\ndeadline = \"1s\"\n\
             in_flight = 1\n"
        )
    };
    let read = |number| {
        format!(
            "[route.r{number}.public_read]\nmatch = \"GET /r{number}\"\ndependency = \"catalog\"\ndeadline = \"1s\"\n\
             in_flight = 1\nfallback_in_flight = 1\nmax_age = \"60s\"\nkey = []\ncorrect = {{ type = \"text/plain\" }}\n"
        )
    };
    let notes: String = (0..150).map(read).collect();
    let fragment = notes
        + &write(0)
        + "[dependency.catalog]\nurl = \"http://127.0.0.1:9001\"\n[dependency.idle]\nurl = \"http://x\"\n";
    let loaded = parsed(&fragment).1.unwrap();
    let warnings: Vec<_> =
        loaded.warnings.iter().filter(|finding| finding.severity() == Severity::Warning).collect();
    assert_eq!(loaded.warnings.len(), 101);
    assert!(warnings.iter().any(|finding| finding.code == Code::UnusedDependency), "{warnings:?}");
    let counts = Counts::of(&loaded.warnings);
    assert_eq!((counts.errors, counts.warnings), (0, warnings.len()));
    assert!(counts.notes > 150, "{counts:?}");
    let rest = counts.notes + counts.warnings - 100;
    assert_eq!(loaded.warnings[100].message, format!("{rest} more notes are not shown"));
    let places: Vec<_> = loaded.warnings[..100].iter().map(|finding| finding.place.bytes.start).collect();
    assert!(places.is_sorted(), "what is told stands in the order of the file");
}

/// A line that nobody could read is named and not shown.
#[test]
fn a_line_of_thousands_of_characters_is_not_shown() {
    let long = "x".repeat(5000);
    let long = format!("[store]\npaht = \"{long}\"\npath = 1\n[gateway]\ndrain = \"1 sec\" # {long}\n");
    let (text, found) = diagnosed(&long);
    assert_snapshot!(render_human(&found, &text, false), @r#"
    error[BS0101]: unknown key `store.paht`
    --> policy.toml:2:1
     = help: did you mean `path`?

    error[BS0104]: `store.path` must be a string
     --> policy.toml:3:8
      |
    3 | path = 1
      |        ^ this is an integer

    error[BS0102]: `gateway.listen` is missing
     --> policy.toml:4:1
      |
    4 | [gateway]
      | ^^^^^^^^^ add `listen` here

    error[BS0103]: `gateway.in_flight` is missing and has no default
     --> policy.toml:4:1
      |
    4 | [gateway]
      | ^^^^^^^^^ add `in_flight` here
      |
      = help: it is your promise to clients and to the dependency: only you can state it

    error[BS0201]: unknown unit `sec`
    --> policy.toml:5:12
     = help: write `"1s"`
    "#);
}

/// What is told of a line that is broken anyway would only follow from that, however many lines are.
#[test]
fn of_many_broken_lines_each_is_told_once() {
    let lines: String = (0..60).map(|number| format!("a{number} = 300ms\nb{number} = 1\n")).collect();
    let (_, found) = diagnosed(&format!("[store]\n{lines}"));
    assert_eq!(found.len(), 101);
    for (finding, line) in found[..100].iter().zip(2..) {
        let code = if line % 2 == 0 { Code::Syntax } else { Code::UnknownKey };
        assert_eq!((finding.code, finding.place.start.line), (code, line));
    }
}

#[expect(clippy::disallowed_types, reason = "how long a check takes is what is promised")]
mod timing {
    use std::time::{Duration, Instant};

    use super::{diagnosed, render_human, render_json, unknown_keys};

    const MANY: usize = 200_000;
    const BOUND: Duration = Duration::from_secs(2);

    /// The median of three times from the text to all that is shown of it.
    fn took(fragment: &str) -> Duration {
        let mut times = [Duration::ZERO; 3];
        for time in &mut times {
            let start = Instant::now();
            let (text, found) = diagnosed(fragment);
            assert_eq!(found.len(), 101);
            assert!(!render_human(&found, &text, false).is_empty());
            assert!(render_json(&found).is_array());
            *time = start.elapsed();
        }
        times.sort_unstable();
        times[1]
    }

    #[test]
    fn two_hundred_thousand_unknown_keys_are_told_within_two_seconds() {
        let listed = |separator: &str, value: &str| {
            let keys: Vec<_> = (0..MANY).map(|number| format!("deadlin{number} = {value}")).collect();
            keys.join(separator)
        };
        for (what, fragment) in [
            ("one a line", unknown_keys(MANY)),
            ("all in one line", format!("[store]\nsnapshots = {{ {} }}\n", listed(", ", "1"))),
            ("in a route", format!("[route.x.direct]\n{}\n", listed("\n", "1"))),
            ("none of them TOML", format!("[route.x.direct]\n{}\n", listed("\n", "300ms"))),
        ] {
            let time = took(&fragment);
            assert!(time < BOUND, "{what}: {time:?}");
        }
    }

    /// Each is compared with those alike only.
    #[test]
    fn twenty_thousand_routes_are_checked_within_two_seconds() {
        let routes = |matches: fn(usize) -> String| -> String {
            let route = |number| {
                format!(
                    "[route.r{number}.direct]\nmatch = \"{}\"\ndependency = \"x\"\ndeadline = \"1s\"\nin_flight = 1\n",
                    matches(number)
                )
            };
            (0..20_000).map(route).collect()
        };
        for (what, fragment) in [
            ("each its own", routes(|number| format!("PUT /a{number}"))),
            ("all the same", routes(|_| "PUT /a".to_owned())),
        ] {
            let time = took(&fragment);
            assert!(time < BOUND, "{what}: {time:?}");
        }
    }
}
