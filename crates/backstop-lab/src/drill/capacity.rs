//! How much an alternative bears beside its usual load: measured in steps, until the first sign that it is too much.
//!
//! Each step sends reads at a constant rate that waits for no answer, straight to the dependency. The knee is the last step
//! before one of three signs ([`Sign`]): throughput no longer follows what is offered, the 95th percentile leaves what it was at
//! first, or calls fail. Little's law and open loops make it safe to stop there: beyond it a queue grows without end.
//!
//! A service that is as fast as ever at the last step has no knee within what was offered: then what was offered was borne, and no
//! more is claimed.

use std::time::Duration;

use crate::{
    client::{self, ClientError},
    load::{Kind, LoadError, Plan, Summary},
};

/// Why nothing is measured.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The path is none.
    #[error(
        "`{}` is no path: it begins with `/` and has neither spaces nor control characters nor `#`",
        .0.escape_default()
    )]
    Path(String),
    /// The first look got no answer.
    #[error("{target} does not answer GET {path}: start it, or name the address at which it is")]
    NoAnswer {
        /// Where.
        target: std::net::SocketAddr,
        /// What was asked.
        path: String,
        /// What came instead.
        #[source]
        source: ClientError,
    },
    /// The first look got an answer that stands in for nothing.
    #[error(
        "{target} answers GET {path} with {what}, and only 2xx and 3xx show what it bears: name a `--path` that exists, and with \
         `--header` what it needs"
    )]
    NotInOrder {
        /// Where.
        target: std::net::SocketAddr,
        /// What was asked.
        path: String,
        /// What it answers.
        what: String,
    },
    /// Load could not be sent.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Whether an answer is one that an alternative gives in order. A path that is not there costs nothing, and shows nothing.
fn is_in_order(status: u16) -> bool {
    (200..400).contains(&status)
}

/// What is measured and within which bounds.
#[derive(Clone, Debug)]
pub struct Search {
    /// Where the dependency listens; loopback.
    pub target: std::net::SocketAddr,
    /// What is asked: a path.
    pub path: String,
    /// Fields of each request.
    pub fields: Vec<(String, String)>,
    /// The first rate, per second.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// What the dependency bears besides, sent at the same time.
    pub baseline: u64,
    /// How long each step lasts.
    pub step: Duration,
    /// Calls at once that are never exceeded.
    pub connections: u32,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What was offered per second, without the baseline.
    pub offered: u64,
    /// What was answered well per second.
    pub answered: f64,
    /// The 95th percentile of the latency of good answers.
    pub p95: Duration,
    /// The share that was not answered well.
    pub errors: f64,
    /// The mean of calls at once, by Little's law.
    pub at_once: f64,
    /// Why it is too much, if it is.
    pub sign: Option<Sign>,
}

/// A sign that it is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Throughput does not follow any more: less than 95 % of what is offered.
    Throughput,
    /// The 95th percentile is more than three times that of the first step, and grew by more than what chance is.
    Latency,
    /// More than one call of a hundred fails.
    Errors,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// Every step, the one that was too much last.
    pub steps: Vec<Step>,
    /// What it certainly bears: the last step before the first sign. None if already the first one was too much.
    pub borne: Option<Step>,
}

const LEAST_THROUGHPUT: f64 = 0.95;
const MOST_ERRORS: f64 = 0.01;
const P95_TIMES: u32 = 3;
/// A p95 that grew by less than this did not leave what is usual.
const P95_CHANCE: Duration = Duration::from_millis(5);
/// Each step offers so much more.
const GROWTH: f64 = 1.5;

/// Measures step by step, and tells of each.
///
/// # Errors
/// If the first look gets anything but an answer in order, or if load cannot be sent: the target is not loopback, say.
pub async fn search(search: &Search, mut tell: impl FnMut(&Step)) -> Result<Knee, SearchError> {
    first_look(search).await?;
    let mut knee = Knee { steps: Vec::new(), borne: None };
    let mut offered = search.from.max(1);
    loop {
        let summary = crate::load::run(plan(search, offered)).await?;
        let first = knee.steps.first().map(|step: &Step| step.p95);
        let step = judge(&summary, search, offered, first);
        tell(&step);
        let is_over = step.sign.is_some();
        if !is_over {
            knee.borne = Some(step.clone());
        }
        knee.steps.push(step);
        if is_over || offered >= search.to {
            return Ok(knee);
        }
        offered = ((offered as f64 * GROWTH).ceil() as u64).min(search.to);
    }
}

/// Asks once before anything is measured.
async fn first_look(search: &Search) -> Result<(), SearchError> {
    let (target, path) = (search.target, search.path.clone());
    if !path.starts_with('/') || path.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
        return Err(SearchError::Path(path));
    }
    if !target.ip().is_loopback() {
        return Err(LoadError::NotLoopback(target).into());
    }
    let fields: Vec<(&str, &str)> =
        search.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    match client::get(target, &path, &fields).await {
        Ok(answer) if is_in_order(answer.status()) && answer.is_complete() => Ok(()),
        Ok(answer) => {
            let cut = if answer.is_complete() { "" } else { " and not to its end" };
            Err(SearchError::NotInOrder { target, path, what: format!("{}{cut}", answer.status()) })
        }
        Err(source) => Err(SearchError::NoAnswer { target, path, source }),
    }
}

fn plan(search: &Search, offered: u64) -> Plan {
    let kind = |name: &str, weight: u64| {
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let kind =
            Kind::new(name, "GET", &search.path).weight(weight).check(|answer| is_in_order(answer.status()));
        search.fields.iter().fold(kind, |kind, (name, value)| kind.header(name, value))
    };
    Plan::new(search.target, (offered + search.baseline) as f64, search.step)
        .connections(search.connections.clamp(1, 10_000) as usize)
        .timeout(Duration::from_secs(5))
        .drain(Duration::from_millis(500))
        .kind(kind("measured", offered))
        .kind(kind("baseline", search.baseline))
}

fn judge(summary: &Summary, search: &Search, offered: u64, first: Option<Duration>) -> Step {
    let total = &summary.total;
    let good = total.answered.saturating_sub(total.wrong);
    let errors = 1.0 - good as f64 / (total.offered.max(1)) as f64;
    // What was still answered after the last request was due was not answered at the rate that was offered.
    let all = good as f64 / summary.took.max(search.step).as_secs_f64();
    let wanted = (offered + search.baseline) as f64;
    let p95 = Duration::from_nanos(total.latency.p95_ns);
    let sign = match first {
        _ if errors > MOST_ERRORS => Some(Sign::Errors),
        _ if all < wanted * LEAST_THROUGHPUT => Some(Sign::Throughput),
        Some(first) if p95 > first * P95_TIMES && p95 > first + P95_CHANCE => Some(Sign::Latency),
        _ => None,
    };
    let share = offered as f64 / wanted;
    let at_once = all * share * total.latency.mean_ns / 1e9;
    Step { offered, answered: all * share, p95, errors, at_once, sign }
}

impl Step {
    /// Calls at once that evidence may claim: the mean, rounded up, and at least one.
    #[must_use]
    pub fn concurrency(&self) -> u32 {
        (self.at_once.ceil() as u32).max(1)
    }
}

/// What an evidence file says.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The dependency.
    pub dependency: &'a str,
    /// What it bears.
    pub borne: &'a Step,
    /// When it was measured, as RFC 3339 has it.
    pub measured: &'a str,
    /// Until when that counts.
    pub valid_until: &'a str,
    /// What load was present.
    pub load: &'a str,
    /// A digest of the policy.
    pub policy: &'a str,
}

impl Evidence<'_> {
    /// The file, as a policy's `verified` reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let p95_ms = self.borne.p95.as_micros().div_ceil(1000).max(1);
        format!(
            "# Measured by `backstop drill capacity`.\n\
             dependency  = {}\nrate        = \"{}/s\"\nconcurrency = {}\np95         = \"{p95_ms}ms\"\n\
             measured    = {}\nvalid_until = {}\nload        = {}\npolicy      = {}\n",
            quoted(self.dependency),
            self.borne.offered,
            self.borne.concurrency(),
            quoted(self.measured),
            quoted(self.valid_until),
            quoted(self.load),
            quoted(self.policy)
        )
    }
}
