//! An outage at a thousand requests per second, from the first failure to full traffic: how many calls it is given.
//!
//! The backend has 40 workers that take 20 ms for a call, on average: 2 000 calls per second. From second 30 to second 60 it
//! refuses connections; where it comes back cold, everything takes three times as long for another 30 s, so that it can do
//! 667 per second of the 1 000 that come. No more than 200 calls are in flight, of which reads may be 169: a ramp needs a
//! limit beside it, because a share that is held while a queue grows has no other bound. Whoever waits longer than a second leaves; the work is done all the same.
use std::time::Duration;

use backstop_engine::health::{PerMille, Phase, Totals};
use backstop_engine::outcome::Outcome;

use super::shop::{Happens, Incident, SECOND, Shop, policy};

/// Ten times what is needed in good times.
const CONNECTIONS: u32 = 200;
const PER_SECOND: u64 = 1_000;
const DOWN: (u64, u64) = (30, 60);
const NEVER: (u64, u64) = (0, 0);

/// What came of one run.
#[derive(Debug, Default)]
struct Story {
    requests: u64,
    calls: u64,
    /// Within the outage.
    requests_while_down: u64,
    calls_while_down: u64,
    probes_while_down: u64,
    trips_while_down: u64,
    trips_after: u64,
    step_backs: u64,
    /// Of those that came once it was up: neither answered nor refused.
    failed_while_up: u64,
    full_after: Option<Duration>,
    /// The most that a ramp admitted above what its share allows, in calls.
    above_the_ramp: f64,
}

/// A stretch of time in which the ramp's share stays the same, and what was admitted in it.
struct Stretch {
    share: u32,
    began: u64,
    calls: usize,
    rate: f64,
}

/// `failing`: so many calls of a hundred, while it is down.
fn play(failing: u64, slow: (u64, u64), seed: u64) -> Story {
    let incident = Incident { down_s: DOWN, failing, slow_s: slow, slower: 3 };
    let mut shop = Shop::new(vec![policy(CONNECTIONS, None, 1)], 40, 20_000_000, incident, seed);
    let mut story = Story::default();
    let mut stretch: Option<Stretch> = None;
    let mut at_up: Option<Totals> = None;
    shop.ask_in(1, 0);
    while let Some(mut happens) = shop.next(180) {
        let was_up = shop.since() >= DOWN.1 * SECOND;
        if was_up && at_up.is_none() {
            at_up = Some(shop.dependency().health.totals());
        }
        if let Happens::Asks(client) = happens {
            let next = shop.draws.around(SECOND / PER_SECOND).max(1);
            shop.ask_in(next, client);
            story.requests += 1;
            story.requests_while_down += u64::from(shop.is_down());
            happens = shop.ask(client);
        }
        if let Happens::Came(_, came) = happens {
            story.failed_while_up += u64::from(was_up && came.outcome == Outcome::Failed);
        }
        watch_the_ramp(&shop, &mut stretch, &mut story);
        let phase = shop.dependency().health.phase(shop.mono());
        if !was_up || !matches!(phase, Phase::Watch { .. } | Phase::Closed) {
            story.full_after = None;
        } else if story.full_after.is_none() {
            story.full_after = Some(Duration::from_nanos(shop.since() - DOWN.1 * SECOND));
        }
    }
    let is_down = |at: &&u64| (DOWN.0 * SECOND..DOWN.1 * SECOND).contains(*at);
    let (at_up, totals) = (at_up.unwrap(), shop.dependency().health.totals());
    story.calls = shop.calls.len() as u64;
    story.calls_while_down = shop.calls.iter().filter(is_down).count() as u64;
    (story.probes_while_down, story.trips_while_down) = (at_up.probes, at_up.trips);
    (story.trips_after, story.step_backs) = (totals.trips - at_up.trips, totals.step_backs);
    story
}

/// Of each stretch of time with one share: no more calls than `share * usual rate * 1.05 * time`, and a burst of a tenth of a
/// second.
fn watch_the_ramp(shop: &Shop, stretch: &mut Option<Stretch>, story: &mut Story) {
    let Phase::Ramp { share: PerMille(share) } = shop.dependency().health.phase(shop.mono()) else {
        *stretch = None;
        return;
    };
    let usual = shop.dependency().health.usual_rate().unwrap();
    let rate = usual * 1.05 * f64::from(share) / 1_000.0;
    let current = stretch.get_or_insert(Stretch { share, began: shop.now, calls: shop.calls.len(), rate });
    if current.share != share {
        *current = Stretch { share, began: shop.now, calls: shop.calls.len(), rate };
    }
    let calls = (shop.calls.len() - current.calls) as f64;
    let seconds = (shop.now - current.began) as f64 / SECOND as f64;
    let allowed = current.rate * seconds + (current.rate / 10.0).max(1.0);
    story.above_the_ramp = story.above_the_ramp.max(calls - allowed);
}

/// Each open time ends with one probe that fails: by hand, 4 s at least and 8, 16 s at least after the second and third trip,
/// so at most four trips in 30 s. What is called beside the probes are the calls until the first trip: those under way are
/// answered for 40 ms at most, in which 40 come, then ten fail in a row; three retries are paid. Chance puts some on top.
fn hardly_asked(story: &Story) {
    assert!((1..=4).contains(&story.trips_while_down), "{story:?}");
    assert!(story.probes_while_down <= 3 * story.trips_while_down, "{story:?}");
    assert!(story.calls_while_down <= 40 + 10 + 3 + 12 + story.probes_while_down, "{story:?}");
    assert!(story.calls_while_down as f64 <= 1.1 * story.requests_while_down as f64, "{story:?}");
    assert!(story.calls as f64 <= 1.1 * story.requests as f64, "{story:?}");
    assert!(story.above_the_ramp <= 1.0, "{story:?}");
}

#[test]
fn an_outage_is_hardly_asked_and_its_end_is_no_second_one() {
    for seed in 1..=10 {
        let story = play(100, NEVER, seed);
        hardly_asked(&story);
        assert_eq!((story.trips_after, story.failed_while_up), (0, 0), "{story:?}");
        assert!(story.full_after.is_some_and(|after| after < Duration::from_secs(45)), "{story:?}");
    }
}

#[test]
fn a_cold_backend_at_full_demand_is_stepped_back_and_does_not_fall_over() {
    let mut step_backs = 0;
    for seed in 1..=10 {
        let story = play(100, (60, 90), seed);
        hardly_asked(&story);
        assert_eq!(story.trips_after, 0, "it fell over: {story:?}");
        assert!(story.full_after.is_some_and(|after| after < Duration::from_secs(45)), "{story:?}");
        step_backs += story.step_backs;
    }
    assert!(step_backs >= 10, "{step_backs}");
}

/// Three of ten calls fail for 30 s, too few for the breaker. By hand: seven of ten succeed, and ten successes pay for one
/// retry, so that hardly one of ten requests is called twice; without a price it would be three of ten.
#[test]
fn a_brownout_is_not_asked_more_than_a_tenth_more() {
    for seed in 1..=10 {
        let story = play(30, NEVER, seed);
        assert_eq!(story.trips_while_down, 0, "{story:?}");
        let share = story.calls_while_down as f64 / story.requests_while_down as f64;
        assert!((1.05..=1.1).contains(&share), "{share} {story:?}");
    }
}
