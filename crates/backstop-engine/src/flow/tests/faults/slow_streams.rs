//! An answer that streams counted as soon as its head came: however long its rest kept everybody waiting, it was never a
//! slow call, and heads alone closed a breaker and lifted a ramp. Counted at its head and again when it was slow, it was two
//! calls, one of them good. And a probe's place came back only with the last byte that its client took.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::flow::{BodyFacts, Event, Reply, Settlement, Step};
use crate::health::{BreakerRules, PerMille, Phase, RecoveryRules, WindowCount};
use crate::policy::Dependency;

use super::super::support::{
    Body, GET, GOOD, MS, OK, SECOND, START, Upstream, at, called, direct, head, route,
};
use super::{BROKEN, World, dependency, engine, first, mono, open};

fn of(min_calls: u32, recovery: Option<RecoveryRules>) -> Arc<Engine> {
    with(BreakerRules { min_calls, ..BreakerRules::default() }, recovery)
}

fn with(breaker: BreakerRules, recovery: Option<RecoveryRules>) -> Arc<Engine> {
    let dependency = Dependency { breaker: Some(breaker), recovery, ..dependency("catalog", &[]) };
    engine(vec![route(direct())], vec![dependency], vec![])
}

/// The first that is too long.
const SLOW: Duration = Duration::from_nanos(SECOND + 1);

fn stream(engine: &Arc<Engine>, ns: u64) -> Settlement {
    World::of(OK, OK).ask(engine, 0, GET, ns).settlement
}

/// By hand: twenty calls, all of them slow: more than six tenths, so the twentieth opens it, although every client leaves.
#[test]
fn bodies_that_hang_open_the_breaker() {
    let engine = of(20, None);
    for n in 1..=20 {
        let now = START + n * 100 * MS;
        let mut settlement = stream(&engine, now);
        assert_eq!(settlement.slow_in(), Some(Duration::from_secs(1)));
        settlement.waited(SLOW, mono(now));
        drop(settlement);
        if n < 20 {
            let count = first(&engine).health.counts(mono(now));
            assert_eq!(count, WindowCount { calls: n, failures: 0, slow: n });
        }
    }
    assert!(matches!(first(&engine).health.phase(mono(START + 2 * SECOND)), Phase::Open { .. }));
    assert_eq!(first(&engine).tally.abandoned(), 20);
}

/// It is the same call until the window forgets it, and a further one after that. What breaks off besides is that call too.
#[test]
fn a_stream_that_turns_slow_is_one_call() {
    for lasted in [0, 5, 9, 10, 30] {
        let engine = of(20, None);
        let mut settlement = stream(&engine, START);
        let now = mono(START + lasted * SECOND);
        settlement.waited(SLOW, now);
        settlement.waited(SLOW, now);
        let counts = first(&engine).health.counts(now);
        assert_eq!(counts, WindowCount { calls: 1, failures: 0, slow: 1 }, "{lasted}");
        if lasted < 10 {
            settlement.break_off(BROKEN);
            let counts = first(&engine).health.counts(now);
            assert_eq!(counts, WindowCount { calls: 1, failures: 1, slow: 1 }, "{lasted}");
        }
    }
}

/// By hand, with a window of 10 s: three streams a second that are slow 12 s after they began and break off 24 s after that are
/// three slow calls a second, all that there are, whatever the window has forgotten meanwhile. The twentieth opens it.
#[test]
fn what_outlasts_the_window_is_one_call_in_it() {
    let rules = BreakerRules { slow: Duration::from_secs(12), ..BreakerRules::default() };
    let engine = with(rules, None);
    let mut streams = std::collections::VecDeque::new();
    for n in 0.. {
        let now = START + n * SECOND / 3;
        if let Phase::Open { .. } = first(&engine).health.phase(mono(now)) {
            assert_eq!(n, 12 * 3 + 20, "twenty of those that began 12 s ago");
            return;
        }
        streams.push_back((now, stream(&engine, now)));
        for (began, settlement) in &mut streams {
            if *began + 12 * SECOND <= now && settlement.slow_in().is_some() {
                settlement.waited(Duration::from_nanos(12 * SECOND + 1), mono(now));
            }
        }
        while streams.front().is_some_and(|(began, _)| began + 24 * SECOND <= now) {
            streams.pop_front().unwrap().1.break_off(BROKEN);
        }
        assert!(n < 1000, "it never opens");
    }
}

/// By hand: ten heads in each second, and what follows them hangs longer than any tick. There is nothing to judge by for 10 s;
/// then more than a twentieth is too late for red, and three red seconds at the first share open it.
#[test]
fn heads_alone_lift_no_ramp() {
    let rules = BreakerRules { slow: Duration::from_secs(10), min_calls: 1000, ..BreakerRules::default() };
    let engine = with(rules, Some(RecoveryRules::default()));
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    for _ in 0..3 {
        stream(&engine, up).complete();
    }
    let mut streams = std::collections::VecDeque::new();
    let mut now = up;
    for _ in 0..125 {
        assert_eq!(first(&engine).health.phase(mono(now)), Phase::Ramp { share: PerMille(100) }, "{now}");
        now += 100 * MS;
        streams.push_back((now, stream(&engine, now)));
        while streams.front().is_some_and(|(began, _)| began + 10 * SECOND <= now) {
            let (_, mut settlement) = streams.pop_front().unwrap();
            settlement.waited(Duration::from_nanos(10 * SECOND + 1), mono(now));
        }
    }
    now += 500 * MS;
    assert!(matches!(first(&engine).health.phase(mono(now)), Phase::Open { .. }), "{now}");
    assert_eq!(first(&engine).health.totals().step_ups, 0);
}

/// A probe proves something with its whole answer: the head of one that hangs closes nothing.
#[test]
fn the_head_of_a_probe_proves_nothing() {
    let engine = of(20, None);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    let mut held = Vec::new();
    for _ in 0..3 {
        let (mut flow, call) = called(&engine, GET, up);
        flow.on(Event::Head { attempt: call.id, head: head(200) }, at(up));
        assert!(matches!(flow.step(at(up)), Step::Collect { .. }));
        held.push((flow, call));
    }
    assert_eq!(first(&engine).health.phase(mono(up)), Phase::HalfOpen);
    let (flow, call) = held.last_mut().unwrap();
    flow.on(Event::Body { attempt: call.id, body: BodyFacts::Broken }, at(up));
    let Step::Done(decision) = flow.step(at(up)) else { panic!("decided") };
    assert!(matches!(decision.reply, Reply::Collected(_)), "a direct route's answer is not examined");
    assert_eq!(first(&engine).health.phase(mono(up)), Phase::HalfOpen, "one of three");
}

/// What is larger than may be held back has brought that much, and its client is not waited for.
#[test]
fn a_large_answer_of_a_probe_counts_once_it_is_too_large() {
    let engine = of(20, None);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    let too_large = Upstream::Answers(head(200), Body::Is(BodyFacts::TooLarge));
    let unread: Vec<_> = (0..3).map(|_| World::of(too_large, too_large).ask(&engine, 0, GET, up)).collect();
    assert_eq!(first(&engine).health.phase(mono(up)), Phase::Closed);
    drop(unread);
}

/// Ten seconds and more: a client that does not read a probe's answer keeps nobody out.
#[test]
fn a_reader_who_does_not_read_keeps_no_probe_waiting() {
    let engine = of(20, None);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    let missing = Upstream::Answers(head(404), Body::Is(GOOD));
    let unread: Vec<_> = (0..10).map(|_| World::of(missing, missing).ask(&engine, 0, GET, up)).collect();
    assert!(unread.iter().all(|decision| matches!(decision.reply, Reply::Collected(_))));
    let later = up + 11 * SECOND;
    assert_eq!(first(&engine).health.phase(mono(later)), Phase::HalfOpen);
    for _ in 0..3 {
        stream(&engine, later).complete();
    }
    assert_eq!(first(&engine).health.phase(mono(later)), Phase::Closed);
    drop(unread);
}
