//! After an outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::super::Followed;
use super::apart::paid;
use super::upstream::{Upstream, answer};
use super::world::{World, count, eventually, lose_many, query, route, verification};

const COUNT: u32 = 10_000;
const INTERVAL: Duration = Duration::from_millis(10);

/// One question each 10 ms. Time goes on when one has come, so what is seen is whether each moment in which one may begin is used,
/// and no other.
#[test]
fn ten_thousand_unknown_operations_drain_at_the_set_rate() {
    let is_up = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicUsize::new(0));
    let (up, count_of) = (Arc::clone(&is_up), Arc::clone(&refused));
    let upstream = Upstream::start(move |line| match up.load(Ordering::SeqCst) {
        true => paid(line),
        false => {
            count_of.fetch_add(1, Ordering::SeqCst);
            answer(503, "")
        }
    });
    let mut paced = query();
    // No question runs out of time over how fast the clock is moved.
    (paced.interval, paced.timeout) = (INTERVAL, Duration::from_secs(600));
    let mut rules = verification(paced);
    rules.schedule.deadline = Duration::from_secs(3600);
    let followed = Followed { connect: Duration::from_secs(600), ..route("pay", &upstream, Some(rules)) };
    let mut world = World::new(vec![followed]);
    lose_many(world.ledger(), "pay", COUNT, world.clock.now());
    world.start();
    let route = || &world.counts().routes[0];
    eventually(|| {
        world.hand.advance(INTERVAL);
        count(&route().breaker_opened) >= 1
    });
    is_up.store(true, Ordering::SeqCst);
    eventually(|| {
        world.hand.advance(INTERVAL);
        world.queries("succeeded") >= 1 && count(&route().breaker_is_open) == 0
    });
    let (before, began) = (upstream.count(), world.clock.mono());
    let all = COUNT as usize + refused.load(Ordering::SeqCst);
    let mut asked = 0;
    while before + asked < all {
        world.hand.advance(INTERVAL);
        upstream.until(before + asked + 1);
        asked = upstream.count() - before;
        let moments = world.clock.mono().since(began).unwrap().as_nanos() / INTERVAL.as_nanos();
        assert!(asked as u128 <= moments * 11 / 10 + 2, "{asked} in {moments} moments");
        assert!(asked as u128 * 11 / 10 + 2 >= moments, "{asked} in {moments} moments");
    }
    eventually(|| world.queries("succeeded") == u64::from(COUNT));
    eventually(|| {
        let standing = world.ledger().standing(world.clock.now());
        standing.states.iter().any(|state| state.state == "succeeded" && state.count == u64::from(COUNT))
    });
    assert!(upstream.most_under_way() <= 4, "{}", upstream.most_under_way());
}
