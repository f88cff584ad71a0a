//! The model's smaller parts: resources, authorizers, caches, operations, incidents, the store and the last hour.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Outcomes;

/// One resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceView {
    /// Its name.
    pub name: String,
    /// Places taken now.
    pub in_use: u32,
    /// Places there are, if they are limited.
    pub limit: Option<u32>,
    /// What it refused in the last minute.
    pub refused: u64,
}

/// One authorizer: what came of asking it in the last minute, over all routes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthorizerView {
    /// Its name.
    pub name: String,
    /// An explicit yes.
    pub allowed: u64,
    /// An explicit no.
    pub denied: u64,
    /// Neither.
    pub unclear: u64,
    /// No answer.
    pub failed: u64,
    /// It was not asked.
    pub not_asked: u64,
}

/// One shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheView {
    /// Its name.
    pub name: String,
    /// The phase of its breaker.
    pub phase: String,
    /// Answers of the last minute that came from it, and all requests of its routes.
    pub hits: u64,
    /// Requests of its routes in the last minute.
    pub lookups: u64,
}

/// Operations that must happen once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationsView {
    /// How many are in each state.
    pub states: BTreeMap<String, u64>,
    /// Seconds since the oldest unknown one.
    pub oldest_unknown_seconds: Option<u64>,
    /// Seconds since the oldest one that needs a person.
    pub oldest_attention_seconds: Option<u64>,
    /// Whether new ones are refused for want of room.
    pub is_full: bool,
    /// Why the ledger ended, if it did.
    pub failed: Option<String>,
}

/// One incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncidentView {
    /// Its identity: `/incidents/ID` and `/incidents/ID.html` have the whole.
    pub id: String,
    /// Where it stands.
    pub phase: String,
    /// Its first second.
    pub began: String,
    /// Its last second, if it is over.
    pub ended: Option<String>,
    /// Seconds that it lasted so far.
    pub seconds: u64,
    /// Requests in it.
    pub requests: Outcomes,
    /// What it cost each function.
    pub functions: BTreeMap<String, Outcomes>,
    /// The dependency that failed most in it, and the kind of failure.
    pub cause: Option<String>,
    /// When it came into each of its phases, in seconds after its beginning.
    pub phases: Vec<(String, u64)>,
}

/// Where copies are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreView {
    /// Copies known.
    pub copies: u64,
    /// Memory taken.
    pub memory_bytes: u64,
    /// Size of the file.
    pub disk_bytes: u64,
    /// `off`, `ok`, `full` or `failing`.
    pub disk: String,
    /// Withdrawals not confirmed by the disk.
    pub withdrawals_unconfirmed: u64,
}

/// The last hour, in steps of ten seconds. Every list has a value for each step; the last one ends at `until`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryView {
    /// The length of a step.
    pub step_seconds: u64,
    /// When the last step ends.
    pub until: String,
    /// Functions by name.
    pub functions: BTreeMap<String, FunctionHistory>,
    /// Dependencies by name.
    pub dependencies: BTreeMap<String, DependencyHistory>,
}

/// One function over time: counts in each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionHistory {
    /// Completed.
    pub completed: Vec<u64>,
    /// Reduced.
    pub reduced: Vec<u64>,
    /// Not completed.
    pub not_completed: Vec<u64>,
}

/// One dependency over time: counts in each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DependencyHistory {
    /// Calls that it received.
    pub calls: Vec<u64>,
    /// Those that failed.
    pub failures: Vec<u64>,
    /// Calls per second that it was given at the end of the step, where it was held back and that is known.
    pub allowed_per_second: Vec<Option<f64>>,
}
