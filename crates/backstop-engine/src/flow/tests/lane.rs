//! The lane for alternatives that the route's limit refused.

use crate::flow::Flow;
use crate::policy::Route;
use crate::time::Now;

use super::support::{
    GET, OK, POST, REFUSED, START, Script, Upstream, at, begin, called, copy_read_at, counted, dependency,
    direct, drive, engine, engine_of, get, in_flight, omitted, public, route, words,
};

const NOW: Now = at(START);

fn script() -> Script {
    Script::new(OK).with_copy(copy_read_at(START))
}

/// Without a lane a full route serves no copy; that copies count in the same places is the rule.
#[test]
fn without_a_lane_a_full_route_serves_no_copy() {
    let engine = engine_of(Route { in_flight: 1, ..route(public()) });
    let first = get(&engine, &Script::new(Upstream::Fails(REFUSED)).with_copy(copy_read_at(START)), START);
    assert_eq!(words(&first), ("fallback", "snapshot", "connect"));
    assert_eq!(words(&get(&engine, &script(), START)), ("rejected", "none", "capacity"));
    drop(first);
    assert_eq!(words(&get(&engine, &script(), START)), ("normal", "primary", "none"));
}

/// With a lane the excess is answered from the copy, up to the lane's own limit; the dependency is not asked.
#[test]
fn the_lane_serves_copies_up_to_its_own_limit() {
    let engine = engine_of(Route { in_flight: 1, fallback_in_flight: 1, ..route(public()) });
    let held = called(&engine, GET, START);
    let in_lane = get(&engine, &script(), START);
    assert_eq!(words(&in_lane), ("fallback", "snapshot", "capacity"));
    assert_eq!(in_flight(&engine), [2, 1, 1, 1]);
    let excess = get(&engine, &script(), START);
    assert_eq!(words(&excess), ("rejected", "none", "capacity"));
    drop(in_lane);
    assert_eq!(words(&get(&engine, &script(), START)), ("fallback", "snapshot", "capacity"));
    drop((held, excess));
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// No usable copy in the lane: the refusal is still the limit's, and nobody is asked.
#[test]
fn the_lane_without_a_copy_refuses_for_the_limit() {
    let engine = engine_of(Route { in_flight: 1, fallback_in_flight: 1, ..route(public()) });
    let _held = called(&engine, GET, START);
    assert_eq!(words(&get(&engine, &Script::new(OK), START)), ("rejected", "none", "capacity"));
}

/// A full process opens the lane as well, without a place in the process.
#[test]
fn a_full_process_opens_the_lane_too() {
    let lane = Route { fallback_in_flight: 1, ..route(public()) };
    let engine = engine(1, vec![lane], vec![dependency(4, 0)]);
    let held = called(&engine, GET, START);
    let in_lane = get(&engine, &script(), START);
    assert_eq!(words(&in_lane), ("fallback", "snapshot", "capacity"));
    assert_eq!(in_flight(&engine), [1, 1, 1, 1]);
    drop((held, in_lane));
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// What has no alternative has no use for the lane.
#[test]
fn writes_and_direct_routes_never_enter_the_lane() {
    for (class, facts) in [(public(), POST), (direct(), GET), (omitted(), POST)] {
        let engine = engine_of(Route { in_flight: 1, fallback_in_flight: 1, ..route(class) });
        let _held = called(&engine, facts, START);
        let mut flow: Flow = begin(&engine, facts, START);
        let decision = drive(&mut flow, &script(), NOW);
        assert_eq!(words(&decision), ("rejected", "none", "capacity"));
        assert_eq!(in_flight(&engine)[2], 0);
    }
}

/// An optional part in the lane is left out at once, and counted as such.
#[test]
fn an_optional_part_in_the_lane_is_left_out() {
    let engine = engine_of(Route { in_flight: 1, fallback_in_flight: 1, ..route(omitted()) });
    let held = called(&engine, GET, START);
    get(&engine, &script(), START).settlement.complete();
    drop(held);
    let expected = [("fallback", "omitted", "capacity", 1), ("abandoned", "none", "client_left", 1)];
    assert_eq!(counted(&engine), expected);
}
