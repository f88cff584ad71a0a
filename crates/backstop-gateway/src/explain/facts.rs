//! Places that others have taken, and breakers that are not closed.

use std::time::Duration;

use backstop_engine::admission::{Excess, Limit, Permit, Turn};
use backstop_engine::engine::{DependencyState, Engine};
use backstop_engine::health::{Saved, SavedPhase};
use backstop_engine::policy::RouteId;
use backstop_engine::resource::{ClassShare, ResourcePermit};
use backstop_engine::time::Mono;

use super::question::{BreakerIs, NotUnderstood, Question};

/// More calls than any breaker waits for before it makes up its mind, and than any ramp lets through at one moment.
const CALLS: u32 = 1_000_000;

/// What others hold for as long as the request goes.
#[derive(Debug, Default)]
pub(super) struct Held {
    _permits: Vec<Permit>,
    _resources: Vec<ResourcePermit>,
}

/// Takes the places that a question says are taken.
pub(super) fn take(engine: &Engine, route: Option<RouteId>, question: &Question, now: Mono) -> Held {
    let mut held = Held::default();
    for (name, number) in &question.in_flight {
        let limit: Option<&std::sync::Arc<Limit>> = match (name.as_str(), route) {
            ("process", _) => Some(engine.process()),
            ("route", Some(route)) => Some(&engine.route(route).in_flight),
            ("route", None) => None,
            _ => dependency(engine, name).map(|dependency| &dependency.in_flight),
        };
        if let Some(limit) = limit {
            let taken = (0..*number).map_while(|_| limit.try_acquire(Turn::Newcomer, Excess::Count));
            held._permits.extend(taken);
        } else if let Some(resource) = engine.resources().iter().find(|resource| resource.name() == name) {
            let take = || resource.try_acquire(now, ClassShare::Effect, Excess::Count).ok();
            held._resources.extend((0..*number).map_while(|_| take()));
        }
    }
    held
}

fn dependency<'e>(engine: &'e Engine, name: &str) -> Option<&'e DependencyState> {
    engine.dependencies().iter().find(|dependency| *dependency.rules.name == *name)
}

/// Brings the breakers into the states that a question says.
pub(super) fn turn(engine: &Engine, question: &Question, now: Mono) -> Result<(), NotUnderstood> {
    for (name, is) in &question.breakers {
        let Some(dependency) = dependency(engine, name) else { continue };
        let Some(rules) = dependency.rules.breaker else {
            return Err(NotUnderstood::new(format!("dependency `{name}` has no `breaker`")));
        };
        let (health, rest) = (&dependency.health, rules.open);
        match is {
            BreakerIs::Open => {
                health.restore(
                    now,
                    Saved { phase: SavedPhase::Open, rest, trips: 1, ..Saved::default() },
                    Duration::ZERO,
                );
            }
            BreakerIs::HalfOpen | BreakerIs::Ramping => {
                health.restore(
                    now,
                    Saved { phase: SavedPhase::HalfOpen, trips: 1, ..Saved::default() },
                    Duration::ZERO,
                );
            }
        }
        if *is == BreakerIs::Ramping {
            ramp(dependency, now);
        }
    }
    Ok(())
}

/// Its probes are answered, and then all is asked that the ramp lets through at this moment.
fn ramp(dependency: &DependencyState, now: Mono) {
    let health = &dependency.health;
    for number in 0..CALLS {
        match health.admit(now, true, u64::from(number)) {
            Ok(ticket) => ticket.answered(now),
            Err(_) => return,
        }
    }
}
