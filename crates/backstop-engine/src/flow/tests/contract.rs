//! The contract's own sentences, each with its values written out.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{BodyFacts, CopyAction, CopyUse, Event, HeadFacts, Method, Reply, RequestFacts, Step};
use crate::policy::{Route, RouteId, StatusSet};
use crate::status::Problem;
use crate::time::Mono;

use super::support::{
    Body, GET, OK, POST, REFUSED, SECOND, START, Script, TIMED_OUT, Upstream, at, begin, called,
    copy_read_at, direct, drive, engine_of, failed, get, head, in_flight, omitted, public, route, says,
    status_of, words,
};

/// One line of the policy's smallest statement.
fn line(engine: &Arc<Engine>, script: &Script) -> String {
    let decision = get(engine, script, START);
    let (outcome, source, reason) = words(&decision);
    match (outcome, decision.account.age) {
        ("normal" | "fallback", age) => {
            format!("source={source} ageSeconds={}", age.unwrap_or_default().as_secs())
        }
        ("failed", _) => format!("propagated={reason}"),
        _ => format!("{outcome}={reason}"),
    }
}

/// Two places, sixty seconds: a live answer, a copy at 30 s and at the limit, three copies that may not be served, none
/// at all, an error that nobody classified, both places taken, and free again.
#[test]
fn the_nine_lines() {
    let engine = engine_of(Route { in_flight: 2, ..route(public()) });
    let down = Script::new(Upstream::Fails(REFUSED));
    let aged = |ns: u64| down.with_copy(copy_read_at(START - ns));
    let mut lines = vec![
        line(&engine, &Script::new(OK)),
        line(&engine, &aged(30 * SECOND)),
        line(&engine, &aged(60 * SECOND)),
        line(&engine, &aged(60 * SECOND + 1)),
        line(&engine, &down.with_copy(copy_read_at(START + SECOND))),
        line(&engine, &down),
        line(&engine, &Script::new(Upstream::Errs)),
    ];
    let outer = [called(&engine, GET, START), called(&engine, GET, START)];
    lines.push(line(&engine, &aged(30 * SECOND)));
    drop(outer);
    lines.push(line(&engine, &Script::new(OK)));
    assert_eq!(
        lines,
        [
            "source=primary ageSeconds=0",
            "source=snapshot ageSeconds=30",
            "source=snapshot ageSeconds=60",
            "rejected=age",
            "rejected=age",
            "rejected=missing",
            "propagated=unclassified",
            "rejected=capacity",
            "source=primary ageSeconds=0",
        ]
    );
}

/// A refusal is not unavailability: status and body pass unchanged, and a copy that exists is neither served nor
/// replaced. Gone and refused-to-all withdraw it.
#[test]
fn answers_about_the_request_never_lead_to_a_copy() {
    let copies = [
        (400, CopyAction::Keep),
        (401, CopyAction::Withdraw),
        (403, CopyAction::Withdraw),
        (404, CopyAction::Withdraw),
        (407, CopyAction::Keep),
        (408, CopyAction::Keep),
        (409, CopyAction::Keep),
        (410, CopyAction::Withdraw),
        (412, CopyAction::Keep),
        (416, CopyAction::Keep),
        (422, CopyAction::Keep),
        (451, CopyAction::Keep),
    ];
    let declared = StatusSet::of(&copies.map(|(status, _)| status));
    let engine = engine_of(Route { declared, ..route(public()) });
    for (status, copy) in copies {
        let decision = get(&engine, &Script::new(says(status)).with_copy(copy_read_at(START)), START);
        assert_eq!(words(&decision), ("normal", "primary", "none"), "{status}");
        assert!(matches!(decision.reply, Reply::Streamed(_)), "{status}");
        assert_eq!(decision.copy, copy, "{status}");
    }
}

/// A refusal that may concern one caller alone says nothing about the copy.
#[test]
fn a_refusal_of_one_caller_keeps_the_copy() {
    let engine = engine_of(route(public()));
    for status in [401, 403] {
        let mut flow = begin(&engine, RequestFacts { credential: true, ..GET }, START);
        let decision = drive(&mut flow, &Script::new(says(status)), at(START));
        assert_eq!(decision.copy, CopyAction::Keep, "{status}");
    }
}

/// RFC 9110 sections 15.6.3 and 15.6.5: 504 only where an answer did not come in time.
#[test]
fn without_an_alternative_time_outs_are_504_and_other_faults_502() {
    let engine = engine_of(route(direct()));
    for (kind, status) in [
        (FailureKind::ConnectTimeout, 504),
        (FailureKind::ReadTimeout, 504),
        (FailureKind::Dns, 502),
        (FailureKind::Connect, 502),
        (FailureKind::Tls, 502),
        (FailureKind::Write, 502),
        (FailureKind::Reset, 502),
        (FailureKind::Incomplete, 502),
        (FailureKind::Protocol, 502),
    ] {
        let decision = get(&engine, &Script::new(Upstream::Fails(failed(kind))), START);
        assert_eq!(status_of(&decision.reply, 0), status, "{kind:?}");
        assert_eq!(decision.account.outcome.token(), "failed", "{kind:?}");
    }
}

/// Whatever went wrong before: no usable copy is a refusal, 503.
#[test]
fn a_missing_copy_is_503_rejected() {
    let engine = engine_of(route(public()));
    for failure in [TIMED_OUT, REFUSED, failed(FailureKind::Unavailable { status: 504 })] {
        let decision = get(&engine, &Script::new(Upstream::Fails(failure)), START);
        assert_eq!(words(&decision), ("rejected", "none", "missing"));
        let Reply::Refusal(refusal) = decision.reply else { panic!("{:?}", decision.reply) };
        assert_eq!((refusal.status, refusal.problem), (503, Problem::SnapshotMissing));
    }
}

/// A 500 that the route does not declare is the dependency's own answer: passed through, and not a success.
#[test]
fn a_500_that_passes_through_is_failed() {
    for class in [public(), direct(), omitted()] {
        let engine = engine_of(route(class));
        let decision = get(&engine, &Script::new(says(500)).with_copy(copy_read_at(START)), START);
        assert_eq!(words(&decision), ("failed", "primary", "server_error"));
        assert!(matches!(decision.reply, Reply::Streamed(_)));
    }
}

/// The same 500, declared a failure, leads to the copy.
#[test]
fn a_declared_500_leads_to_the_copy() {
    let engine = engine_of(Route { declared: StatusSet::of(&[500]), ..route(public()) });
    let decision = get(&engine, &Script::new(says(500)).with_copy(copy_read_at(START - SECOND)), START);
    assert_eq!(words(&decision), ("fallback", "snapshot", "declared"));
}

/// Half an answer is the copy or an error, never a short 200.
#[test]
fn an_answer_that_is_not_whole_becomes_the_copy() {
    let engine = engine_of(route(public()));
    let ended = Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe);
    for body in [Body::Breaks(ended), Body::Is(BodyFacts::Broken)] {
        let script = Script::new(Upstream::Answers(head(200), body)).with_copy(copy_read_at(START - SECOND));
        let decision = get(&engine, &script, START);
        assert_eq!(words(&decision), ("fallback", "snapshot", "incomplete"));
        assert_eq!(decision.copy, CopyAction::Keep);
    }
}

/// Another gateway's stand-in is neither a normal answer nor a correct read, and its 304 confirms nothing.
#[test]
fn a_degraded_answer_is_served_but_never_kept() {
    let engine = engine_of(route(public()));
    let age = Duration::from_secs(5);
    for (status, has_body) in [(200, true), (304, false)] {
        let head = HeadFacts { status, has_body, degraded: Some(age), ..HeadFacts::default() };
        let whole = BodyFacts::Whole { correct: true, storable: true };
        let decision = get(&engine, &Script::new(Upstream::Answers(head, Body::Is(whole))), START);
        assert_eq!(words(&decision), ("fallback", "alternative", "upstream_degraded"));
        assert_eq!(decision.account.age, Some(age));
        assert_eq!(decision.copy, CopyAction::Keep, "{status}");
    }
}

/// Only a whole, correct, storable 200 to a GET becomes the copy.
#[test]
fn only_correct_reads_are_stored() {
    let engine = engine_of(route(public()));
    let action = |facts, status, correct, storable| {
        let whole = Body::Is(BodyFacts::Whole { correct, storable });
        let head = HeadFacts { has_body: facts != HEAD, ..head(status) };
        let script = Script::new(Upstream::Answers(head, whole));
        drive(&mut begin(&engine, facts, START), &script, at(START)).copy
    };
    const HEAD: RequestFacts = RequestFacts { method: Method::Head, ..GET };
    assert_eq!(action(GET, 200, true, true), CopyAction::Store);
    assert_eq!(action(GET, 200, true, false), CopyAction::Keep);
    assert_eq!(action(GET, 200, false, true), CopyAction::Keep);
    assert_eq!(action(GET, 206, true, true), CopyAction::Keep);
    assert_eq!(action(HEAD, 200, true, true), CopyAction::Keep);
    for copies in [CopyUse::ServeOnly, CopyUse::Never] {
        assert_eq!(action(RequestFacts { copies, ..GET }, 200, true, true), CopyAction::Keep);
    }
}

/// RFC 9111 section 4.4: a write that succeeded, or whose end is unknown, withdraws; one that was refused or never
/// arrived does not.
#[test]
fn a_write_withdraws_unless_it_certainly_changed_nothing() {
    let engine = engine_of(route(public()));
    let action = |upstream| drive(&mut begin(&engine, POST, START), &Script::new(upstream), at(START)).copy;
    for status in [200, 201, 204, 303] {
        assert_eq!(action(says(status)), CopyAction::Withdraw, "{status}");
    }
    for status in [202, 500, 502, 503, 504] {
        assert_eq!(action(says(status)), CopyAction::WithdrawUnsettled, "{status}");
    }
    for status in [400, 401, 404, 409, 422] {
        assert_eq!(action(says(status)), CopyAction::Keep, "{status}");
    }
    assert_eq!(action(Upstream::Fails(TIMED_OUT)), CopyAction::WithdrawUnsettled);
    assert_eq!(action(Upstream::Fails(REFUSED)), CopyAction::Keep);
    assert_eq!(action(Upstream::Errs), CopyAction::WithdrawUnsettled);
}

/// Serving never renews the date: a minute of answers from one copy, then it is too old.
#[test]
fn serving_a_copy_does_not_make_it_younger() {
    let engine = engine_of(route(public()));
    let down = Script::new(Upstream::Fails(REFUSED)).with_copy(copy_read_at(START));
    for seconds in 0..=60 {
        let decision = get(&engine, &down, START + seconds * SECOND);
        assert_eq!(decision.account.age, Some(Duration::from_secs(seconds)));
        assert_eq!(decision.copy, CopyAction::Keep);
        decision.settlement.complete();
    }
    assert_eq!(words(&get(&engine, &down, START + 60 * SECOND + 1)), ("rejected", "none", "age"));
    let (ages, sum_ms) = engine.route(RouteId(0)).tally.ages();
    assert_eq!((ages.iter().sum::<u64>(), sum_ms), (61, 1000 * (60 * 61 / 2)));
}

/// At every read, needed or not: two usable copies in three reads. A write is no read, nor is OPTIONS.
#[test]
fn coverage_counts_every_read_whether_or_not_it_needed_its_copy() {
    let engine = engine_of(route(public()));
    let fresh = copy_read_at(START);
    get(&engine, &Script::new(OK).with_copy(fresh), START);
    get(&engine, &Script::new(Upstream::Fails(REFUSED)).with_copy(fresh), START);
    get(&engine, &Script::new(OK), START);
    for method in [Method::Unsafe, Method::OtherSafe] {
        drive(&mut begin(&engine, RequestFacts { method, ..GET }, START), &Script::new(OK), at(START));
    }
    let count = engine.route(RouteId(0)).coverage.count(Mono::from_ns(START));
    assert_eq!((count.usable, count.total), (2, 3));
    let own = RequestFacts { copies: CopyUse::Never, ..GET };
    drive(&mut begin(&engine, own, START), &Script::new(OK), at(START));
    let count = engine.route(RouteId(0)).coverage.count(Mono::from_ns(START));
    assert_eq!((count.usable, count.total), (2, 4), "a read that no copy may answer counts as not covered");
}

/// A service that stops refuses what is new and finishes what it has.
#[test]
fn draining_refuses_new_requests_and_finishes_old_ones() {
    let engine = engine_of(route(public()));
    let (mut flow, call) = called(&engine, GET, START);
    engine.drain();
    let refused = get(&engine, &Script::new(OK).with_copy(copy_read_at(START)), START);
    assert_eq!(words(&refused), ("rejected", "none", "draining"));
    assert_eq!(status_of(&refused.reply, 0), 503);
    flow.on(Event::Head { attempt: call.id, head: head(404) }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(words(&decision), ("normal", "primary", "none"));
    drop((refused, decision, call));
    assert_eq!(in_flight(&engine), [0; 4]);
}
