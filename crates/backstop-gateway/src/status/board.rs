//! Who looks once a second, and who may ask.
//!
//! The board takes a reading of the counters with each tick of the gateway's clock, keeps a minute of them and an hour of sums,
//! and remembers since when what is as it is. Its lock is taken by that one look a second and by whoever asks the operators' port, never
//! by a request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstop_engine::engine::Engine;
use backstop_engine::incident::{Counts, Moment};
use backstop_engine::policy::DependencyId;
use backstop_engine::time::Now;
use backstop_policy::{AuthorizerSettings, RouteSettings};

use super::counted::Counted;
use super::history::{Calls, History};
use super::minute::{MINUTE, Minute, NOW};
use super::standing::{self, DependencyStands, RouteStanding};

/// What is remembered.
#[derive(Debug)]
pub(crate) struct Board {
    engine: Arc<Engine>,
    pub(super) functions: Vec<Box<str>>,
    pub(super) dependencies: Vec<Box<str>>,
    /// Who says whether callers may, and the dependency that is asked for it.
    pub(super) authorizers: Vec<(Box<str>, DependencyId)>,
    /// Which of them each route asks.
    pub(super) asks: Vec<Option<usize>>,
    pub(super) opened: Moment,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    minute: Minute,
    history: History,
    routes: Vec<RouteStanding>,
    dependencies: Vec<DependencyStands>,
}

/// What there is to tell at one moment.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) at: Moment,
    /// What came in the last ten seconds, and how long that really was.
    pub(super) now: (Counted, f64),
    /// What came in the last minute, and how long that really was.
    pub(super) minute: (Counted, f64),
    /// The oldest copy that each route served in the last minute.
    pub(super) oldest: Vec<Option<std::time::Duration>>,
    pub(super) routes: Vec<RouteStanding>,
    pub(super) dependencies: Vec<DependencyStands>,
    pub(super) history: super::view::HistoryView,
    /// A quarter of an hour by the second: how long ago, what functions came to, what dependencies received.
    pub(super) fine: Vec<(u64, Vec<Counts>, Vec<Calls>)>,
}

impl Board {
    pub(crate) fn open(
        engine: &Arc<Engine>,
        authorizers: &[AuthorizerSettings],
        routes: &[RouteSettings],
        now: Now,
    ) -> Self {
        let at = Moment::from(now);
        let mut functions: Vec<Box<str>> = Vec::new();
        for function in engine.routes().iter().filter_map(|route| route.rules.function.clone()) {
            if !functions.contains(&function) {
                functions.push(function);
            }
        }
        let phases = engine.dependencies().iter().map(|one| one.health.phase(now.mono));
        let seen = Seen {
            minute: Minute::new(Counted::read(engine, at, true)),
            history: History::new(),
            routes: engine.routes().iter().map(|_| RouteStanding::new(at)).collect(),
            dependencies: phases.map(|phase| DependencyStands::new(phase, at)).collect(),
        };
        Self {
            engine: Arc::clone(engine),
            functions,
            dependencies: engine.dependencies().iter().map(|one| one.rules.name.clone()).collect(),
            authorizers: authorizers.iter().map(|one| (one.name.clone(), one.dependency)).collect(),
            asks: routes.iter().map(|route| route.authorizer).collect(),
            opened: at,
            seen: Mutex::new(seen),
        }
    }

    /// Takes a reading. Meant for once a second.
    pub(crate) fn tick(&self, now: Now) {
        let at = Moment::from(now);
        let counted = Counted::read(&self.engine, at, true);
        let mut seen = self.seen();
        let last = seen.minute.last();
        let (from, second) = (last.at, counted.since(last));
        let (functions, calls) = self.sums(&second);
        seen.history.push(at.mono, &functions, &calls);
        let (routes, dependencies) = self.stands(&seen, from, &counted);
        (seen.routes, seen.dependencies) = (routes, dependencies);
        seen.minute.push(counted);
    }

    /// What there is to tell now, up to the last request that was counted.
    pub(super) fn read(&self, now: Now) -> Reading {
        let at = Moment::from(now);
        let counted = Counted::read(&self.engine, at, false);
        let seen = self.seen();
        let last = seen.minute.last();
        let (routes, dependencies) = self.stands(&seen, last.at, &counted);
        let (recent, recent_for) = seen.minute.within(&counted, NOW);
        let (minute, minute_for) = seen.minute.within(&counted, MINUTE);
        let oldest =
            (0..counted.routes.len()).map(|route| seen.minute.oldest(&counted, MINUTE, route)).collect();
        let mut fine: Vec<_> = seen
            .history
            .fine(at.mono)
            .map(|(age, slice)| (age, slice.functions.clone(), slice.dependencies.clone()))
            .collect();
        let (functions, calls) = self.sums(&counted.since(last));
        fine.push((0, functions, calls));
        let history = seen.history.view(at.mono, at.date(), &self.functions, &self.dependencies);
        Reading {
            at,
            now: (recent, recent_for.as_secs_f64()),
            minute: (minute, minute_for.as_secs_f64()),
            oldest,
            routes,
            dependencies,
            history,
            fine,
        }
    }

    fn stands(
        &self,
        seen: &Seen,
        from: Moment,
        counted: &Counted,
    ) -> (Vec<RouteStanding>, Vec<DependencyStands>) {
        let (now, _) = seen.minute.within(counted, NOW);
        let (minute, _) = seen.minute.within(counted, MINUTE);
        let mut routes = seen.routes.clone();
        for ((standing, now), minute) in routes.iter_mut().zip(&now.routes).zip(&minute.routes) {
            standing.look(from, now, minute);
        }
        let mut dependencies = seen.dependencies.clone();
        for ((stands, one), now) in
            dependencies.iter_mut().zip(self.engine.dependencies()).zip(&now.dependencies)
        {
            stands.look(from, one.health.phase(counted.at.mono), now);
        }
        (routes, dependencies)
    }

    /// By function, with the sum over all routes as the last one, and by dependency.
    fn sums(&self, counted: &Counted) -> (Vec<Counts>, Vec<Calls>) {
        let mut functions = vec![Counts::default(); self.functions.len()];
        let mut all = Counts::default();
        for (route, counts) in self.engine.routes().iter().zip(&counted.routes) {
            counts.requests.iter().for_each(|one| all.add(one.outcome, one.reason, one.count));
            let own = route.rules.function.as_ref();
            let place = own.and_then(|own| self.functions.iter().position(|name| name == own));
            if let Some(sum) = place.and_then(|place| functions.get_mut(place)) {
                counts.requests.iter().for_each(|one| sum.add(one.outcome, one.reason, one.count));
            }
        }
        functions.push(all);
        let calls =
            self.engine.dependencies().iter().zip(&counted.dependencies).map(|(dependency, counts)| {
                let phase = dependency.health.phase(counted.at.mono);
                Calls {
                    calls: u32::try_from(counts.attempts).unwrap_or(u32::MAX),
                    failures: u32::try_from(counts.failed()).unwrap_or(u32::MAX),
                    allowed: standing::allowed(dependency, phase).map(|allowed| allowed as f32),
                }
            });
        (functions, calls.collect())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
