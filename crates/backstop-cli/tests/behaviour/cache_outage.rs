//! A cache that is emptied, killed and frozen under load, with a real Redis: whatever it does, the dependency gets no more
//! reads than the budget, and every answer that is not normal is one that the policy names.
//!
//! 400 requests per second for 200 keys; `ttl` 5 s; behind the cache at most 8 reads at once and 100 per second, so that
//! keeping the cache filled (200 keys in 5 s are 40 per second) is easy and reading everything is not.

use std::time::Duration;

use backstop_lab::load::{Kind, Plan, Summary};
use backstop_lab::origin::{Answer, Behaviour, Origin};

use crate::support::{BOUND, Gateway, Metrics, Policy, Redis, run};

const RATE: f64 = 400.0;
const KEYS: usize = 200;
const READS_PER_SECOND: f64 = 100.0;
const READS_AT_ONCE: u64 = 8;

struct World {
    redis: Redis,
    origin: Origin,
    gateway: Gateway,
}

impl World {
    async fn open() -> Self {
        let origin = Origin::start().await.unwrap();
        let answer = |request: &backstop_lab::origin::Request| {
            let id = request.path().trim_start_matches("/r/").to_owned();
            Answer::json(format!(r#"{{"id":"{id}"}}"#))
        };
        origin.default(Behaviour::from_fn(answer).delay(Duration::from_millis(10)));
        let redis = Redis::start();
        let route = format!(
            "match = \"GET /r/{{id}}\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 500\nkey = []\n\
             correct = {{ type = \"application/json\" }}\nlocal_copy = {{ max_age = \"60s\" }}\n\
             cache = {{ url = \"{}\", ttl = \"5s\" }}\n\
             fill = {{ concurrency = {READS_AT_ONCE}, rate = \"{READS_PER_SECOND}/s\" }}",
            redis.url()
        );
        let policy = Policy::empty()
            .dependency("catalog", origin.addr(), "connections = 64")
            .route("reviews.cached_read", &route);
        Self { redis, gateway: Gateway::start(&policy), origin }
    }

    /// Asks for every key until each has been read.
    async fn warm(&self) {
        let all =
            |metrics: &Metrics| metrics.sum("backstop_fills_total", &["result=\"stored\""]) >= KEYS as f64;
        let warming = async {
            while !all(&self.gateway.metrics().await) {
                self.load(0.5).await;
            }
        };
        tokio::time::timeout(BOUND, warming).await.expect("the keys are read within the bound");
    }

    async fn load(&self, seconds: f64) -> Summary {
        let targets = (0..KEYS).map(|key| format!("/r/{}", (key * 7919) % KEYS));
        let kind = Kind::get("/r/0").targets(targets).check(|response| {
            let marked = response.header("backstop");
            let age_s = response.header("age").and_then(|age| age.parse::<u64>().ok()).unwrap_or(0);
            match response.status() {
                // Normal: read now or from the cache, which keeps for 5 s; or from a copy, of at most 60 s.
                200 => marked.map_or(age_s <= 5, |mark| mark.contains("source=snapshot") && age_s <= 60),
                503 => marked.is_some_and(|mark| mark.starts_with("outcome=rejected, reason=missing")),
                _ => false,
            }
        });
        let plan =
            Plan::new(self.gateway.addr, RATE, Duration::from_secs_f64(seconds)).kind(kind).connections(64);
        let summary = backstop_lab::load::run(plan).await.unwrap();
        assert_eq!(
            (summary.total.failed, summary.total.excess, summary.total.wrong),
            (0, 0, 0),
            "{summary:?}"
        );
        summary
    }

    /// Asks until the cache's breaker has closed: it is only tried by who asks.
    async fn used_again(&self) {
        let closed = |metrics: &Metrics| metrics.sum("backstop_cache_phase", &["phase=\"closed\""]) == 1.0;
        let returning = async {
            while !closed(&self.gateway.metrics().await) {
                self.load(0.25).await;
            }
        };
        tokio::time::timeout(BOUND, returning).await.expect("its breaker closes again");
    }

    /// What is done to the cache, then load for so long: no more reads than the budget, however long that took, and every
    /// refusal is one of the budget's.
    async fn holds(&self, seconds: f64, trouble: impl FnOnce(&Self)) -> Summary {
        let (began, before) = (tokio::time::Instant::now(), self.origin.count());
        let told = self.gateway.metrics().await;
        trouble(self);
        let summary = self.load(seconds).await;
        let calls = self.origin.count() - before;
        let most = READS_PER_SECOND * began.elapsed().as_secs_f64() + (READS_PER_SECOND / 20.0);
        assert!(calls as f64 <= most, "{calls} reads, and no more than {most:.0} were accepted");
        assert!(self.origin.peak_in_flight() <= READS_AT_ONCE, "{}", self.origin.peak_in_flight());
        let now = self.gateway.metrics_until(|metrics| metrics.in_flight() == 0).await;
        let since = |name: &str, labels: &[&str]| now.sum(name, labels) - told.sum(name, labels);
        let by_budget = since("backstop_fill_refused_total", &[]);
        let waited = since("backstop_fill_joined_total", &["result=\"joined\""]);
        let degraded = since("backstop_requests_total", &["outcome=\"fallback\""])
            + since("backstop_requests_total", &["outcome=\"rejected\""]);
        assert!(degraded <= by_budget + waited, "{degraded} degraded, {by_budget} refused, {waited} waited");
        assert_eq!(since("backstop_requests_total", &["outcome=\"failed\""]), 0.0);
        summary
    }
}

/// Emptied: the reads grow to the budget and not beyond, local copies answer for the rest, and the cache fills up again.
#[test]
fn an_emptied_cache_is_filled_within_the_budget() {
    run(async {
        let world = World::open().await;
        world.warm().await;
        let emptied = world.holds(2.0, |world| assert_eq!(world.redis.say(&["FLUSHALL"]), "+OK")).await;
        assert_eq!(
            emptied.total.by_status.get(&200),
            Some(&emptied.total.answered),
            "copies answer for the rest"
        );
        world.holds(1.0, |_| {}).await;
        let told = world.gateway.metrics().await;
        let again = world.holds(1.0, |_| {}).await;
        let hits = world.gateway.metrics().await.sum("backstop_requests_total", &["source=\"cache\""])
            - told.sum("backstop_requests_total", &["source=\"cache\""]);
        assert!(
            hits >= again.total.answered as f64 * 0.8,
            "{hits} of {} from the cache",
            again.total.answered
        );
    });
}

/// Killed: the same, for as long as it is gone; and when it comes back empty.
#[test]
fn a_killed_cache_is_done_without_and_used_again() {
    run(async {
        let mut world = World::open().await;
        world.warm().await;
        world.redis.kill();
        let killed = world.holds(2.0, |_| {}).await;
        assert_eq!(killed.total.by_status.get(&200), Some(&killed.total.answered));
        assert!(killed.total.by_source.get("snapshot").copied().unwrap_or(0) > 0, "{killed:?}");
        world.redis.start_again();
        world.holds(2.0, |_| {}).await;
        world.used_again().await;
        world.holds(1.0, |_| {}).await;
        assert!(world.redis.values() > 0, "it is filled again");
    });
}

/// Frozen: those who ask it wait for no longer than its `timeout`, and soon nobody asks it any more.
#[test]
fn a_frozen_cache_costs_its_timeout_and_then_nothing() {
    run(async {
        let world = World::open().await;
        world.warm().await;
        let asked = |metrics: &Metrics| {
            ["timeout", "connect", "reset"]
                .map(|error| metrics.sum("backstop_cache_errors_total", &[&format!("error=\"{error}\"")]))
                .iter()
                .sum::<f64>()
        };
        let before = asked(&world.gateway.metrics().await);
        let frozen = world.holds(3.0, |world| world.redis.freeze()).await;
        assert_eq!(frozen.total.by_status.get(&200), Some(&frozen.total.answered));
        let waited = asked(&world.gateway.metrics().await) - before;
        // 1 200 requests. Ten failures in a row open its breaker; what was under way by then and its later trials add some.
        assert!((10.0..=200.0).contains(&waited), "{waited} requests waited for a frozen cache");
        world.redis.thaw();
        world.used_again().await;
        world.holds(1.0, |_| {}).await;
    });
}
