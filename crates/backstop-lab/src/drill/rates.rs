//! How fast a dependency may come back, reckoned from the policy.

use std::time::Duration;

use backstop_engine::{
    health::{BreakerRules, RecoveryRules},
    policy::Dependency,
};

/// For how long a usual rate must have been measured to say anything, its first part of a second included.
pub(crate) const KNOWN_AFTER: Duration = Duration::from_secs(11);
/// Results that a step of a ramp needs.
const RESULTS: f64 = 5.0;
/// A ramp gives at least one call a second.
const LEAST: f64 = 1.0;
/// What it gives on top of its share.
const ON_TOP: f64 = 1.05;
/// How much of its rate may come at once.
const BURST_S: f64 = 0.1;

/// The usual rate that a ramp begins from, after so many calls in so long a time; `None` where it is not known.
pub(crate) fn usual(calls: u64, within: Duration) -> Option<f64> {
    (within >= KNOWN_AFTER).then(|| calls as f64 / within.as_secs_f64())
}

/// The steps of a ramp: the rate of each per second, and how long it lasts at least.
fn steps(rules: &RecoveryRules, usual: f64) -> impl Iterator<Item = (f64, f64)> {
    let up = (f64::from(rules.up.0) / 1000.0).max(1.01);
    let first = (usual * f64::from(rules.start.0) / 1000.0 * ON_TOP).max(LEAST);
    let tick = rules.tick.as_secs_f64().max(0.001);
    std::iter::successors(Some(first), move |rate| Some(rate * up))
        .map(move |rate| (rate, tick.max(RESULTS / rate)))
}

/// How many calls a ramp lets through by some time after its first one, at most.
pub(crate) fn let_through(rules: &RecoveryRules, usual: f64, since: Duration) -> f64 {
    let (mut left, mut sum) = (since.as_secs_f64(), 0.0);
    for (rate, lasts) in steps(rules, usual) {
        sum += rate * left.min(lasts);
        left -= lasts;
        if left <= 0.0 || sum > 1e9 {
            return sum + (rate * BURST_S).max(1.0);
        }
    }
    sum
}

/// How long after its healing a dependency is asked as before, at most.
pub(crate) fn back_within(
    dependency: &Dependency,
    outage: Duration,
    usual: Option<f64>,
    per_second: f64,
) -> Duration {
    let margin = Duration::from_secs(1);
    let Some(breaker) = &dependency.breaker else { return margin };
    // Where the usual rate is not known there is no ramp.
    let ramp = dependency.recovery.zip(usual).map(|(rules, usual)| ramp(&rules, usual, per_second));
    let probes = f64::from(breaker.probes.max(1)) / per_second.max(0.1);
    still_open(breaker, outage) + Duration::from_secs_f64(probes * 2.0) + ramp.unwrap_or_default() + margin
}

/// How long a breaker may still be open when the outage is over: it grows with each trial that fails, and is spread by a fifth.
fn still_open(breaker: &BreakerRules, outage: Duration) -> Duration {
    let (mut open, mut passed) = (breaker.open, Duration::ZERO);
    while passed + open < outage && open < breaker.open_max {
        passed += open;
        open = (open * 2).min(breaker.open_max);
    }
    open.mul_f64(1.2)
}

/// How long a ramp takes where each of its steps is green, with half as much again for those that hold.
fn ramp(rules: &RecoveryRules, usual: f64, per_second: f64) -> Duration {
    let before = steps(rules, usual).take_while(|(rate, _)| *rate < per_second * 1.5);
    let seconds: f64 = before.map(|(_, lasts)| lasts).sum();
    Duration::from_secs_f64((seconds + rules.tick.as_secs_f64() * 2.0) * 1.5)
}

#[cfg(test)]
mod tests {
    use backstop_engine::health::PerMille;

    use super::*;

    fn rules() -> RecoveryRules {
        RecoveryRules {
            start: PerMille(500),
            up: PerMille(2000),
            tick: Duration::from_secs(1),
            ..RecoveryRules::default()
        }
    }

    #[test]
    fn a_usual_rate_is_known_after_ten_whole_seconds() {
        assert_eq!(usual(200, Duration::from_millis(10_900)), None);
        assert_eq!(usual(240, Duration::from_secs(12)), Some(20.0));
    }

    #[test]
    fn a_ramp_begins_with_its_share_and_steps_after_five_results() {
        // Half of 20 and a twentieth on top: 10.5 a second, for a whole tick of 1 s. Then 21 a second.
        let through = let_through(&rules(), 20.0, Duration::from_millis(1500));
        assert!(
            (through - (10.5 + 10.5 + 2.1)).abs() < 1e-9,
            "and a burst of a tenth of a second: {through}"
        );
        // One a second at least: its five results take 5 s.
        let through = let_through(&rules(), 0.1, Duration::from_secs(5));
        assert!((through - 6.0).abs() < 1e-9, "{through}");
        let through = let_through(&rules(), 0.1, Duration::from_millis(5500));
        assert!((through - 7.0).abs() < 1e-9, "{through}");
    }

    #[test]
    fn a_breaker_that_tripped_again_is_open_for_longer() {
        let breaker = BreakerRules {
            open: Duration::from_secs(5),
            open_max: Duration::from_secs(30),
            ..BreakerRules::default()
        };
        assert_eq!(still_open(&breaker, Duration::from_secs(4)), Duration::from_secs(6));
        // 5 s are over after 5 s, so the second one lasts 10 s, and a fifth more.
        assert_eq!(still_open(&breaker, Duration::from_secs(8)), Duration::from_secs(12));
        assert_eq!(still_open(&breaker, Duration::from_secs(800)), Duration::from_secs(36));
    }
}
