//! Nothing makes a copy younger than it is.

use std::time::Duration;

use crate::drill::{Expect, Scenario, Selector, expect::Kind};
use crate::proxy::Fault;

use super::{
    EDGE, WARM,
    cast::{Cast, everything, fail, first, healthy, rate, upstreams},
    while_broken,
};

/// An hour.
const AHEAD_S: u32 = 3600;

/// An origin whose date lies ahead, one that says that its answer is old, and a clock that ran back over a restart.
pub(super) fn future_date(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |route| match route.max_age {
        None => Some("it keeps no copies"),
        Some(_) if route.class == "cached_read" => Some("its cache would answer first"),
        Some(_) => None,
    });
    let oldest = parts.iter().filter_map(|part| part.facts.max_age).max()?;
    // First answers whose date lies ahead, then others that are as old as a copy may not be.
    let (ahead, aged) = (WARM, WARM * 2);
    let end = aged + oldest + Duration::from_secs(1);
    let asked = upstreams(&parts, first);
    fail(&mut scenario, &asked, Fault::Date(AHEAD_S), Duration::ZERO, ahead);
    let age = u32::try_from(oldest.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    fail(&mut scenario, &asked, Fault::Age(age), ahead, aged);
    fail(&mut scenario, &upstreams(&parts, everything), Fault::Refuse, aged, end);
    for part in &parts {
        let Some(max_age) = part.facts.max_age else { continue };
        let per_second = rate(part, end).max(part.asks.len() as f64 * 3.0);
        scenario.send(&part.asks, per_second, Duration::ZERO, ahead - EDGE);
        scenario.send(&part.asks, rate(part, end), aged + EDGE, end);
        // Each was read within the first 440 ms, so its copy is young until `max_age` after the beginning.
        if max_age > aged + EDGE * 2 {
            let of = Selector::within(&[part.route], aged + EDGE, max_age).of(&part.asks);
            let promise = format!("`{}` serves copies while they are young enough", part.facts.name);
            scenario.expects.push(Expect::seen("copies", &promise, of, Kind::source("snapshot")));
        }
        let of = Selector::within(&[part.route], ahead + max_age + EDGE, while_broken(end)).of(&part.asks);
        let promise = format!("`{}`: a date that lies ahead makes no copy younger", part.facts.name);
        let refused = Kind::status(&cast.facts.unavailable(part.route));
        scenario.expects.push(Expect::all("future-date", &promise, of, refused.clone()));
        let old = cast.strangers(&mut scenario, part, "drill-aged", part.asks.len());
        scenario.send(&old, per_second, ahead + EDGE, aged - EDGE);
        scenario.send(&old, rate(part, end), aged + EDGE, end);
        let of = Selector::within(&[part.route], aged + EDGE, while_broken(end)).of(&old);
        let promise = format!("`{}`: what was too old when it came is no copy", part.facts.name);
        scenario.expects.push(Expect::all("age-received", &promise, of, refused.clone()));
        let of = Selector { routes: vec![part.route], after_restart: true, ..Selector::default() };
        let promise = format!(
            "`{}`: after a restart with a clock that ran back, a copy from the future is refused",
            part.facts.name
        );
        scenario.expects.push(Expect::all("clock-ran-back", &promise, of, refused));
        scenario.restart.extend(&part.asks);
    }
    healthy(&mut scenario, &parts, ahead - EDGE);
    Some(scenario)
}
