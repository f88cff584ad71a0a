//! One second's share of what the engine has counted so far.

use std::collections::BTreeMap;
use std::time::Duration;

use backstop_engine::engine::{DependencyState as Dependency, Engine};
use backstop_engine::failure::FailureKind;
use backstop_engine::health::{Health, Phase};
use backstop_engine::incident::{
    Counts, DependencySample, DependencyState, Latency, Lookups, Names, Sample, Served,
};
use backstop_engine::outcome::{Outcome, Source};
use backstop_engine::tally::{AGE_BUCKETS_SECONDS, AgeReader};
use backstop_engine::time::Mono;

/// Calls in a breaker's window below which their slowness says nothing.
const CALLS_MIN: u64 = 20;

/// The policy's business functions, each once, and its dependencies.
pub(super) fn names(engine: &Engine) -> Names {
    let mut functions: Vec<&str> = Vec::new();
    for function in engine.routes().iter().filter_map(|route| route.rules.function.as_deref()) {
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let dependencies: Vec<&str> = engine.dependencies().iter().map(|one| &*one.rules.name).collect();
    Names::new(&functions, &dependencies)
}

/// What has been counted since the process began.
#[derive(Debug, Default)]
pub(super) struct Totals {
    counts: Counts,
    functions: Vec<Counts>,
    reasons: BTreeMap<&'static str, u64>,
    sources: BTreeMap<&'static str, u64>,
    ages: [u64; AGE_BUCKETS_SECONDS.len() + 1],
    /// The oldest copy since the reading before this one.
    oldest: Duration,
    calls: Vec<Calls>,
    /// Requests of routes that ask a shared cache, and those of them that it answered; `None` without such a route.
    lookups: Option<Lookups>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    attempts: u64,
    retries: u64,
    failures: [u64; FailureKind::TOKENS.len()],
}

impl Totals {
    /// Everything up to now.
    pub(super) fn read(engine: &Engine, names: &Names) -> Self {
        let mut totals =
            Self { functions: vec![Counts::default(); names.functions.len()], ..Self::default() };
        for route in engine.routes() {
            let function = route.rules.function.as_deref();
            let function = function.and_then(|own| names.functions.iter().position(|name| **name == *own));
            if route.fills.is_some() {
                totals.lookups.get_or_insert_default();
            }
            for count in route.tally.requests() {
                if let Some(lookups) = totals.lookups.as_mut().filter(|_| route.fills.is_some()) {
                    lookups.total += count.count;
                    lookups.hits += if count.source == Source::Cache { count.count } else { 0 };
                }
                totals.counts.add(count.outcome, count.reason, count.count);
                if let Some(counts) = function.and_then(|function| totals.functions.get_mut(function)) {
                    counts.add(count.outcome, count.reason, count.count);
                }
                *totals.reasons.entry(count.reason).or_default() += count.count;
                if count.outcome == Outcome::Fallback {
                    *totals.sources.entry(count.source.token()).or_default() += count.count;
                }
            }
            for (sum, more) in totals.ages.iter_mut().zip(route.tally.ages().0) {
                *sum += more;
            }
            totals.oldest =
                totals.oldest.max(route.tally.take_oldest(AgeReader::Incidents).unwrap_or_default());
        }
        let calls = |dependency: &Dependency| Calls {
            attempts: dependency.tally.attempts(),
            retries: dependency.retries.spent(),
            failures: dependency.tally.failures(),
        };
        totals.calls = engine.dependencies().iter().map(calls).collect();
        totals
    }

    /// What was counted after `before`, with how dependencies stand now.
    pub(super) fn since(&self, before: &Self, engine: &Engine, now: Mono) -> Sample {
        let none = Counts::default();
        let functions = self.functions.iter().enumerate();
        let reasons = self.reasons.iter().map(|(reason, count)| {
            (*reason, count.saturating_sub(before.reasons.get(reason).copied().unwrap_or_default()))
        });
        let dependencies = engine.dependencies().iter().zip(&self.calls).enumerate();
        Sample {
            counts: less(&self.counts, &before.counts),
            functions: functions
                .map(|(index, counts)| less(counts, before.functions.get(index).unwrap_or(&none)))
                .collect(),
            dependencies: dependencies
                .map(|(index, (dependency, calls))| {
                    let before = before.calls.get(index).copied().unwrap_or_default();
                    calls.since(&before, dependency, now)
                })
                .collect(),
            reasons: reasons.filter(|(_, count)| *count > 0).collect(),
            served: self.served_since(before),
            lookups: self.lookups.map(|now| {
                let before = before.lookups.unwrap_or_default();
                Lookups {
                    hits: now.hits.saturating_sub(before.hits),
                    total: now.total.saturating_sub(before.total),
                }
            }),
            // There is no regular renewal of copies and no effect yet.
            copy_ages: None,
            untracked_effects: 0,
            tracked_effects: 0,
        }
    }
}

impl Totals {
    fn served_since(&self, before: &Self) -> Served {
        let sources = self.sources.iter().map(|(source, count)| {
            (*source, count.saturating_sub(before.sources.get(source).copied().unwrap_or_default()))
        });
        let mut ages = self.ages;
        ages.iter_mut().zip(before.ages).for_each(|(now, before)| *now = now.saturating_sub(before));
        Served { sources: sources.filter(|(_, count)| *count > 0).collect(), ages, oldest: self.oldest }
    }
}

impl Calls {
    fn since(&self, before: &Self, dependency: &Dependency, now: Mono) -> DependencySample {
        let attempts = self.attempts.saturating_sub(before.attempts);
        let retries = self.retries.saturating_sub(before.retries);
        let failed = self.failures.iter().zip(before.failures);
        let mut failures = [0; FailureKind::TOKENS.len()];
        for (slot, (now, before)) in failures.iter_mut().zip(failed) {
            *slot = now.saturating_sub(before);
        }
        let latency = if dependency.rules.breaker.is_some() {
            latency(&dependency.health, now)
        } else {
            Latency::Green
        };
        DependencySample {
            requests: attempts.saturating_sub(retries),
            attempts,
            failures,
            state: state(dependency.health.phase(now)),
            latency,
        }
    }
}

/// How it stands. One that is watched is given everything: nothing holds its traffic back any more.
fn state(phase: Phase) -> DependencyState {
    match phase {
        Phase::Closed | Phase::Watch { .. } | Phase::ForcedClosed => DependencyState::Closed,
        Phase::Open { .. } => DependencyState::Open,
        Phase::HalfOpen => DependencyState::HalfOpen,
        Phase::Ramp { share } => {
            DependencyState::Ramp { percent: u8::try_from(share.0.min(1000) / 10).unwrap_or(100) }
        }
        Phase::ForcedOpen => DependencyState::Forced,
    }
}

/// Whether the 95th percentile of the breaker's window is above what counts as slow: more than one call in twenty is.
fn latency(health: &Health, now: Mono) -> Latency {
    let count = health.counts(now);
    let is_slow = count.calls >= CALLS_MIN && count.slow.saturating_mul(20) > count.calls;
    if is_slow { Latency::Red } else { Latency::Green }
}

fn less(now: &Counts, before: &Counts) -> Counts {
    Counts {
        normal: now.normal.saturating_sub(before.normal),
        fallback: now.fallback.saturating_sub(before.fallback),
        rejected: now.rejected.saturating_sub(before.rejected),
        failed: now.failed.saturating_sub(before.failed),
        abandoned: now.abandoned.saturating_sub(before.abandoned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::health::{BreakerRules, PerMille};
    use backstop_engine::outcome::Reason;
    use backstop_engine::policy::{Dependency as Rules, Policy};
    use std::sync::Arc;

    const POLICY: &str = r#"
[gateway]
listen    = "127.0.0.1:0"
in_flight = 10
[dependency.catalog]
url     = "http://127.0.0.1:1"
breaker = { slow = "100ms" }
[route.one.direct]
match      = "GET /1"
dependency = "catalog"
deadline   = "1s"
in_flight  = 1
function   = "browse"
[route.two.direct]
match      = "GET /2"
dependency = "catalog"
deadline   = "1s"
in_flight  = 1
[route.three.direct]
match      = "GET /3"
dependency = "catalog"
deadline   = "1s"
in_flight  = 1
function   = "browse"
"#;

    fn engine() -> Arc<Engine> {
        let loaded = backstop_policy::parse(POLICY, "policy.toml", &backstop_policy::NoFiles).unwrap();
        Engine::new(loaded.policy).unwrap()
    }

    /// By hand: of three more requests of the route with a cache, two were answered by it.
    #[test]
    fn requests_of_a_route_with_a_cache_are_its_look_ups() {
        let cached = "[route.four.cached_read]\nmatch = \"GET /4\"\ndependency = \"catalog\"\ndeadline = \"1s\"\n\
            in_flight = 1\ncache = { url = \"redis://127.0.0.1:1\", ttl = \"5s\" }\n";
        let policy = format!("{POLICY}{cached}");
        let loaded = backstop_policy::parse(&policy, "policy.toml", &backstop_policy::NoFiles).unwrap();
        let engine = Engine::new(loaded.policy).unwrap();
        let names = names(&engine);
        let record = |route: usize, source| {
            engine.routes()[route].tally.record(Outcome::Normal, source, Reason::None);
        };
        record(3, Source::Primary);
        let before = Totals::read(&engine, &names);
        record(0, Source::Primary);
        for source in [Source::Cache, Source::Primary, Source::Cache] {
            record(3, source);
        }
        let sample = Totals::read(&engine, &names).since(&before, &engine, Mono::from_ns(0));
        assert_eq!(sample.lookups, Some(Lookups { hits: 2, total: 3 }));
        assert_eq!(Totals::read(&self::engine(), &names).lookups, None);
    }

    /// By hand: two normal and one failed of the function's two routes, one more of the route without one.
    #[test]
    fn a_second_holds_what_was_counted_in_it() {
        let engine = engine();
        let names = names(&engine);
        assert_eq!(names, Names::new(&["browse"], &["catalog"]));
        let record = |route: usize, outcome, reason| {
            engine.routes()[route].tally.record(outcome, Source::None, reason);
        };
        record(0, Outcome::Normal, Reason::None);
        let before = Totals::read(&engine, &names);
        record(0, Outcome::Normal, Reason::None);
        record(2, Outcome::Normal, Reason::None);
        record(2, Outcome::Failed, Reason::Unclassified);
        record(1, Outcome::Normal, Reason::None);
        record(1, Outcome::Rejected, Reason::ClientTooLarge);
        for _ in 0..3 {
            engine.dependencies()[0].tally.attempt();
        }
        assert!(engine.dependencies()[0].retries.try_spend());
        engine.dependencies()[0].tally.failure(FailureKind::Dns);
        let after = Totals::read(&engine, &names);
        let sample = after.since(&before, &engine, Mono::from_ns(1));
        let counts = |normal, failed, abandoned| Counts { normal, failed, abandoned, ..Counts::default() };
        assert_eq!(sample.counts, counts(3, 1, 1), "a client's own fault is its own");
        assert_eq!(sample.functions, [counts(2, 1, 0)]);
        assert_eq!(sample.reasons, [("client_too_large", 1), ("none", 3), ("unclassified", 1)]);
        let catalog = sample.dependencies[0];
        assert_eq!((catalog.requests, catalog.attempts, catalog.failures.iter().sum::<u64>()), (2, 3, 1));
        assert_eq!(catalog.failures[FailureKind::Dns.index()], 1);
        let nothing = after.since(&after, &engine, Mono::from_ns(2));
        assert_eq!((nothing.counts, nothing.reasons.len()), (Counts::default(), 0));
    }

    /// By hand: 1 of 20 is the 95th percentile itself, 2 of 20 are above it; 2 of 19 say nothing.
    #[test]
    fn more_than_one_slow_call_in_twenty_is_slow() {
        for (calls, slow, expected) in
            [(20, 1, Latency::Green), (20, 2, Latency::Red), (19, 2, Latency::Green)]
        {
            let rules = BreakerRules {
                slow: Duration::from_millis(100),
                slow_share: PerMille(900),
                ..BreakerRules::default()
            };
            let health = Arc::new(Health::new(Some(rules), None, 1));
            let at = |ms: u64| Mono::from_ns(ms * 1_000_000);
            for number in 0..calls {
                let ticket = health.admit(at(1000), true, 0).unwrap();
                ticket.answered(if number < slow { at(1101) } else { at(1100) });
            }
            assert_eq!(latency(&health, at(1101)), expected, "{slow} of {calls}");
        }
    }

    #[test]
    fn a_dependency_that_is_watched_or_held_closed_holds_nothing_back() {
        let at = Mono::from_ns(1);
        let table = [
            (Phase::Closed, DependencyState::Closed),
            (Phase::Watch { until: at }, DependencyState::Closed),
            (Phase::ForcedClosed, DependencyState::Closed),
            (Phase::Open { until: at }, DependencyState::Open),
            (Phase::HalfOpen, DependencyState::HalfOpen),
            (Phase::Ramp { share: PerMille(337) }, DependencyState::Ramp { percent: 33 }),
            (Phase::ForcedOpen, DependencyState::Forced),
        ];
        for (phase, expected) in table {
            assert_eq!(state(phase), expected, "{phase:?}");
        }
    }

    #[test]
    fn without_a_breaker_nobody_watches_how_fast_it_is() {
        let dependency = Rules { name: "catalog".into(), connections: 1, ..Rules::default() };
        let policy = Policy { in_flight: 1, dependencies: vec![dependency], ..Policy::default() };
        let engine = Engine::new(policy).unwrap();
        let at = |ms: u64| Mono::from_ns(ms * 1_000_000);
        for _ in 0..20 {
            let ticket = engine.dependencies()[0].health.admit(at(1), true, 0).unwrap();
            ticket.answered(at(60_000));
        }
        let names = names(&engine);
        let sample = Totals::read(&engine, &names).since(&Totals::default(), &engine, at(60_000));
        assert_eq!(sample.dependencies[0].latency, Latency::Green);
    }
}
