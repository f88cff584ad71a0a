//! Thousands of flows that are cancelled or panic, on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use crate::engine::Engine;
use crate::flow::{Event, Flow, Step};
use crate::policy::{DependencyId, Route, RouteId};

use super::support::{
    GET, GOOD, REFUSED, START, Script, Upstream, at, begin, copy_read_at, dependency, engine, get, head,
    in_flight, public, route, words,
};

const FLOWS: u64 = 10_000;
const THREADS: u64 = 8;

/// Goes as far as `steps` steps, and then the request ends in the way that `number` says: the client leaves, or the
/// request's own code panics, while all that it holds lies on the stack.
fn cut_short(engine: &Arc<Engine>, number: u64) {
    let panics = number % 2 == 1;
    let steps = number / 2 % 6;
    let mut flow: Flow = begin(engine, GET, START);
    let mut held = Vec::new();
    let mut decision = None;
    for _ in 0..steps {
        let event = match flow.step(at(START)) {
            Step::Peek => Event::Known(None),
            Step::Wait { .. } => Event::Released,
            Step::Pause { .. } | Step::Parts { .. } => Event::TimeUp(None),
            Step::Attempt(call) => {
                let attempt = call.id;
                held.push(call);
                Event::Head { attempt, head: head(200) }
            }
            Step::Collect { attempt, .. } => Event::Body { attempt, body: GOOD },
            Step::Load { .. } => Event::Copy(Ok(None)),
            Step::Lookup { .. }
            | Step::Join { .. }
            | Step::Authorize { .. }
            | Step::Consult { .. }
            | Step::Record { .. } => unreachable!("none of them here"),
            Step::Done(done) => {
                decision = Some(done);
                break;
            }
        };
        flow.on(event, at(START));
    }
    if panics {
        resume_unwind(Box::new((number, decision.is_some())));
    }
}

/// 10 000 of them, half cancelled and half panicking, leave nothing in flight and are each counted once.
#[test]
fn cancelled_and_panicking_flows_leave_nothing_behind() {
    let narrow = Route { in_flight: 6, fallback_in_flight: 1, ..route(public()) };
    let engine = engine(7, vec![narrow], vec![dependency(3, 20)]);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = &engine;
            scope.spawn(move || {
                for number in (thread..FLOWS).step_by(THREADS as usize) {
                    let ended = catch_unwind(AssertUnwindSafe(|| cut_short(engine, number)));
                    assert_eq!(ended.is_err(), number % 2 == 1);
                }
            });
        }
    });
    assert_eq!(in_flight(&engine), [0; 4]);
    assert_eq!(engine.dependency(DependencyId(0)).in_flight.waiting(), 0);
    let counts = engine.route(RouteId(0)).tally.requests();
    assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), FLOWS);
    let panicked: u64 =
        counts.iter().filter(|count| count.reason == "unclassified").map(|count| count.count).sum();
    assert_eq!(panicked, FLOWS / 2, "a panic is a failure, not a client that left");
    let calls = &engine.dependency(DependencyId(0)).tally;
    assert!(calls.attempts() > 0);
    assert_eq!(calls.attempts(), calls.answers() + calls.abandoned());
}

/// The dependency is down, there is a copy, and 200 come at once to two places: two get the copy and 198 are refused, whoever
/// is still there when they come.
#[test]
fn of_two_hundred_at_once_two_get_the_copy() {
    let engine = engine(400, vec![route(public())], vec![dependency(200, 0)]);
    let script = Script::new(Upstream::Fails(REFUSED)).with_copy(copy_read_at(START));
    let decisions: Vec<_> = (0..200).map(|_| get(&engine, &script, START)).collect();
    let came_to = |outcome| decisions.iter().filter(|decision| words(decision).0 == outcome).count();
    assert_eq!((came_to("fallback"), came_to("rejected")), (2, 198));
    assert_eq!(engine.dependency(DependencyId(0)).tally.attempts(), 2, "and nobody else is asked for");
    drop(decisions);
    assert_eq!(words(&get(&engine, &script, START)).0, "fallback", "both places are free again");
}
