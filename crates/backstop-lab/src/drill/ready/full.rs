//! Limits that are reached.

use std::time::Duration;

use crate::drill::{Expect, Scenario, Selector, expect::Kind};
use crate::proxy::Fault;

use super::{
    EDGE, WARM,
    cast::{Cast, Part, fail, first, rate, upstreams, warm},
    ms,
};

/// Most requests that a drill sends at one moment.
const BURST_MAX: usize = 1500;

/// More at once than a route lets in, while its dependency takes its time.
pub(super) fn saturation(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |_| None);
    let parts = bearable(cast, parts, |part| part.facts.in_flight as usize);
    warm(&mut scenario, &parts);
    let mut at = WARM + ms(100);
    for part in &parts {
        // Late, and far enough from the deadline to be an answer still.
        let late = part.facts.deadline.mul_f64(0.4);
        let over = at + part.facts.deadline;
        fail(&mut scenario, &first(&part.facts), Fault::Slow(late), at - ms(50), over);
        let many = part.facts.in_flight as usize * 2 + 10;
        let asks = crowd(cast, &mut scenario, part, many);
        scenario.burst(&asks, many, at);
        let promise = format!("`{}` refuses or stands in at once where a limit is reached", part.facts.name);
        let full = ["capacity", "dependency_full", "pool_timeout", "resource_full"];
        let of = Selector::within(&[part.route], at, over);
        scenario.expects.push(Expect::seen("saturated", &promise, of, Kind::reason(&full)));
        at = over + ms(100);
    }
    scenario.duration = at;
    Some(scenario)
}

/// Requests that are not answered by one read for all of them.
fn crowd(cast: &Cast<'_>, scenario: &mut Scenario, part: &Part, count: usize) -> Vec<usize> {
    match part.facts.cache {
        Some(_) => cast.strangers(scenario, part, "drill-crowd", count),
        None => part.asks.clone(),
    }
}

/// How many calls of a route may be under way at once.
fn at_once(part: &Part) -> u32 {
    part.facts.fill.map_or(part.facts.in_flight, |(at_once, _)| at_once.min(part.facts.in_flight))
}

/// The parts whose bursts are small enough for one machine.
fn bearable(cast: &mut Cast<'_>, parts: Vec<Part>, size: fn(&Part) -> usize) -> Vec<Part> {
    let (parts, large): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(|part| size(part) * 2 + 10 <= BURST_MAX);
    for part in large {
        cast.skip(
            &part.facts,
            format!("a drill sends at most {BURST_MAX} requests at once, which is less than it lets in"),
        );
    }
    parts
}

/// Calls that hang take every connection of a dependency; routes that do not need it go on.
pub(super) fn pool_exhausted(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast
        .readers(&mut scenario, |route| route.dependency.is_none().then_some("it asks no dependency itself"));
    let mut chosen: Vec<(usize, Vec<Part>)> = Vec::new();
    for upstream in upstreams(&parts, first) {
        let own: Vec<Part> =
            parts.iter().filter(|part| part.facts.dependency == Some(upstream)).cloned().collect();
        let connections =
            cast.facts.upstreams().get(upstream).map_or(u32::MAX, |upstream| upstream.connections);
        let let_in: u64 = own.iter().map(|part| u64::from(at_once(part))).sum();
        let why = match let_in {
            let_in if let_in <= u64::from(connections) => {
                format!("its dependency's routes let in {let_in}, and it has {connections} connections")
            }
            _ if connections as usize * 2 > BURST_MAX => {
                format!(
                    "a drill sends at most {BURST_MAX} requests at once, which is less than it has connections"
                )
            }
            _ => {
                chosen.push((upstream, own));
                continue;
            }
        };
        for part in &own {
            cast.skip(&part.facts, why.clone());
        }
    }
    let taking_part: Vec<Part> = chosen.iter().flat_map(|(_, own)| own.clone()).collect();
    warm(&mut scenario, &taking_part);
    let mut at = WARM + ms(100);
    for (upstream, own) in &chosen {
        let longest = own.iter().map(|part| part.facts.deadline).max().unwrap_or_default();
        let over = at + longest.max(ms(300));
        fail(&mut scenario, &[*upstream], Fault::Hang, at - ms(50), over);
        for part in own {
            let asks = crowd(cast, &mut scenario, part, part.facts.in_flight as usize);
            scenario.burst(&asks, part.facts.in_flight as usize, at);
        }
        let routes: Vec<usize> = own.iter().map(|part| part.route).collect();
        let name = cast.facts.upstream_name(*upstream);
        let promise = format!("`{name}` is full, and who comes then does not wait");
        let full = ["dependency_full", "pool_timeout", "resource_full"];
        let of = Selector::within(&routes, at, over);
        scenario.expects.push(Expect::seen("exhausted", &promise, of, Kind::reason(&full)));
        let unbroken = parts
            .iter()
            .filter(|part| !part.facts.asks().any(|asked| chosen.iter().any(|(broken, _)| *broken == asked)));
        neighbours(&mut scenario, &unbroken.cloned().collect::<Vec<_>>(), at, over);
        at = over + ms(200);
    }
    scenario.duration = at;
    Some(scenario)
}

/// Whoever does not need it answers as usual.
fn neighbours(scenario: &mut Scenario, parts: &[Part], from: Duration, to: Duration) {
    for part in parts {
        scenario.send(&part.asks, rate(part, to), from, to);
        let promise = format!("`{}` does not need it and answers as usual", part.facts.name);
        let of = Selector::within(&[part.route], from, to);
        scenario.expects.push(Expect::all("neighbours", &promise, of, Kind::outcome("normal")));
    }
}

/// The cache is away, first refusing and then silent, and many different keys are asked at once.
pub(super) fn cache_down(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |route| route.cache.is_none().then_some("it has no cache"));
    let parts = bearable(cast, parts, |part| part.facts.fill.map_or(0, |(at_once, _)| at_once as usize));
    warm(&mut scenario, &parts);
    let each = ms(1000);
    let end = WARM + each * 2;
    let caches = upstreams(&parts, |route| route.cache.into_iter().collect());
    fail(&mut scenario, &caches, Fault::Refuse, WARM, WARM + each);
    fail(&mut scenario, &caches, Fault::Hang, WARM + each, end);
    for part in &parts {
        scenario.send(&part.asks, rate(part, end), WARM, end);
        let (Some((at_once, per_second)), Some(dependency)) = (part.facts.fill, part.facts.dependency) else {
            continue;
        };
        let late = part.facts.deadline.mul_f64(0.3);
        fail(&mut scenario, &[dependency], Fault::Slow(late), WARM, end);
        let many = (at_once as usize * 2 + 10).min(part.facts.in_flight as usize);
        let asks = cast.strangers(&mut scenario, part, "drill-cache-down", many);
        for at in [WARM + ms(200), WARM + each + ms(200)] {
            scenario.burst(&asks, many, at);
        }
        let alone = parts.iter().filter(|other| other.facts.dependency == Some(dependency)).count() == 1;
        if alone {
            scenario.expects.push(Expect::Calls {
                upstream: dependency,
                from: WARM + EDGE,
                to: Some(end),
                // A full burst may go before what a second brings.
                per_second: per_second.map(|rate| rate + (rate / 20).max(1) + 1),
                in_all: None,
                at_once: Some(u64::from(at_once)),
            });
        }
    }
    Some(scenario)
}
