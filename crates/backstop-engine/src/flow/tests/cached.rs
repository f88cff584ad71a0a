//! Reads through a shared cache: what it may answer, who joins, and what a read for many may take.
//!
//! The route: `ttl` 5 s, the cache is waited for 20 ms, 2 reads at once behind it for 2 s each, a copy of one's own of up to
//! 60 s, deadline 300 ms.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Cause, Failure, FailureKind, NotAsked, Sent};
use crate::fills::FillEnd;
use crate::flow::{
    Cached, CopyAction, Decision, Event, Filled, Flow, Method, Reply, RequestFacts, Step, Trace,
};
use crate::health::{BreakerRules, Phase};
use crate::policy::{
    CacheId, CacheRules, CachedRead, DependencyId, FillRules, Origin, Policy, Route, RouteClass, RouteId,
};
use crate::snapshot::{CopyFacts, OriginLimit};
use crate::time::Mono;

use super::support::{
    GET, GOOD, MS, OK, REFUSED, SECOND, START, Script, Upstream, at, begin, copy_read_at, counted,
    dependency, drive, head, in_flight, public_read, route, says, words,
};

const TTL: u64 = 5 * SECOND;

fn cached_read(local_copy: bool) -> RouteClass {
    RouteClass::CachedRead(CachedRead {
        cache: CacheId(0),
        ttl: Duration::from_nanos(TTL),
        timeout: Duration::from_millis(20),
        fill: FillRules {
            concurrency: 2,
            rate: None,
            deadline: Duration::from_secs(2),
            waiters: 100,
            origin: Origin::NONE,
        },
        local_copy,
        read: public_read(),
    })
}

fn engine_with(local_copy: bool) -> Arc<Engine> {
    let policy = Policy {
        in_flight: 8,
        dependencies: vec![dependency(4, 0)],
        caches: vec![CacheRules { name: "cache".into(), breaker: BreakerRules::default() }],
        routes: vec![Route { in_flight: 4, ..route(cached_read(local_copy)) }],
        ..Policy::default()
    };
    Engine::new(policy).unwrap()
}

fn in_cache(age_ns: u64) -> Cached {
    Cached::Hit(copy_read_at(START - age_ns))
}

fn ask(engine: &Arc<Engine>, script: Script, facts: RequestFacts) -> Decision {
    drive(&mut begin(engine, facts, START), &script, at(START))
}

/// The steps that a request goes through until it is answered or calls the dependency.
fn way(engine: &Arc<Engine>, cached: Cached, facts: RequestFacts) -> Vec<&'static str> {
    let mut flow = begin(engine, facts, START);
    let mut steps = Vec::new();
    loop {
        let (step, event) = match flow.step(at(START)) {
            Step::Peek => ("peek", Event::Known(None)),
            Step::Lookup { .. } => ("lookup", Event::Cached(cached)),
            Step::Join { .. } => ("join", Event::Filled(Filled::Apart)),
            Step::Attempt(_) => {
                steps.push("call");
                return steps;
            }
            Step::Done(decision) => {
                steps.push(words(&decision).1);
                return steps;
            }
            step => panic!("{step:?}"),
        };
        steps.push(step);
        flow.on(event, at(START));
    }
}

/// A fill that has called the dependency, and its call.
fn fill(engine: &Arc<Engine>) -> (Flow, Option<crate::flow::Attempt>) {
    let mut flow = Flow::begin_fill(engine, RouteId(0), 1, at(START), 0, Trace::off());
    match flow.step(at(START)) {
        Step::Attempt(attempt) => (flow, Some(attempt)),
        Step::Done(decision) => {
            decision.settlement.complete();
            (flow, None)
        }
        step => panic!("{step:?}"),
    }
}

fn ended(engine: &Engine) -> [u64; 5] {
    let fills = engine.route(RouteId(0)).fills.as_ref().unwrap();
    FillEnd::ALL.map(|end| fills.ended_count(end))
}

/// Inclusive to the nanosecond, by the answer's own date: what the cache keeps too long is no answer.
#[test]
fn the_cache_answers_up_to_its_time_and_not_a_nanosecond_longer() {
    let engine = engine_with(true);
    for (age_ns, answers) in [(0, true), (TTL, true), (TTL + 1, false)] {
        let steps = way(&engine, in_cache(age_ns), GET);
        let expected: &[_] =
            if answers { &["peek", "lookup", "cache"] } else { &["peek", "lookup", "join", "call"] };
        assert_eq!(steps, expected, "{age_ns}");
    }
    let future = Cached::Hit(copy_read_at(START + 1));
    assert_eq!(way(&engine, future, GET), ["peek", "lookup", "join", "call"]);
    let decision = ask(&engine, Script { cached: in_cache(2 * SECOND), ..Script::new(OK) }, GET);
    assert_eq!(words(&decision), ("normal", "cache", "none"));
    assert!(matches!(decision.reply, Reply::Cached { age } if age == Duration::from_secs(2)));
    assert_eq!(decision.copy, CopyAction::Keep, "giving renews nothing");
    assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 4 - 2, "hits call nobody");
}

/// RFC 9111 section 4.2: an answer is fresh while its age is below its lifetime.
#[test]
fn what_the_origin_wants_to_be_asked_for_is_asked_for() {
    let engine = engine_with(true);
    let limited = |limit, age_ns| {
        let facts = CopyFacts { origin_limit: limit, ..copy_read_at(START - age_ns) };
        way(&engine, Cached::Hit(facts), GET).contains(&"cache")
    };
    let two = OriginLimit::WhileFresh(Duration::from_secs(2));
    assert!(limited(two, 2 * SECOND - 1) && !limited(two, 2 * SECOND));
    assert!(!limited(OriginLimit::Never, 0));
}

/// Whatever is the matter with the cache, the dependency is read; and only what may be shared is read for many.
#[test]
fn without_an_answer_from_the_cache_a_get_joins_and_everything_else_goes_by_itself() {
    let engine = engine_with(true);
    for cached in [Cached::Miss, Cached::Failed, Cached::NotAsked] {
        assert_eq!(way(&engine, cached, GET), ["peek", "lookup", "join", "call"], "{cached:?}");
    }
    let head_request = RequestFacts { method: Method::Head, ..GET };
    assert_eq!(way(&engine, Cached::Miss, head_request), ["peek", "lookup", "call"]);
    let not_kept = RequestFacts { copies: crate::flow::CopyUse::ServeOnly, ..GET };
    assert_eq!(way(&engine, Cached::Miss, not_kept), ["peek", "lookup", "call"]);
    let personal = RequestFacts { copies: crate::flow::CopyUse::Never, credential: true, ..GET };
    assert_eq!(way(&engine, Cached::Miss, personal), ["call"]);
    let write = RequestFacts { method: Method::Unsafe, ..GET };
    assert_eq!(way(&engine, Cached::Miss, write), ["call"]);
    let bare = engine_with(false);
    assert_eq!(way(&bare, Cached::Miss, GET), ["lookup", "join", "call"]);
}

/// Ten failures in a row open its breaker (the rule for low traffic); then it is left alone, and reads go on.
#[test]
fn a_cache_that_fails_is_left_alone_by_its_own_breaker() {
    let engine = engine_with(true);
    for _ in 0..10 {
        assert_eq!(way(&engine, Cached::Failed, GET)[1], "lookup");
    }
    let cache = &engine.cache(CacheId(0)).health;
    assert!(matches!(cache.phase(at(START).mono), Phase::Open { .. }));
    assert_eq!(way(&engine, in_cache(0), GET), ["peek", "join", "call"]);
    let dependency = &engine.dependency(DependencyId(0)).health;
    assert_eq!(dependency.phase(at(START).mono), Phase::Closed, "it is not the dependency's failure");
}

/// A cache that says nothing is waited for 20 ms, and that counts as its failure.
#[test]
fn a_silent_cache_is_waited_for_no_longer_than_its_time() {
    let engine = engine_with(true);
    for _ in 0..10 {
        let mut flow = begin(&engine, GET, START);
        flow.step(at(START));
        flow.on(Event::Known(None), at(START));
        let Step::Lookup { until } = flow.step(at(START)) else { panic!("no lookup") };
        assert_eq!(until.as_ns(), START + 20 * MS);
        flow.on(Event::TimeUp(None), at(until.as_ns()));
        assert!(matches!(flow.step(at(until.as_ns())), Step::Join { waiters: 100, .. }));
    }
    assert!(matches!(engine.cache(CacheId(0)).health.phase(at(START + 20 * MS).mono), Phase::Open { .. }));
}

#[test]
fn those_who_joined_get_what_the_read_brought() {
    let engine = engine_with(true);
    let normal = ask(&engine, Script { cached: in_cache(0), ..Script::new(OK) }, GET).account;
    let read = crate::flow::Account { source: crate::outcome::Source::Primary, age: None, ..normal };
    let joined = |filled| ask(&engine, Script { filled, ..Script::new(OK) }, GET);
    let shared = joined(Filled::Shared(read, copy_read_at(START)));
    assert_eq!(words(&shared), ("normal", "primary", "none"));
    assert!(matches!(shared.reply, Reply::Shared { age: Duration::ZERO }));
    assert!(matches!(joined(Filled::Whole(read)).reply, Reply::Collected(_)));
    assert!(matches!(joined(Filled::Streamed(read, None)).reply, Reply::Streamed(_)));
    let failed = |cause| words(&joined(Filled::Failed(cause)));
    assert_eq!(failed(Cause::Failed(REFUSED)), ("rejected", "none", "missing"));
    assert_eq!(words(&joined(Filled::Full)), ("rejected", "none", "missing"));
    assert_eq!(words(&joined(Filled::Apart)), ("normal", "primary", "none"), "by a call of its own");
    assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 1);
    // A read may take longer than the cache may keep what it brings. Longer than its own time it may not: asked for anew.
    assert!(matches!(joined(Filled::Shared(read, copy_read_at(START - TTL))).reply, Reply::Shared { .. }));
    let old = joined(Filled::Shared(read, copy_read_at(START - TTL - 1)));
    assert!(matches!(old.reply, Reply::Collected(_)));
    drop((shared, old));
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// A slow dependency and a short `ttl`: those who waited get the read's answer, else each would call for itself.
#[test]
fn a_read_that_took_longer_than_the_cache_may_keep_it_is_shared_all_the_same() {
    let RouteClass::CachedRead(short) = cached_read(true) else { unreachable!() };
    let short = CachedRead { ttl: Duration::from_secs(1), ..short };
    let policy = Policy {
        in_flight: 8,
        dependencies: vec![dependency(4, 0)],
        caches: vec![CacheRules { name: "cache".into(), breaker: BreakerRules::default() }],
        routes: vec![Route { in_flight: 4, ..route(RouteClass::CachedRead(short)) }],
        ..Policy::default()
    };
    let engine = Engine::new(policy).unwrap();
    let account = ask(&engine, Script { cached: in_cache(0), ..Script::new(OK) }, GET).account;
    let joined = |age_ns| {
        let filled = Filled::Shared(account, copy_read_at(START - age_ns));
        ask(&engine, Script { filled, ..Script::new(OK) }, GET).reply
    };
    assert!(matches!(joined(2 * SECOND), Reply::Shared { .. }), "a fill has 2 s");
    assert!(matches!(joined(2 * SECOND + 1), Reply::Collected(_)));
    assert_eq!(way(&engine, in_cache(SECOND + 1), GET), ["peek", "lookup", "join", "call"]);
}

/// The copy of one's own stands in for every cause that the read had, and for a wait that took too long.
#[test]
fn the_copy_of_ones_own_stands_in_for_what_the_read_did_not_bring() {
    let engine = engine_with(true);
    let with_copy = |filled, age_ns| {
        let script = Script { filled, ..Script::new(OK) }.with_copy(copy_read_at(START - age_ns));
        ask(&engine, script, GET)
    };
    let budget = Cause::NotAsked(NotAsked::ResourceFull);
    for (filled, reason) in [
        (Filled::Failed(Cause::Failed(REFUSED)), "connect"),
        (Filled::Failed(budget), "resource_full"),
        (Filled::Full, "resource_full"),
    ] {
        assert_eq!(words(&with_copy(filled, 60 * SECOND)), ("fallback", "snapshot", reason));
        assert_eq!(words(&with_copy(filled, 60 * SECOND + 1)), ("rejected", "none", "age"));
    }
    let bare = engine_with(false);
    let refused = ask(&bare, Script { filled: Filled::Failed(budget), ..Script::new(OK) }, GET);
    assert_eq!(words(&refused), ("rejected", "none", "resource_full"));
    let failed =
        ask(&bare, Script { filled: Filled::Failed(Cause::Failed(REFUSED)), ..Script::new(OK) }, GET);
    assert_eq!(words(&failed), ("failed", "none", "connect"));
}

/// A read that was sent and is not answered in time.
const UNANSWERED: Failure = Failure::new(FailureKind::ReadTimeout, crate::failure::Phase::Head, Sent::Maybe);

/// Joins a read that comes to nothing while this request waits; `failure` is what it had come to by then. Until when it
/// waited, and what follows.
fn wait_in_vain(engine: &Arc<Engine>, failure: Option<Failure>) -> (Mono, Decision) {
    let mut flow = begin(engine, GET, START);
    flow.step(at(START));
    flow.on(Event::Known(Some(copy_read_at(START))), at(START));
    flow.step(at(START));
    flow.on(Event::Cached(Cached::Miss), at(START));
    let Step::Join { until, .. } = flow.step(at(START)) else { panic!("no join") };
    assert_eq!(in_flight(engine), [1, 1, 0, 0], "process and route only");
    flow.on(Event::TimeUp(failure), at(until.as_ns()));
    (until, drive(&mut flow, &Script::new(OK).with_copy(copy_read_at(START)), at(until.as_ns())))
}

/// 504 says that the dependency did not answer in time (RFC 9110 section 15.6.5). One that was never asked did nothing: 503.
#[test]
fn a_wait_for_a_read_that_was_never_sent_is_refused_as_a_wait_of_our_own() {
    let bare = engine_with(false);
    let refused = |failure| {
        let (_, decision) = wait_in_vain(&bare, failure);
        let Reply::Refusal(refusal) = decision.reply else { panic!("{:?}", decision.reply) };
        (refusal.status, words(&decision))
    };
    assert_eq!(refused(Some(UNANSWERED)), (504, ("failed", "none", "read_timeout")));
    assert_eq!(refused(None), (503, ("rejected", "none", "pool_timeout")));
    let (_, copy) = wait_in_vain(&engine_with(true), None);
    assert_eq!(words(&copy), ("fallback", "snapshot", "pool_timeout"));
}

/// By hand: of 300 ms, 3 are kept for the copy and 3 for the reply, so a wait ends after 294.
#[test]
fn whoever_waits_keeps_its_own_deadline_and_blames_nobody() {
    let engine = engine_with(true);
    let (until, decision) = wait_in_vain(&engine, Some(UNANSWERED));
    assert_eq!(until.as_ns(), START + 294 * MS);
    assert_eq!(words(&decision), ("fallback", "snapshot", "read_timeout"));
    let tally = &engine.dependency(DependencyId(0)).tally;
    assert_eq!((tally.attempts(), tally.failures().iter().sum::<u64>()), (0, 0));
}

/// A read for many holds a place at the dependency and in the budget, and none of a request's.
#[test]
fn a_fill_takes_no_place_of_a_request_and_is_no_request() {
    let engine = engine_with(true);
    let (mut flow, attempt) = fill(&engine);
    let attempt = attempt.unwrap();
    assert_eq!(in_flight(&engine), [0, 0, 0, 1]);
    assert_eq!(attempt.until.as_ns(), START + 2 * SECOND - 10 * MS, "its own time, less the reply's share");
    flow.on(Event::Head { attempt: attempt.id, head: head(200) }, at(START));
    let Step::Collect { .. } = flow.step(at(START)) else { panic!("not held back") };
    flow.on(Event::Body { attempt: attempt.id, body: GOOD }, at(START));
    let Step::Done(decision) = flow.step(at(START)) else { panic!("not done") };
    assert_eq!(decision.copy, CopyAction::Store);
    decision.settlement.complete();
    drop(attempt);
    assert_eq!(in_flight(&engine), [0; 4]);
    assert_eq!(counted(&engine), []);
    assert_eq!(ended(&engine), [1, 0, 0, 0, 0]);
    let (abandoned, call) = fill(&engine);
    drop((abandoned, call));
    assert_eq!(ended(&engine), [1, 0, 0, 0, 1]);
    assert_eq!(in_flight(&engine), [0; 4]);
}

/// Two at once, and not one more: neither fills nor the reads of single requests.
#[test]
fn the_budget_is_for_all_reads_behind_the_cache() {
    let engine = engine_with(true);
    let held = [fill(&engine), fill(&engine)];
    assert!(held.iter().all(|(_, attempt)| attempt.is_some()));
    assert!(fill(&engine).1.is_none());
    assert_eq!(ended(&engine), [0, 0, 0, 1, 0]);
    let head_request = RequestFacts { method: Method::Head, ..GET };
    let refused = ask(&engine, Script::new(OK), head_request);
    assert_eq!(words(&refused), ("rejected", "none", "missing"));
    assert_eq!(refused.account.cause, Some(Cause::NotAsked(NotAsked::ResourceFull)));
    let write = RequestFacts { method: Method::Unsafe, ..GET };
    assert_eq!(words(&ask(&engine, Script::new(says(204)), write)).0, "normal", "a write is no read");
    drop(held);
    let budget = &engine.route(RouteId(0)).fills.as_ref().unwrap().budget;
    assert_eq!(budget.in_use(), 0);
    assert!(fill(&engine).1.is_some());
}

/// A failed read is one for everybody; an answer about the request is one too, and `gone` withdraws.
#[test]
fn a_fill_fails_as_a_call_does_and_passes_on_what_the_dependency_says() {
    let engine = engine_with(true);
    let run = |upstream| {
        let mut flow = Flow::begin_fill(&engine, RouteId(0), 1, at(START), 0, Trace::off());
        let decision = drive(&mut flow, &Script::new(upstream), at(START));
        let told = (words(&decision), decision.copy);
        decision.settlement.complete();
        told
    };
    assert_eq!(run(says(503)), (("failed", "none", "unavailable"), CopyAction::Keep));
    assert_eq!(run(Upstream::Fails(REFUSED)), (("failed", "none", "connect"), CopyAction::Keep));
    assert_eq!(run(says(404)), (("normal", "primary", "none"), CopyAction::Withdraw));
    assert_eq!(run(says(500)), (("failed", "primary", "server_error"), CopyAction::Keep));
    assert_eq!(run(says(302)), (("normal", "primary", "none"), CopyAction::Keep));
    let tally = &engine.dependency(DependencyId(0)).tally;
    assert_eq!((tally.attempts(), tally.answers()), (5, 3));
    assert_eq!(counted(&engine), []);
}

/// What would be answered if the dependency failed now: from the cache, or from a copy of one's own.
#[test]
fn coverage_counts_the_cache_and_the_copy() {
    let coverage = |cached, copy: Option<CopyFacts>| {
        let engine = engine_with(true);
        let script = Script { cached, copy: Ok(copy), filled: Filled::Apart, ..Script::new(OK) };
        drop(ask(&engine, script, GET));
        engine.route(RouteId(0)).coverage.count(at(START).mono).ratio()
    };
    assert_eq!(coverage(in_cache(0), None), Some(1.0));
    assert_eq!(coverage(Cached::Miss, Some(copy_read_at(START))), Some(1.0));
    assert_eq!(coverage(Cached::Miss, None), Some(0.0));
    assert_eq!(coverage(Cached::Failed, Some(copy_read_at(START - 61 * SECOND))), Some(0.0));
}

/// Its time was over before the cache could be asked: that read is counted too.
#[test]
fn coverage_counts_a_read_that_comes_too_late_to_ask_anybody() {
    let engine = engine_with(true);
    let mut flow = begin(&engine, GET, START);
    assert!(matches!(flow.step(at(START)), Step::Peek));
    let late = at(START + 400 * MS);
    flow.on(Event::Known(Some(copy_read_at(START))), late);
    drop(drive(&mut flow, &Script::new(OK).with_copy(copy_read_at(START)), late));
    let count = engine.route(RouteId(0)).coverage.count(late.mono);
    assert_eq!((count.usable, count.total), (1, 1));
}
