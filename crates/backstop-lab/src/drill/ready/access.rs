//! An authorizer that cannot be asked.

use std::time::Duration;

use crate::drill::{Expect, Scenario, Selector, expect::Kind};
use crate::proxy::{Fault, Moment};

use super::{
    EDGE, WARM,
    cast::{Cast, fail, rate, upstreams, warm},
    ms,
};

/// Every way in which a question comes to nothing, one after the other.
pub(super) fn authorizer_down(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let sandbox = cast.sandbox;
    let any = |method: &str| method != "OPTIONS";
    let parts = cast.parts(&mut scenario, any, |route| match () {
        () if route.takes_tokens => Some("its tokens are verified by the gateway itself"),
        () if route.authorizer.is_none() => Some("it has no authorizer"),
        () if route.has_effects() && !sandbox => Some("it has effects, and the drill is no sandbox"),
        () => None,
    });
    warm(&mut scenario, &parts);
    let authorizers = upstreams(&parts, |route| route.authorizer.into_iter().collect());
    let faults = [
        Fault::Refuse,
        Fault::HangUp,
        Fault::Reset(Moment::BeforeHead),
        Fault::Status(500),
        Fault::Garbage,
        Fault::WrongBody,
        Fault::Hang,
    ];
    let waits = parts.iter().map(|part| part.facts.deadline).max().unwrap_or_default();
    let mut from = WARM;
    for fault in faults {
        // What hangs must be seen to be given up.
        let each = if fault == Fault::Hang { waits + ms(300) } else { ms(300) };
        fail(&mut scenario, &authorizers, fault, from, from + each);
        for part in &parts {
            let promise =
                format!("`{}`: `{}` of its authorizer is a temporary error", part.facts.name, fault.name());
            let of = Selector::within(&[part.route], from + EDGE, from + ms(300) - EDGE);
            scenario.expects.push(Expect::all("temporary", &promise, of, Kind::status(&[503])));
        }
        from += each;
    }
    for part in &parts {
        scenario.send(&part.asks, rate(part, from).min(20.0), WARM, from);
        let dependency = part.facts.dependency;
        scenario.expects.extend(dependency.filter(|_| alone(&parts, part)).map(|upstream| Expect::Calls {
            upstream,
            from: WARM + EDGE,
            to: Some(from),
            per_second: None,
            in_all: Some(0),
            at_once: None,
        }));
    }
    scenario.duration = Duration::max(scenario.duration, from);
    Some(scenario)
}

/// Whether nobody else who takes part asks its dependency without the same authorizer.
fn alone(parts: &[super::cast::Part], part: &super::cast::Part) -> bool {
    parts
        .iter()
        .all(|other| other.facts.dependency != part.facts.dependency || other.facts.authorizer.is_some())
}
