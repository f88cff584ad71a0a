//! What routes and dependencies are in, and since when.
//!
//! | what | in | since |
//! |---|---|---|
//! | route | the rung in use: the last one that gave at least one in a hundred of the answers of the last ten seconds | the beginning of the second in which the first such answer was counted |
//! | | without an answer in ten seconds it stays; without one in a minute nothing is in use | |
//! | dependency | the phase of its breaker | the beginning of the second in which it was first seen |
//! | | its cause: the commonest failure when it was last failing, until it is closed and well | |

use backstop_engine::engine::DependencyState as Dependency;
use backstop_engine::health::Phase;
use backstop_engine::incident::Moment;

use super::counted::{DependencyCounted, RouteCounted};
use super::ladder::in_use;
use super::view::{DependencyStanding, RungKind};
use crate::breakers;

/// What a route is in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RouteStanding {
    pub(super) rung: Option<RungKind>,
    pub(super) reason: &'static str,
    pub(super) since: Moment,
}

impl RouteStanding {
    pub(super) const fn new(since: Moment) -> Self {
        Self { rung: None, reason: "none", since }
    }

    /// Looks again. `from` is when it was looked at before; `now` and `minute` have the answers of the last ten seconds and of the last
    /// minute.
    pub(super) fn look(&mut self, from: Moment, now: &RouteCounted, minute: &RouteCounted) {
        let seen = match in_use(&now.requests) {
            Some((rung, reason)) => Some((Some(rung), reason)),
            None if in_use(&minute.requests).is_none() => Some((None, "none")),
            None => None,
        };
        let Some((rung, reason)) = seen else { return };
        if rung != self.rung {
            self.since = from;
        }
        (self.rung, self.reason) = (rung, reason);
    }
}

/// What a dependency is in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DependencyStands {
    pub(super) phase: &'static str,
    pub(super) state: DependencyStanding,
    pub(super) since: Moment,
    pub(super) cause: Option<&'static str>,
}

impl DependencyStands {
    pub(super) fn new(phase: Phase, since: Moment) -> Self {
        let none = DependencyCounted::default();
        Self { phase: breakers::name(phase), state: state(phase, &none), since, cause: None }
    }

    /// Looks again. `now` has the calls of the last ten seconds.
    pub(super) fn look(&mut self, from: Moment, phase: Phase, now: &DependencyCounted) {
        let state = state(phase, now);
        let name = breakers::name(phase);
        // Failing calls begin something before any breaker moves.
        let begins_to_fail = self.state == DependencyStanding::Normal && state == DependencyStanding::Failing;
        let is_well_again = self.state == DependencyStanding::Failing && state == DependencyStanding::Normal;
        if name != self.phase || begins_to_fail || is_well_again {
            self.since = from;
        }
        match state {
            DependencyStanding::Normal => self.cause = None,
            _ => self.cause = now.main_failure().or(self.cause),
        }
        (self.phase, self.state) = (name, state);
    }
}

fn state(phase: Phase, now: &DependencyCounted) -> DependencyStanding {
    match phase {
        Phase::Closed if now.failed() > 0 && now.failed() * 100 >= now.attempts => {
            DependencyStanding::Failing
        }
        Phase::Closed => DependencyStanding::Normal,
        Phase::Open { .. } => DependencyStanding::Open,
        Phase::HalfOpen | Phase::Ramp { .. } => DependencyStanding::Recovering,
        Phase::Watch { .. } => DependencyStanding::Watched,
        Phase::ForcedOpen | Phase::ForcedClosed => DependencyStanding::Held,
    }
}

/// The share of its usual load that a dependency is given.
pub(super) fn share(phase: Phase) -> f64 {
    match phase {
        Phase::Ramp { share } => f64::from(share.0) / 1000.0,
        Phase::Open { .. } | Phase::HalfOpen | Phase::ForcedOpen => 0.0,
        Phase::Closed | Phase::Watch { .. } | Phase::ForcedClosed => 1.0,
    }
}

/// Calls per second that it is given, where it is held back and that is known.
pub(super) fn allowed(dependency: &Dependency, phase: Phase) -> Option<f64> {
    match phase {
        Phase::Open { .. } | Phase::ForcedOpen => Some(0.0),
        Phase::HalfOpen | Phase::Ramp { .. } => {
            dependency.health.usual_rate().map(|usual| usual * share(phase))
        }
        Phase::Closed | Phase::Watch { .. } | Phase::ForcedClosed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::failure::FailureKind;
    use backstop_engine::health::PerMille;
    use backstop_engine::outcome::{Outcome, Source};
    use backstop_engine::tally::RequestCount;
    use backstop_engine::time::{BootId, Mono, Wall};

    fn at(second: u64) -> Moment {
        Moment {
            mono: Mono::from_ns(second * 1_000_000_000),
            wall: Wall::from_unix_ns(0),
            boot: BootId([1; 16]),
        }
    }

    fn route(copies: u64, normal: u64) -> RouteCounted {
        let count = |outcome, source, reason, count| RequestCount { outcome, source, reason, count };
        let counts = [
            count(Outcome::Normal, Source::Primary, "none", normal),
            count(Outcome::Fallback, Source::Snapshot, "connect", copies),
        ];
        RouteCounted {
            requests: counts.into_iter().filter(|one| one.count > 0).collect(),
            ..RouteCounted::default()
        }
    }

    #[test]
    fn a_route_is_in_its_rung_since_the_second_in_which_it_began() {
        let mut standing = RouteStanding::new(at(0));
        standing.look(at(4), &route(0, 9), &route(0, 9));
        assert_eq!((standing.rung, standing.since), (Some(RungKind::Dependency), at(4)));
        standing.look(at(5), &route(1, 9), &route(1, 9));
        standing.look(at(6), &route(5, 9), &route(5, 9));
        assert_eq!(
            (standing.rung, standing.reason, standing.since),
            (Some(RungKind::Copy), "connect", at(5))
        );
    }

    #[test]
    fn without_requests_it_stays_for_a_minute_and_then_nothing_is_in_use() {
        let mut standing = RouteStanding::new(at(0));
        standing.look(at(5), &route(1, 0), &route(1, 0));
        standing.look(at(20), &route(0, 0), &route(1, 0));
        assert_eq!((standing.rung, standing.since), (Some(RungKind::Copy), at(5)));
        standing.look(at(66), &route(0, 0), &route(0, 0));
        assert_eq!((standing.rung, standing.since), (None, at(66)));
    }

    fn calls(attempts: u64, connect: u64) -> DependencyCounted {
        let mut failures = [0; FailureKind::TOKENS.len()];
        failures[FailureKind::Connect.index()] = connect;
        DependencyCounted { attempts, failures, retries: 0 }
    }

    /// By hand: one failure of 100 calls is one in a hundred, one of 101 is less.
    #[test]
    fn a_dependency_fails_from_one_call_in_a_hundred_on() {
        assert_eq!(state(Phase::Closed, &calls(101, 1)), DependencyStanding::Normal);
        assert_eq!(state(Phase::Closed, &calls(100, 1)), DependencyStanding::Failing);
        assert_eq!(state(Phase::Closed, &calls(0, 0)), DependencyStanding::Normal);
    }

    #[test]
    fn its_cause_is_known_until_it_is_well() {
        let mut stands = DependencyStands::new(Phase::Closed, at(0));
        stands.look(at(3), Phase::Closed, &calls(10, 4));
        assert_eq!((stands.cause, stands.since), (Some("connect"), at(3)));
        stands.look(at(4), Phase::Open { until: Mono::MAX }, &calls(0, 0));
        assert_eq!((stands.phase, stands.cause, stands.since), ("open", Some("connect"), at(4)));
        stands.look(at(9), Phase::Ramp { share: PerMille(100) }, &calls(5, 0));
        stands.look(at(10), Phase::Ramp { share: PerMille(150) }, &calls(5, 0));
        assert_eq!(
            (stands.state, stands.cause, stands.since),
            (DependencyStanding::Recovering, Some("connect"), at(9))
        );
        stands.look(at(40), Phase::Closed, &calls(5, 0));
        assert_eq!((stands.state, stands.cause, stands.since), (DependencyStanding::Normal, None, at(40)));
    }

    #[test]
    fn what_it_is_given_follows_its_phase() {
        assert_eq!(share(Phase::Ramp { share: PerMille(330) }), 0.33);
        assert_eq!((share(Phase::HalfOpen), share(Phase::Closed)), (0.0, 1.0));
    }
}
