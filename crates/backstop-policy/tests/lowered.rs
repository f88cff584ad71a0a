//! What is accepted means what it says: resources, breakers, recovery, retries and alternatives as the engine gets them.

mod support;

use std::time::Duration;

use backstop_engine::alternative::Verified;
use backstop_engine::health::PerMille;
use backstop_engine::policy::{DependencyId, ResourceId};
use backstop_engine::retry::Owner;
use backstop_engine::time::Wall;
use support::{dependency, loaded, read};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn everything_is_lowered_as_it_is_written() {
    let fragment = r#"
[resource.db]
concurrency = 40
rate        = "120/m"
[resource.disk]
concurrency = 80
[dependency.catalog]
url         = "http://x"
connections = 40
uses        = ["disk", "db"]
breaker     = { window = "20s", min_calls = 30, failures = "12.5%", slow = "100ms", slow_share = "70%", open = "2s", open_max = "9s", probes = 4 }
recovery    = { start = "20%", up = "2x", back = 0.5, tick = "2s", green = { errors = "2%" }, red = { p95 = 9 } }
probe       = { path = "/healthz", interval = "3s", timeout = "2s", expect = 204 }
[dependency.replica]
url         = "http://replica"
connections = 20
[route.x.public_read]
match       = "GET /x"
dependency  = "catalog"
deadline    = "300ms"
in_flight   = 20
max_age     = "60s"
retry       = { attempts = 2 }
alternative = { dependency = "replica", verified = "evidence/replica.toml" }
"#;
    let loaded = loaded(fragment);
    let policy = &loaded.policy;
    assert_eq!(policy.validate(), Ok(()));
    let names: Vec<_> =
        policy.resources.iter().map(|resource| (&*resource.name, resource.concurrency)).collect();
    assert_eq!(names, [("db", Some(40)), ("disk", Some(80))]);
    assert_eq!((policy.resources[0].rate, policy.resources[1].rate), (Some(2), None));

    let catalog = &policy.dependencies[0];
    assert_eq!(catalog.uses, [ResourceId(1), ResourceId(0)]);
    let breaker = catalog.breaker.unwrap();
    assert_eq!((breaker.window, breaker.min_calls, breaker.failures), (secs(20), 30, PerMille(125)));
    assert_eq!((breaker.slow, breaker.slow_share), (Duration::from_millis(100), PerMille(700)));
    assert_eq!((breaker.open, breaker.open_max, breaker.probes), (secs(2), secs(9), 4));
    let recovery = catalog.recovery.unwrap();
    assert_eq!((recovery.start, recovery.up, recovery.back), (PerMille(200), PerMille(2000), PerMille(500)));
    assert_eq!(
        (recovery.tick, recovery.green.errors, recovery.red.p95),
        (secs(2), PerMille(20), PerMille(9000))
    );
    assert_eq!(
        (recovery.red.errors, recovery.green.p95),
        (PerMille(50), PerMille(3000)),
        "the others by default"
    );
    let probe = loaded.dependencies[0].probe.clone().unwrap();
    assert_eq!((&*probe.path, probe.interval, probe.timeout), ("/healthz", secs(3), secs(2)));
    assert!(probe.expect.contains(204) && !probe.expect.contains(200));
    assert_eq!((policy.dependencies[1].breaker, policy.dependencies[1].recovery), (None, None));

    let retry = policy.routes[0].retry.unwrap();
    assert_eq!((retry.attempts, retry.owner), (2, Owner::Backstop));
    let alternative = policy.routes[0].alternative.unwrap();
    assert_eq!(alternative.dependency, DependencyId(1));
    // The last nanosecond of 2027-01-01 in UTC.
    let valid_until = Wall::from_unix_ns((1_798_761_600 + 86_400) * 1_000_000_000 - 1);
    // The first nanosecond of 2026-10-01 in UTC.
    let valid_from = Wall::from_unix_ns(1_790_812_800 * 1_000_000_000);
    let verified =
        Verified { rate_per_second: 500, concurrency: 20, valid_from, valid_until, policy: [0; 32] };
    assert_eq!(alternative.verified, Some(verified));
    let evidence = loaded.routes[0].evidence.clone().unwrap();
    assert_eq!((&*evidence.file, evidence.p95), ("evidence/replica.toml", Duration::from_millis(80)));
    assert_eq!((&*evidence.valid_until, &*evidence.load), ("2027-01-01", "reads of the back office"));
    let line = |origin| loaded.sources.get(origin).unwrap().path.clone();
    assert_eq!(line(breaker.origin), "dependency.catalog.breaker");
    assert_eq!(line(recovery.origin), "dependency.catalog.recovery");
    assert_eq!(line(retry.origin), "route.x.public_read.retry");
    assert_eq!(line(alternative.origin), "route.x.public_read.alternative");
    assert_eq!(line(policy.resources[0].origin), "resource.db");
}

#[test]
fn a_breaker_without_keys_has_every_default_and_recovers() {
    let every = loaded(&dependency("breaker = {}"));
    let catalog = &every.policy.dependencies[0];
    let breaker = catalog.breaker.unwrap();
    assert_eq!((breaker.window, breaker.min_calls, breaker.failures), (secs(10), 20, PerMille(500)));
    assert_eq!(breaker.slow, Duration::from_millis(150), "half of the shortest deadline");
    assert_eq!((breaker.slow_share, breaker.open, breaker.open_max), (PerMille(600), secs(5), secs(30)));
    assert_eq!(breaker.probes, 3);
    let recovery = catalog.recovery.unwrap();
    assert_eq!((recovery.start, recovery.up, recovery.back), (PerMille(100), PerMille(1500), PerMille(700)));
    assert_eq!(recovery.tick, secs(1));
    let (green, red) = (recovery.green, recovery.red);
    assert_eq!((green.errors, red.errors), (PerMille(10), PerMille(50)));
    assert_eq!((green.p95, red.p95), (PerMille(3000), PerMille(7000)));
    assert_eq!((green.db_wait, red.db_wait), (Duration::from_millis(5), Duration::from_millis(20)));
    assert_eq!((green.in_use, red.in_use), (PerMille(700), PerMille(900)));
    assert_eq!((green.backlog, red.backlog), (secs(1), secs(5)));
    let longer = loaded(&dependency("breaker = { open = \"40s\" }")).policy.dependencies[0].breaker.unwrap();
    assert_eq!((longer.open, longer.open_max), (secs(40), secs(40)));
}

#[test]
fn attempts_follow_their_owner() {
    for (retry, attempts, owner) in [
        ("retry = {}", 2, Owner::Backstop),
        ("retry = { attempts = 1 }", 1, Owner::Backstop),
        ("retry = { owner = \"client\" }", 1, Owner::Client),
        ("retry = { owner = \"upstream\" }", 1, Owner::Upstream),
    ] {
        let rules = loaded(&read(retry)).policy.routes[0].retry.unwrap();
        assert_eq!((rules.attempts, rules.owner), (attempts, owner), "{retry}");
    }
    assert_eq!(loaded(&read("")).policy.routes[0].retry, None);
}
