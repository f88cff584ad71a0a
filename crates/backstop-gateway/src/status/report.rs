//! One incident as a page that can be saved, sent and printed: it is whole by itself and loads nothing.
//!
//! It is written from the record alone, so a file of an incident gives the same report as the gateway that wrote it.

mod pictures;
mod told;

use std::sync::LazyLock;

use askama::Template;
use backstop_chart::{COLOURS, Svg};
use backstop_engine::incident::{Moment, Record};
use backstop_engine::tally::AGE_BUCKETS_SECONDS;
use base64::Engine as _;
use sha2::{Digest, Sha256};

use super::build::until;
use super::counted::outcomes;
use super::view::Outcomes;
use super::words::lasts;

static STYLE: LazyLock<String> =
    LazyLock::new(|| format!("{COLOURS}\n{}", include_str!("../../templates/status.css")));

/// What a browser may do with a report: its own style, known by its digest, and nothing else.
pub(crate) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

#[derive(Template)]
#[template(path = "report.html")]
struct Report<'a> {
    style: &'a str,
    gateway: &'a str,
    version: &'a str,
    id: &'a str,
    phase: String,
    ended: Option<String>,
    sentence: String,
    timeline: Svg,
    entries: Vec<(String, String, String)>,
    left_out: u64,
    shares: Svg,
    ages_over_time: Svg,
    functions: Vec<(&'a str, Outcomes)>,
    served: String,
    sources: Vec<(String, u64)>,
    ages: Vec<(String, u64)>,
    reasons: Vec<(String, u64)>,
    received: Vec<Svg>,
    dependencies: Vec<Called<'a>>,
    end: String,
    counted: String,
}

struct Called<'a> {
    name: &'a str,
    state: &'static str,
    calls: u64,
    per_second: String,
    before: String,
    failures: String,
}

/// The report of one incident. `looked` is the last second that is in a record that has not ended.
pub(crate) fn report(gateway: &str, record: &Record, looked: &Moment) -> Result<String, askama::Error> {
    let end = until(record, looked);
    let seconds = end.since(&record.began).as_secs_f64().max(1.0);
    let named = |list: &'_ [backstop_engine::incident::Named<u64>]| -> Vec<(String, u64)> {
        let mut list: Vec<_> = list.iter().map(|one| (one.name.to_string(), one.value)).collect();
        list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        list
    };
    Report {
        style: &STYLE,
        gateway,
        version: env!("CARGO_PKG_VERSION"),
        id: &record.id,
        phase: told::phase(record.phase),
        ended: record.ended.as_ref().map(Moment::date),
        sentence: told::sentence(record, &end),
        timeline: pictures::timeline(record, &end),
        entries: told::entries(record),
        left_out: record.timeline.dropped,
        shares: pictures::shares(record, &end),
        ages_over_time: pictures::ages(record, &end),
        functions: record.functions.iter().map(|one| (&*one.name, outcomes(&one.value))).collect(),
        served: told::served(record),
        sources: named(&record.sources),
        ages: ages(record),
        reasons: named(&record.reasons),
        received: pictures::received(record, &end),
        dependencies: record.dependencies.iter().map(|one| called(&one.name, &one.value, seconds)).collect(),
        end: told::end(record),
        counted: format!("What it says was counted until {}.", end.date()),
    }
    .render()
}

/// The same in a few lines.
pub(crate) fn summary(record: &Record, looked: &Moment) -> String {
    let end = until(record, looked);
    let mut text =
        format!("{}  {}\n{}\n", record.id, told::phase(record.phase), told::sentence(record, &end));
    for function in &record.functions {
        let counts = outcomes(&function.value);
        text.push_str(&format!(
            "{:<20} {} completed, {} reduced, {} not completed\n",
            function.name,
            counts.normal,
            counts.fallback,
            counts.not_completed()
        ));
    }
    let seconds = end.since(&record.began).as_secs_f64().max(1.0);
    for dependency in &record.dependencies {
        let one = called(&dependency.name, &dependency.value, seconds);
        text.push_str(&format!(
            "{:<20} {} calls, {}/s ({} before); failures: {}\n",
            one.name, one.calls, one.per_second, one.before, one.failures
        ));
    }
    text.push_str(&format!("{}\n{}\n", told::served(record), told::end(record)));
    text
}

fn called<'a>(
    name: &'a str,
    record: &backstop_engine::incident::DependencyRecord,
    seconds: f64,
) -> Called<'a> {
    let failures: Vec<_> =
        record.failures.iter().map(|kind| format!("{} {}", kind.value, kind.name)).collect();
    Called {
        name,
        state: record.state.token(),
        calls: record.attempts,
        per_second: format!("{:.1}", record.attempts as f64 / seconds),
        before: record
            .before_per_1000_s
            .map_or("not known".into(), |calls| format!("{:.1}", calls as f64 / 1000.0)),
        failures: if failures.is_empty() { "none".to_owned() } else { failures.join(", ") },
    }
}

/// Copies by age, from the first age that any was of to the last.
fn ages(record: &Record) -> Vec<(String, u64)> {
    let bounds = AGE_BUCKETS_SECONDS.iter().map(|bound| lasts(*bound)).chain(["more".to_owned()]);
    let all: Vec<_> = bounds.zip(record.ages).collect();
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}
