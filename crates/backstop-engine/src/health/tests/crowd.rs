//! Many threads at one dependency.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use super::support::{MIDDLE, World, seconds};
use crate::health::{Phase, Ticket, WindowCount};
use crate::time::Mono;

const THREADS: u64 = 64;

/// Runs it on all threads at once.
fn crowd(what: impl Fn(u64) + Sync) {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, what) = (&start, &what);
            scope.spawn(move || {
                start.wait();
                what(thread);
            });
        }
    });
}

/// 64 threads of 1000 calls, one in four failed: each counts once.
#[test]
fn no_call_is_lost_or_counted_twice() {
    let world = World::plain();
    crowd(|_| {
        for n in 0..1000 {
            if n % 4 == 3 { world.fail() } else { world.answer() }
        }
    });
    let expected = WindowCount { calls: 64_000, failures: 16_000, slow: 0 };
    assert_eq!((world.health.counts(world.now), world.phase()), (expected, Phase::Closed));
}

/// All come at the moment at which it may be tried: three pass, in each of 200 incidents.
#[test]
fn of_a_crowd_exactly_the_accepted_number_is_a_probe() {
    let mut world = World::plain();
    world.trip();
    for round in 1..=200 {
        world.now = world.health.known_up(world.now).unwrap();
        let probes = AtomicU32::new(0);
        let all_came = Barrier::new(THREADS as usize);
        crowd(|_| {
            let ticket = world.try_admit();
            probes.fetch_add(u32::from(ticket.is_ok()), Ordering::Relaxed);
            all_came.wait();
            if let Ok(probe) = ticket {
                probe.failed(world.now, MIDDLE);
            }
        });
        assert_eq!(probes.into_inner(), 3);
        assert_eq!(world.health.totals().trips, 1 + round, "three failed probes are one trip");
    }
}

/// All fail at once: one trip, one generation.
#[test]
fn a_crowd_of_failures_is_one_trip() {
    let world = World::plain();
    crowd(|_| {
        let ticket = world.try_admit();
        if let Ok(ticket) = ticket {
            ticket.failed(world.now, MIDDLE);
        }
    });
    assert_eq!((world.health.totals().trips, world.health.generation()), (1, 1));
}

/// An order is never lost, whatever else is moving: after it nothing but a release ends it.
#[test]
fn an_order_in_a_crowd_is_carried_out() {
    for _ in 0..200 {
        let world = World::with_recovery();
        crowd(|thread| {
            if thread == 13 {
                world.health.force_open(world.now);
                assert!(world.try_admit().is_err());
            } else if let Ok(ticket) = world.try_admit() {
                ticket.failed(world.now, MIDDLE);
            }
        });
        assert_eq!(world.phase(), Phase::ForcedOpen);
    }
}

struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Everything at once while time passes. Within one generation there are never more probes than accepted, and whatever
/// happened, three good probes later it is on its way back.
#[test]
fn a_long_incident_with_everything_in_it_loses_no_slot() {
    const GENERATIONS: usize = 1 << 16;
    let mut world = World::with_recovery();
    let clock = AtomicU64::new(world.now.as_ns());
    let inside: Vec<_> = (0..GENERATIONS).map(|_| AtomicU32::new(0)).collect();
    let probes = AtomicU32::new(0);
    let end = |ticket: Ticket, chance: &mut Xorshift, now: Mono| {
        if ticket.is_probe() {
            inside[ticket.generation() as usize % GENERATIONS].fetch_sub(1, Ordering::AcqRel);
        }
        // Six bad seconds of every twelve.
        let is_bad = (now.as_ns() / 6_000_000_000).is_multiple_of(2);
        match chance.next() % 8 {
            _ if is_bad && !chance.next().is_multiple_of(4) => ticket.failed(now, chance.next()),
            0 => drop(ticket),
            1 => ticket.unused(),
            2 => ticket.neutral(now),
            3 => ticket.failed(now, chance.next()),
            _ => ticket.answered(now),
        }
    };
    crowd(|thread| {
        let mut chance = Xorshift(0x9E37_79B9_7F4A_7C15 ^ (thread + 1));
        let mut held = Vec::new();
        for _ in 0..3000 {
            let now = Mono::from_ns(clock.fetch_add(chance.next() % 20_000_000, Ordering::Relaxed));
            if let Ok(ticket) = world.health.admit(now, !chance.next().is_multiple_of(4), chance.next()) {
                if ticket.is_probe() {
                    probes.fetch_add(1, Ordering::Relaxed);
                    let before =
                        inside[ticket.generation() as usize % GENERATIONS].fetch_add(1, Ordering::AcqRel);
                    assert!(before < 3, "{before} probes were inside already");
                }
                held.push(ticket);
            }
            match chance.next() % 4096 {
                0 => world.health.force_open(now),
                1 => world.health.force_closed(now),
                2..64 => world.health.release(now),
                _ => {}
            }
            while held.len() > (chance.next() % 5) as usize {
                let index = (chance.next() % held.len() as u64) as usize;
                end(held.swap_remove(index), &mut chance, now);
            }
        }
        for ticket in held {
            end(ticket, &mut chance, Mono::from_ns(clock.load(Ordering::Relaxed)));
        }
    });
    let probes = probes.into_inner();
    assert!(probes > 100, "{probes}");
    world.now = Mono::from_ns(clock.into_inner()).after(seconds(3600));
    world.health.release(world.now);
    if world.phase() == Phase::Closed {
        world.trip();
    }
    for _ in 0..100 {
        if let Some(up) = world.health.known_up(world.now) {
            world.now = world.now.max(up);
        }
        world.wait(seconds(1));
        if let Ok(ticket) = world.try_admit() {
            ticket.answered(world.now);
        }
    }
    assert!(matches!(world.phase(), Phase::Watch { .. } | Phase::Closed), "{:?}", world.phase());
}
