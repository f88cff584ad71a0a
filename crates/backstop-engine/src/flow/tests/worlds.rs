//! The two worlds: one of plain routes, and one of everything that a policy may say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::alternative::{ANY_POLICY, Verified};
use crate::engine::Engine;
use crate::health::tests::Reference;
use crate::health::{BreakerRules, RecoveryRules};
use crate::policy::{
    AlternativeRules, Dependency, DependencyId, Incorrect, Origin, Policy, PublicRead, ResourceId,
    RetryRules, Route, RouteClass, StatusSet, UnavailableStatus,
};
use crate::resource::ResourceRules;
use crate::retry::Owner;
use crate::time::Wall;

use super::naive::{Calls, Evidence, Pace, Shared};
use super::request::{Model, Reads};
use super::support::{MS, START, dependency, direct, omitted, public, public_read, route};

use super::world::{WakeUps, World};

type Ruled = (Route, (u64, u64));

/// Four routes at two dependencies, one with a queue; limits small enough to be met all the time.
fn plain_rules() -> Vec<Ruled> {
    let strict = PublicRead { incorrect: Incorrect::Fallback, ..public_read() };
    let dependency = DependencyId(1);
    let ms = Duration::from_millis;
    vec![
        (Route { in_flight: 3, fallback_in_flight: 1, ..route(public()) }, (3 * MS, 3 * MS)),
        (Route { deadline: ms(2000), ..route(direct()) }, (10 * MS, 0)),
        (
            Route { dependency, in_flight: 3, fallback_in_flight: 1, deadline: ms(80), ..route(omitted()) },
            (MS, MS),
        ),
        (
            Route {
                dependency,
                in_flight: 3,
                deadline: ms(40),
                declared: StatusSet::of(&[429, 500]),
                unavailable_status: UnavailableStatus::Cause,
                ..route(RouteClass::PublicRead(strict))
            },
            (MS, MS),
        ),
    ]
}

/// The first and the last date at which the evidence counts.
pub(super) const VALID_NS: (i64, i64) = (500_000_000_000, 1_000_000_000_000);

/// Routes whose calls are made again or elsewhere, at dependencies with breakers, over two resources.
fn rules_of_everything() -> Vec<Ruled> {
    let retry = |owner| Some(RetryRules { attempts: 2, owner, origin: Origin::NONE });
    let retried = retry(Owner::Backstop);
    let instead = |id, concurrency| {
        let verified = Verified {
            rate_per_second: 40,
            concurrency,
            valid_from: Wall::from_unix_ns(VALID_NS.0),
            valid_until: Wall::from_unix_ns(VALID_NS.1),
            policy: ANY_POLICY,
        };
        Some(AlternativeRules {
            dependency: DependencyId(id),
            verified: Some(verified),
            origin: Origin::NONE,
        })
    };
    let strict = PublicRead { incorrect: Incorrect::Fallback, ..public_read() };
    let one = DependencyId(1);
    let ms = Duration::from_millis;
    let declared = StatusSet::of(&[429, 500]);
    let cause = UnavailableStatus::Cause;
    let three = (3 * MS, 3 * MS);
    vec![
        (Route { in_flight: 8, retry: retried, alternative: instead(2, 2), ..route(public()) }, three),
        (Route { in_flight: 8, retry: retried, deadline: ms(3000), ..route(direct()) }, (10 * MS, 0)),
        (
            Route {
                dependency: one,
                in_flight: 3,
                fallback_in_flight: 1,
                deadline: ms(80),
                alternative: instead(3, 1),
                ..route(omitted())
            },
            (MS, MS),
        ),
        (
            Route {
                dependency: one,
                in_flight: 4,
                declared,
                unavailable_status: cause,
                retry: retried,
                alternative: instead(3, 1),
                ..route(RouteClass::PublicRead(strict))
            },
            three,
        ),
        (Route { in_flight: 4, retry: retry(Owner::Client), ..route(public()) }, three),
        (Route { in_flight: 4, declared, alternative: instead(2, 2), ..route(direct()) }, (3 * MS, 0)),
    ]
}

impl World {
    /// Without breakers, resources, retries and stand-ins.
    pub(super) fn plain() -> Self {
        Self::of(6, plain_rules(), vec![dependency(2, 0), dependency(1, 20)], Vec::new(), Vec::new())
    }

    pub(super) fn of_everything() -> Self {
        let breaker = Some(BreakerRules { min_calls: 5, probes: 2, ..BreakerRules::default() });
        let recovery = Some(RecoveryRules::default());
        let (database, disk) = (vec![ResourceId(0)], vec![ResourceId(1)]);
        let dependencies = vec![
            Dependency { uses: database.clone(), breaker, recovery, ..dependency(12, 0) },
            Dependency { uses: disk, breaker, ..dependency(3, 20) },
            Dependency { uses: database, breaker, recovery, ..dependency(4, 0) },
            dependency(3, 0),
        ];
        let resource = |name: &str, concurrency, rate| ResourceRules {
            name: name.into(),
            concurrency,
            rate,
            origin: Origin::NONE,
        };
        let resources = vec![resource("db", Some(6), None), resource("disk", None, Some(40))];
        // 50 ms of 40 per second are 2.
        let shared = vec![Shared::new(Some(6), None), Shared::new(None, Some(Pace::new(40, 2)))];
        Self::of(14, rules_of_everything(), dependencies, resources, shared)
    }

    fn of(
        in_flight: u32,
        routes: Vec<Ruled>,
        dependencies: Vec<Dependency>,
        resources: Vec<ResourceRules>,
        shared: Vec<Shared>,
    ) -> Self {
        let mut calls: Vec<_> = dependencies.iter().map(Self::calls).collect();
        for (rules, _) in &routes {
            let Some((other, verified)) = rules.alternative.and_then(|a| Some((a.dependency, a.verified?)))
            else {
                continue;
            };
            // 50 ms of 40 per second are 2.
            let (concurrency, pace) = (verified.concurrency, Pace::new(40, 2));
            let evidence = Evidence { concurrency, in_flight: 0, pace, valid_ns: VALID_NS };
            calls[usize::from(other.0)].evidence = Some(evidence);
        }
        let policy = Policy {
            in_flight,
            resources,
            dependencies,
            routes: routes.iter().map(|(rules, _)| rules.clone()).collect(),
            ..Policy::default()
        };
        let engine = Engine::new(policy).unwrap();
        let wake_ups = engine.dependencies().iter().map(|dependency| {
            let wake_ups = Arc::new(WakeUps(AtomicU32::new(0)));
            dependency.in_flight.notify_with(Arc::<WakeUps>::clone(&wake_ups));
            wake_ups
        });
        let wake_ups = wake_ups.collect();
        let routes = routes.into_iter().map(|(rules, shares_ns)| Reads {
            places: rules.in_flight,
            rules,
            shares_ns,
            in_flight: 0,
            lane: 0,
            counted: BTreeMap::new(),
            ages: 0,
            coverage: Vec::new(),
        });
        let model = Model {
            places: in_flight,
            in_flight: 0,
            draining: false,
            date_ns: VALID_NS.0,
            is_synchronised: true,
            routes: routes.collect(),
            dependencies: calls,
            resources: shared,
        };
        Self { engine, model, wake_ups, now: START, begun: 0, live: Vec::new(), calls: Vec::new() }
    }

    fn calls(rules: &Dependency) -> Calls {
        let mut calls = Calls::new(rules.connections, rules.queue.as_nanos() as u64);
        calls.uses = rules.uses.iter().map(|used| usize::from(used.0)).collect();
        calls.health = rules.breaker.map(|breaker| {
            // While the good times are unknown, 20 calls per second and connection stand for them.
            let rate_milli = u64::from(rules.connections) * 20_000;
            let (probes, min_calls) = (breaker.probes as usize, breaker.min_calls as usize);
            Reference::new(probes, min_calls, rules.recovery.is_some(), rate_milli)
        });
        calls
    }
}
