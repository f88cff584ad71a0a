//! Everybody who was refused in an outage comes back: in virtual time, with the very code that admits and that says when.
//!
//! Each second 500 requests arrive, whatever happens to the others; the dependency can take 800 per second. For 30
//! seconds it is down, and the 15 000 requests of that time are told when to come back, which they do, up to five times
//! in all. What they are told decides whether the recovery is one.
#![cfg(not(loom))]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use backstop_engine::admission::Excess;
use backstop_engine::policy::Origin;
use backstop_engine::resource::{ClassShare, Resource, ResourceRules};
use backstop_engine::retry_after::Slots;
use backstop_engine::time::Mono;

const SECOND: u64 = 1_000_000_000;
const DEMAND_PER_SECOND: u64 = 500;
const CAPACITY_PER_SECOND: u64 = 800;
const SPARE_PER_SECOND: f64 = 300.0;
const OUTAGE_SECONDS: u64 = 30;
const LAST_SECONDS: u64 = 200;
const TRIES: u32 = 5;

/// What came of it.
#[derive(Debug, Default)]
struct Story {
    refused_in_the_outage: u64,
    refused_after_it: u64,
    /// Tried five times in vain, or were not told to come back.
    lost: u64,
    /// The most arrivals within one second after the outage, as a multiple of the capacity.
    peak: f64,
}

/// Even numbers without a pattern, the same in every run (SplitMix64, Steele et al. 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The requests of each second, at random moments of it, and what each refusal is told (in seconds).
fn play(tell: impl Fn(Mono, Mono) -> Option<u32>) -> Story {
    let name = "catalog".into();
    let rules =
        ResourceRules { name, concurrency: None, rate: Some(CAPACITY_PER_SECOND), origin: Origin::NONE };
    let resource = Resource::new(rules);
    let up = Mono::from_ns(OUTAGE_SECONDS * SECOND);
    let mut draws = Draws(42);
    let mut arrivals: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for second in 0..LAST_SECONDS {
        for _ in 0..DEMAND_PER_SECOND {
            arrivals.push(Reverse((second * SECOND + draws.next() % SECOND, 1)));
        }
    }
    let mut story = Story::default();
    let mut last_second = std::collections::VecDeque::new();
    while let Some(Reverse((at, tries))) = arrivals.pop() {
        let now = Mono::from_ns(at);
        let is_up = now >= up;
        if is_up {
            last_second.push_back(at);
            while last_second.front().is_some_and(|&earlier| earlier + SECOND <= at) {
                last_second.pop_front();
            }
            story.peak = story.peak.max(last_second.len() as f64 / CAPACITY_PER_SECOND as f64);
            if resource.try_acquire(now, ClassShare::Read, Excess::Refuse).is_ok() {
                continue;
            }
            story.refused_after_it += 1;
        } else {
            story.refused_in_the_outage += 1;
        }
        match tell(now, up.max(now)).filter(|_| tries < TRIES) {
            Some(seconds) => arrivals.push(Reverse((at + u64::from(seconds) * SECOND, tries + 1))),
            None => story.lost += 1,
        }
    }
    story
}

/// By hand: half of the spare 300/s are 150 per second, so arrivals after the outage are 650 per second, 0.81 of the
/// capacity, and what chance and whole seconds put on top. All 15 000 have their slot within 100 seconds.
#[test]
fn a_slot_for_everybody_makes_no_second_outage() {
    let slots = Slots::new();
    let story = play(|now, up| slots.assign(now, up, SPARE_PER_SECOND));
    assert_eq!(story.refused_in_the_outage, 15_000, "{story:?}");
    assert!(story.peak <= 1.3, "{story:?}");
    assert!(story.peak >= 0.8, "nobody came back: {story:?}");
    assert_eq!(story.lost, 0, "{story:?}");

    // The same story, but everybody is told the true moment of recovery, and afterwards one second: without slots the
    // bound above would be missed by far.
    let same = play(|now, up| {
        let seconds = up.as_ns().saturating_sub(now.as_ns()).div_ceil(SECOND).max(1);
        u32::try_from(seconds).ok()
    });
    assert!(same.peak > 10.0, "{same:?}");
    assert!(same.refused_after_it > 10 * story.refused_after_it, "{story:?} {same:?}");
    assert!(same.lost > 5_000, "{same:?}");
}
