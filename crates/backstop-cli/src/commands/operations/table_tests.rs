use super::*;
use serde_json::json;

const ID: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn ages_are_told_in_the_two_largest_units() {
    let table = [
        (0, "0s"),
        (59, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86_399, "23h59m"),
        (86_400, "1d00h"),
        (1_000_000, "11d13h"),
    ];
    for (seconds, told) in table {
        assert_eq!(ago(&json!(seconds)), told);
    }
    assert_eq!(ago(&Value::Null), "-");
}

#[test]
fn a_list_is_a_table() {
    let one = |state: &str, why: &str, route: &str, age: u64| {
        let since = "2026-01-31T23:59:59.000Z";
        json!({ "id": ID, "state": state, "why": why, "route": route, "age_seconds": age, "since": since })
    };
    let told = list(&[one("attention", "deadline", "pay", 5990), one("dispatching", "", "transfer", 1)]);
    let expected = "\
ID                                STATE        WHY       ROUTE     AGE    SINCE
0123456789abcdef0123456789abcdef  attention    deadline  pay       1h39m  2026-01-31T23:59:59.000Z
0123456789abcdef0123456789abcdef  dispatching  -         transfer  1s     2026-01-31T23:59:59.000Z
";
    assert_eq!(told, expected);
}

#[test]
fn a_history_is_a_timeline() {
    let state = |state: &str, why: &str| json!({ "state": state, "why": why });
    let whole = json!({
        "id": ID,
        "state": "failed",
        "why": "person",
        "route": "pay",
        "age_seconds": 61,
        "began": "2026-01-31T23:58:58.000Z",
        "verification": null,
        "answer": null,
        "history": [
            { "at": "2026-01-31T23:59:00.000Z", "actor": "reporter", "from": state("dispatching", ""),
              "to": state("unknown", "timeout"), "by": null, "reason": null },
            { "at": "2026-01-31T23:59:59.000Z", "actor": "person", "from": state("attention", "deadline"),
              "to": state("failed", "person"), "by": "ana", "reason": "asked\u{1b}[2J the bank" },
        ],
    });
    let expected = "\
operation  0123456789abcdef0123456789abcdef
state      failed (person)
route      pay
age        1m01s

2026-01-31T23:58:58.000Z  began
2026-01-31T23:59:00.000Z  dispatching -> unknown (timeout), by reporter
2026-01-31T23:59:59.000Z  attention (deadline) -> failed (person), by person ana: asked\u{fffd}[2J the bank
";
    assert_eq!(one(&whole), expected);
}

#[test]
fn what_is_open_says_when_its_status_is_asked_for() {
    let whole = json!({
        "id": ID,
        "state": "unknown",
        "why": "timeout",
        "route": "pay",
        "age_seconds": 61,
        "began": "2026-01-31T23:58:58.000Z",
        "verification": { "until": "2026-02-01T11:58:58.000Z", "asked": 3, "absences": 0, "next_seconds": 7 },
        "answer": { "status": 201, "fields": [], "has_content": false },
        "history": [],
    });
    let told = one(&whole);
    assert!(
        told.contains("\nstatus     asked for 3 times, until 2026-02-01T11:58:58.000Z, next in 7s\n"),
        "{told}"
    );
    assert!(told.contains("\nanswer     201, its content is not kept\n"), "{told}");
}
