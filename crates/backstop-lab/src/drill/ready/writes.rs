//! Writes whose answers are lost.

use crate::drill::{Expect, Scenario, Selector, expect::Kind};
use crate::proxy::{Fault, Moment, Writes};

use super::{
    EDGE, WARM,
    cast::{Cast, fail, first, rate, upstreams},
    ms,
};

/// Every way in which an answer is lost after the request has arrived, one after the other.
pub(super) fn write_once(cast: &mut Cast<'_>) -> Option<Scenario> {
    let mut scenario = Scenario::default();
    let sandbox = cast.sandbox;
    let parts = cast.parts(&mut scenario, Writes::is_write, |route| {
        (route.has_effects() && !sandbox)
            .then_some("it has effects, and the drill is no sandbox (`sandbox = true`)")
    });
    let faults = [
        Fault::HangUp,
        Fault::Reset(Moment::BeforeHead),
        Fault::Status(503),
        Fault::Garbage,
        Fault::Truncate,
        Fault::Reset(Moment::AfterHead),
    ];
    let mut from = WARM;
    for fault in faults {
        fail(&mut scenario, &upstreams(&parts, first), fault, from, from + ms(300));
        from += ms(300);
    }
    for part in &parts {
        scenario.send(&part.asks, rate(part, from), ms(0), from);
        let promise = format!("`{}`: an answer is lost, and the client hears of it", part.facts.name);
        let of = Selector::within(&[part.route], WARM + EDGE, from);
        let kinds = ["failed", "rejected", "none"].map(str::to_owned).to_vec();
        scenario.expects.push(Expect::seen("lost", &promise, of, Kind { outcome: kinds, ..Kind::default() }));
    }
    scenario.duration = from;
    Some(scenario)
}
