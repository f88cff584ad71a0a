//! A late arrival after "not executed".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::operation::{
    AbsenceRule, Attention, Draw, NotExecuted, OperationId, Schedule, Standing, State,
};
use backstop_engine::policy::effect::{AbsenceRules, AbsenceVerdict, CalibrationRules, VerificationRules};

use super::super::Followed;
use super::upstream::{BOUND, Reply, Upstream, answer};
use super::world::{World, count, eventually, lines, listen, query, route, verification};

const NOT_EXECUTED: State = State::NotExecuted(NotExecuted::Absent);
const CONTRADICTED: State = State::Attention(Attention::Contradicted);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Looked at again within `poll`, remembered for `remembered`.
fn rules(poll: u64, remembered: u64) -> VerificationRules {
    let calibration = CalibrationRules { sample: PerMille(1000), must_see_within: seconds(10) };
    let absence = AbsenceRules {
        settle: seconds(60),
        confirmations: 2,
        spacing: seconds(10),
        not_after: None,
        verdict: AbsenceVerdict::NotExecuted(calibration),
    };
    let mut rules = VerificationRules { absence: Some(absence), ..verification(query()) };
    rules.schedule.attention_poll = seconds(poll);
    rules.upstream_retention = seconds(remembered);
    rules
}

/// No question runs out of time over how fast a test moves the clock.
fn pay(upstream: &Upstream, mut rules: VerificationRules) -> Followed {
    rules.query.timeout = seconds(600);
    Followed { connect: seconds(600), ..route("pay", upstream, Some(rules)) }
}

fn unknown_to_it() -> Reply {
    answer(404, r#"{"code":"no_such_payment"}"#)
}

fn at_once() -> Draw {
    Schedule { first: Duration::ZERO, most: Duration::ZERO, ..Schedule::default() }.draw(0)
}

/// Operations that were decided by two absences before the reconciler is at work.
fn absent(world: &World, numbers: impl IntoIterator<Item = u8>) -> Vec<OperationId> {
    let ids: Vec<_> = numbers.into_iter().map(|number| world.unknown("pay", number)).collect();
    let rule = AbsenceRule::new(seconds(1), 2, seconds(1), seconds(86_400)).unwrap();
    let standing = Standing { has_good_credentials: true, shows_recent: true };
    // The lease of each claim is over after 6 s, and that of the forward before.
    for _absence in 0..2 {
        world.hand.advance(seconds(10));
        let now = world.clock.now();
        let claims = world.ledger().claim("pay", 100, seconds(1), now).wait().unwrap().claims;
        assert_eq!(claims.len(), ids.len());
        for claim in claims {
            let report = claim.ask(now.mono).absent(Some(rule), standing, at_once());
            let _changed = world.ledger().record(report, now).wait().unwrap();
        }
    }
    assert!(ids.iter().all(|id| world.state(*id) == NOT_EXECUTED));
    ids
}

fn second_looks(world: &World) -> u64 {
    count(&world.counts().routes[0].second_looks)
}

fn about(upstream: &Upstream, number: u8) -> usize {
    let key = format!("key=k{number}&");
    upstream.requests().iter().filter(|request| request.contains(&key)).count()
}

/// Its request was under way for longer than `settle` promised. A quarter of an hour after it arrived at the latest, and no
/// sooner than it did, a person is called: in the log and by the webhook.
#[test]
fn what_is_executed_after_it_was_decided_by_absence_calls_a_person() {
    listen();
    // 0: it knows `k2` alone; 1: that is paid; 2: the late one is paid, too.
    let phase = Arc::new(AtomicU8::new(0));
    let now = Arc::clone(&phase);
    let upstream = Upstream::start(move |line| match (now.load(Ordering::SeqCst), line) {
        (0, line) if line.contains("key=k2&") => answer(200, r#"{"key":"k2","status":"processing"}"#),
        (_, line) if line.contains("key=k2&") => answer(200, r#"{"key":"k2","status":"paid"}"#),
        (_, line) if line.contains("key=known&") => answer(200, r#"{"key":"known","status":"paid"}"#),
        (2, line) if line.contains("key=k211&") => answer(200, r#"{"key":"k211","status":"paid"}"#),
        _ => unknown_to_it(),
    });
    let hook = Upstream::start(|_| answer(204, ""));
    let mut world = World::new(vec![pay(&upstream, rules(900, 86_400))]).with_webhook(&hook);
    let (late, other) = (world.unknown("pay", 211), world.unknown("pay", 2));
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    world.start();
    eventually(|| {
        world.pass(seconds(1));
        world.state(late) == NOT_EXECUTED
    });
    phase.store(1, Ordering::SeqCst);
    eventually(|| {
        world.pass(seconds(1));
        matches!(world.state(other), State::Succeeded(_))
    });
    let before = second_looks(&world);
    world.pass(seconds(901));
    eventually(|| second_looks(&world) > before);
    assert_eq!(world.state(late), NOT_EXECUTED, "the upstream says so still");
    phase.store(2, Ordering::SeqCst);
    world.pass(seconds(901));
    eventually(|| world.state(late) == CONTRADICTED);
    world.pass(seconds(2));
    eventually(|| !hook.requests().is_empty());
    let said = lines(&format!("operation={late}"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("why=\"contradicted\""), "{said:?}");
    assert!(hook.requests()[0].contains(r#""why":"contradicted""#));
    let counts = world.counts();
    assert_eq!((count(&counts.routes[0].executed_late), count(&counts.raised)), (1, 1));
    assert!(upstream.requests().iter().all(|request| request.starts_with("GET ")));
}

/// What an upstream says of an operation that it does not know, or cannot say, leaves it as it is.
#[test]
fn every_other_answer_to_a_second_look_changes_nothing() {
    for (status, content) in [
        (404, r#"{"code":"no_such_payment"}"#),
        (200, r#"{"key":"k1","status":"declined"}"#),
        (200, r#"{"key":"k1","status":"processing"}"#),
        (200, r#"{"key":"another","status":"paid"}"#),
        (200, "<html>paid</html>"),
        (202, "{}"),
        (401, ""),
        (503, ""),
        (302, r#"{"key":"k1","status":"paid"}"#),
    ] {
        let upstream = Upstream::start(move |_| answer(status, content));
        let mut world = World::new(vec![pay(&upstream, rules(10, 86_400))]);
        let id = absent(&world, [1])[0];
        let record = world.record(id);
        world.start();
        world.pass(seconds(21));
        eventually(|| second_looks(&world) >= 1);
        world.pass(seconds(2));
        assert_eq!(world.record(id), record, "{status} {content}");
        assert_eq!(count(&world.counts().raised), 0);
    }
}

/// Spread over the time by their names: after half of it half of them were asked about, each once.
#[test]
fn each_is_asked_about_once_in_the_time_and_spread_over_it() {
    let upstream = Upstream::start(|_| unknown_to_it());
    let mut world = World::new(vec![pay(&upstream, rules(256, 86_400))]);
    let ids = absent(&world, (8..=248).step_by(16));
    assert_eq!(ids.len(), 16);
    world.start();
    eventually(|| count(&world.counts().turns) > 0);
    // A name is its number sixteen times, so its time comes that many 256ths after the start.
    world.pass(seconds(130));
    eventually(|| second_looks(&world) == 8);
    world.pass(seconds(120));
    eventually(|| second_looks(&world) == 16);
    world.pass(seconds(256));
    eventually(|| second_looks(&world) == 32);
    world.pass(seconds(3));
    assert_eq!(upstream.requests().len(), 32);
    assert!((8..=248).step_by(16).all(|number| about(&upstream, number) == 2));
    assert!(ids.iter().all(|id| world.state(*id) == NOT_EXECUTED));
    assert_eq!(upstream.most_under_way(), 1);
}

/// One question in ten seconds, and what there is would take more: it takes longer, and asks no more.
#[test]
fn no_more_second_looks_are_taken_than_the_budget_has() {
    let upstream = Upstream::start(|_| unknown_to_it());
    let mut slow = rules(20, 86_400);
    slow.query.interval = seconds(10);
    let mut world = World::new(vec![pay(&upstream, slow)]);
    absent(&world, 1..=40);
    world.start();
    world.pass(seconds(200));
    let asked = second_looks(&world);
    assert!((15..=21).contains(&asked), "{asked}");
    assert!(upstream.requests().len() <= 21, "{}", upstream.requests().len());
    assert!((1..=40).all(|number| about(&upstream, number) <= 1), "in turn");
}

/// The only place is taken by what is unknown, for as long as there is any.
#[test]
fn what_is_unknown_comes_first() {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let upstream = Upstream::start(move |line| match line.contains("key=k9") {
        true => {
            let key = line.split_once("key=").and_then(|(_, rest)| rest.split_once('&')).unwrap().0;
            let status = if over.load(Ordering::SeqCst) { "paid" } else { "processing" };
            answer(200, &format!(r#"{{"key":"{key}","status":"{status}"}}"#))
        }
        false => unknown_to_it(),
    });
    let mut slow = rules(20, 86_400);
    slow.query.interval = seconds(5);
    let mut world = World::new(vec![pay(&upstream, slow)]);
    absent(&world, 1..=3);
    let open: Vec<_> = (90..=99).map(|number| world.unknown("pay", number)).collect();
    world.start();
    world.pass(seconds(60));
    assert_eq!(second_looks(&world), 0);
    assert!(world.queries("pending") >= 10, "{}", world.queries("pending"));
    is_over.store(true, Ordering::SeqCst);
    eventually(|| {
        world.pass(seconds(1));
        open.iter().all(|id| matches!(world.state(*id), State::Succeeded(_)))
    });
    world.pass(seconds(60));
    eventually(|| second_looks(&world) >= 3);
}

/// All are due at once, and four could be under way.
#[test]
fn a_second_look_that_hangs_takes_one_place_and_keeps_nothing_unknown_waiting() {
    let upstream = Upstream::start(|line| match line.contains("key=k90&") {
        true => answer(200, r#"{"key":"k90","status":"paid"}"#),
        false => Reply::Hang,
    });
    let mut world = World::new(vec![pay(&upstream, rules(2, 86_400))]);
    absent(&world, 1..=3);
    world.start();
    world.pass(seconds(10));
    upstream.until(1);
    let open = world.unknown("pay", 90);
    eventually(|| {
        world.pass(seconds(1));
        matches!(world.state(open), State::Succeeded(_))
    });
    world.pass(seconds(10));
    assert_eq!(upstream.requests().len(), 2);
}

/// Begun at 0, decided at 20 s, remembered for 100 s; looked at again every 10 s.
#[test]
fn what_the_upstream_has_forgotten_is_not_asked_about_any_more() {
    let knows = Arc::new(AtomicBool::new(false));
    let is_known = Arc::clone(&knows);
    let upstream = Upstream::start(move |_| match is_known.load(Ordering::SeqCst) {
        true => answer(200, r#"{"key":"k1","status":"paid"}"#),
        false => unknown_to_it(),
    });
    let mut world = World::new(vec![pay(&upstream, rules(10, 100))]);
    let id = absent(&world, [1])[0];
    world.start();
    world.pass(seconds(79));
    eventually(|| second_looks(&world) >= 7);
    world.pass(seconds(1));
    eventually(|| about(&upstream, 1) as u64 == second_looks(&world));
    let asked = second_looks(&world);
    knows.store(true, Ordering::SeqCst);
    world.pass(seconds(60));
    assert_eq!((second_looks(&world), world.state(id)), (asked, NOT_EXECUTED));
    assert_eq!(about(&upstream, 1) as u64, asked);
}

#[test]
fn another_life_looks_again_too() {
    let silent = Upstream::start(|_| unknown_to_it());
    let (rows, clock, hand, id) = {
        let mut first = World::new(vec![pay(&silent, rules(30, 86_400))]);
        let id = absent(&first, [100])[0];
        first.start();
        first.pass(seconds(5));
        assert!(first.handle.take().unwrap().close(BOUND) && first.operations.ledger.close(BOUND));
        (first.rows.clone(), first.clock.clone(), first.hand.clone(), id)
    };
    let upstream = Upstream::start(|_| answer(200, r#"{"key":"k100","status":"paid"}"#));
    let mut second = World::again(rows, vec![pay(&upstream, rules(30, 86_400))], clock, hand);
    second.start();
    assert_eq!(second.state(id), NOT_EXECUTED);
    // Its time comes 100 parts of 256 after the start, and 15 s after that at the soonest its status is asked for once more.
    second.pass(seconds(14));
    eventually(|| second.state(id) == CONTRADICTED);
}
