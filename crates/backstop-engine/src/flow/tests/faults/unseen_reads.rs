//! Reads that were not looked at: those in the lane for copies, and what observing alone must let through.

use std::sync::Arc;

use crate::flow::Step;
use crate::health::{Phase, WindowCount};
use crate::policy::{Mode, Route};

use super::super::support::{
    GET, OK, SECOND, START, Script, at, begin, called, copy_read_at, engine_of, get, public, route, says,
    words,
};
use super::{World, dependency, engine, first, mono};

/// By hand: one read with a place, which no copy covers, and two in the lane, of which a copy covers one.
#[test]
fn reads_in_the_lane_count_for_coverage() {
    let narrow = Route { in_flight: 1, fallback_in_flight: 1, ..route(public()) };
    let engine = engine_of(narrow);
    let holder = called(&engine, GET, START);
    let covered = Script::new(OK).with_copy(copy_read_at(START - SECOND));
    assert_eq!(words(&get(&engine, &covered, START)), ("fallback", "snapshot", "capacity"));
    assert_eq!(words(&get(&engine, &Script::new(OK), START)), ("rejected", "none", "capacity"));
    let count = engine.routes()[0].coverage.count(mono(START));
    assert_eq!((count.usable, count.total), (1, 3));
    let mut flow = begin(&engine, GET, START);
    assert!(matches!(flow.step(at(START)), Step::Load { .. }));
    drop((flow, holder));
}

/// Observing refuses nothing, also not what an open breaker would; its calls feed nothing that is open.
#[test]
fn observing_lets_calls_through_an_open_breaker() {
    let observed = Route { mode: Mode::Observe, ..route(public()) };
    let engine = engine(vec![observed], vec![dependency("catalog", &[])], vec![]);
    first(&engine).health.force_open(mono(START));
    for upstream in [OK, says(404)] {
        let decision = World::of(upstream, OK).ask(&engine, 0, GET, START);
        assert_eq!(words(&decision), ("normal", "primary", "none"));
        decision.settlement.complete();
    }
    let health = &first(&engine).health;
    assert_eq!(health.phase(mono(START)), Phase::ForcedOpen);
    assert_eq!(health.counts(mono(START)), WindowCount::default());
    assert_eq!(health.totals().refused_open, 2, "what would have been refused is counted");
    assert_eq!(Arc::strong_count(health), 1, "no ticket is left");
}
