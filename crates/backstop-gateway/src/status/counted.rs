//! What the engine's counters say at one moment, and how much of it came after an earlier one.
//!
//! Everything is read from atomics that requests count in anyway: no request takes a lock, or does more, because somebody looks.

use std::time::Duration;

use backstop_engine::engine::{DependencyState, Engine, RouteState};
use backstop_engine::failure::FailureKind;
use backstop_engine::incident::Moment;
use backstop_engine::resource::ResourceRefusal;
use backstop_engine::tally::{AGE_BUCKETS_SECONDS, AgeReader, AuthorizationTally, RequestCount};

use super::view::{CopyAgesView, Outcomes};

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) at: Moment,
    pub(super) routes: Vec<RouteCounted>,
    pub(super) dependencies: Vec<DependencyCounted>,
    /// How often each resource refused.
    pub(super) resources: Vec<u64>,
}

/// One route.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteCounted {
    pub(super) requests: Vec<RequestCount>,
    pub(super) ages: [u64; AGE_BUCKETS_SECONDS.len() + 1],
    pub(super) age_sum_ms: u64,
    /// The oldest copy served between the moment before this one and this one.
    pub(super) oldest: Option<Duration>,
    pub(super) authorizations: [u64; AuthorizationTally::TOKENS.len()],
}

/// One dependency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DependencyCounted {
    pub(super) attempts: u64,
    pub(super) failures: [u64; FailureKind::TOKENS.len()],
    pub(super) retries: u64,
}

impl Counted {
    /// Everything now. Whoever `takes` begins a new moment; others only look.
    pub(super) fn read(engine: &Engine, at: Moment, takes: bool) -> Self {
        let route = |route: &RouteState| {
            let (ages, age_sum_ms) = route.tally.ages();
            let oldest = if takes {
                route.tally.take_oldest(AgeReader::Status)
            } else {
                route.tally.oldest(AgeReader::Status)
            };
            let authorizations = route.authorizations.counts();
            RouteCounted { requests: route.tally.requests(), ages, age_sum_ms, oldest, authorizations }
        };
        let dependency = |one: &DependencyState| DependencyCounted {
            attempts: one.tally.attempts(),
            failures: one.tally.failures(),
            retries: one.retries.made(),
        };
        let refusals = [ResourceRefusal::Concurrency, ResourceRefusal::Rate, ResourceRefusal::Share];
        Self {
            at,
            routes: engine.routes().iter().map(route).collect(),
            dependencies: engine.dependencies().iter().map(dependency).collect(),
            resources: engine
                .resources()
                .iter()
                .map(|resource| refusals.iter().map(|why| resource.refused(*why)).sum())
                .collect(),
        }
    }

    /// How much came after `before`. `oldest` stays that of the last moment.
    pub(super) fn since(&self, before: &Self) -> Self {
        let routes = self.routes.iter().enumerate();
        let dependencies = self.dependencies.iter().enumerate();
        let resources = self.resources.iter().enumerate();
        let no_route = RouteCounted::default();
        Self {
            at: self.at,
            routes: routes.map(|(at, now)| now.since(before.routes.get(at).unwrap_or(&no_route))).collect(),
            dependencies: dependencies
                .map(|(at, now)| now.since(&before.dependencies.get(at).copied().unwrap_or_default()))
                .collect(),
            resources: resources
                .map(|(at, now)| now.saturating_sub(before.resources.get(at).copied().unwrap_or_default()))
                .collect(),
        }
    }
}

impl RouteCounted {
    fn since(&self, before: &Self) -> Self {
        let earlier = |now: &RequestCount| {
            let is_same = |one: &&RequestCount| {
                (one.outcome, one.source, one.reason) == (now.outcome, now.source, now.reason)
            };
            before.requests.iter().find(is_same).map_or(0, |one| one.count)
        };
        let requests = self
            .requests
            .iter()
            .map(|now| RequestCount { count: now.count.saturating_sub(earlier(now)), ..*now });
        let mut ages = self.ages;
        ages.iter_mut().zip(before.ages).for_each(|(now, before)| *now = now.saturating_sub(before));
        let mut authorizations = self.authorizations;
        authorizations
            .iter_mut()
            .zip(before.authorizations)
            .for_each(|(now, before)| *now = now.saturating_sub(before));
        Self {
            requests: requests.filter(|one| one.count > 0).collect(),
            ages,
            age_sum_ms: self.age_sum_ms.saturating_sub(before.age_sum_ms),
            oldest: self.oldest,
            authorizations,
        }
    }

    /// By what they came to.
    pub(super) fn outcomes(&self) -> Outcomes {
        let mut counts = backstop_engine::incident::Counts::default();
        self.requests.iter().for_each(|one| counts.add(one.outcome, one.reason, one.count));
        outcomes(&counts)
    }

    /// How old the copies were that these requests were answered with.
    pub(super) fn copy_ages(&self, oldest: Option<Duration>) -> Option<CopyAgesView> {
        let copies: u64 = self.ages.iter().sum();
        if copies == 0 {
            return None;
        }
        let oldest = oldest.unwrap_or_default().as_secs_f64();
        let mut below = 0;
        let half = self.ages.iter().position(|count| {
            below += count;
            below * 2 >= copies
        });
        let bound = half.and_then(|bucket| AGE_BUCKETS_SECONDS.get(bucket)).map(|bound| *bound as f64);
        Some(CopyAgesView {
            copies,
            median_at_most_seconds: bound.map_or(oldest, |bound| bound.min(oldest)),
            mean_seconds: self.age_sum_ms as f64 / copies as f64 / 1000.0,
            oldest_seconds: oldest,
        })
    }
}

impl DependencyCounted {
    fn since(&self, before: &Self) -> Self {
        let mut failures = self.failures;
        failures.iter_mut().zip(before.failures).for_each(|(now, before)| *now = now.saturating_sub(before));
        Self {
            attempts: self.attempts.saturating_sub(before.attempts),
            failures,
            retries: self.retries.saturating_sub(before.retries),
        }
    }

    /// All failures.
    pub(super) fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// The kind it has most of, the first one of equals.
    pub(super) fn main_failure(&self) -> Option<&'static str> {
        let mut kinds: Vec<_> = FailureKind::TOKENS.into_iter().zip(self.failures).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        kinds.first().filter(|(_, count)| *count > 0).map(|(kind, _)| *kind)
    }
}

/// The engine's counts as they are shown.
pub(super) const fn outcomes(counts: &backstop_engine::incident::Counts) -> Outcomes {
    Outcomes {
        normal: counts.normal,
        fallback: counts.fallback,
        rejected: counts.rejected,
        failed: counts.failed,
        abandoned: counts.abandoned,
    }
}
