//! The demonstration, run to its end without a terminal.

use crate::support::gateway::{folder, output};

/// One line for each phase, the account, exit 0; and the account's figures are those of the lines.
#[test]
fn the_demo_plays_its_incident_and_finds_no_forbidden_answer() {
    let (status, told, errors) = output(&["demo", "--terminal", "--rate", "50"], &folder());
    assert!(status.success(), "{told}\n{errors}");
    let phases: Vec<&str> =
        told.lines().filter(|line| line.contains("through Backstop ") && line.contains('/')).collect();
    assert_eq!(phases.len(), 7, "{told}");
    let figure = |line: &str, before: &str| -> u64 {
        let (text, _) = line.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {line}"));
        text.rsplit(|character: char| !character.is_ascii_digit()).next().unwrap_or_default().parse().unwrap()
    };
    // While the product service refuses, copies are served, and once they are too old clients are refused.
    let outage = phases[1];
    assert!(figure(outage, " copies") > 0 && figure(outage, " refused") > 0, "{outage}");
    assert!(figure(outage, " s)") <= 6, "no copy is older than accepted: {outage}");
    // Half a document is never passed on as an answer; who asks directly gets it.
    let garbage = phases[5];
    assert!(figure(garbage, " copies") > 0 && figure(garbage, " broken") > 0, "{garbage}");
    assert!(figure(garbage, " prepared") > 0, "the recommender hangs: {garbage}");
    for phase in &phases {
        assert_eq!(figure(phase, " forbidden"), 0, "{phase}");
    }
    // 50 requests a second for 37 s.
    assert!(told.contains("of 1850 requests each way"), "{told}");
    assert!(told.contains("No answer was wrong, older than 6 s, or not marked for what it was"), "{told}");
}

/// A rate that the machine cannot show anything with is refused before anything starts.
#[test]
fn an_impossible_rate_is_refused() {
    let (status, _, errors) = output(&["demo", "--terminal", "--rate", "1"], &folder());
    assert_eq!(status.code(), Some(2));
    assert!(errors.contains("10..=2000"), "{errors}");
}
