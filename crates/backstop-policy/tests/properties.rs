//! Whatever the text, parsing and rendering never panic and every place lies inside the text.

mod support;

use backstop_policy::{Code, Diagnostic, Place, Severity, parse, render_human, render_json};
use proptest::prelude::*;
use support::Files;

const SHOP: &str = include_str!("../../../examples/shop.toml");

/// Further tables of a route that writes operations.
const EFFECT: &str = "absence = { settle = \"15m\", verdict = \"not_executed\", calibrate = { must_see_within = \"5m\" }, \
    not_after = { header = \"x-before\" } }\nverify = { first = \"1s\", factor = 2, cap = \"60s\", deadline = \"12h\" }\n\
    send = { header = \"x-id\", as = \"derived\" }\nfingerprint = { ignore = [\"/nonce\"] }\nredact = [\"/card\"]\n\
    retention = { body = \"24h\", tombstone = \"720h\" }\nlimits = { body = \"64 KiB\" }";

/// Words that lead into every corner of the language.
const WORDS: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "\r\n",
    "\t",
    "#",
    "é",
    "\u{feff}",
    "0",
    "-1",
    "1e400",
    "0x_",
    "inf",
    "1979-05-27",
    "true",
    "\"\"",
    "\"0\"",
    "\"1.5s\"",
    "\"9999999999999h\"",
    "\"64MB\"",
    "[route.x.direct]\n",
    "[route.x.effect]\n",
    "[route]\n",
    "[dependency]\n",
    "[check]\n",
    "key = []\n",
    "max_age",
    "match = \"* /{a}/{a}\"\n",
    "\"%zz\"",
    "\"{rest*}\"",
    "\"*\"",
    "\"*.\"",
    "otherwise = { omit = {} }\n",
    "otherwise = { prepared = \"broken.json\" }\n",
    "allow = [{ code = \"BS0601\", reason = \"x\" }]\n",
    "limits = { body = \"0\" }\n",
    "\"http://[\"",
    "\"[::1\"",
    "\"~\"",
    "languages = [\"x\"]\n",
    "\"50%\"",
    "\"3x\"",
    "1.5",
    "\"2000/s\"",
    "[resource.db]\nrate = \"1/m\"\n",
    "uses = [\"db\"]\n",
    "breaker = {}\n",
    "recovery = { start = \"0%\" }\n",
    "retry = { owner = \"client\" }\n",
    "alternative = { dependency = \"catalog\", verified = \"evidence/old.toml\" }\n",
    "\u{1F600}",
    "\\",
];

fn hold(text: &str) -> Result<(), TestCaseError> {
    let result = parse(text, "policy.toml", &Files);
    let diagnostics = match result {
        Ok(loaded) => {
            prop_assert_eq!(loaded.policy.validate(), Ok(()));
            prop_assert!(loaded.warnings.iter().all(|warning| warning.severity() < Severity::Error));
            loaded.warnings
        }
        Err(diagnostics) => {
            prop_assert!(diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error));
            diagnostics
        }
    };
    for diagnostic in &diagnostics {
        let text = diagnostic.text.as_deref().unwrap_or(text);
        for place in places(diagnostic) {
            prop_assert!(text.get(place.bytes.clone()).is_some(), "{:?} of {:?}", place, diagnostic);
            prop_assert!(place.start <= place.end);
        }
    }
    let _ = render_human(&diagnostics, text, true);
    let _ = render_json(&diagnostics);
    Ok(())
}

fn never_panics_as(key: &str, value: &str) -> Result<(), TestCaseError> {
    let in_dependency =
        format!("[dependency.catalog]\nurl = \"http://x\"\nbreaker = {{}}\n{key} = {value}\n");
    hold(&support::completed(&in_dependency))
}

fn places(diagnostic: &Diagnostic) -> impl Iterator<Item = &Place> {
    let related = diagnostic.related.iter().map(|related| &related.place);
    std::iter::once(&diagnostic.place).chain(related).chain(diagnostic.fix.iter().map(|fix| &fix.place))
}

/// Replaces some bytes (moved onto character boundaries) by something else.
fn mutated(text: &str, edits: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (start, length, with) in edits {
        let start = text.floor_char_boundary(start % (text.len() + 1));
        let end = text.ceil_char_boundary((start + length).min(text.len()));
        text.replace_range(start..end, with);
    }
    text
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    let word = prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
        1 => Just(String::new()),
    ];
    prop::collection::vec((any::<usize>(), 0_usize..12, word), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_policy_never_panics(edits in edits()) {
        hold(&mutated(SHOP, &edits))?;
    }

    #[test]
    fn a_changed_value_never_panics(value in prop_oneof![prop::sample::select(WORDS).prop_map(str::to_owned), "\\PC{0,8}"], line in any::<prop::sample::Index>()) {
        let lines: Vec<&str> = SHOP.lines().collect();
        let changed = line.index(lines.len());
        let text: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(index, &line)| match line.split_once('=') {
                Some((key, _)) if index == changed => format!("{key}= {value}"),
                _ => line.to_owned(),
            })
            .collect();
        hold(&text.join("\n"))?;
    }

    #[test]
    fn any_rate_percentage_or_factor_never_panics(value in prop_oneof!["\\PC{0,12}", "[0-9.%x/ ]{0,12}", "[0-9]{0,25}(%|x|/s|/m)"]) {
        let quoted = format!("{value:?}");
        for written in [&quoted, &value] {
            hold(&support::completed(&format!("[resource.db]\nrate = {written}\n")))?;
            never_panics_as("breaker.failures", written)?;
            never_panics_as("recovery.up", written)?;
            never_panics_as("recovery.green.in_use", written)?;
            never_panics_as("recovery.red.p95", written)?;
            never_panics_as("probe.path", written)?;
        }
    }

    #[test]
    fn a_changed_effect_never_panics(edits in edits()) {
        hold(&mutated(&support::completed(&support::effect(EFFECT)), &edits))?;
    }

    #[test]
    fn any_part_of_an_effect_never_panics(value in prop_oneof!["\\PC{0,12}", "(header|body|/|[{}.:~%]|operation_id|id){0,6}"]) {
        for key in ["operation_id", "scope", "send.header", "status_query.path", "status_query.echo.\"/a\"", "redact"] {
            hold(&support::completed(&support::effect(&format!("status_query =\n{key} = {value:?}"))))?;
        }
    }

    #[test]
    fn any_evidence_never_panics(line in prop_oneof!["\\PC{0,30}", "(rate|p95|measured|valid_until|dependency|load|concurrency) = \\PC{0,14}", "measured = [0-9:TZ+-]{0,22}"]) {
        let fragment = format!(
            "[dependency.catalog]\nurl = \"http://x\"\n[dependency.replica]\nurl = \"http://y\"\n\
             [route.x.public_read]\nmatch = \"GET /x\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 9\n\
             max_age = \"1s\"\nalternative = {{ dependency = \"replica\", verified = {:?} }}\n",
            format!("written/{line}")
        );
        hold(&support::completed(&fragment))?;
    }

    #[test]
    fn any_string_value_never_panics(value in "\\PC{0,12}") {
        for key in ["match", "deadline", "host", "strip_prefix", "function", "dependency"] {
            let fragment = format!("[route.x.direct]\n{key} = {value:?}\n");
            hold(&support::completed(&fragment))?;
        }
    }
}

#[test]
fn pieces_of_a_policy_never_panic() {
    for (end, _) in SHOP.char_indices() {
        hold(&SHOP[..end]).unwrap();
        hold(&SHOP[end..]).unwrap();
    }
}

#[test]
fn a_text_without_anything_names_what_is_missing() {
    let diagnostics = parse("", "policy.toml", &Files).unwrap_err();
    let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [Code::MissingKey; 3]);
}

/// Otherwise what is changed of it would say little.
#[test]
fn the_effect_that_is_changed_is_accepted_as_it_is() {
    let loaded = support::loaded(&support::effect(EFFECT));
    assert!(loaded.policy.routes[0].class.effect().is_some());
}
