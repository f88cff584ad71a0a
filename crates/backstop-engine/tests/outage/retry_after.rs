//! Ten thousand clients that are told when to come back, and do.
//!
//! Each asks every 20 s, so 500 come per second; the database behind bears 800. For 30 s it is down. Who is refused comes back
//! when it was told, or as usual if it was told nothing. What comes after the outage decides whether that is one.
use backstop_engine::outcome::Outcome;

use super::shop::{Happens, Incident, SECOND, Shop, policy};

const CLIENTS: usize = 10_000;
const CAPACITY: u64 = 800;
const DOWN: (u64, u64) = (60, 90);
const USUAL_NS: u64 = 20 * SECOND;

#[derive(Debug, Default)]
struct Story {
    /// Told when to come back.
    told: u64,
    /// The most arrivals within one second once it was up, of all and of those who obey, as a multiple of the capacity.
    peak: f64,
    peak_of_the_obedient: f64,
    /// The most calls within one second once it was up, likewise.
    peak_of_calls: f64,
    refused_after: u64,
    /// Seconds until nobody who was refused is left unanswered.
    settled_s: u64,
}

/// `ignoring`: how many of a hundred come back after one second, whatever they were told.
fn play(gateways: usize, instances: u32, ignoring: usize) -> Story {
    let policies = (0..gateways).map(|_| policy(1_000, Some(CAPACITY), instances)).collect();
    let incident = Incident { down_s: DOWN, failing: 100, slow_s: (0, 0), slower: 1 };
    let mut shop = Shop::new(policies, 100, 20_000_000, incident, 7);
    let mut story = Story::default();
    let (mut all, mut obedient) = (Vec::new(), Vec::new());
    let mut is_waiting = vec![false; CLIENTS];
    let mut waiting = 0_u64;
    for client in 0..CLIENTS {
        let first = shop.draws.next() % USUAL_NS;
        shop.ask_in(first, client);
    }
    let obeys = |client: usize| client / gateways % 100 >= ignoring;
    while let Some(mut happens) = shop.next(400) {
        let since = shop.since();
        let is_up = since >= DOWN.1 * SECOND;
        if let Happens::Asks(client) = happens {
            if is_up {
                all.push(since);
                if obeys(client) {
                    obedient.push(since);
                }
            }
            happens = shop.ask(client);
        }
        let Happens::Came(client, came) = happens else { continue };
        let is_refused = came.outcome != Outcome::Normal;
        story.refused_after += u64::from(is_refused && is_up);
        story.told += u64::from(came.retry_after_s.is_some());
        if is_refused && !is_waiting[client] {
            waiting += 1;
        } else if !is_refused && is_waiting[client] {
            waiting -= 1;
        }
        is_waiting[client] = is_refused;
        if waiting > 0 {
            story.settled_s = since / SECOND;
        }
        let usual = shop.draws.around(USUAL_NS);
        let next = match came.retry_after_s {
            _ if is_refused && !obeys(client) => SECOND,
            Some(seconds) => u64::from(seconds) * SECOND,
            None => usual,
        };
        shop.ask_in(next.max(1), client);
    }
    let calls: Vec<_> = shop.calls.iter().copied().filter(|&at| at >= DOWN.1 * SECOND).collect();
    (story.peak, story.peak_of_the_obedient) = (peak(&all), peak(&obedient));
    story.peak_of_calls = peak(&calls);
    story
}

/// The most within any second.
fn peak(moments: &[u64]) -> f64 {
    let mut from = 0;
    let mut most = 0;
    for (index, moment) in moments.iter().enumerate() {
        while moments[from] + SECOND <= *moment {
            from += 1;
        }
        most = most.max(index + 1 - from);
    }
    most as f64 / CAPACITY as f64
}

/// By hand: 500 per second are usual, and half of the 300 that are spare are given to those who come back: 650, or 0.81 of the
/// capacity, and what chance and whole seconds put on top.
#[test]
fn ten_thousand_obedient_clients_make_no_second_outage() {
    let story = play(1, 1, 0);
    assert!(story.told > 5_000, "{story:?}");
    assert!((0.6..=1.3).contains(&story.peak), "{story:?}");
    assert!(story.settled_s < 240, "{story:?}");
}

/// Four gateways with the same database give out a quarter each. If each gave out all of it, by hand: four times half of the
/// 675 that are spare to one that sees 125 per second, 1 350, and the usual 500: 2.3 times the capacity.
#[test]
fn several_gateways_divide_what_is_spare() {
    let divided = play(4, 4, 0);
    assert!(divided.told > 5_000, "{divided:?}");
    assert!((0.6..=1.3).contains(&divided.peak), "{divided:?}");
    let undivided = play(4, 1, 0);
    assert!(undivided.peak > 1.5, "{undivided:?}");
}

/// Three of ten come back every second whatever they are told: that is 3 000 per second, and no field can help it. The limits
/// do: those who obey come no faster than before, and the database gets no more than it bears.
#[test]
fn those_who_do_not_obey_are_held_by_the_limits() {
    let story = play(1, 1, 30);
    assert!(story.peak > 1.3, "{story:?}");
    assert!(story.peak_of_the_obedient <= 1.3, "{story:?}");
    assert!(story.peak_of_calls <= 1.1, "{story:?}");
    assert!(story.settled_s < 300, "{story:?}");
}
