//! A report as JUnit XML, as build servers read it: one suite per drill, one case per check.
//!
//! What had nothing to look at is skipped there, and so is a drill that had nothing to rehearse.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::{DrillReport, Finding, Report, Verdict};

/// The report as JUnit XML.
///
/// # Errors
/// If it cannot be written as XML.
pub fn junit(report: &Report) -> Result<String, quick_junit::SerializeError> {
    let mut document = Document::new("backstop drill");
    document.add_test_suites(report.drills.iter().map(suite));
    for skipped in &report.skipped {
        let mut suite = TestSuite::new(skipped.name.clone());
        let mut status = TestCaseStatus::skipped();
        status.set_message(skipped.why.clone());
        suite.add_test_case(TestCase::new("nothing to rehearse", status));
        document.add_test_suite(suite);
    }
    document.to_string()
}

fn suite(drill: &DrillReport) -> TestSuite {
    let mut suite = TestSuite::new(drill.name.clone());
    suite.set_time(Duration::from_secs_f64(drill.took_s.max(0.0)));
    suite.add_test_cases(drill.findings.iter().map(case));
    suite
}

fn case(finding: &Finding) -> TestCase {
    let status = match finding.verdict {
        Verdict::Held => TestCaseStatus::success(),
        Verdict::Nothing => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("there was nothing to look at");
            status
        }
        Verdict::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(format!("{} of {} times not", finding.failed, finding.checked));
            status.set_description(finding.examples.join("\n"));
            status
        }
    };
    let mut case = TestCase::new(format!("{}: {}", finding.name, finding.promise), status);
    case.set_classname("backstop.drill");
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::Skipped;

    /// What a build server reads: one suite per drill, with what failed in it and what had nothing to look at, and no text that
    /// breaks out of its place.
    #[test]
    fn a_parser_reads_it_whatever_the_words_are() {
        let mut held = Finding::new("age", "no copy is older");
        held.look(None);
        let mut failed = Finding::new("keys", "a <copy> & \"its\" key");
        failed.look(None);
        failed.look(Some("got ]]> & </testcase> \u{1}".to_owned()));
        let nothing = Finding::new("ramp", "no flood");
        let drill = DrillReport {
            name: "other-key".to_owned(),
            about: String::new(),
            verdict: Verdict::Failed,
            took_s: 1.5,
            requests: 2,
            findings: vec![held, failed, nothing],
            skipped: Vec::new(),
            upstreams: Vec::new(),
            faults: Vec::new(),
            bins: Vec::new(),
            answers: std::collections::BTreeMap::new(),
        };
        let skipped = vec![Skipped { name: "cache-down".to_owned(), why: "it has no cache".to_owned() }];
        let text = junit(&Report::new("p.toml", 1, vec![drill], skipped)).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!([count("testsuite"), count("testcase"), count("failure"), count("skipped")], [2, 4, 1, 2]);
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some("1 of 2 times not"));
        assert!(failure.text().unwrap().contains("]]> & </testcase>"));
        let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
        assert_eq!((suite.attribute("name"), suite.attribute("failures")), (Some("other-key"), Some("1")));
    }
}
