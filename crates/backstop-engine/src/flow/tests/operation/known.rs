//! What the ledger knows already: told to whoever comes with the same key, and to whoever looks.

use super::*;

/// The same operation again, in every state: one request is counted, and the place comes back.
#[test]
fn who_comes_with_the_same_key_hears_what_is_known() {
    let wait = Some(Duration::from_secs(3));
    let cases = [
        (Telling::InProgress, (409, Some(Problem::OperationInProgress), None), "rejected"),
        (Telling::Unknown(Doubt::Timeout), (409, Some(Problem::OutcomeUnknown), Some(3)), "rejected"),
        (Telling::Answered(201), (201, None, None), "normal"),
        (Telling::Answered(402), (402, None, None), "normal"),
        (Telling::Executed(EvidenceKind::Status), (200, None, None), "normal"),
        (Telling::Declined(EvidenceKind::Status), (409, Some(Problem::Declined), None), "normal"),
        (Telling::NotExecuted(NotExecuted::Dns), (409, Some(Problem::NotExecuted), None), "rejected"),
        (Telling::NotExecuted(NotExecuted::Absent), (409, Some(Problem::NotExecuted), None), "rejected"),
        (
            Telling::NeedsAttention(Attention::Deadline),
            (409, Some(Problem::NeedsAttention), None),
            "rejected",
        ),
        (Telling::OtherRequest, (422, Some(Problem::KeyReused), None), "rejected"),
    ];
    for (telling, expected, outcome) in cases {
        let engine = engine_of(operations());
        let later = RequestFacts { accepts_later: true, ..POST };
        let (mut flow, call) = forwarded(&engine, later);
        flow.on(Event::Again { attempt: ANSWER, known: Known { telling, next_query: wait } }, at(START));
        let decision = decides(flow);
        assert_eq!(told(&decision), expected, "{telling:?}");
        assert_eq!((words(&decision).0, words(&decision).1), (outcome, "ledger"));
        assert_eq!(decision.copy, CopyAction::Keep);
        decision.settlement.complete();
        drop(call);
        assert_eq!(in_flight(&engine), [0; 4]);
        assert_eq!(counted(&engine).len(), 1);
    }
}

#[test]
fn a_key_that_was_used_before_says_nothing_of_the_dependency() {
    let (engine, rules) = with_breaker();
    let failures = rules.min_calls;
    for _ in 0..failures {
        let (mut flow, _call) = forwarded(&engine, POST);
        flow.on(Event::Again { attempt: ANSWER, known: unknown() }, at(START));
        drop(decides(flow));
    }
    let health = &engine.dependency(DependencyId(0)).health;
    assert_eq!(health.phase(at(START).mono), Phase::Closed);
    assert_eq!(health.counts(at(START).mono), WindowCount::default(), "none of them was a call");
}

fn answered(status: u16) -> Known {
    Known { telling: Telling::Answered(status), next_query: None }
}

fn unknown() -> Known {
    Known { telling: Telling::Unknown(Doubt::Reset), next_query: None }
}

fn with_breaker() -> (Arc<Engine>, BreakerRules) {
    let rules = BreakerRules::default();
    let service = Dependency { breaker: Some(rules), ..dependency(4, 0) };
    let policy =
        Policy { in_flight: 8, dependencies: vec![service], routes: vec![operations()], ..Policy::default() };
    (Engine::new(policy).unwrap(), rules)
}

/// While the dependency cannot be asked, what is known is still told, and what is not known is refused without a trace.
#[test]
fn an_open_breaker_leaves_the_ledger_to_answer() {
    for (known, expected) in [
        (Consulted::Known(answered(201)), (201, None, None)),
        (Consulted::Known(unknown()), (409, Some(Problem::OutcomeUnknown), None)),
        (Consulted::Nothing, (503, Some(Problem::CircuitOpen), None)),
        (Consulted::Unreadable, (503, Some(Problem::CircuitOpen), None)),
    ] {
        let (engine, _) = with_breaker();
        engine.dependency(DependencyId(0)).health.force_open(at(START).mono);
        let mut flow = begin(&engine, POST, START);
        let Step::Consult { until } = flow.step(at(START)) else { panic!("it is not asked") };
        assert!(until < flow.deadline().end());
        flow.on(Event::Consulted(known), at(START));
        assert_eq!(told(&decides(flow)), expected);
    }
    let (engine, _) = with_breaker();
    engine.dependency(DependencyId(0)).health.force_open(at(START).mono);
    let mut flow = begin(&engine, POST, START);
    assert!(matches!(flow.step(at(START)), Step::Consult { .. }));
    flow.on(Event::TimeUp(None), at(START));
    assert_eq!(told(&decides(flow)).0, 503, "a ledger that does not answer has nothing to say");
}

#[test]
fn a_look_asks_nobody_but_the_authorizer_and_the_ledger() {
    let authorizer =
        AuthorizerRules { dependency: None, timeout: Duration::from_millis(100), origin: Origin::NONE };
    let engine = engine_of(Route { authorizer: Some(authorizer), ..operations() });
    for (event, expected) in [
        (Event::Consulted(Consulted::Known(unknown())), (200, None, None)),
        (Event::Consulted(Consulted::Known(answered(402))), (200, None, None)),
        (Event::Consulted(Consulted::Nothing), (404, Some(Problem::NoSuchOperation), None)),
        // Who heard that there is none would begin anew.
        (Event::Consulted(Consulted::Unreadable), (503, Some(Problem::LedgerUnreadable), None)),
        (Event::TimeUp(None), (503, Some(Problem::LedgerUnreadable), None)),
    ] {
        let mut flow = begin(&engine, LOOK, START);
        assert!(matches!(flow.step(at(START)), Step::Authorize { .. }));
        flow.on(Event::Authorized(crate::flow::Authorization::Allowed), at(START));
        assert!(matches!(flow.step(at(START)), Step::Consult { .. }));
        flow.on(event, at(START));
        assert_eq!(told(&decides(flow)), expected);
    }
    // Who may not learns nothing, and the ledger is not asked.
    let mut flow = begin(&engine, LOOK, START);
    flow.step(at(START));
    flow.on(Event::Authorized(crate::flow::Authorization::Denied), at(START));
    assert_eq!(decides(flow).reply, Reply::Denied);
    assert_eq!(engine.dependency(DependencyId(0)).in_flight.in_flight(), 0);
}
