//! Faults that were found and repaired, one kind in each file.

mod broken_streams;
mod come_back;
mod cut_attempts;
mod held_answers;
mod late_answers;
mod own_use;
mod probing;
mod retry_payments;
mod slow_streams;
mod stand_in_answers;
mod unmade_calls;
mod unseen_reads;
mod waiting_client;
mod withdrawals;

use std::sync::Arc;
use std::time::Duration;

use crate::alternative::{ANY_POLICY, Verified};
use crate::engine::{DependencyState, Engine};
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{Decision, Event, Flow, RequestFacts, Step, Trace};
use crate::health::BreakerRules;
use crate::policy::{
    AlternativeRules, Dependency, DependencyId, Origin, Policy, ResourceId, RetryRules, Route, RouteId,
};
use crate::resource::ResourceRules;
use crate::retry::Owner;
use crate::snapshot::CopyFacts;
use crate::time::{Mono, Wall};

use super::support::{Body, Upstream, at};

/// In the middle of every spread: each open time is what it is called.
const MIDDLE: u64 = 1 << 63;
const BROKEN: Failure = Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe);

fn mono(ns: u64) -> Mono {
    Mono::from_ns(ns)
}

/// A dependency with room for everybody and the usual breaker, on these resources.
fn dependency(name: &str, uses: &[u16]) -> Dependency {
    Dependency {
        name: name.into(),
        connections: 64,
        uses: uses.iter().copied().map(ResourceId).collect(),
        breaker: Some(BreakerRules::default()),
        ..Dependency::default()
    }
}

fn resource(concurrency: Option<u32>, rate: Option<u64>) -> ResourceRules {
    ResourceRules { name: "db".into(), concurrency, rate, origin: Origin::NONE }
}

/// One route for each of `routes`, with room for everybody.
fn engine(routes: Vec<Route>, dependencies: Vec<Dependency>, resources: Vec<ResourceRules>) -> Arc<Engine> {
    let routes = routes.into_iter().map(|route| Route { in_flight: 1_000, ..route }).collect();
    Engine::new(Policy { in_flight: 1_000, dependencies, resources, routes, ..Policy::default() }).unwrap()
}

fn retrying(route: Route) -> Route {
    let rules = RetryRules { attempts: 2, owner: Owner::Backstop, origin: Origin::NONE };
    Route { retry: Some(rules), ..route }
}

/// The second dependency stands in.
fn standing_in(route: Route) -> Route {
    let verified = Verified {
        rate_per_second: 1_000,
        concurrency: 100,
        valid_from: Wall::from_unix_ns(i64::MIN),
        valid_until: Wall::from_unix_ns(i64::MAX),
        policy: ANY_POLICY,
    };
    let rules =
        AlternativeRules { dependency: DependencyId(1), verified: Some(verified), origin: Origin::NONE };
    Route { alternative: Some(rules), ..route }
}

fn first(engine: &Engine) -> &DependencyState {
    engine.dependency(DependencyId(0))
}

fn second(engine: &Engine) -> &DependencyState {
    engine.dependency(DependencyId(1))
}

/// Opens a breaker for five seconds, with ten failures in a row at most.
fn open(dependency: &DependencyState, ns: u64) {
    while dependency.health.known_up(mono(ns)).is_none() {
        dependency.health.admit(mono(ns), true, MIDDLE).unwrap().failed(mono(ns), MIDDLE);
    }
    assert_eq!(dependency.health.known_up(mono(ns)), Some(mono(ns).after(Duration::from_secs(5))));
}

/// What the two dependencies do when they are called.
#[derive(Clone, Copy)]
struct World {
    says: [Upstream; 2],
    copy: Option<CopyFacts>,
}

impl World {
    fn of(first: Upstream, second: Upstream) -> Self {
        Self { says: [first, second], copy: None }
    }

    /// One request on a route, from its beginning to its decision.
    fn ask(&self, engine: &Arc<Engine>, route: u16, facts: RequestFacts, ns: u64) -> Decision {
        let mut flow = Flow::begin(engine, RouteId(route), facts, at(ns), MIDDLE, Trace::off());
        let mut call = None;
        let mut says = self.says[0];
        loop {
            let event = match flow.step(at(ns)) {
                Step::Peek => Event::Known(self.copy),
                Step::Wait { .. } => Event::TimeUp(None),
                Step::Pause { .. } => {
                    call = None;
                    Event::TimeUp(None)
                }
                Step::Attempt(attempt) => {
                    let id = attempt.id;
                    says = self.says[usize::from(attempt.dependency.0)];
                    call = Some(attempt);
                    match says {
                        Upstream::Fails(failure) => Event::Failed { attempt: id, failure },
                        Upstream::Answers(head, _) => Event::Head { attempt: id, head },
                        Upstream::Errs => Event::Propagated { attempt: id },
                    }
                }
                Step::Collect { attempt, .. } => match says {
                    Upstream::Answers(_, Body::Is(body)) => Event::Body { attempt, body },
                    Upstream::Answers(_, Body::Breaks(failure)) => Event::Failed { attempt, failure },
                    _ => panic!("nothing to collect"),
                },
                Step::Load { .. } => Event::Copy(Ok(self.copy)),
                Step::Lookup { .. }
                | Step::Join { .. }
                | Step::Parts { .. }
                | Step::Authorize { .. }
                | Step::Consult { .. }
                | Step::Record { .. } => {
                    panic!("neither cache, parts, authorizer nor ledger here")
                }
                Step::Done(decision) => {
                    drop(call);
                    return decision;
                }
            };
            flow.on(event, at(ns));
        }
    }
}
