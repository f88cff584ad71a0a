use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::OnceLock;
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn at_ms(ms: u64) -> Mono {
    Mono::from_ns(ms * 1_000_000)
}

/// By hand: spare 4/s gives slots half a second apart, the first half a second after the recovery at 30 s. From 10 s
/// these are 20.5, 21, 21.5 s away; told are whole seconds, rounded up.
#[test]
fn slots_follow_the_recovery_one_by_one() {
    let slots = Slots::new();
    let told = [(); 4].map(|()| slots.assign(at_ms(10_000), at_ms(30_000), 4.0));
    assert_eq!(told, [21, 21, 22, 22].map(Some));
    assert_eq!(slots.assign(at_ms(12_001), at_ms(30_000), 4.0), Some(21), "32.5 s less 12.001 s");
}

/// By hand: without an outage the first slot is one second and one step away; those that passed unused are gone.
#[test]
fn nobody_comes_back_before_a_second_has_passed() {
    let slots = Slots::new();
    assert_eq!(slots.assign(at_ms(0), at_ms(0), 2_000.0), Some(2), "1.001 s");
    assert_eq!(slots.slot(at_ms(0), at_ms(0), 2_000.0), Some(at_ms(1_002)));
    assert_eq!(slots.slot(at_ms(60_000), at_ms(0), 2_000.0), Some(at_ms(61_001)));
}

/// By hand: at spare 2/s one slot per second, from 118 s: 119 and 120 are told, 121 is not, and pushes nobody away.
#[test]
fn a_slot_beyond_two_minutes_is_neither_told_nor_used_up() {
    let slots = Slots::new();
    let told = |now| slots.assign(at_ms(now), at_ms(118_000), 2.0);
    assert_eq!([(); 4].map(|()| told(0)), [Some(119), Some(120), None, None]);
    assert_eq!(told(1_000), Some(120), "121 s less 1 s");
    assert_eq!(
        Slots::new().assign(at_ms(0), at_ms(121_000), 1e9),
        None,
        "the recovery itself is too far away"
    );
}

#[test]
fn without_spare_capacity_nothing_is_told() {
    let slots = Slots::new();
    let spares = [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
    for spare in spares {
        assert_eq!(slots.assign(at_ms(0), at_ms(0), spare), None, "{spare}");
    }
    assert_eq!(slots.slot(at_ms(0), at_ms(0), f64::MAX), Some(Mono::from_ns(1_000_000_001)), "1 ns apart");
    assert_eq!(slots.assign(Mono::MAX, Mono::MAX, 1.0), None);
}

/// No slot is given twice and none is left out: 640 refusals at once get 640 neighbours.
#[test]
fn sixty_four_threads_get_a_slot_each() {
    const THREADS: usize = 64;
    let slots = Slots::new();
    let given = [const { OnceLock::new() }; THREADS];
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for mine in &given {
            scope.spawn(|| {
                start.wait();
                let slot = || slots.slot(at_ms(0), at_ms(5_000), 200.0).unwrap();
                mine.set([(); 10].map(|()| slot())).unwrap();
            });
        }
    });
    let given: BTreeSet<Mono> = given.into_iter().flat_map(|mine| mine.into_inner().unwrap()).collect();
    // 200/s spare are 100 slots per second, 10 ms apart.
    let expected: BTreeSet<Mono> = (1..=640).map(|number| at_ms(5_000 + 10 * number)).collect();
    assert_eq!(given, expected);
}

proptest! {
    /// Against the rule in whole numbers, one refusal after the other.
    #[test]
    fn slots_agree_with_the_rule(
        refusals in vec((0..3_000_u64, 0..130_u64, 0..5_usize), 1..200),
    ) {
        // Spare per second, and the step in nanoseconds by hand.
        const SPARES: [(f64, u64); 5] =
            [(0.1, 20_000_000_000), (1.0, 2_000_000_000), (3.0, 666_666_667), (300.0, 6_666_667), (-1.0, 0)];
        let slots = Slots::new();
        let (mut now, mut next) = (0, 0_u64);
        for (gap_ms, up_s, spare) in refusals {
            now += gap_ms * 1_000_000;
            let up = up_s * 1_000_000_000;
            let (spare, step) = SPARES[spare];
            let slot = next.max(now + 1_000_000_000).max(up) + step;
            let is_told = step > 0 && slot - now <= 120_000_000_000;
            let seconds = (slot - now).div_ceil(1_000_000_000) as u32;
            let told = slots.assign(Mono::from_ns(now), Mono::from_ns(up), spare);
            prop_assert_eq!(told, is_told.then_some(seconds));
            if is_told {
                next = slot;
            }
        }
    }
}
