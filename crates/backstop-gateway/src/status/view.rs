//! The model of what is shown: `GET /status.json`, the page, the terminal and tests all have it from here.
//!
//! Its form is stable ([docs/reference/status.md](https://github.com/backstop/backstop/blob/main/docs/reference/status.md)):
//! fields are added, and none changes its meaning while `format` stays. Times are dates in UTC, shares lie between 0 and 1, what is
//! not known is `null`.

mod parts;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use parts::{
    AuthorizerView, CacheView, DependencyHistory, FunctionHistory, HistoryView, IncidentView, OperationsView,
    ResourceView, StoreView,
};

/// The number of this form.
pub const FORMAT: u32 = 1;

/// How a gateway stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The number of the form.
    pub format: u32,
    /// When this was, by the gateway's clock.
    pub at: String,
    /// The whole in one word.
    pub state: Overall,
    /// The whole in one sentence.
    pub sentence: String,
    /// The process.
    pub gateway: GatewayView,
    /// Business functions, in the policy's order.
    pub functions: Vec<FunctionView>,
    /// Routes, in the policy's order.
    pub routes: Vec<RouteView>,
    /// What is called, authorizers included, in the policy's order.
    pub dependencies: Vec<DependencyView>,
    /// What dependencies share.
    pub resources: Vec<ResourceView>,
    /// Who says whether callers may.
    pub authorizers: Vec<AuthorizerView>,
    /// Shared caches.
    pub caches: Vec<CacheView>,
    /// Operations that must happen once; `null` where no route has any.
    pub operations: Option<OperationsView>,
    /// Incidents, the newest first.
    pub incidents: Vec<IncidentView>,
    /// Where copies are kept.
    pub store: StoreView,
    /// The last hour.
    pub history: HistoryView,
}

/// A state of the whole, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overall {
    /// Every answer is the dependency's own.
    Normal,
    /// Answers are, but a dependency is held, failing or on its way back.
    Watched,
    /// Nobody is refused, something is not as it should be, and what caused it is on its way back.
    Recovering,
    /// Some answers are accepted alternatives.
    Degraded,
    /// Some requests are not completed.
    Refusing,
    /// The gateway is stopping.
    Draining,
}

impl Overall {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_normal(self) -> bool {
        matches!(self, Self::Normal)
    }

    /// The word that people read.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Watched => "Watched",
            Self::Recovering => "Recovering",
            Self::Degraded => "Degraded",
            Self::Refusing => "Refusing",
            Self::Draining => "Stopping",
        }
    }
}

/// The process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatewayView {
    /// Its name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// Whether it is stopping.
    pub is_draining: bool,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// What `/readyz` warns of.
    pub warnings: Vec<String>,
    /// Requests in flight.
    pub in_flight: InFlight,
}

/// Places taken and places there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// Taken now.
    pub now: u32,
    /// There are.
    pub limit: u32,
}

/// Requests of the last minute by what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Answered by the dependency.
    pub normal: u64,
    /// Answered by an accepted alternative.
    pub fallback: u64,
    /// Refused.
    pub rejected: u64,
    /// Without an acceptable answer.
    pub failed: u64,
    /// Ended by the client.
    pub abandoned: u64,
}

impl Outcomes {
    /// Both together.
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self {
            normal: self.normal + more.normal,
            fallback: self.fallback + more.fallback,
            rejected: self.rejected + more.rejected,
            failed: self.failed + more.failed,
            abandoned: self.abandoned + more.abandoned,
        }
    }

    /// All but those that the client ended.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.normal + self.fallback + self.not_completed()
    }

    /// Those that were not completed.
    #[must_use]
    pub const fn not_completed(&self) -> u64 {
        self.rejected + self.failed
    }

    /// The share of those that were completed, in per cent.
    #[must_use]
    pub fn completed_percent(&self) -> u64 {
        self.percent(self.normal)
    }

    /// The share of those that were reduced, in per cent.
    #[must_use]
    pub fn reduced_percent(&self) -> u64 {
        self.percent(self.fallback)
    }

    /// The share of those that were not completed, in per cent.
    #[must_use]
    pub fn not_completed_percent(&self) -> u64 {
        self.percent(self.not_completed())
    }

    /// A part of all, in whole per cent; a part that is there is never 0 and never hides the rest.
    #[must_use]
    pub fn percent(&self, part: u64) -> u64 {
        let all = self.requests();
        match part {
            0 => 0,
            part if part >= all => 100,
            part => ((part * 200 + all) / (2 * all)).clamp(1, 99),
        }
    }
}

/// One business function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionView {
    /// Its name.
    pub name: String,
    /// How it stands: the worst of its routes.
    pub state: RouteState,
    /// Its requests of the last ten seconds: completed is `normal`, reduced is `fallback`, the others are not completed.
    pub last_ten_seconds: Outcomes,
    /// The same of the last minute.
    pub last_minute: Outcomes,
    /// Requests per second, over the last minute.
    pub per_second: f64,
}

/// How a route stands, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteState {
    /// Nobody asked for a minute.
    Quiet,
    /// Answers are as they should be.
    Normal,
    /// Some are accepted alternatives.
    Degraded,
    /// Some requests are not completed.
    Refusing,
}

impl RouteState {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Normal => "normal",
            Self::Degraded => "degraded",
            Self::Refusing => "refusing",
        }
    }

    /// Whether somebody should look.
    #[must_use]
    pub const fn needs_attention(self) -> bool {
        matches!(self, Self::Degraded | Self::Refusing)
    }
}

/// One route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteView {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// The business function that it serves.
    pub function: Option<String>,
    /// `enforce` or `observe`.
    pub mode: String,
    /// The dependency that it asks first.
    pub dependency: Option<String>,
    /// How it stands.
    pub state: RouteState,
    /// The rung in use: the last one of its ladder that gave at least one in a hundred of the answers of the last ten seconds.
    pub rung: Option<RungKind>,
    /// Why that one, as a word of the reasons.
    pub reason: Option<String>,
    /// Since when.
    pub since: Option<String>,
    /// Since how many seconds.
    pub since_seconds: Option<u64>,
    /// What it may answer with, in the order in which it is tried.
    pub ladder: Vec<Rung>,
    /// Requests of the last ten seconds.
    pub last_ten_seconds: Outcomes,
    /// Requests of the last minute.
    pub last_minute: Outcomes,
    /// Requests per second, over the last minute.
    pub per_second: f64,
    /// Reasons of the last minute, but for `none`.
    pub reasons: BTreeMap<String, u64>,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// The lane for alternatives, where there is one.
    pub lane: Option<InFlight>,
    /// Share of the last minute's reads that a copy would have answered; `null` without reads or without copies.
    pub coverage: Option<f64>,
    /// Ages of the copies that were served in the last minute; `null` if none was.
    pub copy_ages: Option<CopyAgesView>,
}

/// Ages of copies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyAgesView {
    /// How many copies.
    pub copies: u64,
    /// Half of them were at most this old: the upper bound of the histogram's bucket, or the oldest if that is younger.
    pub median_at_most_seconds: f64,
    /// Their mean.
    pub mean_seconds: f64,
    /// The oldest.
    pub oldest_seconds: f64,
}

/// What an answer can come from, in the order in which a ladder has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungKind {
    /// Whoever says whether callers may: its own answer is a no.
    Authorizer,
    /// A shared cache.
    Cache,
    /// The dependency.
    Dependency,
    /// Other routes, put together.
    Parts,
    /// The dependency, asked once more.
    Retry,
    /// What was recorded of the same operation.
    Ledger,
    /// Another dependency.
    Alternative,
    /// The last correct answer.
    Copy,
    /// A general answer prepared beforehand.
    Prepared,
    /// The part is left out.
    Omitted,
    /// No answer but a status.
    Refusal,
}

impl RungKind {
    /// How a route stands that uses it.
    #[must_use]
    pub const fn state(self) -> RouteState {
        match self {
            Self::Authorizer | Self::Cache | Self::Dependency | Self::Parts | Self::Retry | Self::Ledger => {
                RouteState::Normal
            }
            Self::Alternative | Self::Copy | Self::Prepared | Self::Omitted => RouteState::Degraded,
            Self::Refusal => RouteState::Refusing,
        }
    }

    /// What it is called in a sentence: "answers from ...".
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Authorizer => "its authorizer",
            Self::Cache => "its cache",
            Self::Dependency => "its dependency",
            Self::Parts => "its parts",
            Self::Retry => "a second call",
            Self::Ledger => "the ledger",
            Self::Alternative => "another dependency",
            Self::Copy => "copies",
            Self::Prepared => "a prepared answer",
            Self::Omitted => "an answer without it",
            Self::Refusal => "a refusal",
        }
    }
}

/// One rung of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// What it is.
    pub kind: RungKind,
    /// Its name.
    pub name: String,
    /// What bounds it.
    pub detail: String,
    /// Answers of the last minute that came from it.
    pub answers: u64,
    /// Their share.
    pub share: f64,
    /// Whether it is the rung in use.
    pub is_in_use: bool,
}

/// How a dependency stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyStanding {
    /// It is asked, and at most one call in a hundred of the last ten seconds failed.
    Normal,
    /// It is asked, and more than that failed.
    Failing,
    /// It is not asked.
    Open,
    /// It is given its load back.
    Recovering,
    /// It is given all of its load, and watched for a minute.
    Watched,
    /// An order holds it open or closed.
    Held,
}

impl DependencyStanding {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Failing => "failing",
            Self::Open => "not asked",
            Self::Recovering => "recovering",
            Self::Watched => "watched",
            Self::Held => "held",
        }
    }

    /// Whether somebody should look.
    #[must_use]
    pub const fn needs_attention(self) -> bool {
        !matches!(self, Self::Normal | Self::Watched)
    }
}

/// One dependency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DependencyView {
    /// Its name.
    pub name: String,
    /// `dependency` or `authorizer`.
    pub role: String,
    /// How it stands.
    pub state: DependencyStanding,
    /// The phase of its breaker, as in the metrics.
    pub phase: String,
    /// Since when it is in that phase.
    pub since: String,
    /// Since how many seconds.
    pub since_seconds: u64,
    /// The share of its usual load that it is given: 1 unless it is open or ramping.
    pub share: f64,
    /// Calls per second that it is given in a ramp, if its usual load is known.
    pub allowed_per_second: Option<f64>,
    /// Calls per second that are usual, while it is held back and that is known.
    pub usual_per_second: Option<f64>,
    /// Seconds until it may be probed, while it is open.
    pub next_probe_seconds: Option<f64>,
    /// Calls per second that it received in the last ten seconds.
    pub per_second: f64,
    /// Calls of the last minute.
    pub calls: u64,
    /// Failed calls of the last minute, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The kind of failure that it had most of when it was last failing; kept until its breaker is closed and it is well.
    pub cause: Option<String>,
    /// Calls of the last minute that were made once more.
    pub retries: u64,
    /// Calls under way.
    pub in_flight: InFlight,
    /// The order that holds it.
    pub held: Option<HeldView>,
}

/// An order about a breaker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldView {
    /// `operator` or `policy`.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: String,
}
