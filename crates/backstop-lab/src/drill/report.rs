//! What came of drills, as one document.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::{Finding, Scenario, Verdict, View};

/// What came of all drills of one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The version of this document's form.
    pub version: u32,
    /// The policy file.
    pub policy: String,
    /// What chance was drawn from.
    pub seed: u64,
    /// Whether all that was looked at held, and something was.
    pub held: bool,
    /// The drills, in the order in which they were played.
    pub drills: Vec<DrillReport>,
    /// The drills that had nothing to rehearse.
    pub skipped: Vec<Skipped>,
}

/// A drill, or a route of one, that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What came of one drill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrillReport {
    /// Its name.
    pub name: String,
    /// What it rehearses.
    pub about: String,
    /// Whether everything held.
    pub verdict: Verdict,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// Requests that were sent.
    pub requests: u64,
    /// What was looked at.
    pub findings: Vec<Finding>,
    /// Routes that it does not concern.
    pub skipped: Vec<Skipped>,
    /// The names of what is called, in the order of `calls` in bins.
    pub upstreams: Vec<String>,
    /// What failed.
    pub faults: Vec<FaultReport>,
    /// What came, by time.
    pub bins: Vec<Bin>,
    /// What answers said of themselves, counted.
    pub answers: BTreeMap<String, u64>,
}

/// What failed, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultReport {
    /// The dependency.
    pub dependency: String,
    /// What.
    pub kind: String,
    /// From then on, in seconds.
    pub from_s: f64,
    /// Until then.
    pub to_s: f64,
}

/// What came of the requests that were sent within a short time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bin {
    /// When it begins, in seconds.
    pub from_s: f64,
    /// The dependency's own answers.
    pub normal: u64,
    /// Accepted alternatives.
    pub fallback: u64,
    /// Refusals.
    pub rejected: u64,
    /// Failures that were told.
    pub failed: u64,
    /// No whole answer.
    pub none: u64,
    /// The median of the latency, in milliseconds; none without answers.
    pub p50_ms: Option<f64>,
    /// 95 % are at most this.
    pub p95_ms: Option<f64>,
    /// The greatest age that a copy told, in seconds.
    pub oldest_s: Option<i64>,
    /// Calls that each upstream received.
    pub calls: Vec<u64>,
}

/// How many bins a report has about.
const BINS: f64 = 60.0;
/// The shortest bin.
const SHORTEST_S: f64 = 0.1;

pub(crate) fn of(
    view: &View<'_>,
    scenario: &Scenario,
    findings: Vec<Finding>,
    took: Duration,
) -> DrillReport {
    let verdict = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Nothing);
    let fault = |window: &crate::proxy::Window| FaultReport {
        dependency: view.facts.upstream_name(window.upstream).to_owned(),
        kind: window.fault.name().to_owned(),
        from_s: window.from.as_secs_f64(),
        to_s: window.to.as_secs_f64(),
    };
    let mut answers = BTreeMap::new();
    for sample in view.samples {
        let status = sample.status.map_or_else(|| "no".to_owned(), |status| status.to_string());
        let words = [Some(sample.outcome()), sample.source(), sample.reason(), sample.cause()];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        *answers.entry(format!("{status} {}", words.join(" "))).or_default() += 1;
    }
    DrillReport {
        name: scenario.name.clone(),
        about: scenario.about.clone(),
        verdict,
        took_s: took.as_secs_f64(),
        requests: view.samples.len() as u64,
        findings,
        skipped: skipped(&scenario.skipped),
        upstreams: view.facts.upstreams().iter().map(|upstream| upstream.name.to_string()).collect(),
        faults: scenario.windows.iter().map(fault).collect(),
        bins: bins(view, scenario.duration),
        answers,
    }
}

/// The routes or drills that were left out.
fn skipped(pairs: &[(String, String)]) -> Vec<Skipped> {
    pairs.iter().map(|(name, why)| Skipped { name: name.clone(), why: why.clone() }).collect()
}

fn bins(view: &View<'_>, duration: Duration) -> Vec<Bin> {
    let width = (duration.as_secs_f64() / BINS).max(SHORTEST_S);
    let count = (duration.as_secs_f64() / width).ceil().max(1.0) as usize;
    let place = |at: Duration| ((at.as_secs_f64() / width) as usize).min(count - 1);
    let empty = |index: usize| Bin {
        from_s: index as f64 * width,
        calls: vec![0; view.facts.upstreams().len()],
        ..Bin::default()
    };
    let mut bins: Vec<Bin> = (0..count).map(empty).collect();
    let mut latencies: Vec<Vec<f64>> = vec![Vec::new(); count];
    for sample in view.samples.iter().filter(|sample| !sample.after_restart) {
        let index = place(sample.sent);
        let (Some(bin), Some(latencies)) = (bins.get_mut(index), latencies.get_mut(index)) else { continue };
        match sample.outcome() {
            "normal" => bin.normal += 1,
            "fallback" => bin.fallback += 1,
            "rejected" => bin.rejected += 1,
            "failed" => bin.failed += 1,
            _ => bin.none += 1,
        }
        latencies.push(sample.took().as_secs_f64() * 1000.0);
        bin.oldest_s = bin.oldest_s.max(sample.mark.as_ref().and_then(|mark| mark.age_s));
    }
    for call in view.calls.iter().filter(|call| call.began <= duration) {
        let calls = bins.get_mut(place(call.began)).and_then(|bin| bin.calls.get_mut(call.upstream));
        if let Some(calls) = calls {
            *calls += 1;
        }
    }
    for (bin, mut latencies) in bins.iter_mut().zip(latencies) {
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (latencies.len() as f64 * share).ceil() as usize;
            rank.checked_sub(1).and_then(|index| latencies.get(index)).copied()
        };
        (bin.p50_ms, bin.p95_ms) = (at(0.5), at(0.95));
    }
    bins
}

impl Report {
    /// A report of these drills.
    #[must_use]
    pub fn new(policy: &str, seed: u64, drills: Vec<DrillReport>, skipped: Vec<Skipped>) -> Self {
        let held = !drills.is_empty() && drills.iter().all(|drill| drill.verdict == Verdict::Held);
        Self { version: 1, policy: policy.to_owned(), seed, held, drills, skipped }
    }
}
