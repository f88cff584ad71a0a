//! What is told to whoever asks why.

use crate::failure::Cause;
use crate::flow::{AttemptId, Flow, Note, Trace};
use crate::outcome::{Outcome, Reason, Scope, Source};
use crate::policy::{Origin, Route, RouteId, RouteOrigins};
use crate::snapshot::CopyRefusal;

use super::support::{
    GET, OK, SECOND, START, Script, TIMED_OUT, Upstream, at, called, copy_read_at, drive, engine_of, get,
    public, route,
};

const ORIGINS: RouteOrigins = RouteOrigins {
    route: Origin(1),
    deadline: Origin(2),
    in_flight: Origin(3),
    fallback_in_flight: Origin(4),
    alternative: Origin(5),
    correct: Origin(6),
    gone: Origin(7),
    declared: Origin(8),
};

fn traced(places: u32, script: &Script) -> (Vec<(Note, Origin)>, Trace) {
    let engine = engine_of(Route { in_flight: places, origins: ORIGINS, ..route(public()) });
    let _held = (places == 1).then(|| called(&engine, GET, START));
    let mut flow = Flow::begin(&engine, RouteId(0), GET, at(START), 0, Trace::on());
    let decision = drive(&mut flow, script, at(START));
    let notes = decision.trace.entries().iter().map(|entry| (entry.note, entry.rule)).collect();
    (notes, decision.trace)
}

/// Every step in its order, each with the rule that decided it.
#[test]
fn a_trace_names_every_step_and_the_rule_behind_it() {
    let script = Script::new(Upstream::Fails(TIMED_OUT)).with_copy(copy_read_at(START - 61 * SECOND));
    let (notes, trace) = traced(2, &script);
    let cause = Cause::Failed(TIMED_OUT);
    let too_old = CopyRefusal::TooOld;
    assert_eq!(
        notes,
        [
            (Note::Admitted, Origin::NONE),
            (Note::Called(AttemptId(1)), Origin::NONE),
            (Note::Cause(cause), Origin::NONE),
            (Note::Copy(Err(too_old)), ORIGINS.alternative),
            (Note::Decided(Outcome::Rejected, Source::None, Reason::Copy(too_old)), ORIGINS.alternative),
        ]
    );
    assert!(trace.entries().iter().all(|entry| entry.at == at(START).mono));
}

#[test]
fn a_refusal_names_the_limit_that_refused() {
    let (notes, _) = traced(1, &Script::new(OK));
    let reason = Reason::Capacity(Scope::Route);
    assert_eq!(
        notes,
        [
            (Note::Refused(Scope::Route), ORIGINS.in_flight),
            (Note::Decided(Outcome::Rejected, Source::None, reason), ORIGINS.in_flight),
        ]
    );
}

#[test]
fn a_trace_that_is_off_records_nothing() {
    let engine = engine_of(route(public()));
    assert!(get(&engine, &Script::new(OK), START).trace.entries().is_empty());
}
