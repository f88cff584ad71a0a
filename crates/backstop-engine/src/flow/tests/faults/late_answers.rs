//! A call that was not answered in time says that what it uses may hang, whichever way the answer took: one that passed
//! through as it was, and one that stalled while it streamed, said nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::HeadFacts;
use crate::policy::Route;

use super::super::support::{
    Body, GET, GOOD, OK, POST, REFUSED, SECOND, START, Upstream, direct, head, route, says, words,
};
use super::{World, dependency, engine, resource, second, standing_in};

const STALLED: Failure = Failure::new(FailureKind::ReadTimeout, Phase::Body, Sent::Maybe);

/// Two on one database. The first route has nobody who stands in; on the second the replica does.
fn shared() -> Arc<Engine> {
    let own = Route { alternative: None, ..route(direct()) };
    let two = vec![dependency("catalog", &[0]), dependency("replica", &[0])];
    engine(vec![own, standing_in(route(direct()))], two, vec![resource(None, None)])
}

/// The database answers in a millisecond.
fn good_word(engine: &Arc<Engine>) {
    let quick = HeadFacts { database_wait: Some(Duration::from_millis(1)), ..head(200) };
    let answers = Upstream::Answers(quick, Body::Is(GOOD));
    World::of(answers, OK).ask(engine, 0, GET, START).settlement.complete();
}

/// Whether the replica is asked a second later, when the catalog refuses connections.
fn stands_in(engine: &Arc<Engine>) -> bool {
    let decision = World::of(Upstream::Fails(REFUSED), OK).ask(engine, 1, GET, START + 2 * SECOND);
    assert_eq!(second(engine).tally.attempts(), u64::from(words(&decision).0 == "fallback"));
    words(&decision).0 == "fallback"
}

/// Well until it is late: after a call that hung, the last good word says nothing any more.
#[test]
fn an_answer_in_time_keeps_the_good_word() {
    let engine = shared();
    good_word(&engine);
    assert!(stands_in(&engine));
}

#[test]
fn a_504_that_passes_through_is_late() {
    for facts in [GET, POST] {
        let engine = shared();
        good_word(&engine);
        let decision = World::of(says(504), OK).ask(&engine, 0, facts, START + SECOND);
        assert_eq!(words(&decision), ("failed", "primary", "unavailable"));
        decision.settlement.complete();
        assert!(!stands_in(&engine));
    }
}

#[test]
fn a_stream_that_stalls_is_late() {
    let engine = shared();
    good_word(&engine);
    World::of(OK, OK).ask(&engine, 0, GET, START + SECOND).settlement.break_off(STALLED);
    assert!(!stands_in(&engine));
    let engine = shared();
    good_word(&engine);
    World::of(OK, OK).ask(&engine, 0, GET, START + SECOND).settlement.break_off(super::BROKEN);
    assert!(stands_in(&engine), "broken off is not late");
}
