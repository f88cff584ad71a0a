//! Reads that were not looked at before: those in the lane for copies.

use crate::flow::Step;
use crate::policy::Route;

use super::super::support::{
    GET, OK, SECOND, START, Script, at, begin, called, copy_read_at, engine_of, get, public, route, words,
};
use super::mono;

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
