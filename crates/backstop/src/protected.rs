//! A policy brought to life, and one of its routes, ready to answer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use backstop_engine::engine::{Engine, RouteState};
use backstop_engine::policy::{Policy, PolicyError, RouteClass, RouteId};
use backstop_engine::time::{Now, WallTrust};
use backstop_store::{Copies, Withdrawal};
use http::request::Parts;

use crate::budget::{Budget, Held, HeldBack};
use crate::clock::Clock;
use crate::compose::{NotAPlace, Object, is_private, varies_by};
use crate::correct::Rules;
use crate::driver::Waiters;
use crate::fields::Speaker;
use crate::fixed::Fixed;
use crate::flights::Flights;
use crate::json::NotAPointer;
use crate::request::target;

/// What a write withdraws beside its own target.
pub type Withdraws = dyn Fn(&Parts) -> Vec<Withdrawal> + Send + Sync;

/// A policy with its limits, counters, clock and copies. Cheap to clone; clones share all of it.
#[derive(Clone, Debug)]
pub struct Backstop {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Clock,
    pub(crate) copies: Copies,
    pub(crate) speaker: Speaker,
    pub(crate) waiters: Waiters,
    pub(crate) withdrawals: Withdrawals,
    pub(crate) budget: Budget,
    /// Of requests that are held whole.
    pub(crate) uploads: Budget,
    pub(crate) flights: Arc<Flights>,
}

/// What came of withdrawals, as far as requests saw it.
#[derive(Debug, Default)]
pub struct Withdrawals {
    late: std::sync::atomic::AtomicU64,
}

impl Withdrawals {
    /// How many were not confirmed by the disk within the 50 ms for which a request waits.
    pub fn late(&self) -> u64 {
        self.late.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn count_late(&self) {
        self.late.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// A policy that cannot be brought to life.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The engine refuses it.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A `correct` rule names no place.
    #[error("route `{route}`: {source}")]
    Correct {
        /// The route.
        route: Box<str>,
        /// What is wrong.
        source: NotAPointer,
    },
    /// A part of a composed answer can stand nowhere.
    #[error("route `{route}`: {source}")]
    Place {
        /// The route.
        route: Box<str>,
        /// What is wrong.
        source: NotAPlace,
    },
    /// An answer that is prepared beforehand is none that HTTP knows.
    #[error(
        "route `{route}`: a prepared answer needs a status from 200 to 599 (with a body neither 204, 205 nor 304) and a media type, not {status} and {media_type:?}"
    )]
    Fixed {
        /// The route.
        route: Box<str>,
        /// Its status.
        status: u16,
        /// Its media type.
        media_type: Box<str>,
    },
    /// A plain function cannot answer for this route's class.
    #[error(
        "route `{route}`: a plain function answers for `public_read` and `direct` only, and asks no authorizer"
    )]
    NotForFunctions {
        /// The route.
        route: Box<str>,
    },
    /// There is no route of that name.
    #[error("the policy has no route `{0}`")]
    NoSuchRoute(Box<str>),
}

impl Backstop {
    /// Brings a policy to life.
    ///
    /// # Errors
    /// A policy that the engine refuses.
    pub fn new(policy: Policy, clock: Clock, copies: Copies, speaker: Speaker) -> Result<Self, SetupError> {
        let engine = Engine::new(policy)?;
        clock.raise_high_water(copies.high_water_wall());
        let waiters = Waiters::of(&engine);
        let withdrawals = Withdrawals::default();
        let (budget, uploads) = (Budget::default(), Budget::default());
        let flights = Arc::new(Flights::new());
        let shared =
            Shared { engine, clock, copies, speaker, waiters, withdrawals, budget, uploads, flights };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// As [`Backstop::new`], inside a service, with copies in memory only.
    ///
    /// # Errors
    /// A policy that the engine refuses.
    pub fn in_memory(policy: Policy, clock: Clock, memory_bytes: u64) -> Result<Self, SetupError> {
        let speaker = Speaker { name: "backstop".into(), is_gateway: false };
        Self::new(policy, clock, Copies::memory(memory_bytes), speaker)
    }

    /// The limits and counters.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// What is to be done about once a second: the clock is asked anew whether its date may be believed, and the clock and
    /// the copies tell each other how far the date has come. A file of copies that could be opened only now may know of a
    /// later date than the clock shows: then its copies are not believed across boots.
    pub fn keep_house(&self) -> Now {
        let Shared { clock, copies, .. } = &*self.shared;
        clock.raise_high_water(copies.high_water_wall());
        let now = clock.refresh();
        if now.wall_trust == WallTrust::Synchronised {
            copies.note_wall(now);
        }
        now
    }

    /// The copies.
    pub fn copies(&self) -> &Copies {
        &self.shared.copies
    }

    /// What came of withdrawals.
    pub fn withdrawals(&self) -> &Withdrawals {
        &self.shared.withdrawals
    }

    /// Changes how many bytes of answers may be held back until they are complete, over all requests (256 MiB to begin
    /// with). Once they are used up, answers stream instead.
    pub fn set_buffer_memory(&self, limit_bytes: u64) {
        self.shared.budget.set(limit_bytes);
        self.shared.uploads.set(limit_bytes / 2);
    }

    /// What is held back now.
    pub fn held_back(&self) -> HeldBack {
        self.shared.budget.now()
    }

    /// The name in `Via`, `Cache-Status` and `Proxy-Status`.
    pub fn name(&self) -> &str {
        &self.shared.speaker.name
    }

    /// A route by its name.
    ///
    /// # Errors
    /// If there is none, or its `correct` rules or its prepared answer cannot be used.
    pub fn route(&self, name: &str) -> Result<ProtectedRoute, SetupError> {
        let found = self.shared.engine.routes().iter().position(|route| *route.rules.name == *name);
        let id = found.and_then(|index| u16::try_from(index).ok());
        let id = id.ok_or_else(|| SetupError::NoSuchRoute(name.into()))?;
        self.route_by_id(RouteId(id), Box::new(|_| Vec::new()), "")
    }

    /// A route by its id. `withdraws` names the copies that a write on it withdraws beside those of its own path. `also`
    /// is what makes a copy of this route what it is, beside the route's own rules: copies that were kept under another
    /// value are not found any more.
    ///
    /// # Errors
    /// If its `correct` rules, its prepared answers or the places of its parts cannot be used.
    pub fn route_by_id(
        &self,
        id: RouteId,
        withdraws: Box<Withdraws>,
        also: &str,
    ) -> Result<ProtectedRoute, SetupError> {
        let rules = &self.shared.engine.route(id).rules;
        let wrong = |source| SetupError::Correct { route: rules.name.clone(), source };
        let correct = match rules.class.read() {
            Some(read) => Rules::new(&read.correct).map_err(wrong)?,
            None => Rules::default(),
        };
        let fixed = match &rules.class {
            RouteClass::Optional(optional) => Some(Fixed::of(optional, &rules.name)?),
            RouteClass::Direct(_)
            | RouteClass::PublicRead(_)
            | RouteClass::CachedRead(_)
            | RouteClass::Composed(_)
            | RouteClass::Guarded
            | RouteClass::Effect(_) => None,
        };
        let whole = match &rules.class {
            RouteClass::Composed(composed) => {
                let nowhere = |source| SetupError::Place { route: rules.name.clone(), source };
                let object = Object::new(&composed.parts).map_err(nowhere)?;
                let engine = &self.shared.engine;
                let is_private = is_private(&engine.route(id).rules, composed, engine);
                Some(Whole { object, varies_by: varies_by(composed, engine), is_private })
            }
            _ => None,
        };
        let dependencies = self.shared.engine.dependencies();
        let asked = dependencies.get(usize::from(rules.dependency.0)).map_or("", |asked| &asked.rules.name);
        let fingerprint = fingerprint(&rules.class, asked, also);
        let shared = Arc::clone(&self.shared);
        let inner = RouteInner { shared, id, correct, fixed, whole, withdraws, fingerprint };
        Ok(ProtectedRoute { inner: Arc::new(inner) })
    }
}

/// One route of a [`Backstop`], ready to answer. Cheap to clone.
#[derive(Clone)]
pub struct ProtectedRoute {
    pub(crate) inner: Arc<RouteInner>,
}

pub(crate) struct RouteInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: RouteId,
    pub(crate) correct: Rules,
    pub(crate) fixed: Option<Fixed>,
    pub(crate) whole: Option<Whole>,
    withdraws: Box<Withdraws>,
    /// Copies of other rules under the same name are other copies.
    pub(crate) fingerprint: [u8; 8],
}

/// What a composed route answers with, ready for its parts.
pub(crate) struct Whole {
    pub(crate) object: Object,
    /// Request fields by which its parts' routes choose their answers.
    pub(crate) varies_by: Vec<Box<str>>,
    /// Whether no cache may keep it for others than its caller.
    pub(crate) is_private: bool,
}

/// What a copy depends on beside the request: whom it came from, what tells copies apart and what was demanded of them.
/// A value of another version of this program need not be the same; then copies are lost, never mistaken.
fn fingerprint(class: &RouteClass, asked: &str, also: &str) -> [u8; 8] {
    let Some(read) = class.read() else { return [0; 8] };
    let mut hasher = DefaultHasher::new();
    (asked, &read.key, &read.languages, also).hash(&mut hasher);
    format!("{:?} {:?}", read.correct, read.incorrect).hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

impl ProtectedRoute {
    /// A share of the memory for requests that are held whole, with nothing held yet. It is apart from that for answers: who
    /// fills it keeps no answer from being read.
    pub fn hold(&self) -> Held {
        self.inner.shared.uploads.hold()
    }

    /// The route's rules, limits and counters.
    pub fn state(&self) -> &RouteState {
        self.inner.shared.engine.route(self.inner.id)
    }

    /// What a write on this route withdraws: everything below its own path, and what the policy names.
    pub(crate) fn withdrawn_by_write(&self, parts: &Parts) -> Vec<Withdrawal> {
        let target = target(parts);
        let mut withdrawals = (self.inner.withdraws)(parts);
        withdrawals.push(Withdrawal::Path { host: target.host().into(), path: target.path().into() });
        withdrawals
    }
}

impl std::fmt::Debug for ProtectedRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProtectedRoute").field("name", &self.state().rules.name).finish_non_exhaustive()
    }
}
