//! Evidence: while it is valid, about whom it is, and how what is wrong with its file is shown.

mod support;

use backstop_engine::time::Wall;
use backstop_policy::{Code, Severity, render_human, render_json};
use support::{diagnosed, loaded, other_read, read, says};

/// It is noon of 2026-11-30.
#[test]
fn evidence_counts_while_it_is_valid() {
    let with = |line: &str| {
        read(&format!("alternative = {{ dependency = \"replica\", verified = 'written/{line}' }}"))
    };
    for good in [
        "valid_until = 2026-11-30",
        "valid_until = 2026-11-30T12:00:00Z",
        "valid_until = 2026-11-30T13:00:00+01:00",
        "valid_until = \"2026-11-30\"",
        "measured = 2026-11-30",
        "measured = 2026-11-30T12:00:00Z",
    ] {
        says(&with(good), &[]);
    }
    for late in
        ["valid_until = 2026-11-29", "valid_until = 2026-11-30T11:59:59.999999999Z", "measured = 2026-12-01"]
    {
        says(&with(late), &[Code::EvidenceNotValid]);
    }
    says(&with("dependency = \"catalog\""), &[Code::EvidenceOfAnother]);
    for (bad, code) in [
        ("valid_until = 2026-09-30", Code::Date),
        ("valid_until = 2027-01-01T00:00:00", Code::Date),
        ("valid_until = \"soon\"", Code::Date),
        ("valid_until = 12:00:00", Code::Date),
        ("valid_until = 2026", Code::WrongType),
        ("valid_until = 2026-02-30", Code::Syntax),
        ("rate = \"500\"", Code::Rate),
        ("rate = \"59/m\"", Code::OutOfRange),
        ("concurrency = 0", Code::Zero),
        ("p99 = \"80ms\"", Code::UnknownKey),
        ("load = ", Code::Syntax),
    ] {
        says(&with(bad), &[code]);
    }
}

/// The date of the machine may be wrong while it starts. What is not valid today is warned of and goes to whoever can
/// judge it at each call.
#[test]
fn evidence_that_is_not_valid_today_is_judged_again_at_each_call() {
    let with = |line: &str| {
        let fragment =
            read(&format!("alternative = {{ dependency = \"replica\", verified = 'written/{line}' }}"));
        says(&fragment, &[Code::EvidenceNotValid]);
        let verified = loaded(&fragment).policy.routes[0].alternative.unwrap().verified.unwrap();
        (verified.valid_from, verified.valid_until)
    };
    let second = |second: i64| Wall::from_unix_ns(second * 1_000_000_000);
    // 2026-12-01, 2027-01-02, 2026-10-01 and 2026-11-30 in UTC, from `date -u -d DATE +%s`.
    let before = |wall: Wall| Wall::from_unix_ns(wall.as_unix_ns() - 1);
    assert_eq!(with("measured = 2026-12-01"), (second(1_796_083_200), before(second(1_798_848_000))));
    assert_eq!(with("valid_until = 2026-11-29"), (second(1_790_812_800), before(second(1_795_996_800))));
}

#[test]
fn evidence_that_cannot_be_had() {
    let with =
        |file: &str| read(&format!("alternative = {{ dependency = \"replica\", verified = {file:?} }}"));
    says(&with("evidence/none.toml"), &[Code::NoEvidence]);
    says(&with("evidence/binary.toml"), &[Code::EvidenceFile]);
    says(&with("evidence/locked.toml"), &[Code::EvidenceFile]);
}

/// What is wrong in the evidence is shown with the lines and columns of that file, once, after what is wrong here.
#[test]
fn faults_of_an_evidence_file_are_shown_in_that_file() {
    let alternative = "alternative = { dependency = \"replica\", verified = \"evidence/slow.toml\" }";
    let other = other_read();
    let fragment = read(alternative) + &other + alternative + "\nmax_agee = \"1s\"\n";
    let (text, diagnostics) = diagnosed(&fragment);
    let codes: Vec<_> = diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::UnknownKey, Code::Duration]);
    let shown = render_human(&diagnostics[1..], &text, false);
    insta::assert_snapshot!(shown, @r#"
    error[BS0201]: `80` has no unit
     --> evidence/slow.toml:7:7
      |
    7 | p95 = "80"
      |       ^^^^
      |
      = help: write the unit, such as `"80ms"` or `"80s"`
    "#);
    let json = render_json(&diagnostics[1..]);
    assert_eq!((json[0]["file"].as_str(), json[0]["line"].as_u64()), (Some("evidence/slow.toml"), Some(7)));
}

#[test]
fn a_missing_or_foreign_evidence_is_a_warning_that_can_be_waived() {
    let waived = "[check]\nallow = [{ code = \"BS0521\", reason = \"measured next week\" }]\n";
    let fragment = waived.to_owned() + &read("alternative = { dependency = \"replica\" }");
    let loaded = loaded(&fragment);
    assert!(loaded.warnings.iter().all(|warning| warning.severity() == Severity::Note));
    assert_eq!(loaded.waived[0].diagnostic.code, Code::NoEvidence);
    assert_eq!(loaded.policy.routes[0].alternative.unwrap().verified, None);
}
