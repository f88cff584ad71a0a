//! A streamed answer that broke off counted as an answer and as a failure: what failed always looked half well. And by a window
//! that had gone since its head came, it counted twice.

use std::sync::Arc;

use crate::engine::Engine;
use crate::flow::Reply;
use crate::health::{Band, BreakerRules, PerMille, Phase, RecoveryRules, WindowCount};
use crate::policy::Dependency;

use super::super::support::{Body, GET, MS, OK, SECOND, START, Upstream, direct, head, route};
use super::{BROKEN, World, dependency, engine, first, mono, open};

fn of(breaker: BreakerRules, recovery: Option<RecoveryRules>) -> Arc<Engine> {
    let dependency = Dependency { breaker: Some(breaker), recovery, ..dependency("catalog", &[]) };
    engine(vec![route(direct())], vec![dependency], vec![])
}

fn stream(engine: &Arc<Engine>, ns: u64) -> crate::flow::Settlement {
    World::of(OK, OK).ask(engine, 0, GET, ns).settlement
}

/// By hand: twenty calls, all of them failed: more than half, so the twentieth opens it. Two seconds apart no ten of them
/// are a row within five.
#[test]
fn streams_that_all_break_open_the_breaker() {
    let rules = BreakerRules {
        failures: PerMille(600),
        window: std::time::Duration::from_secs(100),
        ..BreakerRules::default()
    };
    let engine = of(rules, None);
    for n in 1..=20 {
        let now = START + n * 2 * SECOND;
        assert_eq!(first(&engine).health.phase(mono(now)), Phase::Closed, "{n}");
        stream(&engine, now).break_off(BROKEN);
        if n < 20 {
            let count = first(&engine).health.counts(mono(now));
            assert_eq!(count, WindowCount { calls: n, failures: n, slow: 0 });
        }
    }
    assert!(matches!(first(&engine).health.phase(mono(START + 40 * SECOND)), Phase::Open { .. }));
    let calls = &first(&engine).tally;
    assert_eq!((calls.attempts(), calls.answers(), calls.failures().iter().sum::<u64>()), (20, 0, 20));
}

/// By hand: a stream that breaks 5 s after it began is the same call; 30 s after, the window knows it no more, and it is
/// a call of now that failed.
#[test]
fn a_stream_that_breaks_is_one_call() {
    for lasted in [0, 5, 9, 10, 30] {
        let engine = of(BreakerRules::default(), None);
        let settlement = stream(&engine, START);
        let now = mono(START + lasted * SECOND);
        first(&engine).health.phase(now);
        settlement.break_off(BROKEN);
        assert_eq!(
            first(&engine).health.counts(now),
            WindowCount { calls: 1, failures: 1, slow: 0 },
            "{lasted}"
        );
    }
}

/// A probe whose answer breaks off has failed. It is held back, so that its client sees no half of it.
#[test]
fn a_broken_probe_opens_it_again() {
    let engine = of(BreakerRules::default(), None);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    let breaks = Upstream::Answers(head(200), Body::Breaks(BROKEN));
    let decision = World::of(breaks, breaks).ask(&engine, 0, GET, up);
    assert!(matches!(decision.reply, Reply::Refusal(refusal) if refusal.status == 502));
    assert!(matches!(first(&engine).health.phase(mono(up)), Phase::Open { .. }));
    assert_eq!(first(&engine).health.totals().trips, 2);
}

/// A stream of before the trip changes nothing after it.
#[test]
fn a_stream_of_an_older_generation_changes_nothing() {
    let engine = of(BreakerRules::default(), None);
    let old = stream(&engine, START);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    for _ in 0..3 {
        stream(&engine, up).complete();
    }
    assert_eq!(first(&engine).health.phase(mono(up)), Phase::Closed);
    old.break_off(BROKEN);
    assert_eq!(first(&engine).health.counts(mono(up)), WindowCount::default());
}

/// By hand: five of six calls in each second fail, more than the six tenths that are red here: three red seconds at the first
/// share open it. Counted twice they would be half, and hold it there for ever.
#[test]
fn streams_that_break_end_the_ramp() {
    let usual = RecoveryRules::default();
    let red = Band { errors: PerMille(600), ..usual.red };
    let rules = BreakerRules { failures: PerMille(1000), min_calls: 1000, ..BreakerRules::default() };
    let engine = of(rules, Some(RecoveryRules { red, ..usual }));
    open(first(&engine), START);
    let mut now = START + 5 * SECOND;
    for _ in 0..3 {
        stream(&engine, now).complete();
    }
    for _ in 0..3 {
        assert_eq!(first(&engine).health.phase(mono(now)), Phase::Ramp { share: PerMille(100) });
        for n in 0..6 {
            now += 100 * MS;
            let settlement = stream(&engine, now);
            // One of them is whole, so that no ten failures come in a row.
            if n == 0 { settlement.complete() } else { settlement.break_off(BROKEN) }
        }
        now += 400 * MS;
    }
    assert!(matches!(first(&engine).health.phase(mono(now)), Phase::Open { .. }));
}
