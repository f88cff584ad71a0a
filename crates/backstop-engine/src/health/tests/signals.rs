//! What a dependency says of itself while it comes back, and what is known of its backlog.

use std::time::Duration;

use super::ramp::{GREEN, ramping, shares};
use super::support::{at, ms, seconds};
use crate::health::{PerMille, Signal};

/// By hand, each at its two bounds: green up to and with the first, red beyond the second.
#[test]
fn signals_hold_and_step_back() {
    let wait = |us| Signal::DatabaseWait(Duration::from_micros(us));
    let backlog = |ms| Signal::Backlog(Duration::from_millis(ms));
    let in_use = |share| Signal::InUse(PerMille(share));
    let table = [
        ([wait(5_000), wait(5_001), wait(20_000)], wait(20_001)),
        ([in_use(700), in_use(701), in_use(900)], in_use(901)),
        ([backlog(1_000), backlog(1_001), backlog(5_000)], backlog(5_001)),
    ];
    for ([green, amber, still_amber], red) in table {
        let mut world = ramping();
        for (signal, expected) in [(green, 150), (amber, 150), (still_amber, 150), (red, 105), (green, 157)] {
            world.health.signal(world.now, signal);
            assert_eq!(shares(&mut world, &[GREEN]), [expected], "{signal:?}");
        }
    }
}

/// By hand: seen at second 5 and good; in ticks that end up to two seconds later it counts as there. Then it is
/// missing, and holds, until second 65; the tick that ends after it is judged by the rest.
#[test]
fn a_missing_signal_holds_for_a_minute() {
    let mut world = ramping();
    world.health.signal(world.now, Signal::InUse(PerMille(100)));
    assert_eq!(shares(&mut world, &[GREEN; 4]), [150, 225, 225, 225]);
    let held = shares(&mut world, &[GREEN; 56]);
    assert_eq!((held[0], held[55], world.now), (225, 225, at(seconds(65))));
    assert_eq!(shares(&mut world, &[GREEN]), [337]);
}

/// A backlog that is told while reads are added to it, and by nobody once other requests take all that is given: by hand, good at
/// second 5, red at 7; nobody adds to it after that, and from two ticks later on the steps go up again.
#[test]
fn a_backlog_that_nobody_adds_to_holds_no_ramp() {
    let mut world = ramping();
    world.health.signal(world.now, Signal::Backlog(ms(10)));
    assert_eq!(shares(&mut world, &[GREEN; 4]), [150, 225, 337, 505]);
    let mut world = ramping();
    assert_eq!(shares(&mut world, &[GREEN; 2]), [150, 225]);
    world.health.signal(world.now, Signal::Backlog(seconds(6)));
    // 225 * 0.7 = 157, 157 * 0.7 = 109; then up by half again.
    assert_eq!(shares(&mut world, &[GREEN; 4]), [157, 109, 163, 244]);
    world.wait(seconds(61));
    assert_eq!(world.health.missing_signals(world.now), [false; 3], "it is no word of the dependency's");
}

/// By hand: a signal that came at 5 s, when the ramp began, is waited for until 65 s and missing after that, if it still
/// ramps. What never came is not missed.
#[test]
fn a_signal_that_is_missing_for_a_minute_is_told() {
    let mut world = ramping();
    assert_eq!(Signal::TOKENS, ["db_wait", "in_use", "backlog"]);
    world.health.signal(world.now, Signal::DatabaseWait(ms(1)));
    world.wait(seconds(60));
    assert_eq!(world.health.missing_signals(world.now), [false; 3]);
    world.wait(Duration::from_nanos(1));
    assert_eq!(world.health.missing_signals(world.now), [true, false, false]);
    world.health.signal(world.now, Signal::InUse(PerMille(1)));
    world.health.force_closed(world.now);
    assert_eq!(world.health.missing_signals(world.now), [false; 3], "nothing waits for it any more");
}
