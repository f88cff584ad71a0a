//! The result of drills, for people.

use backstop_lab::drill::{DrillReport, Report, Verdict};

use super::Chosen;

/// What each drill came to, with what did not hold and what it expected and had nothing to look at.
pub(crate) fn table(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    let width = report.drills.iter().map(|drill| drill.name.len()).max().unwrap_or(0);
    let width = report.skipped.iter().map(|skipped| skipped.name.len()).max().unwrap_or(0).max(width);
    for drill in &report.drills {
        let looked: u64 = drill.findings.iter().map(|finding| finding.checked).sum();
        text.push_str(&format!(
            "{:width$}  {}  {} requests, looked {looked} times, {:.1} s\n",
            drill.name,
            word(drill.verdict, colour),
            drill.requests,
            drill.took_s
        ));
        failures(&mut text, drill);
    }
    for skipped in &report.skipped {
        text.push_str(&format!(
            "{:width$}  {}  {}\n",
            skipped.name,
            word(Verdict::Nothing, colour),
            skipped.why
        ));
    }
    text
}

fn failures(text: &mut String, drill: &DrillReport) {
    for finding in drill.findings.iter().filter(|finding| finding.verdict == Verdict::Failed) {
        text.push_str(&format!(
            "    {}: {}; {} of {} times not\n",
            finding.name, finding.promise, finding.failed, finding.checked
        ));
        for example in &finding.examples {
            text.push_str(&format!("      {example}\n"));
        }
    }
    let unseen = drill.findings.iter().filter(|finding| finding.verdict == Verdict::Nothing);
    for finding in unseen.filter(|finding| finding.is_expected) {
        text.push_str(&format!("    {}: {}; there was nothing to look at\n", finding.name, finding.promise));
    }
}

fn word(verdict: Verdict, colour: bool) -> String {
    let (word, code) = match verdict {
        Verdict::Held => ("held   ", "32"),
        Verdict::Failed => ("FAILED ", "1;31"),
        Verdict::Nothing => ("skipped", "2"),
    };
    if colour { format!("\u{1b}[{code}m{word}\u{1b}[0m") } else { word.to_owned() }
}

/// What would be played, and whom it does not concern.
pub(crate) fn list(chosen: &Chosen, facts: &backstop_lab::drill::Facts) -> String {
    let mut text = String::new();
    for scenario in &chosen.scenarios {
        let routes = scenario.routes();
        let names: Vec<&str> =
            routes.iter().filter_map(|route| facts.routes().get(*route)).map(|route| &*route.name).collect();
        text.push_str(&format!(
            "{}: {}\n    about {:.0} s, {} requests, routes {}\n",
            scenario.name,
            scenario.about,
            scenario.duration.as_secs_f64(),
            scenario.sendings.len(),
            names.join(", ")
        ));
        for (route, why) in &scenario.skipped {
            text.push_str(&format!("    not {route}: {why}\n"));
        }
    }
    for skipped in &chosen.skipped {
        text.push_str(&format!("{}: {}\n", skipped.name, skipped.why));
    }
    text
}
