//! A shared cache first, one read behind it for everybody who asks the same, and a copy of one's own: with a real Redis.

use std::time::Duration;

use backstop_lab::client::Response;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher};

use crate::support::{BOUND, Gateway, Policy, Redis, Shop, expect, run};

/// A gateway in front of an origin, with a cache beside it. The clock stands still.
pub struct World {
    pub redis: Redis,
    pub shop: Shop,
}

/// `replace` are lines of the route; those given replace the defaults of the same key.
pub fn route(redis: &Redis, replace: &str) -> String {
    let defaults = [
        "match = \"GET /r/{id}\"".to_owned(),
        "dependency = \"catalog\"".to_owned(),
        "deadline = \"300ms\"".to_owned(),
        "in_flight = 64".to_owned(),
        format!("cache = {{ url = \"{}\", ttl = \"5s\" }}", redis.url()),
        "key = [\"path.id\", \"header.x-tenant\"]".to_owned(),
        "correct = { type = \"application/json\" }".to_owned(),
        "local_copy = { max_age = \"30s\" }".to_owned(),
    ];
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let replaced: Vec<String> = replace.lines().map(key).collect();
    let kept = defaults.iter().map(String::as_str).filter(|line| !replaced.contains(&key(line)));
    let set = replace.lines().filter(|line| !line.trim_end().ends_with('='));
    kept.chain(set).collect::<Vec<_>>().join("\n")
}

impl World {
    pub async fn open() -> Self {
        Self::with("").await
    }

    async fn with(replace: &str) -> Self {
        Self::with_cache(replace, "ttl = \"5s\"").await
    }

    /// With this of the cache's own, too.
    pub async fn with_cache(replace: &str, cache: &str) -> Self {
        let redis = Redis::start();
        let route = route(&redis, &format!("cache = {{ url = \"{}\", {cache} }}\n{replace}", redis.url()));
        let shop = Shop::with(|origin| Policy::shop(origin).route("reviews.cached_read", &route)).await;
        shop.origin.default(reviews("first"));
        Self { redis, shop }
    }

    pub async fn get(&self, id: &str) -> Response {
        self.get_with(id, &[]).await
    }

    async fn get_with(&self, id: &str, more: &[(&str, &str)]) -> Response {
        let fields = [more, &[("X-Tenant", "a")][..]].concat();
        self.shop.gateway.get(&format!("/r/{id}"), &fields).await
    }

    pub fn calls(&self) -> u64 {
        self.shop.origin.count()
    }
}

/// Waits until the cache has confirmed so many values.
async fn stored_until(gateway: &Gateway, values: f64) {
    gateway.metrics_until(|metrics| metrics.sum("backstop_cache_stored_total", &[]) >= values).await;
}

/// Every review, with this text.
fn reviews(text: &str) -> Behaviour {
    let text = text.to_owned();
    Behaviour::from_fn(move |request| {
        Answer::json(format!(r#"{{"id":"{}","text":"{text}"}}"#, request.path().trim_start_matches("/r/")))
    })
}

pub fn review(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","text":"{text}"}}"#)
}

/// An answer of this age from the cache: a normal one, without a mark.
#[track_caller]
fn from_cache(response: &Response, body: &str, age: u64) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    assert_eq!(response.header("age"), Some(age.to_string().as_str()));
    assert_eq!(response.header("cache-status"), Some("edge; hit"));
    assert_eq!(response.header("backstop"), None);
}

/// An answer of the dependency that was read for whoever asks.
#[track_caller]
pub fn read(response: &Response, body: &str) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    let status = response.header("cache-status").unwrap_or_default();
    assert!(status.starts_with("edge; fwd=miss"), "{status}");
    assert_eq!(response.header("backstop"), None);
}

/// The `ttl` is 5 s: exactly 5 s old is given, one nanosecond more is read again, and giving renews nothing.
#[test]
fn the_cache_answers_for_exactly_its_time() {
    run(async {
        let mut world = World::open().await;
        read(&world.get("1").await, &review("1", "first"));
        world.redis.values_until(1).await;
        world.shop.origin.default(reviews("second"));
        from_cache(&world.get("1").await, &review("1", "first"), 0);
        world.shop.pass(2.0);
        from_cache(&world.get("1").await, &review("1", "first"), 2);
        world.shop.pass(3.0);
        from_cache(&world.get("1").await, &review("1", "first"), 5);
        assert_eq!(world.calls(), 1);
        world.shop.hand.mono(1);
        read(&world.get("1").await, &review("1", "second"));
        assert_eq!(world.calls(), 2);
        stored_until(&world.shop.gateway, 2.0).await;
        let explained = world.get_with("1", &[("Backstop-Explain", "?1")]).await;
        assert_eq!(explained.header("backstop"), Some("outcome=normal, source=cache, age=0"));
    });
}

/// Another tenant, another query and another path are other answers, in the cache too.
#[test]
fn an_answer_is_given_for_its_own_key_only() {
    run(async {
        let world = World::open().await;
        world.get("1").await;
        world.redis.values_until(1).await;
        let gateway = &world.shop.gateway;
        for (target, fields) in [
            ("/r/1", &[("X-Tenant", "b")][..]),
            ("/r/1", &[]),
            ("/r/1?x=1", &[("X-Tenant", "a")]),
            ("/r/2", &[("X-Tenant", "a")]),
        ] {
            let calls = world.calls();
            assert_eq!(gateway.get(target, fields).await.status(), 200);
            assert_eq!(world.calls(), calls + 1, "{target} {fields:?}");
        }
    });
}

/// Fifty ask for what the cache does not have while it is being read: the dependency is asked once, and all get it.
#[test]
fn many_who_ask_the_same_are_one_read() {
    run(async {
        let world = World::open().await;
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&gate));
        let asking = (0..50).map(|_| world.get("1"));
        let opening = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            let all = |metrics: &crate::support::Metrics| metrics.sum("backstop_fill_waiting", &[]) == 49.0;
            world.shop.gateway.metrics_until(all).await;
            gate.open();
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), opening);
        for answer in &answers {
            read(answer, &review("1", "first"));
        }
        let collapsed =
            |answer: &&Response| answer.header("cache-status") == Some("edge; fwd=miss; collapsed");
        assert_eq!(answers.iter().filter(collapsed).count(), 49);
        assert_eq!(world.calls(), 1);
        expect::idle(&world.shop.gateway).await;
    });
}

/// Trailers are left behind, as in every copy: they made the leader's own answer one that said nothing of its age.
#[test]
fn a_read_with_trailers_is_told_as_any_other() {
    run(async {
        let world = World::open().await;
        let answer =
            Answer::json(review("1", "first")).chunked(4).header("Trailer", "X-Sum").trailer("X-Sum", "1");
        world.shop.origin.on(Matcher::path("/r/1"), answer);
        let answer = world.get("1").await;
        read(&answer, &review("1", "first"));
        assert_eq!((answer.header("age"), answer.header("trailer")), (Some("0"), None));
    });
}

/// No more wait for one read than the policy says; who comes after them is refused at once, or gets the local copy.
#[test]
fn waiters_are_bounded() {
    run(async {
        let world = World::with("fill = { waiters = 2 }").await;
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&gate));
        let asking = (0..3).map(|_| world.get("1"));
        let beyond = async {
            let two = |metrics: &crate::support::Metrics| metrics.sum("backstop_fill_waiting", &[]) == 2.0;
            world.shop.gateway.metrics_until(two).await;
            let refused = world.get("1").await;
            expect::refused(&refused, 503, "outcome=rejected, reason=missing, cause=resource_full");
            gate.open();
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), beyond);
        assert!(answers.iter().all(|answer| answer.status() == 200));
        assert_eq!(world.calls(), 1);
    });
}

/// A read that is later than everybody who waited for it still fills the cache: the next who asks gets it at once.
#[test]
fn a_late_read_fills_the_cache() {
    run(async {
        let mut world = World::open().await;
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&gate));
        let asking = world.get("1");
        let passing = async {
            gate.wait_for_waiting(1, BOUND).await.unwrap();
        };
        let mut hand = world.shop.gateway.hand();
        let (late, ()) = tokio::join!(asking, async {
            passing.await;
            hand.advance(Duration::from_millis(300));
        });
        expect::no_copy(&late, "missing", "read_timeout");
        gate.open();
        world.redis.values_until(1).await;
        from_cache(&world.get("1").await, &review("1", "first"), 0);
        assert_eq!(world.calls(), 1);
        let counted = world.shop.gateway.metrics().await;
        assert_eq!(counted.sum("backstop_fills_total", &["result=\"stored\""]), 1.0);
        assert_eq!(counted.dependency_failures(), 0, "the dependency was not late for its own time");
        world.shop.pass(0.0);
    });
}

/// Whoever leaves ends its own wait and nobody else's.
#[test]
fn the_read_goes_on_when_whoever_began_it_leaves() {
    run(async {
        let world = World::open().await;
        let gate = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), Answer::json(review("1", "first")).gate(&gate));
        let leader = tokio::time::timeout(Duration::from_secs(60), world.get("1"));
        tokio::select! {
            _ = leader => panic!("answered behind a closed gate"),
            waiting = gate.wait_for_waiting(1, BOUND) => waiting.unwrap(),
        }
        // The client is gone: its connection is closed with the future.
        let gone = |metrics: &crate::support::Metrics| metrics.outcome("abandoned") == 1;
        world.shop.gateway.metrics_until(gone).await;
        let (follower, ()) = tokio::join!(world.get("1"), async {
            let one = |metrics: &crate::support::Metrics| metrics.sum("backstop_fill_waiting", &[]) == 1.0;
            world.shop.gateway.metrics_until(one).await;
            gate.open();
        });
        read(&follower, &review("1", "first"));
        assert_eq!(world.calls(), 1);
        expect::idle(&world.shop.gateway).await;
    });
}

/// What is one caller's own is given to nobody else, neither to those who waited for it nor from the cache.
#[test]
fn a_private_answer_reaches_nobody_else() {
    run(async {
        let world = World::with("deadline = \"5s\"").await;
        let numbers = std::sync::atomic::AtomicU32::new(0);
        let gate = Gate::new();
        let own = Behaviour::from_fn(move |request| {
            let number = numbers.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let id = request.path().trim_start_matches("/r/").to_owned();
            Answer::json(review(&id, &number.to_string())).header("Set-Cookie", &format!("session={number}"))
        });
        world.shop.origin.on(Matcher::path("/r/1"), own.clone().gate(&gate));
        let asking = (0..5).map(|_| world.get("1"));
        let opening = async {
            let four = |metrics: &crate::support::Metrics| metrics.sum("backstop_fill_waiting", &[]) == 4.0;
            world.shop.gateway.metrics_until(four).await;
            gate.open();
        };
        let (answers, ()) = tokio::join!(futures_util::future::join_all(asking), opening);
        let mut cookies: Vec<_> = answers.iter().map(|answer| answer.header("set-cookie").unwrap()).collect();
        for (answer, cookie) in answers.iter().zip(&cookies) {
            let number = cookie.trim_start_matches("session=");
            assert_eq!(answer.text(), review("1", number), "the body belongs to the cookie");
        }
        cookies.sort_unstable();
        cookies.dedup();
        assert_eq!(cookies.len(), 5, "each has its own");
        assert_eq!(world.redis.values(), 0);
        // For a while nobody waits for such an answer: the next are called side by side.
        world.shop.origin.reset();
        let both = Gate::new();
        world.shop.origin.on(Matcher::path("/r/1"), own.gate(&both));
        let (first, second, ()) = tokio::join!(world.get("1"), world.get("1"), async {
            both.wait_for_waiting(2, BOUND).await.unwrap();
            both.open();
        });
        assert_ne!(first.header("set-cookie"), second.header("set-cookie"));
    });
}

/// A request with a credential is never answered for others, and never makes an answer for others.
#[test]
fn a_request_with_a_credential_goes_by_itself() {
    run(async {
        let world = World::open().await;
        world.get("1").await;
        world.redis.values_until(1).await;
        world.shop.origin.default(reviews("mine"));
        let mine = world.get_with("1", &[("Authorization", "Bearer x")]).await;
        assert_eq!(mine.text(), review("1", "mine"));
        from_cache(&world.get("1").await, &review("1", "first"), 0);
        assert_eq!(world.redis.values(), 1);
    });
}

/// A write to the resource, 404 and 410 withdraw what the cache has, for every variant.
#[test]
fn what_was_withdrawn_is_not_given_from_the_cache() {
    run(async {
        let redis = Redis::start();
        let reviews_route = route(&redis, "");
        let write = "match = \"PUT /r/{id}\"\ndependency = \"catalog\"\ndeadline = \"2s\"\nin_flight = 4";
        let shop = Shop::with(|origin| {
            Policy::shop(origin).route("reviews.cached_read", &reviews_route).route("change.direct", write)
        })
        .await;
        shop.origin.default(reviews("first"));
        let mut world = World { redis, shop };
        for tenant in ["a", "b"] {
            world.shop.gateway.get("/r/1", &[("X-Tenant", tenant)]).await;
        }
        world.redis.values_until(2).await;
        world.shop.pass(0.001);
        assert_eq!(world.shop.gateway.request("PUT", "/r/1", &[], b"{}").await.status(), 200);
        world.shop.pass(0.001);
        world.shop.origin.default(reviews("second"));
        for tenant in ["a", "b"] {
            read(&world.shop.gateway.get("/r/1", &[("X-Tenant", tenant)]).await, &review("1", "second"));
        }
        stored_until(&world.shop.gateway, 4.0).await;

        world.shop.pass(6.0);
        world.shop.origin.on(Matcher::path("/r/1"), Answer::new(404));
        let gone = world.get("1").await;
        assert_eq!(gone.status(), 404);
        // Its value is gone for every other gateway too.
        world.redis.values_until(1).await;
        world.shop.goes_down().await;
        let refused = world.get("1").await;
        expect::no_copy(&refused, "missing", "connect");
    });
}

/// What lies under a key and is no copy of what was asked for is no answer, whoever put it there.
#[test]
fn a_damaged_or_foreign_value_is_a_miss() {
    run(async {
        let world = World::open().await;
        world.get("1").await;
        world.redis.values_until(1).await;
        let key = world.redis.only_key();
        let mut stored = 1.0;
        for damaged in ["", "nonsense", "{\"id\":\"1\"}"] {
            assert_eq!(world.redis.say_bytes(&[b"SET", &key, damaged.as_bytes()]), "+OK");
            let calls = world.calls();
            read(&world.get("1").await, &review("1", "first"));
            assert_eq!(world.calls(), calls + 1, "{damaged:?}");
            // What was read takes its place, or the next value would.
            stored += 1.0;
            stored_until(&world.shop.gateway, stored).await;
        }
        world.redis.say(&["RPUSH", "other", "x"]);
        assert_eq!(world.redis.say_bytes(&[b"RENAME", b"other", &key]), "+OK");
        let calls = world.calls();
        read(&world.get("1").await, &review("1", "first"));
        assert_eq!(world.calls(), calls + 1, "a list is no value");
    });
}

/// Conditional requests are judged by what the cache has; what only one request said does not reach the dependency.
#[test]
fn a_condition_is_answered_from_the_cache_and_not_sent_on() {
    run(async {
        let world = World::open().await;
        let tagged = Answer::json(review("1", "first")).header("ETag", "\"e1\"");
        world.shop.origin.on(Matcher::path("/r/1"), tagged);
        let asked = [("If-None-Match", "\"e1\""), ("Range", "bytes=0-1"), ("Backstop-Attempt", "2")];
        let first = world.get_with("1", &asked).await;
        assert_eq!((first.status(), first.text().as_str()), (304, ""));
        let sent = world.shop.origin.requests();
        for field in ["if-none-match", "range"] {
            assert_eq!(sent[0].header(field), None, "{field}");
        }
        assert_eq!(sent[0].header("backstop-attempt"), Some("2"), "whoever repeats it repeats it here too");
        world.redis.values_until(1).await;
        assert_eq!(world.get_with("1", &[("If-None-Match", "\"e1\"")]).await.status(), 304);
        assert_eq!(world.get_with("1", &[("If-None-Match", "\"e0\"")]).await.status(), 200);
        let head = world.shop.gateway.request("HEAD", "/r/1", &[("X-Tenant", "a")], b"").await;
        assert_eq!((head.status(), head.text().as_str()), (200, ""));
        assert_eq!(head.header("content-length"), Some(review("1", "first").len().to_string().as_str()));
        assert_eq!(world.calls(), 1);
    });
}

/// RFC 9111 section 5.2.2: an origin may shorten the time, down to nothing.
#[test]
fn the_origin_may_shorten_the_time_and_never_lengthen_it() {
    run(async {
        let mut world = World::open().await;
        let fresh = Answer::json(review("1", "first")).header("Cache-Control", "max-age=2");
        world.shop.origin.on(Matcher::path("/r/1"), fresh);
        world.get("1").await;
        world.redis.values_until(1).await;
        world.shop.pass(1.999_999_999);
        assert_eq!(world.get("1").await.header("cache-status"), Some("edge; hit; ttl=1"));
        world.shop.hand.mono(1);
        read(&world.get("1").await, &review("1", "first"));
        assert_eq!(world.calls(), 2);
        for forbids in ["no-cache", "no-store", "private", "max-age=0"] {
            world.shop.origin.on(
                Matcher::path("/r/2"),
                Answer::json(review("2", forbids)).header("Cache-Control", forbids),
            );
            let calls = world.calls();
            for _ in 0..2 {
                assert_eq!(world.get("2").await.text(), review("2", forbids));
            }
            assert_eq!(world.calls(), calls + 2, "{forbids}");
        }
        let long = Answer::json(review("3", "long")).header("Cache-Control", "max-age=3600");
        world.shop.origin.on(Matcher::path("/r/3"), long);
        world.get("3").await;
        let calls = world.calls();
        world.shop.pass(5.000_000_001);
        world.get("3").await;
        assert_eq!(world.calls(), calls + 1);
    });
}

/// The dependency fails and the cache has nothing: the local copy of up to 30 s, then a refusal.
#[test]
fn the_local_copy_stands_in_when_nothing_younger_can_be_had() {
    run(async {
        let mut world = World::open().await;
        world.get("1").await;
        world.redis.values_until(1).await;
        world.shop.goes_down().await;
        world.shop.pass(6.0);
        expect::copy(&world.get("1").await, &review("1", "first"), 6, "connect");
        world.redis.kill();
        expect::copy(&world.get("1").await, &review("1", "first"), 6, "connect");
        world.shop.pass(24.0);
        expect::copy(&world.get("1").await, &review("1", "first"), 30, "connect");
        world.shop.hand.mono(1);
        expect::no_copy(&world.get("1").await, "age", "connect");
    });
}

/// Without a local copy there is no alternative: the refusal says what the dependency did (RFC 9209).
#[test]
fn without_a_local_copy_a_failed_read_is_refused_by_its_cause() {
    run(async {
        let world = World::with("local_copy =").await;
        world.shop.goes_down().await;
        let refused = world.get("1").await;
        assert_eq!(refused.status(), 502);
        assert_eq!(refused.header("backstop"), Some("outcome=failed, reason=connect"));
    });
}

/// A cache that is killed costs nothing but reads within the budget: two at once, the third key is refused.
#[test]
fn a_killed_cache_leads_to_no_more_reads_than_the_budget() {
    run(async {
        let mut world = World::with("fill = { concurrency = 2 }").await;
        world.get("9").await;
        world.redis.values_until(1).await;
        world.redis.kill();
        let gate = Gate::new();
        world.shop.origin.default(reviews("slow").gate(&gate));
        let two = async { tokio::join!(world.get("1"), world.get("2")) };
        let third = async {
            gate.wait_for_waiting(2, BOUND).await.unwrap();
            let refused = world.get("3").await;
            expect::refused(&refused, 503, "outcome=rejected, reason=missing, cause=resource_full");
            expect::copy_unasked(&world.get("9").await, &review("9", "first"), 0, "resource_full");
            assert_eq!(gate.waiting(), 2);
            gate.open();
        };
        let ((one, other), ()) = tokio::join!(two, third);
        read(&one, &review("1", "slow"));
        read(&other, &review("2", "slow"));
        let counted = world.shop.gateway.metrics().await;
        assert_eq!(counted.sum("backstop_fill_refused_total", &["reason=\"concurrency\""]), 2.0);
        expect::idle(&world.shop.gateway).await;
    });
}
