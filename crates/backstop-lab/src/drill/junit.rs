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
