//! Many flows at once, in any order of events, against plain counters.

use std::time::Duration;

use proptest::prelude::*;

use crate::failure::NotAsked;
use crate::flow::{AttemptId, BodyFacts, ClientFault, Event, Flow, HeadFacts, State, Trace};
use crate::policy::RouteId;

use super::requests::{ops, ops_of_everything};
use super::support::{MS, START, TIMED_OUT, at, copy_read_at};
use super::world::World;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// At every step each number is the plain one, every step is the expected one, and at the end all is given back.
    #[test]
    fn any_order_of_events_keeps_every_count(ops in ops(4)) {
        let mut world = World::plain();
        for op in ops {
            world.apply(&op);
        }
        world.end();
    }

    /// The same with calls that are made again and elsewhere, breakers, ramps, resources, orders, limits that change while
    /// they are in use, and a date that is stepped.
    #[test]
    fn any_order_of_retries_stand_ins_breakers_and_changes_keeps_every_count(ops in ops_of_everything(6, 4)) {
        let mut world = World::of_everything();
        for op in ops {
            world.apply(&op);
        }
        world.end();
    }

    /// A driver that says anything at any time gets no panic, no place beyond a limit, and one count per request.
    #[test]
    fn no_sequence_of_events_breaks_a_flow(
        route in 0..4_u16,
        events in proptest::collection::vec((0..12_usize, 0..3_u32, 0..400_u64), 0..40),
    ) {
        let World { engine, .. } = World::plain();
        let facts = super::support::GET;
        let mut flow = Flow::begin(&engine, RouteId(route), facts, at(START), 0, Trace::on());
        let mut held = Vec::new();
        for (kind, attempt, ms) in events {
            let attempt = AttemptId(attempt);
            flow.on(anything(kind, attempt, ms), at(START + ms * MS));
            // Asking an attempt that is under way, or asking after the end, is the one thing that a driver may not do.
            if !matches!(flow.state, State::AwaitHead { .. } | State::Done) {
                held.push(flow.step(at(START + ms * MS)));
            }
            prop_assert!(engine.process().in_flight() <= 1);
            prop_assert!(engine.dependencies().iter().all(|dependency| dependency.in_flight.in_flight() <= 1));
        }
        drop((flow, held));
        prop_assert_eq!(engine.process().in_flight(), 0);
        prop_assert!(engine.dependencies().iter().all(|d| d.in_flight.in_flight() + d.in_flight.waiting() == 0));
        let counts = engine.route(RouteId(route)).tally.requests();
        prop_assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), 1);
    }
}

/// Any event at all.
fn anything(kind: usize, attempt: AttemptId, ms: u64) -> Event {
    let head = |status| HeadFacts { status, has_body: status == 200, degraded: None, ..HeadFacts::default() };
    match kind {
        0 => Event::Known(Some(copy_read_at(START))),
        1 => Event::Released,
        2 => Event::TimeUp(None),
        3 => Event::Head { attempt, head: head(200) },
        4 => Event::Head { attempt, head: head(503) },
        5 => Event::Body { attempt, body: BodyFacts::Whole { correct: true, storable: true } },
        6 => Event::Failed { attempt, failure: TIMED_OUT },
        7 => Event::Propagated { attempt },
        8 => Event::Copy(Ok(Some(copy_read_at(START)))),
        9 => Event::ClientWaited(Duration::from_millis(ms)),
        10 => Event::NotAsked { attempt, reason: NotAsked::PoolTimeout },
        _ => Event::ClientFault(ClientFault::Slow),
    }
}
