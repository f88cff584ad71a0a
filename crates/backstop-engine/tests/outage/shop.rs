//! Clients, gateways and a backend in virtual time: every decision is a flow's, and nothing but the moments is made up.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use backstop_engine::engine::{DependencyState, Engine};
use backstop_engine::failure::{Failure, FailureKind, Phase, Sent};
use backstop_engine::flow::{AttemptId, Event, Flow, HeadFacts, Places, Reply, RequestFacts, Step, Trace};
use backstop_engine::health::{BreakerRules, RecoveryRules};
use backstop_engine::outcome::Outcome;
use backstop_engine::policy::{
    Dependency, DependencyId, Direct, Origin, Policy, ResourceId, RetryRules, Route, RouteClass, RouteId,
};
use backstop_engine::resource::ResourceRules;
use backstop_engine::retry::Owner;
use backstop_engine::time::{BootId, Mono, Now, Wall, WallTrust};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// A while after boot, and a whole number of seconds.
const START: u64 = 1_000 * SECOND;

/// A policy of one route that has no alternative.
pub(crate) fn policy(connections: u32, rate: Option<u64>, instances: u32) -> Policy {
    let resource = ResourceRules { name: "db".into(), concurrency: None, rate, origin: Origin::NONE };
    let dependency = Dependency {
        name: "catalog".into(),
        connections,
        uses: vec![ResourceId(0)],
        breaker: Some(BreakerRules::default()),
        recovery: Some(RecoveryRules::default()),
        ..Dependency::default()
    };
    let route = Route {
        name: "description".into(),
        deadline: Duration::from_secs(1),
        in_flight: 4_000,
        class: RouteClass::Direct(Direct::default()),
        retry: Some(RetryRules { attempts: 2, owner: Owner::Backstop, origin: Origin::NONE }),
        ..Route::default()
    };
    Policy {
        in_flight: 8_000,
        instances,
        resources: vec![resource],
        dependencies: vec![dependency],
        routes: vec![route],
        ..Policy::default()
    }
}

/// Even numbers without a pattern, the same in every run (SplitMix64, Steele et al. 2014).
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between nothing and twice this, evenly.
    pub(crate) fn around(&mut self, mean_ns: u64) -> u64 {
        self.next() % (2 * mean_ns)
    }
}

/// What came of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) outcome: Outcome,
    pub(crate) retry_after_s: Option<u32>,
}

/// What happens next, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// A client asks.
    Ask(usize),
    Worked(u64),
    TimeUp(u64, u32),
    Resume(u64),
}

/// When how many calls of a hundred fail, when the backend is slow, and by how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incident {
    pub(crate) down_s: (u64, u64),
    pub(crate) failing: u64,
    pub(crate) slow_s: (u64, u64),
    pub(crate) slower: u64,
}

struct Request {
    flow: Flow,
    client: usize,
    attempt: u32,
}

pub(crate) struct Shop {
    pub(crate) engines: Vec<Arc<Engine>>,
    pub(crate) now: u64,
    pub(crate) draws: Draws,
    pub(crate) incident: Incident,
    /// Calls that were made: when.
    pub(crate) calls: Vec<u64>,
    workers: usize,
    working: usize,
    work_ns: u64,
    waiting: VecDeque<u64>,
    /// The places of calls that the backend has, and whose they are.
    under_way: HashMap<u64, (Places, u64, AttemptId)>,
    requests: HashMap<u64, Request>,
    events: BinaryHeap<Reverse<(u64, Next)>>,
    ids: u64,
}

impl Shop {
    /// `workers` of the backend take `work_ns` for each call, on average, and calls wait for them in a row.
    pub(crate) fn new(
        policies: Vec<Policy>,
        workers: usize,
        work_ns: u64,
        incident: Incident,
        seed: u64,
    ) -> Self {
        Self {
            engines: policies.into_iter().map(|policy| Engine::new(policy).unwrap()).collect(),
            now: START,
            draws: Draws(seed),
            incident,
            calls: Vec::new(),
            workers,
            working: 0,
            work_ns,
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
            requests: HashMap::new(),
            events: BinaryHeap::new(),
            ids: 0,
        }
    }

    pub(crate) fn dependency(&self) -> &DependencyState {
        self.engines[0].dependency(DependencyId(0))
    }

    pub(crate) fn mono(&self) -> Mono {
        Mono::from_ns(self.now)
    }

    fn moment(&self) -> Now {
        Now {
            mono: self.mono(),
            wall: Wall::from_unix_ns(0),
            boot: BootId([1; 16]),
            wall_trust: WallTrust::Synchronised,
        }
    }

    /// Nanoseconds since the beginning.
    pub(crate) fn since(&self) -> u64 {
        self.now - START
    }

    fn is_within(&self, (from, to): (u64, u64)) -> bool {
        (from * SECOND..to * SECOND).contains(&self.since())
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_within(self.incident.down_s)
    }

    pub(crate) fn ask_in(&mut self, ns: u64, client: usize) {
        self.events.push(Reverse((self.now + ns, Next::Ask(client))));
    }

    fn after(&mut self, ns: u64, next: Next) {
        self.events.push(Reverse((self.now + ns, next)));
    }

    /// What happens next, until then; whoever asks is named, and decides whether it does.
    pub(crate) fn next(&mut self, until_s: u64) -> Option<Happens> {
        let is_before = |next: &Reverse<(u64, Next)>| next.0.0 < START + until_s * SECOND;
        self.events.peek().filter(|next| is_before(next))?;
        let Reverse((at, next)) = self.events.pop()?;
        self.now = at;
        let now = self.moment();
        let id = match next {
            Next::Ask(client) => return Some(Happens::Asks(client)),
            Next::Worked(call) => {
                self.working -= 1;
                let done = self.under_way.remove(&call);
                self.work();
                let Some((_places, id, attempt)) = done else { return Some(Happens::Nothing) };
                let Some(request) = self.requests.get_mut(&id) else { return Some(Happens::Nothing) };
                let head = HeadFacts { status: 200, has_body: false, ..HeadFacts::default() };
                request.flow.on(Event::Head { attempt, head }, now);
                if request.attempt != attempt.0 {
                    return Some(Happens::Nothing);
                }
                id
            }
            Next::TimeUp(id, attempt) => {
                let request = self.requests.get_mut(&id).filter(|request| request.attempt == attempt);
                let Some(request) = request else { return Some(Happens::Nothing) };
                request.flow.on(Event::TimeUp(None), now);
                id
            }
            Next::Resume(id) => {
                let Some(request) = self.requests.get_mut(&id) else { return Some(Happens::Nothing) };
                request.flow.on(Event::TimeUp(None), now);
                id
            }
        };
        Some(self.go_on(id))
    }

    /// A client asks one of the gateways.
    pub(crate) fn ask(&mut self, client: usize) -> Happens {
        self.ids += 1;
        let engine = &self.engines[client % self.engines.len()];
        let entropy = self.draws.next();
        let flow = Flow::begin(engine, RouteId(0), RequestFacts::GET, self.moment(), entropy, Trace::off());
        self.requests.insert(self.ids, Request { flow, client, attempt: 0 });
        self.go_on(self.ids)
    }

    fn go_on(&mut self, id: u64) -> Happens {
        let now = self.moment();
        loop {
            let Some(request) = self.requests.get_mut(&id) else { return Happens::Nothing };
            match request.flow.step(now) {
                Step::Pause { until } => {
                    let ns = until.as_ns() - self.now;
                    self.after(ns, Next::Resume(id));
                    return Happens::Nothing;
                }
                Step::Attempt(call) => {
                    request.attempt = call.id.0;
                    self.calls.push(self.now - START);
                    if self.is_down() && self.draws.next() % 100 < self.incident.failing {
                        let failure = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
                        drop(call.places);
                        let Some(request) = self.requests.get_mut(&id) else { return Happens::Nothing };
                        request.flow.on(Event::Failed { attempt: call.id, failure }, now);
                        continue;
                    }
                    self.ids += 1;
                    self.under_way.insert(self.ids, (call.places, id, call.id));
                    self.waiting.push_back(self.ids);
                    self.after(call.until.as_ns() - self.now, Next::TimeUp(id, call.id.0));
                    self.work();
                    return Happens::Nothing;
                }
                Step::Done(decision) => {
                    let outcome = decision.account.outcome;
                    let retry_after_s = match decision.reply {
                        Reply::Refusal(refusal) => refusal.retry_after_s,
                        _ => None,
                    };
                    decision.settlement.complete();
                    let client = request.client;
                    self.requests.remove(&id);
                    return Happens::Came(client, Came { outcome, retry_after_s });
                }
                step => panic!("{step:?}"),
            }
        }
    }

    fn work(&mut self) {
        while self.working < self.workers
            && let Some(call) = self.waiting.pop_front()
        {
            self.working += 1;
            let slower = if self.is_within(self.incident.slow_s) { self.incident.slower } else { 1 };
            let work = self.draws.around(self.work_ns * slower);
            self.after(work, Next::Worked(call));
        }
    }
}

/// What a client or the world sees of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happens {
    Asks(usize),
    Came(usize, Came),
    Nothing,
}
