use std::time::Duration;

use super::*;
use crate::admission::{Excess, Permit, Turn};
use crate::alternative::{ANY_POLICY, Verified};
use crate::engine::Engine;
use crate::entropy::Entropy;
use crate::failure::{Phase, Sent};
use crate::flow::{Account, BodyFacts, CopyUse, HeadFacts, Method, RequestFacts};
use crate::outcome::{Outcome, Reason};
use crate::policy::{
    AfterRestart, AlternativeRules, Correct, Dependency, DependencyId, Direct, ExerciseRules, FixedAnswer,
    Incorrect, Mode, Optional, Origin, Policy, PublicRead, RouteId, StatusSet,
};
use crate::snapshot::{CopyFacts, ObservedAt, OriginLimit};
use crate::time::{BootId, Mono, Now, Wall, WallTrust};

const SECOND: u64 = 1_000_000_000;
const ALWAYS: ExerciseRules = ExerciseRules { share_per_mille: 1000, calls: true, origin: Origin::NONE };
/// The date of [`at`] is its last moment. 400 per second: 20 at once, so 10 stay.
const VERIFIED: Verified = Verified {
    rate_per_second: 400,
    concurrency: 8,
    valid_from: Wall::from_unix_ns(-5),
    valid_until: Wall::from_unix_ns(0),
    policy: ANY_POLICY,
};

fn at(ns: u64) -> Now {
    Now {
        mono: Mono::from_ns(ns),
        wall: Wall::from_unix_ns(0),
        boot: BootId([1; 16]),
        wall_trust: WallTrust::Synchronised,
    }
}

fn read() -> PublicRead {
    PublicRead {
        max_age: Duration::from_secs(60),
        after_restart: AfterRestart::Verify,
        gone: StatusSet::of(&[404, 410]),
        incorrect: Incorrect::Propagate,
        override_origin: false,
        buffer_bytes: 4096,
        languages: Vec::new(),
        key: Vec::new(),
        correct: Correct::default(),
    }
}

fn route(class: RouteClass, exercise: ExerciseRules) -> Route {
    let dependency = DependencyId(1);
    Route {
        name: "description".into(),
        deadline: Duration::from_millis(1000),
        in_flight: 8,
        exercise,
        alternative: Some(AlternativeRules { dependency, verified: Some(VERIFIED), origin: Origin::NONE }),
        class,
        ..Route::default()
    }
}

/// Eight places everywhere.
fn engine(route: Route) -> Arc<Engine> {
    let dependency = |name: &str| Dependency { name: name.into(), connections: 8, ..Dependency::default() };
    let dependencies = vec![dependency("catalog"), dependency("replica")];
    Engine::new(Policy { in_flight: 8, dependencies, routes: vec![route], ..Policy::default() }).unwrap()
}

fn exercised() -> Arc<Engine> {
    engine(route(RouteClass::PublicRead(read()), ALWAYS))
}

fn account(outcome: Outcome) -> Account {
    Account {
        outcome,
        source: Source::Primary,
        reason: Reason::None,
        cause: None,
        age: None,
        rule: Origin::NONE,
    }
}

fn request() -> Drawn {
    Drawn { route: RouteId(0), facts: RequestFacts::GET, account: account(Outcome::Normal), status: 200 }
}

fn draw(engine: &Arc<Engine>) -> Option<Exercise> {
    Exercise::draw(engine, &request(), at(SECOND), 0)
}

fn count(engine: &Engine, tried: Tried, reason: &str) -> u64 {
    let counts = engine.routes()[0].exercises.counts(tried);
    counts.filter(|count| count.reason == reason).map(|count| count.count).sum()
}

/// Of a million reads one in a hundred is drawn: 10 000 by the mean, and by the binomial distribution a standard deviation of
/// `sqrt(1e6 * 0.01 * 0.99) = 99.5`. Five of those are 498.
#[test]
fn the_share_that_is_drawn_is_the_one_that_is_written() {
    let engine = engine(route(
        RouteClass::PublicRead(read()),
        ExerciseRules { share_per_mille: 10, ..ExerciseRules::default() },
    ));
    let mut entropy = Entropy::new(7);
    let is_drawn = |entropy: u64| Exercise::draw(&engine, &request(), at(SECOND), entropy).is_some();
    let drawn = (0..1_000_000).filter(|_| is_drawn(entropy.bits())).count();
    assert!((9_502..=10_498).contains(&drawn), "{drawn}");
    // The last word that is drawn, by hand: a hundredth of 2^64 is 184 467 440 737 095 516.16.
    assert!(is_drawn(184_467_440_737_095_516) && !is_drawn(184_467_440_737_095_517));
}

#[test]
fn nothing_is_drawn_where_nothing_is_to_be() {
    let never = ExerciseRules { share_per_mille: 0, ..ALWAYS };
    assert!(draw(&engine(route(RouteClass::PublicRead(read()), never))).is_none());
    let classes = [RouteClass::Direct(Direct::default()), RouteClass::Guarded];
    for class in classes {
        let authorizer = Some(crate::policy::AuthorizerRules {
            dependency: Some(DependencyId(1)),
            timeout: Duration::from_millis(10),
            origin: Origin::NONE,
        });
        let engine = engine(Route { authorizer, ..route(class, ALWAYS) });
        assert!(draw(&engine).is_none());
        assert_eq!(Tried::of(&engine.routes()[0].rules).count(), 0);
    }
    let engine = exercised();
    let get = RequestFacts::GET;
    let never = [
        Drawn { facts: RequestFacts { method: Method::Head, ..get }, ..request() },
        Drawn { facts: RequestFacts { method: Method::Unsafe, ..get }, ..request() },
        Drawn { facts: RequestFacts { method: Method::OtherSafe, ..get }, ..request() },
        Drawn { facts: RequestFacts { has_content: true, ..get }, ..request() },
        Drawn { facts: RequestFacts { is_open: true, ..get }, ..request() },
        // Its answer would be its caller's own.
        Drawn { facts: RequestFacts { copies: CopyUse::Never, credential: true, ..get }, ..request() },
        Drawn { status: 404, ..request() },
        Drawn { status: 500, ..request() },
        Drawn { account: account(Outcome::Fallback), ..request() },
        Drawn { account: account(Outcome::Failed), ..request() },
        Drawn { account: account(Outcome::Rejected), ..request() },
    ];
    for request in never {
        assert!(Exercise::draw(&engine, &request, at(SECOND), 0).is_none(), "{request:?}");
    }
    assert_eq!(count(&engine, Tried::Copy, "busy") + count(&engine, Tried::Call, "busy"), 0);
    engine.drain();
    assert!(draw(&engine).is_none());
}

/// What a caller has to show may be another's copy where everybody may share it, and is put to nobody else in any case.
#[test]
fn somebodys_own_question_is_put_to_nobody_else() {
    let engine = exercised();
    let own = Drawn { facts: RequestFacts { credential: true, ..RequestFacts::GET }, ..request() };
    let mut exercise = Exercise::draw(&engine, &own, at(SECOND), 0).unwrap();
    assert_eq!(exercise.own(), Some(Tried::Copy));
    assert!(exercise.call().0.is_none());
}

#[test]
fn without_a_word_of_the_operator_nobody_is_called() {
    let quiet = ExerciseRules { calls: false, ..ALWAYS };
    let mut exercise = draw(&engine(route(RouteClass::PublicRead(read()), quiet))).unwrap();
    assert_eq!((exercise.own(), exercise.call().0.is_none()), (Some(Tried::Copy), true));
    let observing = Route { mode: Mode::Observe, ..route(RouteClass::PublicRead(read()), ALWAYS) };
    let mut exercise = draw(&engine(observing)).unwrap();
    assert!(exercise.call().0.is_none());
}

/// Of eight places four stay free, besides the request's own.
#[test]
fn half_of_every_limit_stays_free() {
    let others = |limit: &Arc<crate::admission::Limit>, count| -> Vec<Permit> {
        (0..count).map(|_| limit.try_acquire(Turn::Newcomer, Excess::Refuse).unwrap()).collect()
    };
    let of_process = |engine: &Engine| Arc::clone(engine.process());
    let of_route = |engine: &Engine| Arc::clone(&engine.routes()[0].in_flight);
    for limit in [of_process, of_route] {
        let engine = exercised();
        let mut held = others(&limit(&engine), 4);
        assert!(draw(&engine).is_some(), "its own place and three others");
        held.extend(others(&limit(&engine), 1));
        assert!(draw(&engine).is_none());
        assert_eq!(count(&engine, Tried::Copy, "busy"), 1);
        assert_eq!(count(&engine, Tried::Call, "busy"), 1, "nor is anybody called");
    }
    // At the other dependency: with the call, four of eight.
    let engine = exercised();
    let replica = &engine.dependency(DependencyId(1)).in_flight;
    let mut held = others(replica, 3);
    let attempt = draw(&engine).unwrap().call().0.unwrap();
    assert_eq!(replica.in_flight(), 4);
    drop(attempt);
    held.extend(others(replica, 1));
    let mut exercise = draw(&engine).unwrap();
    assert!(exercise.call().0.is_none());
    assert_eq!(replica.in_flight(), 4, "not a place more");
    assert_eq!(count(&engine, Tried::Call, "busy"), 1);
    assert_eq!(exercise.own(), Some(Tried::Copy), "the copy takes nothing there");
}

/// Verified for 8 at once and 400 a second, of which 20 may come at once: exercises leave 4 places, and 10 of the rate.
#[test]
fn half_of_what_was_verified_stays_for_who_needs_it() {
    let engine = exercised();
    let mut held = Vec::new();
    while let Some(attempt) = draw(&engine).and_then(|mut exercise| exercise.call().0) {
        held.push(attempt);
    }
    // By its own number of exercises at once no more would be drawn; each was dropped, its call is held.
    assert_eq!(held.len(), 4);
    held.clear();
    let made = (0..100).filter(|_| draw(&engine).unwrap().call().0.is_some()).count();
    assert_eq!(made, 6, "ten of twenty, with the four before");
    let replica = engine.dependency(DependencyId(1));
    let mine = Some(&VERIFIED);
    let taken: Vec<_> = (0..100)
        .map_while(|_| replica.stand_in.try_acquire(mine, [], &ANY_POLICY, &at(SECOND)).ok())
        .collect();
    assert_eq!(taken.len(), 8, "all places");
    drop(taken);
    let taken =
        (0..100).take_while(|_| replica.stand_in.try_acquire(mine, [], &ANY_POLICY, &at(SECOND)).is_ok());
    assert_eq!(taken.count(), 2, "and the rest of the rate");
    // 20 a second are one at a time: whoever took that would keep it from a request.
    let few = Verified { rate_per_second: 20, ..VERIFIED };
    let alternative =
        AlternativeRules { dependency: DependencyId(1), verified: Some(few), origin: Origin::NONE };
    let engine = engine_with(alternative);
    assert!(draw(&engine).unwrap().call().0.is_none());
    assert_eq!(count(&engine, Tried::Call, "busy"), 1);
}

fn engine_with(alternative: AlternativeRules) -> Arc<Engine> {
    engine(Route { alternative: Some(alternative), ..route(RouteClass::PublicRead(read()), ALWAYS) })
}

/// In an outage it would not be asked, and that is known now.
#[test]
fn evidence_that_does_not_count_is_a_broken_alternative() {
    let cases = [
        (None, "unverified"),
        (Some(Verified { valid_until: Wall::from_unix_ns(-1), ..VERIFIED }), "expired"),
        (Some(Verified { valid_from: Wall::from_unix_ns(1), ..VERIFIED }), "early"),
    ];
    for (verified, reason) in cases {
        let engine =
            engine_with(AlternativeRules { dependency: DependencyId(1), verified, origin: Origin::NONE });
        let turned: Vec<_> = (0..4).map(|_| draw(&engine).unwrap().call().1).collect();
        let broken = Some(Turned { tried: Tried::Call, is_broken: true, reason });
        assert_eq!(turned, [None, None, broken, None], "told once");
        assert!(engine.routes()[0].exercises.is_broken(Tried::Call));
        assert_eq!(count(&engine, Tried::Call, reason), 4);
    }
}

#[test]
fn nothing_is_tried_in_an_incident_or_while_a_dependency_comes_back() {
    let engine = exercised();
    engine.set_in_incident(true);
    assert!(draw(&engine).is_none());
    assert_eq!(count(&engine, Tried::Call, "incident"), 1);
    engine.set_in_incident(false);
    engine.dependency(DependencyId(1)).health.force_open(at(SECOND).mono);
    let mut exercise = draw(&engine).unwrap();
    assert_eq!((exercise.own(), exercise.call().0.is_none()), (Some(Tried::Copy), true));
    assert_eq!(count(&engine, Tried::Call, "breaker"), 1);
    engine.dependency(DependencyId(0)).health.force_open(at(SECOND).mono);
    assert!(draw(&engine).is_none());
    assert_eq!(count(&engine, Tried::Copy, "recovering"), 1);
}

/// An exercise that could see its own traces would change what others get.
#[test]
fn a_call_of_an_exercise_leaves_no_trace_but_its_own() {
    let engine = exercised();
    let replica = engine.dependency(DependencyId(1));
    let attempt = draw(&engine).unwrap().call().0.unwrap();
    assert_eq!((attempt.dependency, attempt.number), (DependencyId(1), 1));
    // The deadline of 1000 ms less 10 for the reply and 10 for the copy, and 4 tenths of that: as if 6 were used up.
    assert_eq!(at(SECOND).mono.until(attempt.until), Duration::from_millis(392));
    drop(attempt);
    let tally = &replica.tally;
    assert_eq!(
        (tally.attempts(), tally.answers(), tally.abandoned(), replica.in_flight.in_flight()),
        (0, 0, 0, 0)
    );
    assert_eq!(replica.health.counts(at(SECOND).mono), Default::default());
    assert_eq!(engine.routes()[0].tally.requests(), []);
    assert_eq!(engine.routes()[0].coverage.count(at(SECOND).mono).total, 0);
}

/// As one who stands in would be judged, with the contract in hand.
#[test]
fn an_answer_is_judged_as_in_an_outage() {
    let declared = Route { declared: StatusSet::of(&[500]), ..route(RouteClass::PublicRead(read()), ALWAYS) };
    let engine = engine(declared);
    let exercise = draw(&engine).unwrap();
    let head = |status| HeadFacts { status, has_body: !matches!(status, 204 | 304), ..HeadFacts::default() };
    let old = |seconds| HeadFacts { degraded: Some(Duration::from_secs(seconds)), ..head(200) };
    let heads = [
        (head(200), None),
        (head(203), None),
        (head(204), Some("none")),
        (head(301), Some("other_status")),
        (head(304), Some("other_status")),
        (head(401), Some("other_status")),
        (head(404), Some("other_status")),
        (head(429), Some("other_status")),
        (head(500), Some("declared")),
        (head(501), Some("server_error")),
        (head(502), Some("unavailable")),
        (head(503), Some("unavailable")),
        (old(60), None),
        (old(61), Some("unavailable")),
    ];
    for (head, expected) in heads {
        assert_eq!(exercise.head(head).err().map(Came::token), expected, "{head:?}");
    }
    let bodies = [
        (BodyFacts::Whole { correct: true, storable: false }, "none"),
        (BodyFacts::Whole { correct: false, storable: true }, "incorrect"),
        (BodyFacts::TooLarge, "none"),
        (BodyFacts::Broken, "incomplete"),
    ];
    for (body, expected) in bodies {
        assert_eq!(exercise.body(body).token(), expected, "{body:?}");
    }
}

#[test]
fn a_copy_is_judged_as_in_an_outage() {
    let engine = exercised();
    let now = 100 * SECOND;
    let exercise = Exercise::draw(&engine, &request(), at(now), 0).unwrap();
    let copy = |read_at: u64, origin_limit| CopyFacts {
        observed_at: ObservedAt::new(at(read_at), Duration::ZERO),
        origin_limit,
    };
    let cases = [
        (Some(copy(40 * SECOND, OriginLimit::Unlimited)), "none", Verdict::Good),
        (Some(copy(40 * SECOND - 1, OriginLimit::Unlimited)), "age", Verdict::Uncovered),
        (None, "missing", Verdict::Uncovered),
        (Some(copy(now + 1, OriginLimit::Unlimited)), "future", Verdict::Failed),
        (Some(copy(99 * SECOND, OriginLimit::Never)), "forbidden", Verdict::Failed),
    ];
    for (copy, reason, verdict) in cases {
        let came = exercise.judge_copy(copy.as_ref());
        assert_eq!((came.token(), came.verdict()), (reason, verdict));
    }
}

#[test]
fn a_prepared_answer_is_tried_where_there_is_one() {
    let fixed = || FixedAnswer { status: 200, media_type: "application/json".into(), body: (*b"[]").into() };
    for (otherwise, source) in
        [(Otherwise::Omit(fixed()), Source::Omitted), (Otherwise::Prepared(fixed()), Source::Prepared)]
    {
        let engine = engine(route(RouteClass::Optional(Optional::new(otherwise)), ALWAYS));
        let facts = RequestFacts { copies: CopyUse::Never, ..RequestFacts::GET };
        let mut exercise = Exercise::draw(&engine, &Drawn { facts, ..request() }, at(SECOND), 0).unwrap();
        assert_eq!(exercise.own(), Some(Tried::Fixed));
        assert!(exercise.call().0.is_some(), "no copy plays a part in it: its answer is nobody's own");
        assert_eq!(Tried::Fixed.source(&engine.routes()[0].rules), source);
    }
}

#[test]
fn three_in_a_row_turn_it_and_each_turn_is_told_once() {
    let exercises = Exercises::default();
    let failure = Failure::new(FailureKind::Connect, Phase::Connect, Sent::No);
    let (bad, good, nothing) =
        (Came::Failed(failure), Came::Good, [Came::Copy(CopyRefusal::Missing), Came::Skipped(Skipped::Busy)]);
    let told = |came| exercises.record(Tried::Copy, came).map(|turned| turned.is_broken);
    assert_eq!([bad, bad, good, bad, bad].map(told), [None; 5], "not in a row");
    assert_eq!(nothing.map(told), [None; 2], "what says nothing breaks no row");
    assert_eq!([bad, bad].map(told), [Some(true), None]);
    assert!(exercises.is_broken(Tried::Copy) && !exercises.is_broken(Tried::Call));
    assert_eq!([good, good, bad, good, good].map(told), [None; 5]);
    assert_eq!(nothing.map(told), [None; 2]);
    assert_eq!([good, good].map(told), [Some(false), None]);
    assert!(!exercises.is_broken(Tried::Copy));
    let counted: Vec<_> = exercises
        .counts(Tried::Copy)
        .map(|count| (count.verdict.token(), count.reason, count.count))
        .collect();
    let expected =
        [("good", "none", 7), ("uncovered", "missing", 2), ("failed", "connect", 7), ("skipped", "busy", 2)];
    assert_eq!(counted, expected);
}

/// Every word says one thing, by hand.
#[test]
fn every_word_has_one_result() {
    let verdicts: Vec<_> =
        (0..Came::TOKENS.len()).map(|index| (Came::TOKENS[index], verdict_at(index))).collect();
    let of = |verdict| verdicts.iter().filter(move |(_, known)| *known == verdict).map(|(word, _)| *word);
    assert_eq!(of(Verdict::Good).collect::<Vec<_>>(), ["none"]);
    assert_eq!(of(Verdict::Uncovered).collect::<Vec<_>>(), ["missing", "age"]);
    let skipped = [
        "cause",
        "red",
        "unknown",
        "concurrency",
        "rate",
        "busy",
        "breaker",
        "recovering",
        "incident",
        "under_way",
        "replaced",
    ];
    assert_eq!(of(Verdict::Skipped).collect::<Vec<_>>(), skipped);
    assert_eq!(of(Verdict::Failed).count(), Came::TOKENS.len() - 1 - 2 - skipped.len());
    let mut words = Came::TOKENS.to_vec();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Came::TOKENS.len() - 1, "a copy and evidence are dated by the same clock");
    for (came, word) in [
        (Came::NotAsked(NoAlternative::Rate), "rate"),
        (Came::Wrong(Wrong::Malformed), "malformed"),
        (Came::Skipped(Skipped::Replaced), "replaced"),
        (Came::Copy(CopyRefusal::Unreadable), "unreadable"),
    ] {
        assert_eq!(came.token(), word);
    }
}
