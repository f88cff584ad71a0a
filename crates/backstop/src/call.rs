//! A route around a plain async function: no HTTP, the same engine.
//!
//! ```
//! # use std::time::Duration;
//! # use backstop::call::{Answered, Reads, Unanswered};
//! # use backstop::engine::failure::FailureKind;
//! # use backstop::engine::policy::Policy;
//! # use backstop::{Backstop, clock::Clock, builder};
//! # #[derive(Debug)] struct Unreachable;
//! # async fn ask_the_catalog(id: u32) -> Result<String, Unreachable> { Ok(format!("product {id}")) }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let policy = builder::public_read("description", Duration::from_millis(300))
//!     .in_flight(200)
//!     .max_age(Duration::from_secs(60))
//!     .policy();
//! let reads = Reads::new(Clock::system()?, policy, 10_000, |_: &Unreachable| Some(FailureKind::Connect))?;
//!
//! let answered = reads.read(42, || ask_the_catalog(42)).await.expect("there is an answer");
//! println!("{}, {} s old, from {}", answered.value, answered.age.as_secs(), answered.source.token());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::future::Future;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstop_engine::engine::{Engine, RouteState};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{
    Attempt, AttemptId, BodyFacts, CopyAction, Event, Flow, HeadFacts, Reply, RequestFacts, Trace,
};
use backstop_engine::outcome::{Outcome, Reason, Source};
use backstop_engine::policy::{Policy, RouteClass, RouteId};
use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use backstop_engine::time::BootId;
use quick_cache::sync::{Cache, EntryAction, EntryResult};

use crate::clock::Clock;
use crate::driver::{Hands, Waiters, drive};
use crate::protected::SetupError;
use crate::service::Entropy;
use crate::upstream::Progress;

/// A protected read: keys `K`, values `T`, errors `E`. Share it behind an [`Arc`].
pub struct Reads<K, T, E> {
    engine: Arc<Engine>,
    clock: Clock,
    waiters: Waiters,
    copies: Cache<K, (CopyFacts, T)>,
    withdrawals: Withdrawals,
    classify: Box<Classify<E>>,
    entropy: Entropy,
}

/// How often something was withdrawn, in as many counters as keep unrelated keys mostly apart. A read that finds its
/// key's counter changed may have seen what was withdrawn, and is not kept: a needless mismatch costs one copy.
struct Withdrawals {
    counters: [AtomicU64; 256],
    places: RandomState,
}

impl Withdrawals {
    fn of<K: Hash>(&self, key: &K) -> &AtomicU64 {
        let [place, ..] = self.places.hash_one(key).to_ne_bytes();
        &self.counters[usize::from(place)]
    }
}

type Classify<E> = dyn Fn(&E) -> Option<FailureKind> + Send + Sync;

/// A value with where it comes from and how old it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The value.
    pub value: T,
    /// The dependency itself, or the last correct read.
    pub source: Source,
    /// Its age; zero from the dependency itself.
    pub age: Duration,
}

/// No value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered<E> {
    /// Refused: a limit, or no copy that could be served.
    #[error("rejected: {}", .0.token())]
    Rejected(Reason),
    /// The dependency failed and there is no alternative.
    #[error("failed: {}", .0.token())]
    Failed(Reason),
    /// An error that is no failure of the dependency, unchanged.
    #[error(transparent)]
    Propagated(E),
}

impl<K, T, E> Reads<K, T, E>
where
    K: Eq + Hash + Clone,
    T: Clone,
{
    /// Protects reads with the first route of a policy. At most `copies` values are kept. `classify` tells which errors
    /// are failures of the dependency.
    ///
    /// A function cannot be told to ask another dependency: what the policy says of one is not done here, and the value that
    /// is kept stands in at once.
    ///
    /// # Errors
    /// A policy that the engine refuses or that has no route, or a route of another class than `public_read` and `direct`:
    /// an HTTP answer, a shared cache and parts of other routes are no value.
    pub fn new(
        clock: Clock,
        mut policy: Policy,
        copies: usize,
        classify: impl Fn(&E) -> Option<FailureKind> + Send + Sync + 'static,
    ) -> Result<Self, SetupError> {
        policy.routes.iter_mut().for_each(|route| route.alternative = None);
        let engine = Engine::new(policy)?;
        let Some(route) = engine.routes().first() else { return Err(SetupError::NoSuchRoute("".into())) };
        let is_value = matches!(route.rules.class, RouteClass::PublicRead(_) | RouteClass::Direct(_));
        if !is_value || route.rules.authorizer.is_some() {
            return Err(SetupError::NotForFunctions { route: route.rules.name.clone() });
        }
        let waiters = Waiters::of(&engine);
        let copies = Cache::new(copies.max(1));
        let withdrawals =
            Withdrawals { counters: std::array::from_fn(|_| AtomicU64::new(0)), places: RandomState::new() };
        let classify = Box::new(classify);
        Ok(Self { engine, clock, waiters, copies, withdrawals, classify, entropy: Entropy::new() })
    }

    /// Reads a value: from the dependency, or the last correct one if it fails. The function is called at most once: a
    /// policy's [`retry`](crate::builder::Builder::retry) needs [`read_again`](Reads::read_again).
    ///
    /// # Errors
    /// [`Unanswered`]. Dropping the future ends the read, the function's own future with it, and returns its permits.
    pub async fn read<R, F>(&self, key: K, ask: R) -> Result<Answered<T>, Unanswered<E>>
    where
        R: FnOnce() -> F,
        F: Future<Output = Result<T, E>>,
    {
        let mut ask = Some(ask);
        self.answer(key, RequestFacts { repeatable: false, ..RequestFacts::GET }, |_| {
            ask.take().map(|ask| ask())
        })
        .await
    }

    /// As [`read`](Reads::read); where the policy says so, the function is called a second time after a failure of a
    /// moment. `attempt` is how often whoever calls has tried it, from 1 (`Backstop-Attempt` in HTTP): from 2 on nothing is
    /// repeated here. The function gets the number of the attempt that it makes, to be passed on likewise.
    ///
    /// # Errors
    /// As [`read`](Reads::read).
    pub async fn read_again<R, F>(
        &self,
        key: K,
        attempt: u32,
        mut ask: R,
    ) -> Result<Answered<T>, Unanswered<E>>
    where
        R: FnMut(u32) -> F,
        F: Future<Output = Result<T, E>>,
    {
        self.answer(key, RequestFacts { attempt, ..RequestFacts::GET }, |number| Some(ask(number))).await
    }

    async fn answer<R, F>(
        &self,
        key: K,
        facts: RequestFacts,
        mut ask: R,
    ) -> Result<Answered<T>, Unanswered<E>>
    where
        R: FnMut(u32) -> Option<F>,
        F: Future<Output = Result<T, E>>,
    {
        let withdrawals = self.withdrawals.of(&key);
        let withdrawn_before = withdrawals.load(Ordering::SeqCst);
        let begun = self.clock.now();
        let mut flow = Flow::begin(&self.engine, RouteId(0), facts, begun, self.entropy.draw(), Trace::off());
        let asked = Mutex::new(None);
        let (decision, key, copy) = {
            // Nothing happens before the first poll. What the driver gets to see names neither `T` nor `E`: else the
            // compiler could not prove that the whole is `Send` where they hold a lifetime, `Box<dyn Error>` included.
            let (asked, classify) = (&asked, &self.classify);
            let asking = |number| {
                let asking = ask(number)?;
                Some(async move {
                    let result = asking.await;
                    let told = match &result {
                        Ok(_) => Told::Value,
                        Err(error) => classify(error).map_or(Told::Unclassified, Told::Failure),
                    };
                    *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    told
                })
            };
            let mut hands = Call { reads: self, key, asking, copy: None };
            let decision = drive(&mut flow, &mut hands, &self.clock, &self.waiters, None).await;
            (decision, hands.key, hands.copy)
        };
        let account = decision.account;
        let asked = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        let value = match (decision.reply, asked, copy) {
            (Reply::Collected(_) | Reply::Streamed(_), Some(Ok(value)), _) => {
                if decision.copy == CopyAction::Store
                    && withdrawals.load(Ordering::SeqCst) == withdrawn_before
                {
                    self.keep(&key, ObservedAt::new(begun, Duration::ZERO), value.clone());
                    // Withdrawn in between: the withdrawal may have come before there was anything to remove.
                    if withdrawals.load(Ordering::SeqCst) != withdrawn_before {
                        self.copies.remove(&key);
                    }
                }
                Ok((value, Duration::ZERO))
            }
            (Reply::Copy { age }, _, Some(value)) => Ok((value, age)),
            (Reply::Propagated(_), Some(Err(error)), _) => Err(Unanswered::Propagated(error)),
            _ => match account.outcome {
                Outcome::Rejected => Err(Unanswered::Rejected(account.reason)),
                _ => Err(Unanswered::Failed(account.reason)),
            },
        };
        decision.settlement.complete();
        value.map(|(value, age)| Answered { value, source: account.source, age })
    }

    /// Keeps a value as if it had been read at the given moment. A later read is never overwritten; what this boot has read
    /// is later than what another one has, whatever their dates were.
    pub fn keep(&self, key: &K, observed_at: ObservedAt, value: T) {
        let facts = CopyFacts { observed_at, origin_limit: OriginLimit::Unlimited };
        let mut value = Some(value);
        let present = self.clock.now().boot;
        let entry = self.copies.entry(key, None, |_, kept| {
            if !began_after(&kept.0.observed_at, &observed_at, present)
                && let Some(value) = value.take()
            {
                *kept = (facts, value);
            }
            EntryAction::Retain(())
        });
        if let (EntryResult::Vacant(place), Some(value)) = (entry, value) {
            // Refused only if the place was withdrawn or filled meanwhile.
            let _unless_overtaken = place.insert((facts, value));
        }
    }

    /// Withdraws what is kept for a key: it changed, or it is gone. A read that began before is not kept any more.
    pub fn withdraw(&self, key: &K) {
        self.withdrawals.of(key).fetch_add(1, Ordering::SeqCst);
        self.copies.remove(key);
    }

    /// The route's rules, limits and counters.
    pub fn state(&self) -> &RouteState {
        self.engine.route(RouteId(0))
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// Whether one read began after another. Dates of different boots are compared only where neither is the present one.
fn began_after(one: &ObservedAt, other: &ObservedAt, present: BootId) -> bool {
    match (one.boot == present, other.boot == present) {
        (true, false) => true,
        (false, true) => false,
        _ => one.began_after(other),
    }
}

/// What the function came to.
enum Told {
    Value,
    Failure(FailureKind),
    Unclassified,
}

struct Call<'a, K, T, E, A> {
    reads: &'a Reads<K, T, E>,
    key: K,
    asking: A,
    copy: Option<T>,
}

impl<K, T, E, A, F> Hands for Call<'_, K, T, E, A>
where
    K: Eq + Hash + Clone,
    T: Clone,
    A: FnMut(u32) -> Option<F>,
    F: Future<Output = Told>,
{
    fn peek(&mut self) -> Option<CopyFacts> {
        self.reads.copies.get(&self.key).map(|(facts, _)| facts)
    }

    async fn call(&mut self, attempt: Attempt, progress: &Progress) -> Event {
        let id = attempt.id;
        let Some(asking) = (self.asking)(attempt.number) else { return Event::Propagated { attempt: id } };
        progress.enter(Phase::Head);
        match asking.await {
            Told::Value => Event::Head {
                attempt: id,
                head: HeadFacts { status: 200, has_body: true, degraded: None, ..HeadFacts::default() },
            },
            Told::Failure(kind) => {
                Event::Failed { attempt: id, failure: Failure::new(kind, Phase::Head, Sent::Maybe) }
            }
            Told::Unclassified => Event::Propagated { attempt: id },
        }
    }

    async fn collect(&mut self, attempt: AttemptId, _: u64) -> Event {
        // A value is complete when it comes.
        Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } }
    }

    async fn load(&mut self) -> Event {
        let copy = self.reads.copies.get(&self.key);
        self.copy = copy.as_ref().map(|(_, value)| value.clone());
        Event::Copy(Ok(copy.map(|(facts, _)| facts)))
    }
}

impl<K, T, E> std::fmt::Debug for Reads<K, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reads").field("engine", &self.engine).finish_non_exhaustive()
    }
}
