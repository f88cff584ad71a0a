//! The way back to full traffic.

use std::time::Duration;

use super::support::{MIDDLE, World, at, ms, seconds};
use crate::failure::NotAsked;
use crate::health::{BreakerRules, PerMille, Phase, RecoveryRules, Totals};

/// At the first share.
pub(super) fn ramping() -> World {
    let mut world = World::with_recovery();
    world.trip_and_recover();
    assert_eq!(world.share(), Some(PerMille(100)));
    world
}

/// One second with so many calls, a tenth of a second apart: the first share lets 10.5 per second through.
fn tick(world: &mut World, good: u32, bad: u32) {
    let end = world.now.after(seconds(1));
    for n in 0..good + bad {
        world.wait(ms(100));
        if n < good { world.answer() } else { world.fail() }
    }
    assert!(world.now <= end);
    world.now = end;
}

pub(super) fn shares(world: &mut World, ticks: &[(u32, u32)]) -> Vec<u32> {
    let mut after = |&(good, bad)| {
        tick(world, good, bad);
        world.share().map_or(0, |share| share.0)
    };
    ticks.iter().map(&mut after).collect()
}

pub(super) const GREEN: (u32, u32) = (5, 0);
const AMBER: (u32, u32) = (4, 1);
const RED: (u32, u32) = (6, 3);

/// By hand: times 1.5, rounded down to a thousandth: 100, 150, 225, 337, 505, 757, then everything.
#[test]
fn six_green_ticks_lead_to_full_traffic() {
    let mut world = ramping();
    assert_eq!(shares(&mut world, &[GREEN; 5]), [150, 225, 337, 505, 757]);
    tick(&mut world, 5, 0);
    // 5 s open, 6 s of steps, 60 s of watching.
    assert_eq!((world.now, world.phase()), (at(seconds(11)), Phase::Watch { until: at(seconds(71)) }));
    assert_eq!(world.health.totals(), Totals { trips: 1, probes: 3, step_ups: 6, ..Totals::default() });
}

/// By hand: retries from second 21 on, closed from second 71 on.
#[test]
fn full_traffic_is_watched_for_a_minute() {
    let mut world = ramping();
    shares(&mut world, &[GREEN; 6]);
    let nanosecond = Duration::from_nanos(1);
    let generation = world.health.generation();
    for (moment, retries) in [(seconds(21) - nanosecond, false), (seconds(21), true)] {
        world.now = at(moment);
        assert_eq!(world.health.retries_allowed(world.now), retries, "{moment:?}");
    }
    world.now = at(seconds(71) - nanosecond);
    assert_eq!(world.phase(), Phase::Watch { until: at(seconds(71)) });
    world.now = at(seconds(71));
    assert_eq!((world.phase(), world.health.generation()), (Phase::Closed, generation + 1));
}

/// By hand: 337 * 0.7 = 235; 235 * 0.7 = 164; 164 * 0.7 = 114.
#[test]
fn a_red_tick_steps_back_at_once_and_an_amber_one_holds() {
    let mut world = ramping();
    let ticks = [GREEN, GREEN, GREEN, AMBER, RED, AMBER, GREEN, RED];
    // 235 * 1.5 = 352, 352 * 0.7 = 246.
    assert_eq!(shares(&mut world, &ticks), [150, 225, 337, 337, 235, 235, 352, 246]);
    let totals = world.health.totals();
    assert_eq!((totals.step_ups, totals.step_backs), (4, 2));
}

/// By hand: steps back at seconds 9, 10 and 11: no step up before second 21.
#[test]
fn three_steps_back_freeze_the_share() {
    let mut world = ramping();
    let ticks = [GREEN, GREEN, GREEN, RED, RED, RED];
    assert_eq!(shares(&mut world, &ticks), [150, 225, 337, 235, 164, 114]);
    assert_eq!(world.now, at(seconds(11)));
    let mut expected = [114; 10];
    expected[9] = 171;
    assert_eq!(shares(&mut world, &[GREEN; 10]), expected);
}

/// By hand: steps back at seconds 9, 24 and 39: the first and the last are 30 s apart.
#[test]
fn three_steps_back_within_thirty_seconds_freeze_the_share() {
    let mut world = ramping();
    shares(&mut world, &[GREEN, GREEN, GREEN, RED]);
    shares(&mut world, &[AMBER; 14]);
    shares(&mut world, &[RED]);
    shares(&mut world, &[AMBER; 14]);
    assert_eq!(shares(&mut world, &[RED, GREEN]), [114, 114]);
}

/// By hand: the third step back is 31 s after the first.
#[test]
fn three_steps_back_over_a_longer_time_freeze_nothing() {
    let mut world = ramping();
    shares(&mut world, &[GREEN, GREEN, GREEN, RED, RED]);
    shares(&mut world, &[AMBER; 29]);
    assert_eq!(shares(&mut world, &[RED, GREEN]), [114, 171]);
}

/// By hand: the first share is never left downwards; the third red tick in a row there opens it, for twice the first
/// time.
#[test]
fn three_red_ticks_at_the_first_share_open_it_for_longer() {
    let mut world = ramping();
    assert_eq!(shares(&mut world, &[RED, RED, AMBER, RED, RED]), [100; 5]);
    assert_eq!(world.health.totals().step_backs, 0);
    tick(&mut world, 6, 3);
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(10)) });
    assert_eq!(world.health.totals().trips, 2);
}

/// A red tick that leads down to the first share is none at it.
#[test]
fn only_red_ticks_at_the_first_share_count() {
    let mut world = ramping();
    assert_eq!(shares(&mut world, &[GREEN, RED, RED, RED]), [150, 105, 100, 100]);
    tick(&mut world, 6, 3);
    assert_eq!(world.share(), Some(PerMille(100)));
    tick(&mut world, 6, 3);
    assert!(matches!(world.phase(), Phase::Open { .. }));
}

#[test]
fn without_traffic_there_is_no_step() {
    let mut world = ramping();
    world.wait(seconds(3600));
    assert_eq!(world.share(), Some(PerMille(100)));
    assert_eq!(world.health.totals().step_ups, 0);
}

/// By hand: a result per second: the fifth ends the tick.
#[test]
fn a_tick_with_little_traffic_goes_on_until_it_has_seen_enough() {
    let mut world = ramping();
    for _ in 0..4 {
        world.wait(seconds(1));
        world.answer();
        assert_eq!(world.share(), Some(PerMille(100)));
    }
    world.wait(seconds(1));
    world.answer();
    assert_eq!(world.share(), Some(PerMille(150)));
}

/// By hand: one call in a minute is all there is; the tick of a minute is judged by it.
#[test]
fn a_tick_of_a_minute_is_judged_by_whatever_it_holds() {
    let mut world = ramping();
    world.wait(seconds(1));
    world.answer();
    world.wait(seconds(59) - Duration::from_nanos(1));
    assert_eq!(world.share(), Some(PerMille(100)));
    world.wait(Duration::from_nanos(1));
    assert_eq!(world.share(), Some(PerMille(150)));
}

/// By hand: 100 calls per second are the measure, a tenth of it and a twentieth on top are 10.5: a call per 95.2 ms,
/// one at once. Asked every millisecond for a second from 0 on: at 0, 96, 191, ... 953.
#[test]
fn the_share_is_one_of_the_calls_before_the_incident() {
    let mut world = ramping();
    let mut passed = 0;
    for _ in 0..1000 {
        match world.try_admit() {
            Ok(ticket) => {
                passed += 1;
                // Amber for ever: the share stays.
                if passed % 5 == 0 { ticket.failed(world.now, MIDDLE) } else { ticket.answered(world.now) }
            }
            Err(refused) => assert_eq!(refused, NotAsked::Ramping),
        }
        world.wait(ms(1));
    }
    assert_eq!((passed, world.health.totals().refused_ramping), (11, 989));
}

#[test]
fn a_call_that_was_not_made_leaves_its_place_to_the_next() {
    let world = ramping();
    for _ in 0..100 {
        assert_eq!(world.health.refuses(world.now, false), None);
        world.admit().unused();
    }
    world.answer();
    assert_eq!(world.health.refuses(world.now, true), Some(NotAsked::Ramping));
    assert_eq!(world.try_admit().unwrap_err(), NotAsked::Ramping);
}

/// The breaker's own rule holds in the ramp too, with a window of its own: ten in a row are enough.
#[test]
fn the_breaker_opens_a_ramp_and_a_watch() {
    let mut world = ramping();
    for n in 0..10 {
        assert!(world.share().is_some(), "{n}");
        world.wait(ms(96));
        world.fail();
    }
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(10)) });

    let mut world = ramping();
    shares(&mut world, &[GREEN; 6]);
    world.trip();
    assert_eq!(world.phase(), Phase::Open { until: world.now.after(seconds(10)) });
}

/// Calls that hang and are given up are slow: too late, whatever was usual.
#[test]
fn calls_given_up_when_they_were_slow_are_red() {
    let mut world = ramping();
    let mut hanging = Vec::new();
    for _ in 0..5 {
        world.wait(ms(100));
        hanging.push(world.admit());
    }
    shares(&mut world, &[(3, 0)]);
    assert_eq!(world.share(), Some(PerMille(100)));
    world.wait(ms(600));
    let _tells_the_time = world.health.refuses(world.now, true);
    drop(hanging);
    // By hand: five of eight are slow, which is 62 %, but of fewer than 20 calls; too late is more than a twentieth.
    shares(&mut world, &[(0, 0)]);
    assert_eq!(world.share(), Some(PerMille(100)));
    assert_eq!(world.health.totals().step_ups, 0);
}

/// By hand: usual are 400 ms (octave 18, 262 144, eighths of 32 768: up to 425 984 us), so that 1.1 s would be green. A
/// call that was given up after 1.1 s would have taken longer, nobody knows how long: more than a twentieth of these, and
/// the tick is red. They are too few for the breaker (60 % slow).
#[test]
fn a_call_given_up_is_late_however_long_was_usual() {
    for (given_up, expected) in [(true, 105), (false, 225)] {
        let mut world = World::with_recovery();
        for _ in 0..20 {
            world.answer_after(ms(400));
        }
        world.trip_and_recover();
        shares(&mut world, &[(9, 0)]);
        let slow: Vec<_> = (0..2)
            .map(|_| {
                world.wait(ms(100));
                world.admit()
            })
            .collect();
        for _ in 0..3 {
            world.wait(ms(100));
            world.answer();
        }
        world.wait(ms(499));
        assert_eq!(world.share(), Some(PerMille(150)), "not a second yet");
        // The tick goes on: none is judged before it has five results.
        world.wait(ms(301));
        let _tells_the_time = world.health.refuses(world.now, true);
        for ticket in slow {
            if given_up { drop(ticket) } else { ticket.answered(world.now) }
        }
        world.wait(seconds(1));
        assert_eq!(world.share(), Some(PerMille(expected)), "{given_up}");
    }
}

/// What is slow is not usual: of 100 answers ten were slow, and the 95th percentile of the rest is theirs.
#[test]
fn slow_answers_are_not_usual() {
    let mut world = World::with_recovery();
    for n in 0..100 {
        world.answer_after(if n % 10 == 9 { ms(1001) } else { ms(10) });
    }
    world.trip_and_recover();
    assert_eq!(world.health.save(world.now).p95, Duration::from_micros(10_240));
}

/// By hand: usual is 10 ms, counted as up to 10.24; green up to three times that, red from seven times that on.
#[test]
fn answering_times_are_measured_by_what_was_usual() {
    for (lasted, expected) in [(ms(30), 150), (ms(31), 100), (ms(71), 100), (ms(72), 100)] {
        let mut world = World::with_recovery();
        for _ in 0..100 {
            world.answer_after(ms(10));
        }
        world.trip_and_recover();
        assert_eq!(world.health.save(world.now).p95, Duration::from_micros(10_240));
        for _ in 0..9 {
            world.wait(ms(100) - lasted);
            world.answer_after(lasted);
        }
        world.wait(ms(100));
        assert_eq!(world.share(), Some(PerMille(expected)), "{lasted:?}");
    }
    // Red is told from amber one step further up: 150 * 0.7 = 105.
    for (lasted, expected) in [(ms(71), 150), (ms(72), 105)] {
        let mut world = World::with_recovery();
        for _ in 0..100 {
            world.answer_after(ms(10));
        }
        world.trip_and_recover();
        shares(&mut world, &[GREEN]);
        for _ in 0..9 {
            world.wait(ms(100) - lasted);
            world.answer_after(lasted);
        }
        world.wait(ms(100));
        assert_eq!(world.share(), Some(PerMille(expected)), "{lasted:?}");
    }
}

/// Odd rules still lead somewhere: a first share of nothing, steps that are none.
#[test]
fn odd_rules_still_lead_to_full_traffic() {
    let rules = RecoveryRules {
        start: PerMille(0),
        up: PerMille(0),
        back: PerMille(5000),
        ..RecoveryRules::default()
    };
    let mut world = World::new(Some(BreakerRules::default()), Some(rules));
    world.trip_and_recover();
    assert_eq!(world.share(), Some(PerMille(1)));
    // One call per second is given whatever the share.
    for _ in 0..5 {
        world.answer();
        world.wait(seconds(1));
    }
    assert_eq!(world.share(), Some(PerMille(2)));
    world.health = World::new(
        Some(BreakerRules::default()),
        Some(RecoveryRules { start: PerMille(1000), ..RecoveryRules::default() }),
    )
    .health;
    world.trip_and_recover();
    assert_eq!(world.share(), Some(PerMille(1000)));
    shares(&mut world, &[GREEN]);
    assert!(matches!(world.phase(), Phase::Watch { .. }));
}

/// What a dependency had before is of interest while it is held back; after that it is seen.
#[test]
fn the_usual_rate_is_that_of_an_incident_under_way() {
    let mut world = World::with_recovery();
    for n in 0..2000 {
        world.wait_until(ms(10 * n));
        world.answer();
    }
    assert_eq!(world.health.usual_rate(), None);
    world.trip();
    assert_eq!(world.health.usual_rate(), Some(100.0));
    world.now = world.health.known_up(world.now).unwrap();
    for _ in 0..3 {
        assert_eq!(world.health.usual_rate(), Some(100.0));
        world.answer();
    }
    shares(&mut world, &[GREEN; 5]);
    assert_eq!(world.health.usual_rate(), Some(100.0));
    tick(&mut world, 5, 0);
    assert!(matches!(world.phase(), Phase::Watch { .. }));
    assert_eq!(world.health.usual_rate(), None);
}

/// Arrivals evenly, each answered if it is let through: how many were, in each second from now on.
fn arrivals(world: &mut World, per_second: u64, for_seconds: u64) -> Vec<u64> {
    let interval = Duration::from_nanos(1_000_000_000 / per_second);
    let mut second = || {
        let mut passed = 0;
        for _ in 0..per_second {
            if let Ok(ticket) = world.try_admit() {
                ticket.answered(world.now);
                passed += 1;
            }
            world.wait(interval);
        }
        passed
    };
    (0..for_seconds).map(|_| second()).collect()
}

/// After a night without calls the usual rate is next to nothing, and says nothing about the morning. 200 calls per second
/// come: the gate begins with one, and no second is given more than 1.5 times and a burst above the most that was given
/// before, until nothing is refused. By hand: ticks of five results at 1, 1.5, 2.25, 3.4 per second and ticks of a second
/// from then on are some 13 s to 5 per second, and ten steps from there to 200.
#[test]
fn after_a_silence_traffic_comes_back_in_steps() {
    let mut world = World::with_recovery();
    arrivals(&mut world, 200, 61);
    world.wait(seconds(100_000));
    world.trip_and_recover();
    let given = arrivals(&mut world, 200, 60);
    let full = given.iter().position(|&passed| passed == 200).expect("full traffic comes back");
    assert!((15..40).contains(&full), "{given:?}");
    assert!(given[full..].iter().all(|&passed| passed == 200), "{given:?}");
    let mut most = 1;
    for &passed in &given {
        // A second may hold the end of one tick and the burst of the next.
        assert!(passed <= most * 3 / 2 + most / 10 + 2, "{given:?}");
        most = most.max(passed);
    }
    assert!(matches!(world.phase(), Phase::Watch { .. }));
}

/// What comes is twice what came before: the whole of what came before is given after six steps, as ever, and the rest in
/// further ones. By hand: the whole is 100 per second and a twentieth; times 1.5 is 157, times 2.25 is 236, which is enough.
#[test]
fn more_than_before_the_incident_is_given_in_further_steps() {
    let mut world = World::with_recovery();
    arrivals(&mut world, 100, 61);
    world.trip_and_recover();
    assert_eq!(world.health.usual_rate(), Some(100.0));
    let given = arrivals(&mut world, 200, 10);
    // Each second's first tenth is the burst of its rate.
    let bound =
        [105, 158, 237, 354, 531, 795, 1050, 1575, 2363].map(|rate: u64| (rate * 11).div_ceil(100) + 1);
    for (second, (&passed, bound)) in given.iter().zip(bound).enumerate() {
        assert!(passed <= bound, "second {second}: {given:?}");
    }
    assert_eq!(given[8..], [200, 200], "{given:?}");
    assert!(matches!(world.phase(), Phase::Watch { .. }));
}

/// By hand: at 757 thousandths of 100 per second, and a twentieth on top, 79 calls pass in a second. The whole would let
/// 105 pass, and a burst of a tenth of a second: 115. So 36 refused are no reason for a further step, and 37 are.
#[test]
fn the_whole_is_everything_if_no_more_comes_than_it_lets_through() {
    for (refused, expected) in [(36, None), (37, Some(PerMille(1000)))] {
        let mut world = ramping();
        shares(&mut world, &[GREEN; 5]);
        assert_eq!(world.share(), Some(PerMille(757)));
        let end = world.now.after(seconds(1));
        for _ in 0..5 {
            world.wait(ms(20));
            world.answer();
        }
        let burst: Vec<_> = std::iter::from_fn(|| world.try_admit().ok()).collect();
        for _ in 1..refused {
            assert_eq!(world.try_admit().unwrap_err(), NotAsked::Ramping);
        }
        burst.into_iter().for_each(crate::health::Ticket::unused);
        world.now = end;
        assert_eq!(world.share(), expected, "{refused}");
    }
}
