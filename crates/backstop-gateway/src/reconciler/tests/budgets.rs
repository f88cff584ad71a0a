//! What comes first out of a route's budget, and that all of it is used.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use backstop_engine::health::PerMille;
use backstop_engine::operation::State;
use backstop_engine::policy::effect::{AbsenceRules, AbsenceVerdict, CalibrationRules, VerificationRules};

use super::super::Followed;
use super::upstream::{BOUND, Upstream, answer};
use super::world::{World, count, eventually, query, route, verification};

/// One question each `interval`. Of known successes all are sampled, and no question runs out of time over a moved clock.
fn sampled(upstream: &Upstream, interval: Duration, concurrency: u32) -> Followed {
    let calibration = CalibrationRules { sample: PerMille(1000), must_see_within: Duration::from_secs(10) };
    let absence = AbsenceRules {
        settle: Duration::from_secs(60),
        confirmations: 2,
        spacing: Duration::from_secs(10),
        not_after: None,
        verdict: AbsenceVerdict::NotExecuted(calibration),
    };
    let mut paced = query();
    (paced.interval, paced.concurrency, paced.timeout) = (interval, concurrency, Duration::from_secs(600));
    let rules = VerificationRules { absence: Some(absence), ..verification(paced) };
    Followed { connect: Duration::from_secs(600), ..route("pay", upstream, Some(rules)) }
}

/// One question in five seconds. There is always an operation that is due, and always a success that is not shown.
#[test]
fn neither_operations_nor_samples_starve_the_other() {
    let upstream = Upstream::start(|line| match line.contains("key=k1&") {
        true => answer(200, r#"{"key":"k1","status":"processing"}"#),
        false => answer(404, r#"{"code":"no_such_payment"}"#),
    });
    let mut world = World::new(vec![sampled(&upstream, Duration::from_secs(5), 4)]);
    world.unknown("pay", 1);
    world.start();
    for second in 0..200 {
        world.settings.calibration.offer("pay", format!("known{second}").as_bytes(), world.clock.mono());
        world.pass(Duration::from_secs(1));
        let slots = upstream.requests().len() as u64;
        let ended = || world.queries("pending") + count(&world.counts().routes[0].sample_queries);
        eventually(|| ended() >= slots);
    }
    let (asked, samples) = (world.queries("pending"), count(&world.counts().routes[0].sample_queries));
    assert!((38..=41).contains(&(asked + samples)), "{asked} and {samples}");
    assert!((3..=5).contains(&samples), "one place of ten is kept for samples: {samples} of {asked}");
}

/// With time standing still: the answer comes while the ledger has not said yet what is due.
#[test]
fn a_place_that_is_free_while_the_ledger_is_asked_is_taken_at_once() {
    let (release, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let upstream = Upstream::start(move |line| match line.contains("key=k1&") {
        true => answer(200, r#"{"key":"k1","status":"paid"}"#),
        false => {
            let _opened = gate.lock().unwrap().recv_timeout(BOUND);
            answer(200, r#"{"key":"known","status":"paid"}"#)
        }
    });
    let (mut world, faulty) = World::faulty(vec![sampled(&upstream, Duration::ZERO, 1)]);
    world.settings.calibration.offer("pay", b"known", world.clock.mono());
    world.start();
    upstream.until(1);
    let id = world.unknown("pay", 1);
    faulty.holds.store(true, Ordering::SeqCst);
    world.hand.advance(Duration::from_secs(1));
    eventually(|| !faulty.holds.load(Ordering::SeqCst));
    release.send(()).unwrap();
    eventually(|| count(&world.counts().routes[0].sample_queries) == 1);
    faulty.lets_go();
    eventually(|| matches!(world.state(id), State::Succeeded(_)));
}
