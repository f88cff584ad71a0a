//! What the policy file says beyond the engine's rules: addresses, limits on clients, matching, header edits.
//!
//! Plain data, already validated, with defaults filled in. Durations are [`Duration`], sizes are bytes in `u64`,
//! header names are in lower case.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use backstop_engine::policy::{CacheId, DependencyId, Mode, Origin, RouteId, StatusSet};

mod authorizer;

pub use authorizer::{AskedSettings, AuthorizerKind, AuthorizerSettings, TokenAlgorithm, TokenSettings};

pub use crate::value::{Address, HostPattern, IpRange, MatchRule, Method, Segment, Template};

/// `[gateway]`: the process as a whole.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// Its name in `Via`, `Cache-Status` and `Proxy-Status`: a token. Default `backstop`.
    pub name: Box<str>,
    /// Where clients are accepted; at least one.
    pub listen: Vec<SocketAddr>,
    /// Where metrics and readiness are served. Default `127.0.0.1:9901`.
    pub admin: SocketAddr,
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// Requests in flight in the whole process, from 1. The same number as `policy.in_flight`.
    pub in_flight: u32,
    /// Worker threads, from 1; `None` is one per core.
    pub threads: Option<u16>,
    /// Peers whose `X-Forwarded-*` and `Forwarded` fields are believed. Default none.
    pub trusted: Vec<IpRange>,
    /// What one client may take.
    pub limits: Limits,
    /// Memory for answers that are held back, over all requests, in bytes. Default 256 MiB.
    pub buffer_memory: u64,
    /// The share of normal reads that also try what stands behind their route, if it is written.
    pub exercise: Option<(u16, Origin)>,
    /// How long a graceful stop may take before what is left is cut. Default 10 s.
    pub drain: Duration,
    /// Who is told of operations that need a person, beside the log.
    pub webhook: Option<WebhookSettings>,
    /// Where each request leaves a line.
    pub access_log: Option<AccessLogSettings>,
    /// Where traces go.
    pub traces: Option<TraceSettings>,
}

/// `access_log`: one line for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// How a line is written.
    pub format: AccessFormat,
    /// The file; `None` is standard output.
    pub path: Option<Box<str>>,
    /// Whether the query is written.
    pub query: bool,
}

/// How a line of the access log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// One JSON object.
    Json,
    /// The Common Log Format.
    Common,
}

/// `telemetry.traces`: OTLP over HTTP, plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// Where the collector listens.
    pub address: Address,
    /// The path, maybe with a query.
    pub path: Box<str>,
    /// The share of requests without a caller's word that is traced, in per mille.
    pub sample_per_mille: u16,
}

/// `attention.webhook`: who is told with a POST, plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where it listens.
    pub address: Address,
    /// The path, maybe with a query.
    pub path: Box<str>,
}

impl GatewaySettings {
    /// Whether the forwarding fields sent by this peer are believed.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.iter().any(|range| range.contains(peer))
    }
}

/// What one client may send and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest request head, in bytes. Default 32 KiB.
    pub head_bytes: u64,
    /// Longest time in which a request head arrives. Default 10 s.
    pub head_time: Duration,
    /// What a route may set for itself.
    pub route: RouteLimits,
}

/// Limits on one request once its route is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimits {
    /// Largest request body, in bytes. Default 1 MiB.
    pub body_bytes: u64,
    /// Longest time in which a request body arrives. Default 30 s.
    pub body_time: Duration,
    /// Longest time for which what is ready of a reply waits for a client that does not take it. Default 30 s.
    pub reply_time: Duration,
}

/// `[store]`: where copies are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Folder of everything that survives a restart, as written. Default `backstop-data`.
    pub path: Box<str>,
    /// Memory for copies, in bytes. Default 64 MiB.
    pub memory_bytes: u64,
    /// Disk for copies, in bytes; 0 keeps them in memory only. Default 1 GiB.
    pub disk_bytes: u64,
    /// Where operations are written; `None` where no route has any.
    pub ledger: Option<Ledger>,
}

/// Where operations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// A file of its own in the folder of the store.
    Sqlite,
}

/// `[dependency.NAME]`: what is called.
#[derive(Clone, Debug)]
pub struct DependencySettings {
    /// Its position in `policy.dependencies` and in `Loaded::dependencies`.
    pub id: DependencyId,
    /// Its name.
    pub name: Box<str>,
    /// Where it listens, plain HTTP; at least one.
    pub addresses: Vec<Address>,
    /// Connections over all threads and addresses, from 1. The same number as in `policy`. Default 64.
    pub connections: u32,
    /// How long a request waits for a connection; zero refuses at once. Default 0.
    pub queue: Duration,
    /// Longest time to connect. Default 1 s; the deadline ends it sooner.
    pub connect: Duration,
    /// What is sent as `Host`.
    pub host: HostHeader,
    /// How long an unused connection is kept. Default 30 s.
    pub idle: Duration,
    /// A GET of its own for its breaker, where requests may not find out whether it works again.
    pub probe: Option<ProbeSettings>,
    /// Where it was written.
    pub origin: Origin,
}

/// `cache` of routes: what is asked before a dependency.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    /// Its position in `policy.caches` and in `Loaded::caches`.
    pub id: CacheId,
    /// Its name: address and database.
    pub name: Box<str>,
    /// Where it listens.
    pub address: Address,
    /// Its database.
    pub database: u32,
    /// How long it is waited for.
    pub timeout: Duration,
    /// Longest time to connect.
    pub connect: Duration,
    /// What every key begins with.
    pub prefix: Box<str>,
    /// The largest value, in bytes.
    pub value_bytes: u64,
    /// Where it was written.
    pub origin: Origin,
}

/// `probe` of a dependency: a GET that finds out whether it works again while its breaker is open or half open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// Path, maybe with a query, as it is sent.
    pub path: Box<str>,
    /// How often. Default 5 s.
    pub interval: Duration,
    /// How long the whole answer may take, at most `interval`. Default 1 s.
    pub timeout: Duration,
    /// The statuses that say that it works. Default 200 to 299.
    pub expect: StatusSet,
    /// Where it was written.
    pub origin: Origin,
}

/// The `Host` that a dependency is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The client's own.
    #[default]
    Client,
    /// Always this one.
    Fixed(Box<str>),
}

/// `[route.NAME.CLASS]`: how requests come to a route and what is changed on their way.
#[derive(Clone, Debug)]
pub struct RouteSettings {
    /// Its position in `policy.routes` and in `Loaded::routes`.
    pub id: RouteId,
    /// Its name.
    pub name: Box<str>,
    /// What it answers; at least one. A rule for `GET` answers `HEAD` too.
    ///
    /// The most specific rule wins, whatever the order in the file: an exact host before a wildcard before none;
    /// then, segment by segment, a literal before a parameter before a rest; then a named method before any.
    /// No two rules of one policy are equally specific for the same request.
    pub matches: Vec<MatchRule>,
    /// Hosts it answers for; empty is every host.
    pub hosts: Vec<HostPattern>,
    /// Removed from the start of the path before forwarding: whole literal segments, such as `/api`.
    pub strip_prefix: Option<Box<str>>,
    /// Changes to the request before it is forwarded.
    pub request_headers: HeaderEdits,
    /// Changes to the answer before it is sent.
    pub response_headers: HeaderEdits,
    /// Limits on one request, the gateway's where the route sets none.
    pub limits: RouteLimits,
    /// Routes whose copies a successful or unknown write withdraws. Copies of the same target are withdrawn always.
    pub withdraws: Vec<RouteId>,
    /// What each part of a `composed` route is asked for, in the order of the engine's parts; empty on every other class.
    pub parts: Vec<PartSettings>,
    /// Which pages may read the answers that are Backstop's own.
    pub cors: Option<CorsSettings>,
    /// Whether its copies are those of callers who were looked at: a credential then makes no request somebody's own.
    pub verifies: bool,
    /// Who says whether its callers may: its position in `Loaded::authorizers`.
    pub authorizer: Option<usize>,
    /// Whether a request with `Cookie` may be answered from a copy: the field is removed before forwarding.
    pub ignore_cookie: bool,
    /// The evidence about its alternative, whether or not it counts at this moment.
    pub evidence: Option<EvidenceSettings>,
    /// Where it was written.
    pub origin: Origin,
}

/// `cors` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsSettings {
    /// Origins of pages in lower case, or `*`; at least one.
    pub origins: Vec<Box<str>>,
    /// Whether a page may read them that sent credentials. Never with `*`.
    pub credentials: bool,
    /// Fields that a page may read, in lower case. Default `backstop` and `retry-after`.
    pub expose: Vec<Box<str>>,
}

/// What one part of a composed answer is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartSettings {
    /// The route that answers it, whatever others might match the path.
    pub route: RouteId,
    /// Its path: literals, and parameters of the composed route's own path, each of one segment.
    pub path: Template,
    /// Its parameters as that route names them: each with what stands for it, in segments of `path`.
    pub parameters: Vec<(Box<str>, Vec<Segment>)>,
}

/// What is known of the measurement behind an alternative; its figures are in the engine's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceSettings {
    /// The evidence file, as the policy names it.
    pub file: Box<str>,
    /// The 95th percentile of the latency that was measured.
    pub p95: Duration,
    /// When it was measured, as written.
    pub measured: Box<str>,
    /// Until when it counts, as written.
    pub valid_until: Box<str>,
    /// What load was present.
    pub load: Box<str>,
}

/// Header fields to set and to remove. Removal comes first, then setting replaces every field of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Name in lower case, and value.
    pub set: Vec<(Box<str>, Box<str>)>,
    /// Names in lower case.
    pub remove: Vec<Box<str>>,
}

impl HeaderEdits {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }
}
