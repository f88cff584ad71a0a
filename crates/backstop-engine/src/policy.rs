//! What the operator accepted beforehand, as plain data.
//!
//! Every route belongs to exactly one class, and a class has only the fields of its own alternatives: an unsafe mix
//! (a copy on a route that has effects, say) cannot be written down. Values are already validated by whoever builds
//! the policy (the policy file or the library's builders); [`Policy::validate`] holds what the engine relies on.

mod authorizer;
mod class;
pub mod effect;
mod status_set;
mod validate;

use std::time::Duration;

use crate::alternative::Verified;
use crate::health::{BreakerRules, RecoveryRules};
use crate::resource::ResourceRules;
use crate::retry;

pub use authorizer::AuthorizerRules;
pub use class::RouteClass;
pub use status_set::StatusSet;
pub use validate::PolicyError;

/// Where a rule was written. The policy file maps it to a place in the text; the engine only carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin(pub u32);

impl Origin {
    /// A rule that nobody wrote: a default or a value given in code.
    pub const NONE: Origin = Origin(u32::MAX);
}

/// Position of a dependency in [`Policy::dependencies`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DependencyId(pub u16);

impl DependencyId {
    /// No dependency: of a route that asks others only.
    pub const NONE: DependencyId = DependencyId(u16::MAX);
}

/// Position of a resource in [`Policy::resources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceId(pub u16);

/// Position of a cache in [`Policy::caches`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheId(pub u16);

/// Position of a route in [`Policy::routes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteId(pub u16);

/// Whether decisions are carried out or only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Decisions are carried out.
    #[default]
    Enforce,
    /// Everything is decided and counted, and nothing of it is carried out: the flow of a request is the same, and whoever
    /// drives it forwards the request whatever it comes to.
    Observe,
}

/// The whole accepted behaviour of one process.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Requests in flight in the whole process, copies included; refusals by this limit or a route's hold no place.
    pub in_flight: u32,
    /// Where `in_flight` was written.
    pub in_flight_origin: Origin,
    /// How many processes with this policy stand side by side; 0 counts as 1.
    pub instances: u32,
    /// What several dependencies share.
    pub resources: Vec<ResourceRules>,
    /// What may be called.
    pub dependencies: Vec<Dependency>,
    /// What is asked before a dependency is called.
    pub caches: Vec<CacheRules>,
    /// What is answered.
    pub routes: Vec<Route>,
}

/// Something that is called and may fail.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// Its name, as in metrics and messages.
    pub name: Box<str>,
    /// Calls under way at once, over all threads, abandoned ones included until they end.
    pub connections: u32,
    /// How long a request may wait for one of them; zero refuses at once.
    pub queue: Duration,
    /// The resources that its calls take up.
    pub uses: Vec<ResourceId>,
    /// When it is not asked any more because it fails; never if `None`.
    pub breaker: Option<BreakerRules>,
    /// How the load returns after that; at once if `None`.
    pub recovery: Option<RecoveryRules>,
    /// Where `connections` was written.
    pub connections_origin: Origin,
}

impl Default for Dependency {
    /// Without a name and without connections: both have to be given.
    fn default() -> Self {
        Self {
            name: Box::default(),
            connections: 0,
            queue: Duration::ZERO,
            uses: Vec::new(),
            breaker: None,
            recovery: None,
            connections_origin: Origin::NONE,
        }
    }
}

/// A shared cache: asked first, and failing on its own.
#[derive(Clone, Debug)]
pub struct CacheRules {
    /// Its name, as in metrics and messages.
    pub name: Box<str>,
    /// When it is not asked any more because it fails.
    pub breaker: BreakerRules,
}

/// The unit of policy: one kind of request and what it may be answered with.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name, as in metrics and messages.
    pub name: Box<str>,
    /// The business function it serves, such as `browse`.
    pub function: Option<Box<str>>,
    /// What is asked first; [`DependencyId::NONE`] on a `composed` route.
    pub dependency: DependencyId,
    /// From the complete request head to the last byte at a reading client.
    pub deadline: Duration,
    /// Requests in flight at once, answers from copies included. The excess is refused at once.
    pub in_flight: u32,
    /// A separate, limited lane in which alternatives may still be served when `in_flight` refuses; 0 is none.
    pub fallback_in_flight: u32,
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// Further statuses that count as a failure of the dependency, besides 502, 503 and 504.
    pub declared: StatusSet,
    /// How long an abandoned call may go on occupying its dependency; the remaining deadline if `None`.
    pub abandon_hold: Option<Duration>,
    /// What a missing or unusable copy is answered with.
    pub unavailable_status: UnavailableStatus,
    /// Who repeats a call that failed for the moment; nobody if `None`.
    pub retry: Option<RetryRules>,
    /// Another dependency that is asked when the first fails.
    pub alternative: Option<AlternativeRules>,
    /// Who says whether a caller may; nobody if `None`.
    pub authorizer: Option<AuthorizerRules>,
    /// The class and its own rules.
    pub class: RouteClass,
    /// Where the parts of the route were written.
    pub origins: RouteOrigins,
}

impl Default for Route {
    /// A `direct` route without a name, a deadline and a limit: they have to be given.
    fn default() -> Self {
        Self {
            name: Box::default(),
            function: None,
            dependency: DependencyId(0),
            deadline: Duration::ZERO,
            in_flight: 0,
            fallback_in_flight: 0,
            mode: Mode::Enforce,
            declared: StatusSet::EMPTY,
            abandon_hold: None,
            unavailable_status: UnavailableStatus::Contract,
            retry: None,
            alternative: None,
            authorizer: None,
            class: RouteClass::Direct(Direct::default()),
            origins: RouteOrigins::default(),
        }
    }
}

/// How a failed call is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// Calls of one request, the first one included: 1 or 2.
    pub attempts: u32,
    /// The one layer that repeats.
    pub owner: retry::Owner,
    /// Where it was written.
    pub origin: Origin,
}

/// Another dependency that is asked when the first fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlternativeRules {
    /// The one that is asked.
    pub dependency: DependencyId,
    /// What it was measured to bear; none of it is used if `None`.
    pub verified: Option<Verified>,
    /// Where it was written.
    pub origin: Origin,
}

/// Where the parts of a route were written.
#[derive(Clone, Copy, Debug)]
pub struct RouteOrigins {
    /// The route's table.
    pub route: Origin,
    /// `deadline`.
    pub deadline: Origin,
    /// `in_flight`.
    pub in_flight: Origin,
    /// `fallback_in_flight`.
    pub fallback_in_flight: Origin,
    /// `max_age` or `otherwise`: the accepted alternative.
    pub alternative: Origin,
    /// `correct`.
    pub correct: Origin,
    /// `gone`.
    pub gone: Origin,
    /// `declared`.
    pub declared: Origin,
}

impl Default for RouteOrigins {
    fn default() -> Self {
        let none = Origin::NONE;
        Self {
            route: none,
            deadline: none,
            in_flight: none,
            fallback_in_flight: none,
            alternative: none,
            correct: none,
            gone: none,
            declared: none,
        }
    }
}

/// Rules of a `direct` route.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct {
    /// If set, the answer may stream without end: the deadline ends with the head, and after it no gap between two
    /// pieces may be longer than this.
    pub idle: Option<Duration>,
}

/// Rules of a `public_read` route.
#[derive(Clone, Debug)]
pub struct PublicRead {
    /// The oldest copy that may be served, inclusive to the nanosecond.
    pub max_age: Duration,
    /// Whether copies of an earlier boot count although the clock is not synchronised.
    pub after_restart: AfterRestart,
    /// Statuses that withdraw the copy.
    pub gone: StatusSet,
    /// What an answer that fails `correct` becomes.
    pub incorrect: Incorrect,
    /// Whether the operator overrides an origin that forbids old copies (`no-cache`, `must-revalidate`,
    /// `proxy-revalidate`, `s-maxage`, `no-store`). Never `private`, `Set-Cookie` or `Authorization`.
    pub override_origin: bool,
    /// Largest answer that is held back and kept, in bytes.
    pub buffer_bytes: u64,
    /// `Accept-Language` is negotiated to one of these; empty leaves the field alone.
    pub languages: Vec<Box<str>>,
    /// What distinguishes copies beyond method, host, path, query and `Vary`.
    pub key: Vec<KeyPart>,
    /// What an answer must be to be correct.
    pub correct: Correct,
}

/// Rules of a `cached_read` route.
#[derive(Clone, Debug)]
pub struct CachedRead {
    /// The cache that is asked first.
    pub cache: CacheId,
    /// The oldest answer that the cache may give, inclusive to the nanosecond.
    pub ttl: Duration,
    /// How long the cache is waited for.
    pub timeout: Duration,
    /// How the dependency is read for what the cache does not have.
    pub fill: FillRules,
    /// Whether a copy of one's own stands in when the dependency cannot be asked.
    pub local_copy: bool,
    /// What tells answers apart and what is demanded of them. `max_age` is that of the copy of one's own, or the `ttl`
    /// without one.
    pub read: PublicRead,
}

/// How a dependency is read for what a cache does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillRules {
    /// Reads under way at once, over all keys.
    pub concurrency: u32,
    /// Reads per second; without a number there is no limit.
    pub rate: Option<u64>,
    /// How long one read may take. It goes on, and what it brings is kept, also when nobody waits for it any more.
    pub deadline: Duration,
    /// Requests that wait for the read of one key; what is more is refused at once.
    pub waiters: u32,
    /// Where they were written.
    pub origin: Origin,
}

/// Rules of an `optional` route.
#[derive(Clone, Debug)]
pub struct Optional {
    /// What stands in for the optional part.
    pub otherwise: Otherwise,
    /// `Accept-Language` is negotiated to one of these; empty leaves the field alone.
    pub languages: Vec<Box<str>>,
    /// What stands in where one of these languages was negotiated. The general answer is for everybody else.
    pub by_language: Vec<(Box<str>, FixedAnswer)>,
}

impl Optional {
    /// One stand-in for everybody.
    pub const fn new(otherwise: Otherwise) -> Self {
        Self { otherwise, languages: Vec::new(), by_language: Vec::new() }
    }
}

/// The stand-in of an optional part.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// Leave it out: this status and body.
    Omit(FixedAnswer),
    /// A general answer prepared beforehand.
    Prepared(FixedAnswer),
}

impl Otherwise {
    /// The answer to send.
    pub const fn answer(&self) -> &FixedAnswer {
        match self {
            Otherwise::Omit(answer) | Otherwise::Prepared(answer) => answer,
        }
    }
}

/// An answer known before any request came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedAnswer {
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub media_type: Box<str>,
    /// Content.
    pub body: Box<[u8]>,
}

/// One further part of a copy's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// A parameter of the path template.
    Path(Box<str>),
    /// The negotiated language.
    Language,
    /// The principal that an authorizer verified.
    Principal,
    /// A request header, by lower-case name. Absent matches only absent.
    Header(Box<str>),
    /// A parameter of the query.
    Query(Box<str>),
}

/// What an answer must be, beyond complete, to count as correct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correct {
    /// Its media type, without parameters.
    pub media_type: Option<Box<str>>,
    /// JSON Pointers (RFC 6901) that must exist.
    pub has: Vec<Box<str>>,
    /// JSON Pointers whose string must equal a part of the request's key.
    pub echo: Vec<(Box<str>, KeyPart)>,
}

impl Correct {
    /// Whether any rule looks into the body.
    pub fn reads_body(&self) -> bool {
        !self.has.is_empty() || !self.echo.is_empty()
    }
}

/// What becomes of copies that were written before the last boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterRestart {
    /// Only while the wall clock is synchronised and never ran back.
    #[default]
    Verify,
    /// The operator accepts the risk of an unsynchronised clock; a clock that ran back is refused all the same.
    Trust,
}

/// What an answer that fails `correct` becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incorrect {
    /// It passes through, counted as failed: a wrong schema is not unavailability.
    #[default]
    Propagate,
    /// It counts as a failure of the dependency, so the copy may be served.
    Fallback,
}

/// The status of a refused alternative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnavailableStatus {
    /// 503, whatever the cause.
    #[default]
    Contract,
    /// 502 or 504 by the cause.
    Cause,
}
