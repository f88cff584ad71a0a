//! What copies may be served, and to whom.

use std::time::Duration;

use crate::drill::{Expect, RouteFacts, Scenario, Selector, expect::Kind};
use crate::proxy::Fault;

use super::{
    EDGE, WARM,
    cast::{Cast, FRESH, Part, everything, fail, rate, upstreams, warm},
    ms, while_broken,
};

fn no_copies(route: &RouteFacts) -> Option<&'static str> {
    route.max_age.is_none().then_some("it keeps no copies")
}

/// Everything that it may ask refuses, and was never asked for this.
pub(super) fn no_copy(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, no_copies);
    warm(&mut scenario, &parts);
    let end = WARM + ms(1000);
    fail(&mut scenario, &upstreams(&parts, everything), Fault::Refuse, WARM, end);
    for part in &parts {
        let asks = cast.strangers(&mut scenario, part, "drill-no-copy", 8);
        scenario.send(&asks, rate(part, end), WARM + EDGE, end);
        let of = Selector::within(&[part.route], WARM + EDGE, while_broken(end)).of(&asks);
        refuses(&mut scenario, cast, part, of, "what was never read is refused, and nothing is made up");
    }
    Some(scenario)
}

/// Every answer is a refusal.
fn refuses(scenario: &mut Scenario, cast: &Cast<'_>, part: &Part, of: Selector, promise: &str) {
    let promise = format!("`{}`: {promise}", part.facts.name);
    let kind = Kind::status(&cast.facts.unavailable(part.route));
    scenario.expects.push(Expect::all("refused", &promise, of, kind));
}

/// Copies while they are young enough, then refusals.
pub(super) fn age_limit(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, no_copies);
    let oldest = parts.iter().filter_map(|part| part.facts.max_age).max()?;
    warm(&mut scenario, &parts);
    let end = WARM + oldest + ms(1000);
    fail(&mut scenario, &upstreams(&parts, everything), Fault::Refuse, WARM, end);
    for part in &parts {
        let Some(max_age) = part.facts.max_age else { continue };
        scenario.send(&part.asks, rate(part, end), WARM, end);
        ages_out(&mut scenario, cast, part, max_age, WARM, end, &part.asks.clone());
    }
    Some(scenario)
}

/// After a fault that begins at a moment, these requests get copies first and refusals from `max_age` on.
pub(super) fn ages_out(
    scenario: &mut Scenario,
    cast: &Cast<'_>,
    part: &Part,
    max_age: Duration,
    broken: Duration,
    end: Duration,
    asks: &[usize],
) {
    // What a cache answers is not read anew.
    let young = (broken + max_age).saturating_sub(FRESH + EDGE + part.facts.ttl);
    if young > broken + EDGE {
        let of = Selector::within(&[part.route], broken + EDGE, young).of(asks);
        let promise = format!("`{}` serves copies while they are young enough", part.facts.name);
        scenario.expects.push(Expect::all("copies", &promise, of, Kind::source("snapshot")));
    }
    let of = Selector::within(&[part.route], broken + max_age + EDGE, while_broken(end)).of(asks);
    refuses(scenario, cast, part, of, "from `max_age` on it refuses");
}

/// Copies of different keys side by side.
pub(super) fn other_key(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, no_copies);
    let several = |part: &&Part| {
        let mut keys: Vec<u64> =
            part.asks.iter().filter_map(|ask| scenario.asks.get(*ask)).map(|ask| ask.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len() > 1
    };
    let (parts, alone): (Vec<Part>, Vec<Part>) = parts.iter().cloned().partition(|part| several(&part));
    for part in &alone {
        cast.skip(&part.facts, "its requests have one key; `--sample NAME=1,2` gives it two");
    }
    warm(&mut scenario, &parts);
    let shortest = parts.iter().filter_map(|part| part.facts.max_age).min()?;
    let end = WARM + shortest.min(ms(1000));
    fail(&mut scenario, &upstreams(&parts, everything), Fault::Refuse, WARM, end);
    for part in &parts {
        let asks = part.asks.clone();
        scenario.send(&asks, rate(part, end) * 2.0, WARM, end);
        // And one that nobody ever asked: it must not get anybody's copy.
        let stranger = cast.strangers(&mut scenario, part, "drill-other-key", 2);
        scenario.send(&stranger, 4.0, WARM + EDGE, end);
        let of = Selector::within(&[part.route], WARM + EDGE, while_broken(end)).of(&stranger);
        refuses(&mut scenario, cast, part, of, "another path's copy is not served");
    }
    Some(scenario)
}

/// A dependency and its alternative at once.
pub(super) fn both_down(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts =
        cast.readers(&mut scenario, |route| route.alternative.is_none().then_some("it has no `alternative`"));
    warm(&mut scenario, &parts);
    let end = WARM + ms(1500);
    fail(&mut scenario, &upstreams(&parts, everything), Fault::Refuse, WARM, end);
    for part in &parts {
        scenario.send(&part.asks, rate(part, end), WARM + EDGE, end);
        if part.facts.max_age.is_some() {
            let strangers = cast.strangers(&mut scenario, part, "drill-both-down", 4);
            scenario.send(&strangers, 8.0, WARM + EDGE, end);
            let of = Selector::within(&[part.route], WARM + EDGE, while_broken(end)).of(&strangers);
            refuses(&mut scenario, cast, part, of, "what neither of them ever answered is refused");
        }
        let promise = format!(
            "`{}`: neither answers, so nothing is normal and nothing comes from the alternative",
            part.facts.name
        );
        let of = Selector::within(&[part.route], WARM + EDGE, while_broken(end));
        scenario.expects.push(Expect::none("both-down", &promise, of.clone(), Kind::outcome("normal")));
        scenario.expects.push(Expect::none("both-down", &promise, of, Kind::source("alternative")));
    }
    Some(scenario)
}
