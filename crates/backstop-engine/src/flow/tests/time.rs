//! One deadline: nothing starts after its share, and only the client's own slowness moves it.

use std::time::Duration;

use crate::flow::{Event, Step};
use crate::time::Mono;

use super::support::{
    GET, MS, SECOND, START, at, begin, called, copy_read_at, direct, engine_of, head, public, route, words,
};

/// 300 ms: the last nanosecond of the attempt's share, and the first after it.
#[test]
fn no_call_begins_at_the_end_of_its_share() {
    for (class, share_ms) in [(public(), 294), (direct(), 297)] {
        for (late_ns, is_called) in [(share_ms * MS - 1, true), (share_ms * MS, false), (SECOND, false)] {
            let engine = engine_of(route(class.clone()));
            let mut flow = begin(&engine, GET, START);
            let now = at(START + late_ns);
            let mut step = flow.step(now);
            if matches!(step, Step::Peek) {
                flow.on(Event::Known(None), now);
                step = flow.step(now);
            }
            assert_eq!(matches!(step, Step::Attempt(_)), is_called, "{late_ns}");
        }
    }
}

/// Each step's time ends where the next share begins: 294 ms, 297 ms, 300 ms.
#[test]
fn every_step_ends_before_the_next_share() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    assert_eq!((call.until, call.end), (Mono::from_ns(START + 294 * MS), Mono::from_ns(START + 300 * MS)));
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(START));
    let Step::Collect { until, limit_bytes, .. } = flow.step(at(START)) else { panic!("not collecting") };
    assert_eq!((until, limit_bytes), (Mono::from_ns(START + 294 * MS), 4096));
    flow.on(Event::TimeUp(None), at(START + 294 * MS));
    let Step::Load { until } = flow.step(at(START + 294 * MS)) else { panic!("no copy asked for") };
    assert_eq!(until, Mono::from_ns(START + 297 * MS), "what is left then is for sending the copy");
    flow.on(Event::Copy(Ok(Some(copy_read_at(START)))), at(START + 295 * MS));
    let Step::Done(decision) = flow.step(at(START + 295 * MS)) else { panic!("not done") };
    assert_eq!(words(&decision), ("fallback", "snapshot", "read_timeout"));
    assert_eq!(decision.until, Mono::from_ns(START + 300 * MS));
}

/// The client took 100 ms over its own body: that is not the dependency's time. A smaller sum takes nothing back.
#[test]
fn only_the_clients_own_slowness_moves_the_deadline() {
    let engine = engine_of(route(direct()));
    let (mut flow, call) = called(&engine, GET, START);
    flow.on(Event::ClientWaited(Duration::from_millis(100)), at(START));
    flow.on(Event::ClientWaited(Duration::from_millis(40)), at(START));
    let deadline = flow.deadline();
    assert_eq!(
        (deadline.attempt_end(), deadline.end()),
        (Mono::from_ns(START + 397 * MS), Mono::from_ns(START + 400 * MS))
    );
    flow.on(Event::Head { attempt: call.id, head: head(200) }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(decision.until, Mono::from_ns(START + 400 * MS));
    assert_eq!(flow.begun(), at(START), "the date of the read stays where it began");
}

/// The copy is judged at the moment at which it is served, not at the one at which the request began.
#[test]
fn a_copy_that_grows_too_old_during_the_request_is_refused() {
    let engine = engine_of(route(public()));
    let copy = copy_read_at(START - 60 * SECOND);
    let mut flow = begin(&engine, GET, START);
    assert!(matches!(flow.step(at(START)), Step::Peek));
    flow.on(Event::Known(Some(copy)), at(START));
    let Step::Attempt(call) = flow.step(at(START)) else { panic!("not called") };
    flow.on(Event::Failed { attempt: call.id, failure: super::support::REFUSED }, at(START + 1));
    assert!(matches!(flow.step(at(START + 1)), Step::Load { .. }));
    flow.on(Event::Copy(Ok(Some(copy))), at(START + 1));
    let Step::Done(decision) = flow.step(at(START + 1)) else { panic!("not done") };
    assert_eq!(words(&decision), ("rejected", "none", "age"));
    let coverage = engine.routes()[0].coverage.count(at(START).mono);
    assert_eq!(coverage.usable, 1, "when it was asked for it was usable");
}

/// The same entropy gives the same draws, and draws differ from one another.
#[test]
fn draws_are_decided_by_the_entropy_alone() {
    let engine = engine_of(route(public()));
    let (mut one, mut other) = (begin(&engine, GET, START), begin(&engine, GET, START));
    let draws = [one.draw(), one.draw(), one.draw()];
    assert_eq!(draws, [other.draw(), other.draw(), other.draw()]);
    assert!(draws[0] != draws[1] && draws[1] != draws[2]);
    // The first draws of SplitMix64 from seed 0, as its authors give them.
    assert_eq!(draws, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
}
