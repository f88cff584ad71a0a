//! A cache that comes back empty, in front of a database that cannot bear the whole demand. A public report: misses
//! overloaded the database, its timeouts stopped the refill, and service came back only by hand and step by step,
//! <https://slack.engineering/slacks-incident-on-2-22-22/>. `empty_copies` shows the same without a cache.
//!
//! With a real Redis. The clock stands still but for the test's hand, so that each second holds exactly what it says.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::origin::{Behaviour, Gate, Matcher};

use crate::cached_read::{World, review};
use crate::support::{BOUND, Metrics, expect, run};

/// Behind the cache four at once and twenty a second, which is what the database was verified to bear; no copies of one's
/// own.
const ROUTE: &str =
    "in_flight = 200\ndeadline = \"1s\"\nfill = { concurrency = 4, rate = \"20/s\" }\nlocal_copy =";
const KEYS: u32 = 200;
const PER_SECOND: u64 = 200;
const BUDGET: u64 = 20;

/// Two hundred requests a second for two hundred keys, in an order that has nothing to do with what is admitted (Numerical
/// Recipes' generator).
struct Demand {
    chance: u32,
    /// Reads that the origin had received when the present stretch began.
    before: u64,
}

impl Demand {
    /// So many seconds: how many were refused in each. The origin never gets more than its twenty a second, and one.
    async fn seconds(&mut self, world: &mut World, seconds: u64) -> Vec<u64> {
        self.before = world.calls();
        let mut refused = Vec::new();
        for second in 1..=seconds {
            refused.push(self.second(world).await);
            let reads = world.calls() - self.before;
            assert!(reads <= BUDGET * second + 1, "{reads} in {second} s");
        }
        refused
    }

    async fn second(&mut self, world: &mut World) -> u64 {
        let mut refused = 0;
        for _ in 0..PER_SECOND {
            self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = ((self.chance >> 16) % KEYS).to_string();
            let answer = world.get(&id).await;
            if answer.status() == 200 {
                assert_eq!((answer.header("backstop"), answer.text()), (None, review(&id, "first")));
            } else {
                let mark = "outcome=rejected, reason=resource_full";
                assert_eq!((answer.status(), answer.header("backstop")), (503, Some(mark)));
                refused += 1;
            }
            world.shop.hand.advance(Duration::from_secs(1) / 200);
        }
        refused
    }
}

/// By hand: 200 keys at 20 a second are 10 s. The budget works all the time, in the outage and in the refill; what it reads
/// is stored, so that what is refused becomes nothing by itself.
#[test]
fn an_empty_cache_fills_within_the_budget_and_nobody_turns_a_knob() {
    run(async {
        let mut world = World::with_cache(ROUTE, "ttl = \"10m\"").await;
        let mut demand = Demand { chance: 1, before: 0 };
        let warming = demand.seconds(&mut world, 16).await;
        assert!(warming[0] > 150, "nearly all have to wait at first: {warming:?}");
        assert_eq!(warming[14..], [0; 2], "{warming:?}");

        world.redis.kill();
        let without = demand.seconds(&mut world, 5).await;
        assert!(without.iter().all(|refused| *refused >= PER_SECOND - BUDGET - 1), "{without:?}");
        assert!(world.calls() - demand.before >= BUDGET * 5 - 1, "it works all the time");

        world.redis.start_again();
        // Which keys come last is chance: nearly all are there after 10 s, and the last ones when they are asked for.
        let again = demand.seconds(&mut world, 26).await;
        assert!(again[0] > 100, "it is empty: {again:?}");
        assert_eq!(again[23..], [0; 3], "{again:?}");
        assert_eq!(world.redis.values(), u64::from(KEYS));
        assert!(world.shop.origin.peak_in_flight() <= 4);
    });
}

/// Forty ask for one key that nobody has read: one read. It fails, and all of them are told so together, by that one read.
#[test]
fn all_who_wait_for_a_failing_read_are_answered_by_it() {
    run(async {
        let world = World::with_cache(ROUTE, "ttl = \"10m\"").await;
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Behaviour::status(503).gate(&gate));
        let asking = (0..40).map(|_| world.get("1"));
        let opening = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            let all = |metrics: &Metrics| metrics.sum("backstop_fill_waiting", &[]) == 39.0;
            world.shop.gateway.metrics_until(all).await;
            gate.open();
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), opening);
        let told = |answer: &Response| (answer.status(), answer.header("backstop").map(str::to_owned));
        let mark = "outcome=failed, reason=unavailable".to_owned();
        for answer in &answers {
            assert_eq!(told(answer), (503, Some(mark.clone())));
        }
        assert_eq!(world.calls(), 1);
        expect::idle(&world.shop.gateway).await;
    });
}
