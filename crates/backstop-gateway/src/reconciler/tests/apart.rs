//! Budgets, routes that do not wait for each other, and lives that go on from each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backstop::clock::Clock;
use backstop_engine::operation::{Scope, State, Untracked};
use backstop_store::ledger::{MemoryRows, Rows};

use super::super::Reconciler;
use super::upstream::{BOUND, Reply, Upstream, answer};
use super::world::{World, count, eventually, pay, query, route, start, verification};

/// Answers every operation as paid, each about itself.
pub(crate) fn paid(line: &str) -> Reply {
    let key = line.split_once("key=").and_then(|(_, rest)| rest.split_once('&')).map_or("", |(key, _)| key);
    answer(200, &format!(r#"{{"key":"{key}","status":"paid"}}"#))
}

/// Thirty operations at fifty a second: 29 times 20 ms lie between the first beginning and the last one. By real time, because
/// what reaches the upstream is what is promised; it can only take longer.
#[test]
fn no_more_questions_reach_an_upstream_than_its_budget_has() {
    let interval = Duration::from_millis(20);
    let upstream = Upstream::start(paid);
    let mut budget = query();
    (budget.interval, budget.concurrency) = (interval, 2);
    let clock = Clock::system().unwrap();
    let (_, hand) = Clock::manual(start());
    let routes = vec![route("pay", &upstream, Some(verification(budget)))];
    let mut world = World::again(MemoryRows::default(), routes, clock.clone(), hand);
    let ids: Vec<_> = (1..=30).map(|number| world.unknown("pay", number)).collect();
    let begun = clock.mono();
    world.start();
    upstream.until(30);
    let took = clock.mono().since(begun).unwrap();
    assert!(took >= interval * 29, "{took:?}");
    assert!(took < BOUND / 4, "it goes on as fast as it may: {took:?}");
    assert!(upstream.most_under_way() <= 2, "{}", upstream.most_under_way());
    eventually(|| ids.iter().all(|id| matches!(world.state(*id), State::Succeeded(_))));
    assert_eq!(upstream.requests().len(), 30, "each once");
}

/// With time standing still: whatever one route waits for, the other gets its answers.
#[test]
fn a_route_that_hangs_keeps_no_other_waiting() {
    let (hangs, works) = (Upstream::start(|_| Reply::Hang), Upstream::start(paid));
    let routes = vec![
        route("stuck", &hangs, Some(verification(query()))),
        route("pay", &works, Some(verification(query()))),
    ];
    let mut world = World::new(routes);
    for number in 1..=100 {
        world.unknown("stuck", number);
    }
    let ids: Vec<_> = (101..=140).map(|number| world.unknown("pay", number)).collect();
    world.start();
    eventually(|| ids.iter().all(|id| matches!(world.state(*id), State::Succeeded(_))));
    hangs.until(4);
    assert_eq!(hangs.requests().len(), 4, "as many as may be under way");
    assert_eq!(works.requests().len(), 40);
    // Two minutes later it is far behind with the one and not with the other: nobody of the other's has to hear that.
    let late = world.unknown("stuck", 200);
    world.pass(Duration::from_secs(120));
    let new = world.unknown("pay", 201);
    let tracked = |route: &str, id| {
        let (follower, now) = (world.operations.following.of_route(route, true), world.clock.now());
        backstop_engine::operation::tracked(&world.record(id), &follower, world.ledger().epoch(), &now)
            .map(|_| ())
    };
    let of_new = tracked("pay", new);
    assert!(matches!(of_new, Ok(()) | Err(Untracked::NotUnknown)), "{of_new:?}");
    assert_eq!(tracked("stuck", late), Err(Untracked::Behind));
}

/// Five failures in a row stop it; then one question tries, after a wait of half a second to a second.
#[test]
fn an_upstream_that_fails_is_left_alone_for_a_while_and_then_tried_by_one() {
    let fails = Arc::new(AtomicBool::new(true));
    let is_failing = Arc::clone(&fails);
    let upstream = Upstream::start(move |line| match is_failing.load(Ordering::SeqCst) {
        true => answer(503, ""),
        false => paid(line),
    });
    let mut one = query();
    one.concurrency = 1;
    let mut world = World::new(vec![route("pay", &upstream, Some(verification(one)))]);
    let ids: Vec<_> = (1..=20).map(|number| world.unknown("pay", number)).collect();
    world.start();
    let counts = || &world.counts().routes[0];
    eventually(|| count(&counts().breaker_opened) == 1);
    world.hand.advance(Duration::from_millis(499));
    assert_eq!(world.queries("unavailable"), 5);
    assert_eq!(count(&counts().breaker_is_open), 1);
    world.pass(Duration::from_secs(1));
    eventually(|| count(&counts().breaker_opened) == 2);
    assert_eq!(upstream.requests().len(), 6, "one tried");
    fails.store(false, Ordering::SeqCst);
    eventually(|| {
        world.pass(Duration::from_secs(1));
        ids.iter().all(|id| matches!(world.state(*id), State::Succeeded(_)))
    });
    assert_eq!(count(&counts().breaker_is_open), 0);
    assert!(upstream.requests().iter().all(|request| request.starts_with("GET ")));
}

/// All are due, and none is asked for before the breaker lets one try: half a second after it opened at the soonest.
#[test]
fn while_the_breaker_is_open_no_earlier_query_is_told() {
    let upstream = Upstream::start(|_| answer(503, ""));
    let mut one = query();
    one.concurrency = 1;
    let mut world = World::new(vec![route("pay", &upstream, Some(verification(one)))]);
    for number in 1..=20 {
        world.unknown("pay", number);
    }
    world.start();
    let until_asked = || {
        let following = &world.operations.following;
        following.until_asked("pay", Duration::ZERO, world.clock.mono())
    };
    eventually(|| count(&world.counts().routes[0].breaker_opened) == 1);
    eventually(|| until_asked() >= Duration::from_millis(500));
    assert!(until_asked() <= Duration::from_secs(1));
    world.pass(Duration::from_secs(1));
    eventually(|| count(&world.counts().routes[0].breaker_opened) == 2);
    eventually(|| until_asked() >= Duration::from_secs(1));
}

/// What was asked when the process ended is asked again in the next life, within the 30 s over which that is spread.
#[test]
fn another_life_goes_on_where_the_last_one_ended() {
    let hangs = Upstream::start(|_| Reply::Hang);
    let mut first = World::new(vec![pay(&hangs)]);
    let ids: Vec<_> = (1..=3).map(|number| first.unknown("pay", number)).collect();
    first.start();
    hangs.until(3);
    assert!(first.handle.take().unwrap().close(BOUND), "a question that hangs keeps nobody");
    assert!(first.operations.ledger.close(BOUND));
    let works = Upstream::start(paid);
    let mut second =
        World::again(first.rows.clone(), vec![pay(&works)], first.clock.clone(), first.hand.clone());
    second.start();
    let begun = second.clock.mono();
    eventually(|| {
        second.step();
        ids.iter().all(|id| matches!(second.state(*id), State::Succeeded(_)))
    });
    let took = second.clock.mono().since(begun).unwrap();
    assert!(took < Duration::from_secs(40), "{took:?}");
    let mut asked = works.requests();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 3);
}

/// Another transaction holds the rows, so the ledger does not answer. 10 s later nobody hears "in verification" any more.
#[test]
fn who_is_stuck_gives_no_sign_of_life() {
    let upstream = Upstream::start(|_| answer(200, r#"{"key":"k1","status":"processing"}"#));
    let mut world = World::new(vec![pay(&upstream)]);
    let id = world.unknown("pay", 1);
    assert_eq!(world.tracked(id), Err(Untracked::Silent), "nobody is at work yet");
    world.start();
    eventually(|| world.tracked(id).is_ok());
    let record = world.record(id);
    let epoch = world.ledger().epoch();
    let tracked = |world: &World| {
        let (follower, now) = (world.operations.following.of_all(true), world.clock.now());
        backstop_engine::operation::tracked(&record, &follower, epoch, &now).map(|_| ())
    };
    let mut held = world.rows.clone();
    held.begin().unwrap();
    // One more look may be on its way from before; after it there is none.
    world.hand.advance(Duration::from_secs(1));
    world.hand.advance(Duration::from_secs(10));
    world.hand.advance(Duration::from_nanos(1));
    assert_eq!(tracked(&world), Err(Untracked::Silent));
    held.commit().unwrap();
    eventually(|| tracked(&world).is_ok());
}

#[test]
fn it_ends_when_it_is_told_to_and_starts_with_nothing_to_do() {
    let world = World::new(Vec::new());
    let handle = Reconciler::start(world.settings.clone()).unwrap();
    eventually(|| count(&handle.counts().turns) > 0);
    assert!(handle.close(BOUND));
}

/// One question each 50 ms, claimed 100 ms ahead. With the fifth failure the breaker opens, and what was claimed is put back:
/// it is asked later, not lost.
#[test]
fn what_was_claimed_and_may_not_be_asked_any_more_is_put_back() {
    let fails = Arc::new(AtomicBool::new(true));
    let is_failing = Arc::clone(&fails);
    let upstream = Upstream::start(move |line| match is_failing.load(Ordering::SeqCst) {
        true => answer(503, ""),
        false => paid(line),
    });
    let mut paced = query();
    paced.interval = Duration::from_millis(50);
    let mut world = World::new(vec![route("pay", &upstream, Some(verification(paced)))]);
    let ids: Vec<_> = (1..=10).map(|number| world.unknown("pay", number)).collect();
    world.start();
    for number in 1..=5 {
        eventually(|| world.queries("unavailable") == number);
        world.hand.advance(Duration::from_millis(50));
    }
    let counts = || &world.counts().routes[0];
    eventually(|| count(&counts().put_back) >= 1);
    assert_eq!((count(&counts().breaker_opened), upstream.requests().len()), (1, 5));
    assert!(ids.iter().all(|id| matches!(world.state(*id), State::Unknown(_))));
    fails.store(false, Ordering::SeqCst);
    eventually(|| {
        world.pass(Duration::from_secs(1));
        ids.iter().all(|id| matches!(world.state(*id), State::Succeeded(_)))
    });
}

/// Says that it is over however a test ends: threads that wait for it would keep a test that fails for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whoever asks the ledger as fast as four threads can, behind whom it would never come to its turn.
#[test]
fn a_flood_of_looks_at_the_ledger_does_not_stop_it() {
    let upstream = Upstream::start(paid);
    let mut world = World::new(vec![pay(&upstream)]);
    let ids: Vec<_> = (1..=40).map(|number| world.unknown("pay", number)).collect();
    let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let ledger = Arc::clone(&world.operations.ledger);
    world.start();
    std::thread::scope(|scope| {
        let _ends = Ends(&is_over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let looked: Vec<_> = (0..256)
                        .map(|_| ledger.look(Scope::from_bytes([9; 32]), ids[0], world.clock.now()))
                        .collect();
                    looked.into_iter().for_each(|look| drop(look.wait()));
                    looks.fetch_add(256, Ordering::Relaxed);
                }
            });
        }
        eventually(|| looks.load(Ordering::Relaxed) > 10_000);
        eventually(|| upstream.requests().len() == 40);
    });
    eventually(|| ids.iter().all(|id| matches!(world.state(*id), State::Succeeded(_))));
}
