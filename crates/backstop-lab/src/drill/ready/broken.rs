//! Dependencies that answer badly, late, or with errors that are no outage.

use std::time::Duration;

use crate::drill::{Expect, Scenario, Selector, expect::Kind};
use crate::proxy::{Fault, Moment};

use super::{
    EDGE, WARM,
    cast::{Cast, Part, fail, first, longest_deadline, rate, upstreams, warm},
    ms, while_broken,
};

/// Asks a route while its dependency is broken. What its cache has already shows nothing of that, so where there is one, others are
/// asked for besides that nobody has asked for yet, each once.
fn ask(cast: &Cast<'_>, scenario: &mut Scenario, part: &Part, per_second: f64, to: Duration) {
    scenario.send(&part.asks, per_second, WARM, to);
    if part.facts.cache.is_some() {
        let count = (per_second * to.saturating_sub(WARM).as_secs_f64()).ceil() as usize;
        let strangers = cast.strangers(scenario, part, "drill-broken", count);
        scenario.send(&strangers, per_second, WARM, to);
    }
}

/// Hangs, then is late by twice the deadline, then drips.
pub(super) fn slow_dependency(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |_| None);
    warm(&mut scenario, &parts);
    let deadline = longest_deadline(&parts);
    let each = (deadline + ms(400)).max(ms(600));
    let faults = [Fault::Hang, Fault::Slow(deadline * 2), Fault::Drip(deadline / 4 + ms(1))];
    let end = WARM + each * u32::try_from(faults.len()).unwrap_or(1);
    let mut from = WARM;
    for fault in faults {
        fail(&mut scenario, &upstreams(&parts, first), fault, from, from + each);
        from += each;
    }
    for part in &parts {
        ask(cast, &mut scenario, part, rate(part, end).min(20.0), end);
        let of = Selector::within(&[part.route], WARM + EDGE, while_broken(end));
        let promise = format!("`{}` does not wait for an answer that does not come", part.facts.name);
        // An answer that is not the dependency's shows that the fault was met.
        let kinds = ["fallback", "rejected", "failed"].map(str::to_owned).to_vec();
        scenario.expects.push(Expect::seen(
            "given-up",
            &promise,
            of,
            Kind { outcome: kinds, ..Kind::default() },
        ));
    }
    Some(scenario)
}

/// Cut bodies, bytes that are no HTTP, pages for people.
pub(super) fn broken_answers(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |_| None);
    warm(&mut scenario, &parts);
    let faults = [
        Fault::Truncate,
        Fault::Reset(Moment::AfterHead),
        Fault::Garbage,
        Fault::HangUp,
        Fault::WrongBody,
        Fault::Flap(ms(50)),
    ];
    let each = ms(300);
    let mut from = WARM;
    for fault in faults {
        fail(&mut scenario, &upstreams(&parts, first), fault, from, from + each);
        from += each;
    }
    for part in &parts {
        ask(cast, &mut scenario, part, rate(part, from) * 2.0, from);
        let of = Selector::within(&[part.route], WARM + EDGE, from);
        let promise = format!("`{}`: what is broken is not passed on as if it were whole", part.facts.name);
        let kinds = ["fallback", "rejected", "failed", "none"].map(str::to_owned).to_vec();
        scenario.expects.push(Expect::seen(
            "noticed",
            &promise,
            of,
            Kind { outcome: kinds, ..Kind::default() },
        ));
    }
    Some(scenario)
}

/// What the dependency says of the request, and what nobody classified.
pub(super) fn unclassified_errors(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let parts = cast.readers(&mut scenario, |route| {
        (route.class == "cached_read").then_some("its cache may answer first")
    });
    warm(&mut scenario, &parts);
    let routes: Vec<usize> = parts.iter().map(|part| part.route).collect();
    let each = ms(300);
    let unclassified = cast.facts.unclassified(&routes);
    // Those that withdraw a copy come last.
    let statuses = unclassified.into_iter().chain([422, 409, 401, 403, 404, 410]);
    let mut from = WARM;
    for status in statuses {
        fail(&mut scenario, &upstreams(&parts, first), Fault::Status(status), from, from + each);
        for part in &parts {
            if !cast.facts.passes_through(part.route, status) {
                continue;
            }
            let of = Selector::within(&[part.route], from + EDGE, from + each - EDGE);
            let promise = format!("`{}`: {status} passes through", part.facts.name);
            scenario.expects.push(Expect::all("unchanged", &promise, of, Kind::status(&[status])));
        }
        from += each;
    }
    for part in &parts {
        scenario.send(&part.asks, rate(part, from).min(20.0), WARM, from - EDGE);
    }
    scenario.duration = Duration::max(scenario.duration, from);
    Some(scenario)
}
