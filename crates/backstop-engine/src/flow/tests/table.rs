//! Every class, failure, status, copy and method against the reference.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::failure::{Failure, FailureKind, Phase, Sent};
use crate::flow::{BodyFacts, CopyUse, Decision, HeadFacts, Method, RequestFacts};
use crate::policy::{DependencyId, Incorrect, Route, RouteClass, RouteId, StatusSet, UnavailableStatus};
use crate::snapshot::{CopyFacts, OriginLimit};
use crate::time::{BootId, Mono, Now, WallTrust};

use super::reference::{Case, Content, Copy, Expected, Happened, expected};
use super::support::{
    Body, MAX_AGE, MS, SECOND, START, Script, Upstream, at, begin, copy_read_at, counted, dependency, direct,
    drive, engine, in_flight, omitted, prepared, public_read, route, status_of, words,
};

const STATUSES: [u16; 22] = [
    200, 204, 206, 301, 304, 400, 401, 403, 404, 408, 409, 410, 416, 418, 422, 429, 500, 501, 502, 503, 504,
    599,
];

/// Every kind of failure that is not an answer, with the word that it is counted under.
const FAILURES: [(FailureKind, &str, Sent); 10] = [
    (FailureKind::Dns, "dns", Sent::No),
    (FailureKind::Connect, "connect", Sent::No),
    (FailureKind::ConnectTimeout, "connect_timeout", Sent::No),
    (FailureKind::Tls, "tls", Sent::No),
    (FailureKind::Write, "write", Sent::No),
    (FailureKind::Write, "write", Sent::Maybe),
    (FailureKind::Reset, "reset", Sent::Maybe),
    (FailureKind::ReadTimeout, "read_timeout", Sent::Maybe),
    (FailureKind::Incomplete, "incomplete", Sent::Maybe),
    (FailureKind::Protocol, "protocol", Sent::Maybe),
];

const METHODS: [Method; 4] = [Method::Get, Method::Head, Method::OtherSafe, Method::Unsafe];

fn every_request() -> impl Iterator<Item = RequestFacts> {
    METHODS.into_iter().flat_map(|method| {
        [CopyUse::Full, CopyUse::ServeOnly, CopyUse::Never].into_iter().flat_map(move |copies| {
            [false, true].map(|credential| RequestFacts { method, copies, credential, ..RequestFacts::GET })
        })
    })
}

/// The three classes, each with every setting that changes what it answers.
fn every_route() -> Vec<Route> {
    let mut classes = vec![direct(), omitted(), prepared()];
    for incorrect in [Incorrect::Propagate, Incorrect::Fallback] {
        for override_origin in [false, true] {
            let read = crate::policy::PublicRead { incorrect, override_origin, ..public_read() };
            classes.push(RouteClass::PublicRead(read));
        }
    }
    let mut routes = Vec::new();
    for class in classes {
        for unavailable_status in [UnavailableStatus::Contract, UnavailableStatus::Cause] {
            for declared in [StatusSet::EMPTY, StatusSet::of(&[400, 404, 416, 422, 429, 500])] {
                routes.push(Route { unavailable_status, declared, ..route(class.clone()) });
            }
        }
    }
    routes
}

/// The copies of the table: what the store says, when it is judged, and what the reference makes of it.
fn every_copy() -> Vec<(Result<Option<CopyFacts>, ()>, Now, Copy)> {
    let now = at(START);
    let aged = |age_ns: i128| {
        let facts = copy_read_at(u64::try_from(i128::from(START) - age_ns).unwrap());
        (Ok(Some(facts)), now, Copy::Aged { ns: age_ns, forbidden: false })
    };
    let second = i128::from(SECOND);
    let forbidden = CopyFacts { origin_limit: OriginLimit::Never, ..copy_read_at(START - 30 * SECOND) };
    let old_boot = CopyFacts { ..copy_read_at(START - 30 * SECOND) };
    let rebooted = Now { boot: BootId([2; 16]), wall_trust: WallTrust::Unsynchronised, ..now };
    vec![
        (Ok(None), now, Copy::Missing),
        (Err(()), now, Copy::Unreadable),
        aged(0),
        aged(30 * second),
        aged(60 * second),
        aged(60 * second + 1),
        aged(-1),
        aged(-second),
        (Ok(Some(forbidden)), now, Copy::Aged { ns: 30 * second, forbidden: true }),
        (Ok(Some(old_boot)), rebooted, Copy::Undated),
    ]
}

fn answer(status: u16, degraded: Option<Duration>, content: Content) -> (Upstream, Happened) {
    let head = HeadFacts { status, has_body: content != Content::None, degraded, ..HeadFacts::default() };
    let body = match content {
        Content::None | Content::TooLarge => Body::Is(BodyFacts::TooLarge),
        Content::Whole { correct, storable } => Body::Is(BodyFacts::Whole { correct, storable }),
        Content::Broken => Body::Breaks(Failure::new(FailureKind::Incomplete, Phase::Body, Sent::Maybe)),
    };
    let degraded_ns = degraded.map(|age| age.as_nanos());
    (Upstream::Answers(head, body), Happened::Answered { status, degraded_ns, content })
}

/// Everything that a dependency can do.
fn every_behaviour() -> Vec<(Upstream, Happened)> {
    let mut all = vec![(Upstream::Errs, Happened::Erred)];
    for (kind, word, sent) in FAILURES {
        let upstream = Upstream::Fails(Failure::new(kind, Phase::Head, sent));
        all.push((upstream, Happened::Failed { word, reached: sent == Sent::Maybe }));
    }
    let nanosecond = Duration::from_nanos(1);
    for status in STATUSES {
        for degraded in [None, Some(Duration::ZERO), Some(MAX_AGE), Some(MAX_AGE + nanosecond)] {
            all.push(answer(status, degraded, Content::None));
            if matches!(status, 204 | 304) {
                continue;
            }
            for content in [Content::TooLarge, Content::Broken] {
                // Only what is held back can be seen to break before it is passed on.
                if content != Content::Broken || (200..300).contains(&status) {
                    let (upstream, happened) = answer(status, degraded, content);
                    all.push((upstream, happened));
                    if let (Content::Broken, Upstream::Answers(head, _)) = (content, upstream) {
                        all.push((Upstream::Answers(head, Body::Is(BodyFacts::Broken)), happened));
                    }
                }
            }
            for (correct, storable) in [(true, true), (true, false), (false, true), (false, false)] {
                all.push(answer(status, degraded, Content::Whole { correct, storable }));
            }
        }
    }
    all
}

fn told(decision: &Decision, upstream: Upstream) -> Expected {
    let status = match upstream {
        Upstream::Answers(head, _) => head.status,
        Upstream::Fails(_) | Upstream::Errs => 0,
    };
    Expected {
        words: words(decision),
        status: status_of(&decision.reply, status),
        copy: decision.copy,
        age_ns: decision.account.age.map(|age| age.as_nanos()),
    }
}

/// A HEAD has no content, and an answer that streams breaks only after the decision.
fn happens(case: &Case<'_>) -> bool {
    match case.happened {
        Happened::Answered { content: Content::None, .. } => true,
        Happened::Answered { content: Content::Broken, .. } => {
            case.facts.method != Method::Head && super::reference::may_be_replaced(case.route, case.facts)
        }
        Happened::Answered { .. } => case.facts.method != Method::Head,
        _ => true,
    }
}

/// What the engine says about one case, and what it has counted when the answer is through.
fn check(engine: &Arc<Engine>, case: &Case<'_>, script: &Script, now: Now) {
    let mut flow = begin(engine, case.facts, START);
    let decision = drive(&mut flow, script, now);
    assert_eq!(told(&decision, script.upstream), expected(case), "{case:?}");
    assert_eq!(decision.until, Mono::from_ns(START + 300 * MS));
    decision.settlement.complete();
}

#[test]
fn every_answer_is_the_one_that_the_contract_names() {
    let mut cases = 0_u64;
    for rules in every_route() {
        let engine = engine(1, vec![Route { in_flight: 1, ..rules.clone() }], vec![dependency(1, 0)]);
        let before = cases;
        for facts in every_request() {
            for (upstream, happened) in every_behaviour() {
                for (stored, now, copy) in every_copy() {
                    let case = Case { route: &rules, facts, happened, copy, stood_in_for: None };
                    if happens(&case) {
                        check(&engine, &case, &Script { copy: stored, ..Script::new(upstream) }, now);
                        cases += 1;
                    }
                }
            }
        }
        // One place was enough for all of them, one after another: each came back.
        assert_eq!(in_flight(&engine), [0; 4]);
        let requests: u64 = counted(&engine).iter().map(|(.., count)| count).sum();
        assert_eq!(requests, cases - before);
        let calls = &engine.dependency(DependencyId(0)).tally;
        assert_eq!(calls.attempts(), requests);
        assert_eq!(calls.answers() + calls.failures().iter().sum::<u64>(), requests);
        assert_eq!((calls.abandoned(), calls.late_results()), (0, 0));
    }
    assert!(cases > 1_000_000, "{cases}");
}

/// Full, waited for in vain, or too late: never called, 503 where nothing stands in.
#[test]
fn a_dependency_that_is_not_asked_leads_to_the_same_alternatives() {
    let attempt_end =
        |class: &RouteClass| if matches!(class, RouteClass::Direct(_)) { 297 * MS } else { 294 * MS };
    for rules in every_route() {
        for (word, queue_ms, late_ns) in
            [("dependency_full", 0, 0), ("pool_timeout", 20, 0), ("too_late", 0, attempt_end(&rules.class))]
        {
            let engine = engine(1, vec![rules.clone()], vec![dependency(1, queue_ms)]);
            let pool = &engine.dependency(DependencyId(0)).in_flight;
            let taken = pool.try_acquire(crate::admission::Turn::Newcomer, crate::admission::Excess::Refuse);
            for facts in every_request() {
                for (stored, now, copy) in every_copy() {
                    let happened = Happened::NotAsked { word };
                    let case = Case { route: &rules, facts, happened, copy, stood_in_for: None };
                    let script = Script { copy: stored, ..Script::new(Upstream::Errs) };
                    // Judged at the table's moment, the request having begun so long before.
                    let mut flow = begin(&engine, facts, START - late_ns);
                    let decision = drive(&mut flow, &script, now);
                    assert_eq!(told(&decision, script.upstream), expected(&case), "{case:?}");
                    decision.settlement.complete();
                }
            }
            drop(taken);
            assert_eq!(in_flight(&engine), [0; 4]);
            let calls = &engine.dependency(DependencyId(0)).tally;
            assert_eq!(
                (calls.attempts(), calls.failures().iter().sum::<u64>()),
                (0, 0),
                "{word} is no failure"
            );
        }
    }
}

/// A read that begins while the process or the route is full is refused, whatever copy exists.
#[test]
fn a_full_process_or_route_refuses_every_class_alike() {
    for rules in every_route() {
        for (process, places) in [(1, 2), (2, 1)] {
            let engine =
                engine(process, vec![Route { in_flight: places, ..rules.clone() }], vec![dependency(4, 0)]);
            let held = super::support::called(&engine, super::support::GET, START);
            for facts in every_request() {
                for (stored, now, _) in every_copy() {
                    let script = Script { copy: stored, ..Script::new(super::support::OK) };
                    let decision = drive(&mut begin(&engine, facts, START), &script, now);
                    let refused = Expected::new(("rejected", "none", "capacity"), 503);
                    assert_eq!(told(&decision, script.upstream), refused);
                }
            }
            drop(held);
            assert_eq!(in_flight(&engine), [0; 4]);
            assert_eq!(engine.route(RouteId(0)).coverage.count(Mono::from_ns(START)).usable, 0);
        }
    }
}
