//! Policies written in code, for those who use the library without a policy file.
//!
//! `deadline`, `in_flight` and `max_age` have no default: they are the operator's contract. The types hold this: a
//! policy exists only once they are given.

use std::time::Duration;

use backstop_engine::admission::ClassShare;
use backstop_engine::health::{BreakerRules, RecoveryRules};
use backstop_engine::policy::{
    AfterRestart, Correct, Dependency, Direct, FixedAnswer, Incorrect, KeyPart, Optional, Origin, Otherwise,
    Policy, PublicRead, ResourceId, RetryRules, Route, RouteClass, StatusSet,
};
use backstop_engine::resource::ResourceRules;
use backstop_engine::retry;

/// A route without its limit.
#[derive(Clone, Debug)]
#[must_use = "a route becomes a policy with `in_flight`"]
pub struct NeedsLimit {
    name: Box<str>,
    deadline: Duration,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    PublicRead,
    Optional(Otherwise),
    Direct,
}

/// A `public_read` route without its age limit.
#[derive(Clone, Debug)]
#[must_use = "a public read becomes a policy with `max_age`"]
pub struct NeedsMaxAge(Builder);

/// A route that is complete; what else is set here has a default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `policy`"]
pub struct Builder {
    route: Route,
    connections: Option<u32>,
    queue: Duration,
    breaker: Option<BreakerRules>,
    recovery: Option<RecoveryRules>,
    resources: Vec<ResourceRules>,
}

/// A read whose last correct answer may be served, within a total deadline.
pub fn public_read(name: &str, deadline: Duration) -> PublicReadNeedsLimit {
    PublicReadNeedsLimit(NeedsLimit { name: name.into(), deadline, kind: Kind::PublicRead })
}

/// A part that is replaced by a general answer when it is slow or fails.
pub fn optional(name: &str, deadline: Duration, answer: FixedAnswer) -> NeedsLimit {
    NeedsLimit { name: name.into(), deadline, kind: Kind::Optional(Otherwise::Prepared(answer)) }
}

/// A call without any alternative: one deadline, one limit.
pub fn direct(name: &str, deadline: Duration) -> NeedsLimit {
    NeedsLimit { name: name.into(), deadline, kind: Kind::Direct }
}

/// A `public_read` route without its limits.
#[derive(Clone, Debug)]
#[must_use = "a route becomes a policy with `in_flight`"]
pub struct PublicReadNeedsLimit(NeedsLimit);

impl PublicReadNeedsLimit {
    /// Requests in flight at once, answers from copies included; the excess is refused at once.
    pub fn in_flight(self, in_flight: u32) -> NeedsMaxAge {
        NeedsMaxAge(self.0.in_flight(in_flight))
    }
}

impl NeedsMaxAge {
    /// The oldest copy that may be served, inclusive.
    pub fn max_age(mut self, max_age: Duration) -> Builder {
        if let RouteClass::PublicRead(read) = &mut self.0.route.class {
            read.max_age = max_age;
        }
        self.0
    }
}

impl NeedsLimit {
    /// Requests in flight at once, alternatives included; the excess is refused at once.
    pub fn in_flight(self, in_flight: u32) -> Builder {
        let class = match self.kind {
            Kind::Direct => RouteClass::Direct(Direct::default()),
            Kind::Optional(otherwise) => RouteClass::Optional(Optional::new(otherwise)),
            Kind::PublicRead => RouteClass::PublicRead(PublicRead {
                max_age: Duration::ZERO,
                after_restart: AfterRestart::Verify,
                gone: StatusSet::of(&[404, 410]),
                incorrect: Incorrect::Propagate,
                override_origin: false,
                buffer_bytes: 1 << 20,
                languages: Vec::new(),
                key: Vec::new(),
                correct: Correct::default(),
            }),
        };
        let route = Route { name: self.name, deadline: self.deadline, in_flight, class, ..Route::default() };
        Builder {
            route,
            connections: None,
            queue: Duration::ZERO,
            breaker: None,
            recovery: None,
            resources: Vec::new(),
        }
    }
}

impl Builder {
    /// Calls of the dependency under way at once. Default: as many as `in_flight`. Of a `direct` route, calls that only
    /// read use less than 85 % of them: the last are for those that may change something.
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = Some(connections);
        self
    }

    /// How long to wait for one of them. Default: not at all.
    pub fn queue(mut self, queue: Duration) -> Self {
        self.queue = queue;
        self
    }

    /// Makes a call once more that failed for a moment: reads only, never after a timeout, paid from successes
    /// ([`retry`]). Default: no call is made again.
    pub fn retry(mut self) -> Self {
        let owner = retry::Owner::Backstop;
        self.route.retry = Some(RetryRules { attempts: retry::MAX_ATTEMPTS, owner, origin: Origin::NONE });
        self
    }

    /// Leaves the dependency alone while it fails or is slow. Default: it is always asked.
    pub fn breaker(mut self, rules: BreakerRules) -> Self {
        self.breaker = Some(rules);
        self
    }

    /// How the load returns after the breaker was open. Default: at once. Without a breaker it has no effect.
    pub fn recovery(mut self, rules: RecoveryRules) -> Self {
        self.recovery = Some(rules);
        self
    }

    /// Something that bears only so much and that each call takes up: at most `concurrency` calls at once and `rate` per
    /// second. It is shared by all that live by the same policy; several can be named. Default: none.
    pub fn resource(mut self, name: &str, concurrency: Option<u32>, rate: Option<u64>) -> Self {
        self.resources.push(ResourceRules { name: name.into(), concurrency, rate, origin: Origin::NONE });
        self
    }

    /// How long a call that nobody waits for any more goes on occupying its dependency and resources, if it does not end
    /// before. Default: the rest of the deadline. See [`BackstopLayer`](crate::BackstopLayer).
    pub fn abandon_hold(mut self, hold: Duration) -> Self {
        self.route.abandon_hold = Some(hold);
        self
    }

    /// A limited lane in which copies are served when `in_flight` refuses. Default: none.
    pub fn fallback_in_flight(mut self, fallback_in_flight: u32) -> Self {
        self.route.fallback_in_flight = fallback_in_flight;
        self
    }

    /// Statuses that count as failures beside 502, 503 and 504. Default: none.
    pub fn declared(mut self, statuses: &[u16]) -> Self {
        self.route.declared = StatusSet::of(statuses);
        self
    }

    /// What an answer of a `public_read` must be. Default: complete.
    pub fn correct(mut self, correct: Correct) -> Self {
        if let RouteClass::PublicRead(read) = &mut self.route.class {
            read.correct = correct;
        }
        self
    }

    /// What tells copies of a `public_read` apart beyond host, path, query and `Vary`. Default: nothing.
    pub fn key(mut self, key: Vec<KeyPart>) -> Self {
        if let RouteClass::PublicRead(read) = &mut self.route.class {
            read.key = key;
        }
        self
    }

    /// The languages of a `public_read`: one of them is asked for, and tells copies apart. Default: `Accept-Language` is left
    /// alone.
    pub fn languages(mut self, languages: &[&str]) -> Self {
        if let RouteClass::PublicRead(read) = &mut self.route.class {
            read.languages = languages.iter().map(|&language| language.into()).collect();
        }
        self
    }

    /// The policy of this one route, over a dependency of the same name. Nobody shares the process and the dependency
    /// with it, so both have room for what was said: of their limits, the route's class may use just that.
    pub fn policy(self) -> Policy {
        let (class, is_direct) = match &self.route.class {
            RouteClass::Optional(_) => (ClassShare::Optional, false),
            RouteClass::PublicRead(_) | RouteClass::CachedRead(_) | RouteClass::Composed(_) => {
                (ClassShare::Read, false)
            }
            RouteClass::Direct(_) => (ClassShare::Read, true),
            RouteClass::Guarded => (ClassShare::Guarded, false),
            RouteClass::Effect(_) => (ClassShare::Effect, false),
        };
        let connections = match self.connections {
            // Of these, requests that change something could use more than were said.
            Some(connections) if is_direct => connections,
            connections => class.limit_for(connections.unwrap_or(self.route.in_flight)),
        };
        let dependency = Dependency {
            name: self.route.name.clone(),
            connections,
            queue: self.queue,
            uses: (0..self.resources.len())
                .filter_map(|index| u16::try_from(index).ok())
                .map(ResourceId)
                .collect(),
            breaker: self.breaker,
            recovery: self.recovery,
            ..Dependency::default()
        };
        let in_flight = self.route.in_flight.saturating_add(self.route.fallback_in_flight);
        Policy {
            in_flight: class.limit_for(in_flight),
            in_flight_origin: Origin::NONE,
            instances: 1,
            resources: self.resources,
            dependencies: vec![dependency],
            caches: Vec::new(),
            routes: vec![self.route],
        }
    }
}
