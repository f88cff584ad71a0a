//! Operations: what is written down when, what its client hears, and what the dependency's breaker learns.
//!
//! The values are the table of [`crate::status::operation`] and the rules of `flow/operation.rs`, each by hand.

mod known;

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, NotAsked, Phase as Failing, Sent};
use crate::flow::{
    AttemptId, BodyFacts, Came, Consulted, CopyAction, Decision, Event, Flow, HeadFacts, Known, Recorded,
    Reply, RequestFacts, Step, Telling,
};
use crate::health::{BreakerRules, Phase, WindowCount};
use crate::operation::{Attention, Doubt, EvidenceKind, NotExecuted};
use crate::policy::effect::{
    AnswerRule, EffectRules, Fingerprint, KeyForm, KeySource, OutcomeRules, RetentionRules, Scope, SendRules,
    StoredBody, UnknownAnswer,
};
use crate::policy::{
    AuthorizerRules, Dependency, DependencyId, Origin, Policy, Route, RouteClass, StatusSet,
};
use crate::status::Problem;

use super::support::{
    GOOD, MS, POST, SECOND, START, at, begin, counted, dependency, engine_of, head, in_flight, route, words,
};

const LOOK: RequestFacts = RequestFacts { looks: true, ..RequestFacts::GET };
const ANSWER: AttemptId = AttemptId(1);

fn effect(unknown_answer: UnknownAnswer) -> RouteClass {
    RouteClass::Effect(Box::new(EffectRules {
        key: KeySource::Header("idempotency-key".into()),
        send: SendRules { header: "idempotency-key".into(), form: KeyForm::Client },
        scope: Scope::Route,
        outcome: OutcomeRules::default(),
        verification: None,
        unknown_answer,
        fingerprint: Fingerprint::Whole,
        stored_body: StoredBody::Nothing,
        body_bytes: 1024,
        retention: RetentionRules { body: Duration::from_secs(1), tombstone: Duration::from_secs(2) },
        origin: Origin::NONE,
    }))
}

/// Of a service that says by 503 that it did not take the payment.
fn operations_refused_by_503() -> Route {
    let mut route = operations();
    let RouteClass::Effect(rules) = &mut route.class else { panic!("an effect route") };
    let rule = AnswerRule { status: StatusSet::of(&[503]), json: Vec::new(), origin: Origin::NONE };
    rules.outcome.refused.push(rule);
    route
}

fn operations() -> Route {
    Route { declared: StatusSet::of(&[429]), ..route(effect(UnknownAnswer::Auto)) }
}

/// A flow whose operation was just handed over to be written down and forwarded.
fn forwarded(engine: &Arc<Engine>, facts: RequestFacts) -> (Flow, crate::flow::Attempt) {
    let mut flow = begin(engine, facts, START);
    match flow.step(at(START)) {
        Step::Attempt(attempt) => (flow, attempt),
        step => panic!("{step:?}"),
    }
}

#[track_caller]
fn records(flow: &mut Flow) -> Came {
    match flow.step(at(START)) {
        Step::Record { came, .. } => came,
        step => panic!("{step:?}"),
    }
}

#[track_caller]
fn decides(mut flow: Flow) -> Decision {
    match flow.step(at(START)) {
        Step::Done(decision) => decision,
        step => panic!("{step:?}"),
    }
}

fn durable(telling: Telling) -> Event {
    Event::Recorded(Recorded::Durable(Known { telling, next_query: None }))
}

fn followed(telling: Telling, next_query: Duration) -> Event {
    Event::Recorded(Recorded::Durable(Known { telling, next_query: Some(next_query) }))
}

/// Status, problem and `Retry-After`.
#[track_caller]
fn told(decision: &Decision) -> (u16, Option<Problem>, Option<u32>) {
    match decision.reply {
        Reply::Operation(reply) => {
            (reply.status, reply.refusal.map(|refusal| refusal.problem), reply.retry_after_s)
        }
        Reply::Refusal(refusal) => (refusal.status, Some(refusal.problem), refusal.retry_after_s),
        reply => panic!("{reply:?}"),
    }
}

/// Nothing is answered before it is written down, and then it is the dependency's own answer.
#[test]
fn an_answer_is_passed_on_once_what_it_proves_is_durable() {
    for (status, outcome) in [(201, "normal"), (402, "normal"), (429, "failed")] {
        let engine = engine_of(operations());
        let (mut flow, call) = forwarded(&engine, POST);
        assert!(call.is_once && call.number == 1);
        flow.on(Event::Head { attempt: ANSWER, head: head(status) }, at(START));
        assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
        flow.on(Event::Body { attempt: ANSWER, body: GOOD }, at(START));
        assert_eq!(records(&mut flow), Came::Answered(ANSWER));
        flow.on(durable(Telling::Answered(status)), at(START));
        let decision = decides(flow);
        assert_eq!(decision.reply, Reply::Collected(ANSWER), "{status}");
        assert_eq!(words(&decision).0, outcome);
        let changed = if status < 400 { CopyAction::Withdraw } else { CopyAction::Keep };
        assert_eq!(decision.copy, changed);
        decision.settlement.complete();
        drop(call);
        assert_eq!(in_flight(&engine), [0; 4]);
    }
}

/// Every failure that may have reached the dependency, and what is written down of it.
#[test]
fn whatever_is_no_whole_answer_is_unknown_or_was_never_sent() {
    let lost = |kind, sent| Failure::new(kind, Failing::Head, sent);
    let cases = [
        (lost(FailureKind::ReadTimeout, Sent::Maybe), Came::Unknown(Doubt::Timeout), 504),
        (lost(FailureKind::Reset, Sent::Maybe), Came::Unknown(Doubt::Reset), 502),
        (lost(FailureKind::Write, Sent::Maybe), Came::Unknown(Doubt::Reset), 502),
        (lost(FailureKind::Incomplete, Sent::Maybe), Came::Unknown(Doubt::Incomplete), 502),
        (lost(FailureKind::Protocol, Sent::Maybe), Came::Unknown(Doubt::Incomplete), 502),
        // What the kind promises does not count where bytes may have gone out all the same.
        (lost(FailureKind::Connect, Sent::Maybe), Came::Unknown(Doubt::Reset), 502),
        (lost(FailureKind::Connect, Sent::No), Came::NeverSent(NotExecuted::Connect), 503),
        (lost(FailureKind::ConnectTimeout, Sent::No), Came::NeverSent(NotExecuted::ConnectTimeout), 503),
        (lost(FailureKind::Dns, Sent::No), Came::NeverSent(NotExecuted::Dns), 503),
        (lost(FailureKind::Tls, Sent::No), Came::NeverSent(NotExecuted::Tls), 503),
        (lost(FailureKind::Reset, Sent::No), Came::NeverSent(NotExecuted::Connect), 503),
    ];
    for (failure, came, status) in cases {
        let engine = engine_of(operations());
        let (mut flow, call) = forwarded(&engine, POST);
        flow.on(Event::Failed { attempt: ANSWER, failure }, at(START));
        assert_eq!(records(&mut flow), came, "{failure:?}");
        let (telling, problem, copy) = match came {
            Came::Unknown(doubt) => {
                (Telling::Unknown(doubt), Problem::OutcomeUnknown, CopyAction::WithdrawUnsettled)
            }
            Came::NeverSent(why) => (Telling::NotExecuted(why), Problem::NotExecuted, CopyAction::Keep),
            Came::Answered(_) => panic!("{came:?}"),
        };
        flow.on(durable(telling), at(START));
        let decision = decides(flow);
        assert_eq!(told(&decision), (status, Some(problem), None), "{failure:?}");
        assert_eq!(decision.copy, copy, "{failure:?}");
        assert_eq!(words(&decision).1, "none");
        drop((decision, call));
        assert_eq!(in_flight(&engine), [0; 4]);
    }
}

/// RFC 9110 section 15.6: a server error says nothing about the effect, whatever its content.
#[test]
fn a_server_error_is_unknown_and_its_content_is_not_passed_on() {
    for status in [502, 503, 504] {
        let engine = engine_of(operations());
        let (mut flow, _call) = forwarded(&engine, POST);
        flow.on(Event::Head { attempt: ANSWER, head: head(status) }, at(START));
        assert_eq!(records(&mut flow), Came::Unknown(Doubt::ServerError));
        flow.on(durable(Telling::Unknown(Doubt::ServerError)), at(START));
        let answered = told(&decides(flow)).0;
        assert_eq!(answered, if status == 504 { 504 } else { 502 });
    }
    // One that is not in the closed list is no failure of the dependency's, and proves as little.
    let engine = engine_of(operations());
    let (mut flow, _call) = forwarded(&engine, POST);
    flow.on(Event::Head { attempt: ANSWER, head: head(500) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Body { attempt: ANSWER, body: GOOD }, at(START));
    assert_eq!(records(&mut flow), Came::Answered(ANSWER));
    flow.on(durable(Telling::Unknown(Doubt::ServerError)), at(START));
    assert_eq!(told(&decides(flow)), (502, Some(Problem::OutcomeUnknown), None));
}

#[test]
fn an_answer_that_breaks_off_or_is_too_large_is_unknown() {
    let engine = engine_of(operations());
    let (mut flow, _call) = forwarded(&engine, POST);
    flow.on(Event::Head { attempt: ANSWER, head: head(201) }, at(START));
    flow.on(Event::Body { attempt: ANSWER, body: BodyFacts::Broken }, at(START));
    // An event that no step asked for yet changes nothing.
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Body { attempt: ANSWER, body: BodyFacts::Broken }, at(START));
    assert_eq!(records(&mut flow), Came::Unknown(Doubt::Incomplete));

    let engine = engine_of(operations());
    let (mut flow, call) = forwarded(&engine, POST);
    flow.on(Event::Head { attempt: ANSWER, head: head(201) }, at(START));
    assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
    flow.on(Event::Body { attempt: ANSWER, body: BodyFacts::TooLarge }, at(START));
    assert_eq!(records(&mut flow), Came::Unknown(Doubt::Unmatched));
    flow.on(durable(Telling::Unknown(Doubt::Unmatched)), at(START));
    let decision = decides(flow);
    assert_eq!(told(&decision), (502, Some(Problem::OutcomeUnknown), None));
    drop((decision, call));
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// It is marked as what somebody else answers instead of the service, so it proves nothing of the payment.
#[test]
fn another_gateways_alternative_proves_nothing() {
    for has_body in [true, false] {
        let engine = engine_of(operations());
        let (mut flow, _call) = forwarded(&engine, POST);
        let head = HeadFacts { degraded: Some(Duration::ZERO), has_body, ..head(201) };
        flow.on(Event::Head { attempt: ANSWER, head }, at(START));
        if has_body {
            assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
            flow.on(Event::Body { attempt: ANSWER, body: GOOD }, at(START));
        }
        assert_eq!(records(&mut flow), Came::Unknown(Doubt::Unmatched));
        flow.on(durable(Telling::Unknown(Doubt::Unmatched)), at(START));
        assert_eq!(told(&decides(flow)), (502, Some(Problem::OutcomeUnknown), None));
    }
}

/// A 5xx that the contract may call a refusal is read like any other answer, and is a failure of the dependency all the same. What
/// is not whole, or not what the contract names, leaves it unknown.
#[test]
fn a_server_error_that_is_declared_a_refusal_is_one() {
    let to_body = || {
        let engine = engine_of(operations_refused_by_503());
        let (mut flow, _call) = forwarded(&engine, POST);
        flow.on(Event::Head { attempt: ANSWER, head: head(503) }, at(START));
        assert!(matches!(flow.step(at(START)), Step::Collect { .. }));
        flow
    };
    let mut flow = to_body();
    flow.on(Event::Body { attempt: ANSWER, body: GOOD }, at(START));
    assert_eq!(records(&mut flow), Came::Answered(ANSWER));
    flow.on(durable(Telling::Answered(503)), at(START));
    let decision = decides(flow);
    assert_eq!(decision.reply, Reply::Collected(ANSWER));
    assert_eq!(words(&decision), ("failed", "primary", "unavailable"));

    let mut flow = to_body();
    flow.on(Event::Body { attempt: ANSWER, body: GOOD }, at(START));
    records(&mut flow);
    flow.on(durable(Telling::Unknown(Doubt::ServerError)), at(START));
    assert_eq!(told(&decides(flow)), (502, Some(Problem::OutcomeUnknown), None), "another 503 than declared");

    for body in [BodyFacts::Broken, BodyFacts::TooLarge] {
        let mut flow = to_body();
        flow.on(Event::Body { attempt: ANSWER, body }, at(START));
        assert_eq!(records(&mut flow), Came::Unknown(Doubt::ServerError));
    }
}

/// 202 only where it is declared or asked for, and only while the operation is followed; `Retry-After` rounded up.
#[test]
fn an_unknown_outcome_is_accepted_only_where_that_is_understood_and_true() {
    let wait = Duration::from_millis(1200);
    let later = RequestFacts { accepts_later: true, ..POST };
    let unknown = Telling::Unknown(Doubt::Timeout);
    for (declares, facts, event, expected) in [
        (UnknownAnswer::Auto, POST, followed(unknown, wait), (504, Some(Problem::OutcomeUnknown), Some(2))),
        (UnknownAnswer::Auto, POST, durable(unknown), (504, Some(Problem::OutcomeUnknown), None)),
        (UnknownAnswer::Auto, later, followed(unknown, wait), (202, None, Some(2))),
        (UnknownAnswer::Auto, later, durable(unknown), (504, Some(Problem::OutcomeUnknown), None)),
        (UnknownAnswer::Accepted, POST, followed(unknown, Duration::ZERO), (202, None, Some(1))),
        (UnknownAnswer::Accepted, POST, durable(unknown), (504, Some(Problem::OutcomeUnknown), None)),
        // Not durable, it is not followed.
        (
            UnknownAnswer::Accepted,
            later,
            Event::Recorded(Recorded::NotDurable(unknown)),
            (504, Some(Problem::OutcomeUnknown), None),
        ),
    ] {
        let engine = engine_of(route(effect(declares)));
        let (mut flow, _call) = forwarded(&engine, facts);
        let failure = Failure::new(FailureKind::ReadTimeout, Failing::Head, Sent::Maybe);
        flow.on(Event::Failed { attempt: ANSWER, failure }, at(START));
        records(&mut flow);
        flow.on(event, at(START));
        let decision = decides(flow);
        assert_eq!(told(&decision), expected, "{declares:?} {event:?}");
        let expected = if expected.0 == 202 { ("fallback", "ledger") } else { ("failed", "none") };
        assert_eq!((words(&decision).0, words(&decision).1), expected);
    }
}

#[test]
fn an_operation_that_cannot_be_written_down_is_refused_at_once() {
    let engine = engine_of(operations());
    let (mut flow, call) = forwarded(&engine, POST);
    flow.on(Event::NotAsked { attempt: ANSWER, reason: NotAsked::Ledger }, at(START));
    let decision = decides(flow);
    assert_eq!(told(&decision), (503, Some(Problem::Ledger), None));
    assert_eq!(words(&decision), ("rejected", "none", "ledger"));
    assert_eq!(decision.copy, CopyAction::Keep);
    drop((decision, call));
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// Written down and then not sent: too late, or no connection in time.
#[test]
fn what_was_not_begun_after_all_is_recorded_as_never_sent() {
    for (reason, why) in
        [(NotAsked::TooLate, NotExecuted::TooLate), (NotAsked::PoolTimeout, NotExecuted::Pool)]
    {
        let engine = engine_of(operations());
        let (mut flow, _call) = forwarded(&engine, POST);
        flow.on(Event::NotAsked { attempt: ANSWER, reason }, at(START));
        assert_eq!(records(&mut flow), Came::NeverSent(why));
        flow.on(durable(Telling::NotExecuted(why)), at(START));
        assert_eq!(told(&decides(flow)), (503, Some(Problem::NotExecuted), None));
        // Where it was not even written down, that is why.
        let (mut flow, _call) = forwarded(&engine, POST);
        flow.on(Event::NotAsked { attempt: ANSWER, reason }, at(START));
        records(&mut flow);
        flow.on(Event::Recorded(Recorded::Nothing), at(START));
        let decision = decides(flow);
        assert_eq!(told(&decision), (503, Some(Problem::Ledger), None));
        assert_eq!(words(&decision), ("rejected", "none", "ledger"));
    }
}

/// What was decided in the meantime counts, whoever reports.
#[test]
fn who_was_overtaken_tells_what_the_ledger_says() {
    let engine = engine_of(operations());
    let (mut flow, _call) = forwarded(&engine, POST);
    let failure = Failure::new(FailureKind::Reset, Failing::Head, Sent::Maybe);
    flow.on(Event::Failed { attempt: ANSWER, failure }, at(START));
    records(&mut flow);
    flow.on(durable(Telling::Executed(EvidenceKind::Status)), at(START));
    let decision = decides(flow);
    assert_eq!(told(&decision), (200, None, None));
    assert_eq!(decision.copy, CopyAction::WithdrawUnsettled);
}

/// An answer that could not be made durable in time is still the true one.
#[test]
fn an_answer_is_not_withheld_because_the_disk_is_slow() {
    let engine = engine_of(operations());
    let (mut flow, _call) = forwarded(&engine, POST);
    flow.on(Event::Head { attempt: ANSWER, head: head(204) }, at(START));
    assert_eq!(records(&mut flow), Came::Answered(ANSWER));
    flow.on(Event::Recorded(Recorded::NotDurable(Telling::Answered(204))), at(START));
    assert_eq!(decides(flow).reply, Reply::Streamed(ANSWER), "its head is all of it");
}

/// The record is made within the deadline, after the attempt's part of it.
#[test]
fn the_record_has_time_that_the_forward_has_not() {
    let engine = engine_of(operations());
    let (mut flow, call) = forwarded(&engine, POST);
    let deadline = flow.deadline();
    assert_eq!(call.until, deadline.attempt_end());
    flow.on(Event::TimeUp(None), at(START + 300 * MS));
    let Step::Record { came, until } = flow.step(at(START + 300 * MS)) else { panic!("not recorded") };
    assert_eq!(came, Came::Unknown(Doubt::Timeout));
    assert!(until == deadline.end() && call.until < until);
}

/// A preflight has no effect: it goes on as on any other route.
#[test]
fn options_is_no_operation() {
    let engine = engine_of(operations());
    let options = RequestFacts { method: crate::flow::Method::OtherSafe, is_open: true, ..RequestFacts::GET };
    let (mut flow, call) = forwarded(&engine, options);
    assert!(!call.is_once);
    flow.on(Event::Head { attempt: ANSWER, head: head(204) }, at(START + SECOND));
    assert_eq!(decides(flow).reply, Reply::Streamed(ANSWER));
}
