//! An answer that streams counted as soon as its head came: however long its rest kept everybody waiting, it was never a
//! slow call, and heads alone closed a breaker and lifted a ramp.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::flow::Settlement;
use crate::health::{BreakerRules, PerMille, Phase, RecoveryRules, WindowCount};
use crate::policy::Dependency;

use super::super::support::{GET, MS, OK, SECOND, START, direct, route};
use super::{BROKEN, World, dependency, engine, first, mono, open};

fn of(min_calls: u32, recovery: Option<RecoveryRules>) -> Arc<Engine> {
    let breaker = Some(BreakerRules { min_calls, ..BreakerRules::default() });
    let dependency = Dependency { breaker, recovery, ..dependency("catalog", &[]) };
    engine(vec![route(direct())], vec![dependency], vec![])
}

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
        settlement.is_slow(mono(now));
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
        settlement.is_slow(now);
        settlement.is_slow(now);
        let counts = first(&engine).health.counts(now);
        assert_eq!(counts, WindowCount { calls: 1, failures: 0, slow: 1 }, "{lasted}");
        if lasted < 10 {
            settlement.break_off(BROKEN);
            let counts = first(&engine).health.counts(now);
            assert_eq!(counts, WindowCount { calls: 1, failures: 1, slow: 1 }, "{lasted}");
        }
    }
}

/// A probe that keeps its reader waiting has failed, whatever its head said.
#[test]
fn a_probe_whose_rest_is_slow_opens_it_again() {
    let engine = of(20, None);
    open(first(&engine), START);
    let up = START + 5 * SECOND;
    let mut probe = stream(&engine, up);
    assert_eq!(first(&engine).health.phase(mono(up)), Phase::HalfOpen);
    probe.is_slow(mono(up + SECOND + 1));
    assert!(matches!(first(&engine).health.phase(mono(up + SECOND + 1)), Phase::Open { .. }));
    assert_eq!(first(&engine).health.totals().trips, 2);
}

/// By hand: ten heads in each second, and what follows them hangs: more than a twentieth is too late for red, and three red
/// seconds at the first share open it.
#[test]
fn heads_alone_lift_no_ramp() {
    let engine = of(1000, Some(RecoveryRules::default()));
    open(first(&engine), START);
    let mut now = START + 5 * SECOND;
    for _ in 0..3 {
        stream(&engine, now).complete();
    }
    for _ in 0..3 {
        assert_eq!(first(&engine).health.phase(mono(now)), Phase::Ramp { share: PerMille(100) });
        for _ in 0..10 {
            now += 100 * MS;
            stream(&engine, now).is_slow(mono(now));
        }
    }
    assert!(matches!(first(&engine).health.phase(mono(now)), Phase::Open { .. }));
}
