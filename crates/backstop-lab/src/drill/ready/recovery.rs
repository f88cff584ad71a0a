//! Dependencies that come back.

use std::time::Duration;

use crate::drill::{Scenario, rates};
use crate::proxy::Fault;

use super::{
    EDGE, WARM,
    cast::{Cast, Part, fail, first, healthy, rate, upstreams},
    ms,
};

/// How much more is asked when every client tries again at once.
const SURGE: f64 = 4.0;
/// For so long. It is over before answers must be normal again: until then a full dependency is no fault.
const SURGE_LASTS: Duration = Duration::from_millis(700);

/// Down, and back again.
pub(super) fn recovery(cast: &mut Cast<'_>) -> Option<Scenario> {
    returning(cast, 1.0)
}

/// The same, and at the moment of its return everybody asks again.
pub(super) fn retries_at_once(cast: &mut Cast<'_>) -> Option<Scenario> {
    returning(cast, SURGE)
}

fn returning(cast: &mut Cast<'_>, surge: f64) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast
        .readers(&mut scenario, |route| route.dependency.is_none().then_some("it asks no dependency itself"));
    let asked = upstreams(&parts, first);
    let ramps = |upstream: &usize| {
        cast.facts.policy().dependencies.get(*upstream).is_some_and(|rules| rules.recovery.is_some())
    };
    // A ramp begins from a rate that must have been measured.
    let warm = if asked.iter().any(ramps) { rates::KNOWN_AFTER + ms(1000) } else { WARM * 2 };
    let per_second = |upstream: usize| {
        let own = parts.iter().filter(move |part| part.facts.dependency == Some(upstream));
        own.map(pace).sum::<f64>().max(0.1)
    };
    // Enough failures in a row for its breaker to be sure, and a trial that fails.
    let outage = asked.iter().filter_map(|upstream| {
        let breaker = cast.facts.policy().dependencies.get(*upstream)?.breaker.as_ref()?;
        Some(Duration::from_secs_f64(15.0 / per_second(*upstream)) + breaker.open)
    });
    let outage = outage.max().unwrap_or_default().max(ms(1000));
    let healed = warm + outage;
    let back = asked.iter().filter_map(|upstream| {
        let rules = cast.facts.policy().dependencies.get(*upstream)?;
        let usual = rates::usual((per_second(*upstream) * warm.as_secs_f64()) as u64, warm);
        Some(rates::back_within(rules, outage, usual, per_second(*upstream) * surge))
    });
    let end = healed + back.max().unwrap_or_default() + ms(1000);
    fail(&mut scenario, &asked, Fault::Refuse, warm, healed);
    for part in &parts {
        scenario.send(&part.asks, pace(part), Duration::ZERO, end);
        if surge > 1.0 {
            scenario.send(&part.asks, pace(part) * (surge - 1.0), healed, (healed + SURGE_LASTS).min(end));
        }
    }
    // What is under way when it breaks is not answered as usual.
    healthy(&mut scenario, &parts, warm - EDGE);
    scenario.duration = end;
    Some(scenario)
}

/// Requests per second of a route: enough to be counted, and far from its limits.
fn pace(part: &Part) -> f64 {
    let deadline = part.facts.deadline.as_secs_f64().max(0.05);
    rate(part, WARM).max(30.0).min(f64::from(part.facts.in_flight) / deadline / 4.0).max(1.0)
}
