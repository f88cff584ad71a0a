//! One request's life, decided step by step.
//!
//! ```text
//! begin -> ADMIT --- refused ---> lane for alternatives, if there is one ------------+
//!            |                                                                       |
//!          Authorize (routes that name an authorizer): only a yes leads on           |
//!            |                                                                       |
//!          Peek (does a copy exist? counts coverage)                                 |
//!            |                                                                       |
//!          breaker, ramp, place at the dependency, resources --- refused --------+   |
//!            |                                                                   |   |
//!          Attempt --- failed, or too late to start -----------------------------+   |
//!            |                                                                   |   |
//!          Head: 401, 403, 404, other answers about the request -> pass through  |   |
//!            |   502, 503, 504, declared -------------------------------------- -+   |
//!          Collect (classes with an alternative, 2xx; probes): incomplete -------+   |
//!            |                                                                   v   v
//!          Done: normal, kept as the copy                            ALTERNATIVE of the class:
//!                                                                    copy judged | prepared | none
//! ```
//!
//! A `cached_read` asks its cache first (Lookup) and then has the dependency read for everybody who asks the same (Join):
//! `flow/cached.rs`. Such a read is a flow of its own, a fill, which begins at the place and belongs to no request.
//!
//! Before the class's alternative, a failure of a moment may lead back to the place once (Pause), and another dependency
//! may be asked in the same way (`flow/call.rs`): both only where the policy says so.
//!
//! An `effect` route writes down what it is about to do and what came of it: `flow/operation.rs`.
//!
//! A `composed` route asks nobody itself: after ADMIT it awaits the answers of other routes (`flow/parts.rs`).
//!
//! The rules that hold everywhere:
//! - Nothing below ADMIT raises what is in flight at the process or the route; alternatives count in the same places.
//! - A refusal of the process or the route leads to no alternative, unless the route opens a limited lane for them.
//! - Nothing starts after its share of the one deadline. Only time in which the *client* keeps us waiting moves it.
//! - An event that carries another attempt's number changes nothing.
//! - Each request is counted exactly once, when its last byte is through or when it is dropped.
//!
//! The engine knows neither clock nor randomness: time and entropy come in from the driver, and so the same object runs
//! under the network driver, an explanation, a simulation and the property tests.

mod answer;
mod authorize;
mod cached;
mod call;
mod come_back;
mod operation;
mod parts;
mod run;
mod settle;
mod step;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use crate::admission::{Permit, Waiting};
use crate::alternative::StandInPermit;
use crate::composed::Gathered;
use crate::deadline::{Deadline, alternative_share, record_share};
use crate::engine::{DependencyState, Engine, RouteState};
use crate::entropy::Entropy;
use crate::failure::Cause;
use crate::fills::FillEnd;
use crate::health::Ticket;
use crate::outcome::{Reason, Scope, Source};
use crate::policy::{DependencyId, ResourceId, RouteClass, RouteId};
use crate::time::{Mono, Now};

use authorize::Asking;

pub use answer::after_write;
pub use authorize::Authorization;
pub use operation::{Came, Consulted, Known, Recorded, Telling};
pub use settle::{Account, CopyAction, Decision, HandedOver, Reply, Settlement, Streaming};
pub use step::{Attempt, AttemptId, BodyFacts, Cached, ClientFault, Event, Filled, HeadFacts, Places, Step};
pub use trace::{Brought, Note, Trace, TraceEntry};

/// What is known of a request when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// What the method promises.
    pub method: Method,
    /// Whether a copy may answer this request and this request's answer may become one.
    pub copies: CopyUse,
    /// Whether the request carries a credential, so that a refusal may concern this caller alone.
    pub credential: bool,
    /// How often whoever calls has tried it (`Backstop-Attempt`); 1 is the first time.
    pub attempt: u32,
    /// Whether it can be sent a second time: its content, if any, is still there.
    pub repeatable: bool,
    /// Whether it has content, which its client is still to send.
    pub has_content: bool,
    /// Whether it goes on without anybody being asked whether its caller may: a browser asks so what it may ask (OPTIONS),
    /// and sends no credential with it.
    pub is_open: bool,
    /// Whether whoever makes its calls can make one to another dependency than the route's own.
    pub elsewhere: bool,
    /// Whether its client understands that an operation of unknown outcome was accepted (`Prefer: respond-async`, RFC 7240
    /// section 4.1).
    pub accepts_later: bool,
    /// Whether it only looks at an operation: what the ledger has is all that it wants.
    pub looks: bool,
    /// Of a part of a composed answer: when it is waited for no longer. It takes no place at the process; the request that
    /// it is a part of holds one.
    pub part_until: Option<Mono>,
}

impl RequestFacts {
    /// A plain GET, tried for the first time.
    pub const GET: Self = Self {
        method: Method::Get,
        copies: CopyUse::Full,
        credential: false,
        attempt: 1,
        repeatable: true,
        has_content: false,
        is_open: false,
        elsewhere: true,
        accepts_later: false,
        looks: false,
        part_until: None,
    };
}

/// What a request method promises (RFC 9110 section 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET: its answer can be kept.
    Get,
    /// HEAD: answered under GET's policy, without content.
    Head,
    /// OPTIONS, TRACE: safe, but no read of the resource.
    OtherSafe,
    /// May change the resource; so may an unknown method.
    Unsafe,
}

/// Whether copies play a part in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyUse {
    /// A copy may answer it, and its answer may become the copy.
    Full,
    /// A copy may answer it, but its answer is not kept (`no-store` in the request).
    ServeOnly,
    /// Neither: it is somebody's own (`Authorization`), or in no language that the route has.
    Never,
}

/// One request on its way.
#[derive(Debug)]
pub struct Flow {
    engine: Arc<Engine>,
    route: RouteId,
    facts: RequestFacts,
    begun: Now,
    deadline: Deadline,
    client_waited: Duration,
    entropy: Entropy,
    trace: Trace,
    attempts: u32,
    places: [Option<Permit>; 2],
    /// Who is asked now: the route's dependency, or the one that stands in.
    asked: DependencyId,
    /// Why the route's dependency did not answer, once that is known.
    cause: Option<Cause>,
    /// Calls of the route's own dependency.
    tries: u32,
    /// When the last call began.
    called: Mono,
    /// The end of an attempt that leaves time for another dependency.
    cut: Option<Mono>,
    ticket: Option<Ticket>,
    /// What the client had kept us waiting when the call was admitted.
    waited_before: Duration,
    retry: Option<Retry>,
    stand_in: Option<StandInPermit>,
    stood_in: bool,
    /// The resource that refused the call.
    full_resource: Option<ResourceId>,
    /// A failed answer that can still be passed on, because nobody was asked after it.
    held: Option<(AttemptId, HeadFacts)>,
    /// The latest moment that the driver came with.
    seen: Mono,
    role: Role,
    /// Whether a copy of one's own could answer, as far as was seen.
    copy_known: bool,
    /// A cache that was asked.
    cache: Option<Ticket>,
    /// Who is asked whether the caller may.
    asking: Option<Asking>,
    /// The limit that refused a request which the lane for alternatives took.
    in_lane: Option<Scope>,
    state: State,
    finished: bool,
}

/// A further call of the route's own dependency that was paid for.
#[derive(Debug)]
struct Retry {
    /// Its place among the retries, until it has ended.
    _place: Permit,
    is_made: bool,
}

/// On whose behalf a flow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A client's request.
    Request,
    /// Whoever asks for the same: a read for what a shared cache does not have.
    Fill,
}

#[derive(Debug)]
enum State {
    Admit,
    Authorize,
    AwaitAuthorized,
    AwaitKnown,
    Lookup,
    AwaitCached { until: Mono },
    AwaitFill,
    Place,
    AwaitPlace { waiting: Waiting, until: Mono },
    Call { permit: Permit },
    Pause { until: Mono },
    AwaitHead { attempt: AttemptId },
    Collect { attempt: AttemptId, head: HeadFacts },
    AwaitBody { attempt: AttemptId, head: HeadFacts },
    Alternative { cause: Cause },
    AwaitCopy { why: Why },
    AwaitParts(Gathered),
    Consult { cause: Option<Cause> },
    AwaitRecorded { came: Came, answer: Option<operation::Waiting>, cause: Option<Cause> },
    Answer(Answer),
    Done,
}

/// Why an alternative is looked for.
#[derive(Clone, Copy, Debug)]
enum Why {
    Cause(Cause),
    Capacity(Scope),
}

impl Why {
    const fn cause(self) -> Option<Cause> {
        match self {
            Why::Cause(cause) => Some(cause),
            Why::Capacity(_) => None,
        }
    }

    const fn reason(self) -> Reason {
        match self {
            Why::Cause(cause) => Reason::Cause(cause),
            Why::Capacity(scope) => Reason::Capacity(scope),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    reply: Reply,
    copy: CopyAction,
    account: Account,
    /// Whose answer streams, if one does.
    streams: Option<Streaming>,
}

impl Flow {
    /// A request that has just arrived whole in its head. `entropy` is 64 random bits that nobody else got.
    ///
    /// # Panics
    /// If the engine has no such route.
    pub fn begin(
        engine: &Arc<Engine>,
        route: RouteId,
        facts: RequestFacts,
        now: Now,
        entropy: u64,
        trace: Trace,
    ) -> Self {
        let rules = &engine.route(route).rules;
        let time = facts.time_within(rules.deadline, now.mono);
        let deadline = Deadline::with_reserve(now.mono, time, reserve(&rules.class, time));
        let (role, state) = (Role::Request, State::Admit);
        Self::new(engine, route, facts, now, entropy, trace, deadline, role, state)
    }

    /// A read for everybody who asks for the same, on a `cached_read` route. It takes no place at the process or the
    /// route, it is not counted as a request, and its time is its own. `attempt` is how often whoever began it was tried:
    /// a layer that repeats does so for what it repeats here too.
    ///
    /// # Panics
    /// If the engine has no such route.
    pub fn begin_fill(
        engine: &Arc<Engine>,
        route: RouteId,
        attempt: u32,
        now: Now,
        entropy: u64,
        trace: Trace,
    ) -> Self {
        let rules = &engine.route(route).rules;
        let time = rules.class.cached().map_or(rules.deadline, |cached| cached.fill.deadline);
        let deadline = Deadline::new(now.mono, time, false);
        let facts = RequestFacts { attempt, ..RequestFacts::GET };
        let (role, state) = (Role::Fill, State::Place);
        Self::new(engine, route, facts, now, entropy, trace, deadline, role, state)
    }

    #[expect(clippy::too_many_arguments, reason = "the two ways to begin, and nobody else, come here")]
    fn new(
        engine: &Arc<Engine>,
        route: RouteId,
        facts: RequestFacts,
        now: Now,
        entropy: u64,
        trace: Trace,
        deadline: Deadline,
        role: Role,
        state: State,
    ) -> Self {
        let rules = &engine.route(route).rules;
        Self {
            engine: Arc::clone(engine),
            route,
            facts,
            begun: now,
            deadline,
            client_waited: Duration::ZERO,
            entropy: Entropy::new(entropy),
            trace,
            attempts: 0,
            places: [None, None],
            asked: rules.dependency,
            cause: None,
            tries: 0,
            called: now.mono,
            cut: None,
            ticket: None,
            waited_before: Duration::ZERO,
            retry: None,
            stand_in: None,
            stood_in: false,
            full_resource: None,
            held: None,
            seen: now.mono,
            role,
            copy_known: false,
            cache: None,
            asking: None,
            in_lane: None,
            state,
            finished: false,
        }
    }

    /// When the request began. The date of whatever its answer becomes.
    pub const fn begun(&self) -> Now {
        self.begun
    }

    /// The end of the request and of its attempt, as they stand now.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The steps so far; none once it has decided, for then they are the decision's.
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// 64 further random bits, drawn from the entropy that the flow was given.
    pub fn draw(&mut self) -> u64 {
        self.entropy.bits()
    }

    fn route(&self) -> &RouteState {
        self.engine.route(self.route)
    }

    fn dependency(&self) -> &DependencyState {
        self.engine.dependency(self.asked)
    }

    /// The route's own dependency.
    fn own_dependency(&self) -> &DependencyState {
        self.engine.dependency(self.route().rules.dependency)
    }

    /// When the attempt under way, or the next one, must be over.
    pub fn attempt_end(&self) -> Mono {
        let end = self.deadline.attempt_end();
        self.cut.map_or(end, |cut| end.min(cut.after(self.client_waited)))
    }

    fn client_waited(&mut self, waited: Duration) {
        // Only ever further: the driver reports the sum so far.
        self.client_waited = self.client_waited.max(waited);
        let since_admission = self.client_waited.saturating_sub(self.waited_before);
        if let Some(ticket) = &mut self.ticket {
            ticket.client_waited(since_admission);
        }
        let rules = &self.route().rules;
        let time = self.facts.time_within(rules.deadline, self.begun.mono);
        let reserved = reserve(&rules.class, time);
        self.deadline = Deadline::with_reserve(self.begun.mono.after(self.client_waited), time, reserved);
    }

    /// Whether a call is under way.
    pub const fn is_calling(&self) -> bool {
        self.ticket.is_some() || self.asking.is_some()
    }

    /// Whoever waited has left, and the flow will be dropped: a call under way ends with this moment. Without that it
    /// would end with the latest moment that anybody else came with, and one that hung would look short where nobody did.
    pub fn given_up(&mut self, now: Mono) {
        let asking = self.asking.as_mut().and_then(|asking| asking.ticket.take());
        for ticket in [self.ticket.take(), asking].into_iter().flatten() {
            ticket.given_up(now);
        }
    }

    fn expects_head_of(&self, attempt: AttemptId) -> bool {
        matches!(self.state, State::AwaitHead { attempt: current } if current == attempt)
    }

    fn is_current(&self, attempt: AttemptId) -> bool {
        let current = match &self.state {
            State::AwaitHead { attempt }
            | State::Collect { attempt, .. }
            | State::AwaitBody { attempt, .. } => Some(*attempt),
            _ => None,
        };
        current == Some(attempt)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.end_retry();
        self.put_back_stand_in();
        if self.finished {
            return;
        }
        let asked =
            matches!(self.state, State::AwaitHead { .. } | State::Collect { .. } | State::AwaitBody { .. });
        if asked {
            self.dependency().tally.abandon();
        }
        if let Some(asking) = &self.asking {
            self.engine.dependency(asking.dependency).tally.abandon();
        }
        if self.role == Role::Fill {
            return self.fill_ended(FillEnd::Dropped);
        }
        let (outcome, reason) = settle::dropped();
        self.route().tally.record(outcome, Source::None, reason);
    }
}

/// What part of the deadline is kept for what comes after the attempt.
pub fn reserve(class: &RouteClass, total: Duration) -> Duration {
    match class {
        RouteClass::Direct(_) | RouteClass::Composed(_) | RouteClass::Guarded => Duration::ZERO,
        RouteClass::CachedRead(cached) if !cached.local_copy => Duration::ZERO,
        RouteClass::PublicRead(_) | RouteClass::CachedRead(_) | RouteClass::Optional(_) => {
            alternative_share(total)
        }
        RouteClass::Effect(_) => record_share(total),
    }
}

#[cfg(test)]
mod tests;
