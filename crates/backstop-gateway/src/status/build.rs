//! The model, put together from what the board remembers and what the parts of the gateway say of themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_engine::engine::{DependencyState as Dependency, RouteState as Route};
use backstop_engine::failure::FailureKind;
use backstop_engine::health::Phase;
use backstop_engine::incident::Moment;
use backstop_engine::policy::{DependencyId, Mode};
use backstop_engine::time::Now;

use super::board::{Board, Reading};
use super::ladder::{ladder, own};
use super::view::{
    AuthorizerView, CacheView, DependencyView, FORMAT, FunctionView, GatewayView, HeldView, InFlight,
    OperationsView, Outcomes, Overall, ResourceView, RouteState, RouteView, RungKind, StoreView, View,
};
use super::{incident, sentence, standing};
use crate::admin::Admin;
use crate::breakers;
use crate::disk;

/// Everything that is shown.
pub(super) fn view(admin: &Admin, board: &Board, reading: &Reading, now: Now) -> View {
    let engine = admin.backstop.engine();
    let one = One { admin, board, reading, now };
    let routes: Vec<RouteView> = (0..engine.routes().len()).filter_map(|index| one.route(index)).collect();
    let mut view = View {
        format: FORMAT,
        at: reading.at.date(),
        state: Overall::Normal,
        sentence: String::new(),
        gateway: one.gateway(),
        functions: board.functions.iter().map(|name| one.function(name, &routes)).collect(),
        dependencies: (0..engine.dependencies().len()).filter_map(|index| one.dependency(index)).collect(),
        resources: one.resources(),
        authorizers: (0..board.authorizers.len()).filter_map(|index| one.authorizer(index)).collect(),
        caches: one.caches(),
        operations: one.operations(),
        incidents: admin.state.book.each(incident::view),
        store: one.store(),
        history: reading.history.clone(),
        routes,
    };
    view.state = sentence::overall(&view);
    view.sentence = sentence::sentence(&view);
    view
}

struct One<'a> {
    admin: &'a Admin,
    board: &'a Board,
    reading: &'a Reading,
    now: Now,
}

impl One<'_> {
    fn gateway(&self) -> GatewayView {
        let engine = self.admin.backstop.engine();
        let observes = |route: &Route| route.rules.mode == Mode::Observe;
        let all = !engine.routes().is_empty() && engine.routes().iter().all(observes);
        GatewayView {
            name: self.admin.shared.name.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: mode(if all { Mode::Observe } else { Mode::Enforce }).to_owned(),
            is_draining: engine.is_draining(),
            uptime_seconds: self.reading.at.since(&self.board.opened).as_secs(),
            warnings: self.admin.warnings(),
            in_flight: places(engine.process()),
        }
    }

    fn function(&self, name: &str, routes: &[RouteView]) -> FunctionView {
        let own = || routes.iter().filter(|route| route.function.as_deref() == Some(name));
        let sum = |of: fn(&RouteView) -> Outcomes| own().map(of).fold(Outcomes::default(), Outcomes::and);
        let last_minute = sum(|route| route.last_minute);
        FunctionView {
            name: name.to_owned(),
            state: own().map(|route| route.state).max().unwrap_or(RouteState::Quiet),
            last_ten_seconds: sum(|route| route.last_ten_seconds),
            last_minute,
            per_second: rate(last_minute.requests(), self.reading.minute.1),
        }
    }

    fn route(&self, index: usize) -> Option<RouteView> {
        let engine = self.admin.backstop.engine();
        let (route, standing) = (engine.routes().get(index)?, self.reading.routes.get(index)?);
        let (minute, seconds) = (self.reading.minute.0.routes.get(index)?, self.reading.minute.1);
        let rung = standing.rung.map(|rung| own(route, rung));
        let mut reasons = BTreeMap::new();
        for count in minute.requests.iter().filter(|count| count.reason != "none") {
            *reasons.entry(count.reason.to_owned()).or_default() += count.count;
        }
        let outcomes = minute.outcomes();
        let asks = self.board.asks.get(index).copied().flatten();
        let authorizer = asks.and_then(|asked| self.board.authorizers.get(asked)).map(|(name, _)| &**name);
        let rules = &route.rules;
        let coverage =
            rules.class.keeps_copies().then(|| route.coverage.count(self.now.mono).ratio()).flatten();
        Some(RouteView {
            name: rules.name.to_string(),
            class: rules.class.name().to_owned(),
            function: rules.function.as_deref().map(str::to_owned),
            mode: mode(rules.mode).to_owned(),
            dependency: self.name(rules.dependency),
            state: standing.rung.map_or(RouteState::Quiet, RungKind::state),
            rung,
            reason: rung.filter(|_| standing.reason != "none").map(|_| standing.reason.to_owned()),
            since: rung.map(|_| standing.since.date()),
            since_seconds: rung.map(|_| self.reading.at.since(&standing.since).as_secs()),
            ladder: ladder(engine, route, authorizer, &minute.requests, standing.rung),
            per_second: rate(outcomes.requests(), seconds),
            last_ten_seconds: self.reading.now.0.routes.get(index)?.outcomes(),
            last_minute: outcomes,
            reasons,
            in_flight: places(&route.in_flight),
            lane: (rules.fallback_in_flight > 0).then(|| places(&route.fallback_lane)),
            coverage: coverage.map(rounded),
            copy_ages: minute.copy_ages(self.reading.oldest.get(index).copied().flatten()),
        })
    }

    fn dependency(&self, index: usize) -> Option<DependencyView> {
        let dependency: &Dependency = self.admin.backstop.engine().dependencies().get(index)?;
        let stands = self.reading.dependencies.get(index)?;
        let minute = self.reading.minute.0.dependencies.get(index)?;
        let recent = self.reading.now.0.dependencies.get(index)?;
        let (phase, held) = self.admin.state.breakers.look(&dependency.rules.name)?;
        let failures = FailureKind::TOKENS.into_iter().zip(minute.failures).filter(|(_, count)| *count > 0);
        let authorizes = self.board.authorizers.iter().any(|(_, id)| usize::from(id.0) == index);
        let next_probe = match phase {
            Phase::Open { until } => Some(rounded(self.now.mono.until(until).as_secs_f64())),
            _ => None,
        };
        Some(DependencyView {
            name: dependency.rules.name.to_string(),
            role: if authorizes { "authorizer" } else { "dependency" }.to_owned(),
            state: stands.state,
            phase: breakers::name(phase).to_owned(),
            since: stands.since.date(),
            since_seconds: self.reading.at.since(&stands.since).as_secs(),
            share: standing::share(phase),
            allowed_per_second: standing::allowed(dependency, phase).map(rounded),
            usual_per_second: dependency.health.usual_rate().map(rounded),
            next_probe_seconds: next_probe,
            per_second: rate(recent.attempts, self.reading.now.1),
            calls: minute.attempts,
            failures: failures.map(|(kind, count)| (kind.to_owned(), count)).collect(),
            cause: stands.cause.map(str::to_owned),
            retries: minute.retries,
            in_flight: places(&dependency.in_flight),
            held: held.map(|held| HeldView {
                by: held.by.token().to_owned(),
                reason: held.reason.to_string(),
                since: held.since.date(),
            }),
        })
    }

    fn resources(&self) -> Vec<ResourceView> {
        let resources = self.admin.backstop.engine().resources().iter().enumerate();
        let refused = |index| self.reading.minute.0.resources.get(index).copied().unwrap_or_default();
        let resource =
            |(index, one): (usize, &std::sync::Arc<backstop_engine::resource::Resource>)| ResourceView {
                name: one.name().to_owned(),
                in_use: one.in_use(),
                limit: one.concurrency(),
                refused: refused(index),
            };
        resources.map(resource).collect()
    }

    fn authorizer(&self, index: usize) -> Option<AuthorizerView> {
        let (name, _) = self.board.authorizers.get(index)?;
        let own = self.board.asks.iter().zip(&self.reading.minute.0.routes);
        let mut sums = [0; 5];
        for (_, counted) in own.filter(|(asked, _)| **asked == Some(index)) {
            sums.iter_mut().zip(counted.authorizations).for_each(|(sum, more)| *sum += more);
        }
        let [allowed, denied, unclear, failed, not_asked] = sums;
        Some(AuthorizerView { name: name.to_string(), allowed, denied, unclear, failed, not_asked })
    }

    fn caches(&self) -> Vec<CacheView> {
        let engine = self.admin.backstop.engine();
        let caches = engine.caches().iter().enumerate();
        let cache = |(index, one): (usize, &backstop_engine::engine::CacheState)| {
            let own = engine.routes().iter().zip(&self.reading.minute.0.routes).filter(|(route, _)| {
                route.rules.class.cached().is_some_and(|cached| usize::from(cached.cache.0) == index)
            });
            let (mut hits, mut lookups) = (0, 0);
            for count in own.flat_map(|(_, counted)| &counted.requests) {
                lookups += count.count;
                hits += if count.source == backstop_engine::outcome::Source::Cache { count.count } else { 0 };
            }
            let phase = breakers::name(one.health.phase(self.now.mono)).to_owned();
            CacheView { name: one.rules.name.to_string(), phase, hits, lookups }
        };
        caches.map(cache).collect()
    }

    fn operations(&self) -> Option<OperationsView> {
        let standing = self.admin.operations.as_ref()?.ledger.standing(self.now);
        let seconds = |age: Option<Duration>| age.map(|age| age.as_secs());
        Some(OperationsView {
            states: standing.states.iter().map(|one| (one.state.to_owned(), one.count)).collect(),
            oldest_unknown_seconds: seconds(standing.oldest_unknown),
            oldest_attention_seconds: seconds(standing.oldest_attention),
            is_full: standing.is_full,
            failed: standing.failed.clone(),
        })
    }

    fn store(&self) -> StoreView {
        let health = self.admin.backstop.copies().health();
        let word = match disk::trouble(&health.disk) {
            Some((word, _)) => word,
            None if matches!(health.disk, backstop_store::DiskState::Off) => "off",
            None => "ok",
        };
        StoreView {
            copies: health.entries,
            memory_bytes: health.memory_bytes,
            disk_bytes: health.disk_bytes,
            disk: word.to_owned(),
            withdrawals_unconfirmed: health.withdrawals_unconfirmed,
        }
    }

    fn name(&self, id: DependencyId) -> Option<String> {
        self.board.dependencies.get(usize::from(id.0)).map(ToString::to_string)
    }
}

fn places(limit: &backstop_engine::admission::Limit) -> InFlight {
    InFlight { now: limit.in_flight(), limit: limit.limit() }
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

/// Per second; a time of less than one second says as much as a whole one.
fn rate(count: u64, seconds: f64) -> f64 {
    rounded(count as f64 / seconds.max(1.0))
}

/// To three places: what is shown is measured no more exactly.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The last moment that is in a record.
pub(super) fn until(record: &backstop_engine::incident::Record, looked: &Moment) -> Moment {
    record.ended.unwrap_or(*looked)
}
