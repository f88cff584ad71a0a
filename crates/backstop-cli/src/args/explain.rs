//! `backstop explain`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The policy file
    #[arg(value_name = "POLICY")]
    pub(crate) policy: PathBuf,
    /// The request: a method and a path, such as "GET /products/42"
    #[arg(value_name = "REQUEST")]
    pub(crate) request: String,
    /// Its host. Default: the first address that the policy listens on
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// A field of the request, such as 'X-Tenant: a'; may be said again
    #[arg(long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Its content
    #[arg(long, value_name = "TEXT")]
    pub(crate) data: Option<String>,
    /// Who asks
    #[arg(long, value_enum, default_value_t = Caller::Anybody)]
    pub(crate) caller: Caller,
    /// What happens to the calls of a dependency: ok, incorrect, a status such as 500, or a failure (dns, connect,
    /// connect_timeout, tls, write, reset, read_timeout, incomplete, protocol, unavailable). Several, joined by commas, happen
    /// one after the other; the last goes on
    #[arg(long = "when", value_name = "DEPENDENCY=FAILURE")]
    pub(crate) when: Vec<String>,
    /// How old the copy of the answer is, such as 61s. Default: there is none
    #[arg(long, value_name = "AGE|none")]
    pub(crate) copy_age: Option<String>,
    /// Places that others have taken: at the `process`, at the `route`, at a dependency or of a resource by its name
    #[arg(long = "in-flight", value_name = "LIMIT=N")]
    pub(crate) in_flight: Vec<String>,
    /// What the shared cache does: hit, miss, failed, or the age of what it has. Default: miss
    #[arg(long, value_name = "STATE")]
    pub(crate) cache: Option<String>,
    /// What a breaker is in: open, half_open (the next read is a probe) or ramping (its share is used up)
    #[arg(long = "breaker", value_name = "DEPENDENCY=STATE")]
    pub(crate) breakers: Vec<String>,
    /// What the route's authorizer says: allow, deny, unclear, or how it fails. Default: allow
    #[arg(long, value_name = "WORD")]
    pub(crate) authorizer: Option<String>,
    /// What became of an earlier request with the same key: none, running, unknown, succeeded, refused, not_executed
    #[arg(long, value_name = "STATE")]
    pub(crate) operation: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Caller {
    /// A peer that the policy does not trust
    Anybody,
    /// A peer in one of the ranges of `trusted`
    Trusted,
}
