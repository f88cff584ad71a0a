//! `cached_read`: what is accepted means what it says, and what cannot be meant is refused.

#![expect(clippy::expect_used, reason = "helpers of tests stop the test")]

mod support;

use std::time::Duration;

use backstop_engine::policy::{CacheId, CachedRead, RouteClass};
use backstop_policy::Code;
use support::{REPLICA, diagnosed, loaded, parsed};

const CATALOG: &str = "[dependency.catalog]\nurl = \"http://127.0.0.1:9001\"\n";
const CACHE: &str = "cache = { url = \"redis://cache\", ttl = \"5s\" }";

/// A route `/NAME` with these further lines.
fn route(name: &str, lines: &str) -> String {
    format!(
        "[route.{name}.cached_read]\nmatch = \"GET /{name}\"\ndependency = \"catalog\"\ndeadline = \"300ms\"\nin_flight = 10\n{lines}\n"
    )
}

/// Every code that is said.
fn found(fragment: &str) -> Vec<Code> {
    diagnosed(fragment).1.into_iter().map(|diagnostic| diagnostic.code).collect()
}

#[track_caller]
fn refused(fragment: &str, code: Code) {
    assert!(parsed(fragment).1.is_err(), "{fragment}");
    let codes = found(fragment);
    assert!(codes.contains(&code), "{codes:?}\n{fragment}");
}

fn cached(class: &RouteClass) -> &CachedRead {
    class.cached().expect("a cached read")
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// By hand: half of 64 connections are 32, of a resource with 40 places 20, and half of 2000/s are 1000/s.
#[test]
fn what_is_not_written_has_the_default_that_the_reference_names() {
    let plain = loaded(&(CATALOG.to_owned() + &route("a", CACHE)));
    assert_eq!(plain.policy.validate(), Ok(()));
    let read = cached(&plain.policy.routes[0].class);
    assert_eq!((read.cache, read.ttl, read.timeout), (CacheId(0), ms(5000), ms(20)));
    let fill = read.fill;
    assert_eq!((fill.concurrency, fill.rate, fill.deadline, fill.waiters), (32, None, ms(2000), 100));
    assert!(!read.local_copy);
    assert_eq!(
        read.read.max_age,
        ms(5000),
        "without a copy of its own, another gateway's may be as old as the cache's"
    );
    let cache = &plain.caches[0];
    assert_eq!((&*cache.name, &*cache.address.host, cache.address.port), ("cache:6379/0", "cache", 6379));
    assert_eq!(
        (cache.timeout, cache.connect, &*cache.prefix, cache.database),
        (ms(20), ms(250), "backstop", 0)
    );
    assert_eq!(cache.value_bytes, (1 << 20) + (64 << 10));
    let breaker = plain.policy.caches[0].breaker;
    assert_eq!((breaker.open, breaker.open_max, breaker.slow), (ms(1000), ms(30_000), ms(20)));

    let shared = "[resource.db]\nconcurrency = 40\nrate = \"2000/s\"\n[resource.disk]\nrate = \"3000/s\"\n";
    let uses = format!("{shared}{CATALOG}uses = [\"db\", \"disk\"]\n{}", route("a", CACHE));
    let fill = cached(&loaded(&uses).policy.routes[0].class).fill;
    assert_eq!((fill.concurrency, fill.rate), (20, Some(1000)));
}

#[test]
fn what_is_written_is_meant() {
    let lines = r#"
cache = { url = "redis://[::1]:7000/3", ttl = "1m", timeout = "50ms", connect = "1s", prefix = "shop", breaker = { open = "2s", probes = 5 } }
fill = { concurrency = 7, rate = "120/m", deadline = "3s", waiters = 9 }
local_copy = { max_age = "2m" }
buffer = "2 MiB"
"#;
    let loaded = loaded(&(CATALOG.to_owned() + &route("a", lines)));
    let read = cached(&loaded.policy.routes[0].class);
    assert_eq!((read.ttl, read.timeout, read.local_copy), (ms(60_000), ms(50), true));
    assert_eq!(read.read.max_age, ms(120_000));
    let fill = read.fill;
    assert_eq!((fill.concurrency, fill.rate, fill.deadline, fill.waiters), (7, Some(2), ms(3000), 9));
    let cache = &loaded.caches[0];
    assert_eq!((&*cache.name, &*cache.prefix, cache.connect), ("[::1]:7000/3", "shop", ms(1000)));
    assert_eq!(cache.value_bytes, (2 << 20) + (64 << 10));
    let breaker = loaded.policy.caches[0].breaker;
    assert_eq!((breaker.open, breaker.probes, breaker.slow), (ms(2000), 5, ms(50)));
}

#[test]
fn routes_share_a_cache_by_its_url() {
    let other = "cache = { url = \"redis://cache:6379/1\", ttl = \"5s\" }";
    let third = "cache = { url = \"redis://cache:6379/0\", ttl = \"9s\" }";
    let loaded = loaded(&[CATALOG, &route("a", CACHE), &route("b", other), &route("c", third)].concat());
    let caches: Vec<_> = loaded.policy.routes.iter().map(|route| cached(&route.class).cache).collect();
    assert_eq!(caches, [CacheId(0), CacheId(1), CacheId(0)]);
    let names: Vec<_> = loaded.caches.iter().map(|cache| &*cache.name).collect();
    assert_eq!(names, ["cache:6379/0", "cache:6379/1"]);
    let two = |one: &str, other: &str| {
        let cache = |lines: &str| format!("cache = {{ url = \"redis://cache\", ttl = \"5s\", {lines} }}");
        [CATALOG, &route("a", &cache(one)), &route("b", &cache(other))].concat()
    };
    for differs in [
        "timeout = \"30ms\"",
        "connect = \"1s\"",
        "prefix = \"x\"",
        "breaker = { open = \"3s\" }",
        "breaker = { state = \"open\" }",
        "breaker = { window = \"9s\" }",
        "breaker = { slow = \"19ms\" }",
    ] {
        refused(&two("", differs), Code::OneCache);
        refused(&two(differs, "breaker = {}"), Code::OneCache);
    }
    refused(&two("breaker = { state = \"open\" }", "breaker = { state = \"closed\" }"), Code::OneCache);
}

/// By hand, the defaults: 20 ms, 250 ms, `backstop`, and of the breaker 10 s, 20 calls, 50 %, 60 %, 1 s, 30 s, 3 probes. Who
/// writes one of them says the same as who leaves it out.
#[test]
fn a_cache_whose_defaults_are_written_in_one_place_is_still_one_cache() {
    for default in [
        "timeout = \"20ms\"",
        "connect = \"250ms\"",
        "prefix = \"backstop\"",
        "breaker = {}",
        "breaker = { window = \"10s\", min_calls = 20, failures = \"50%\", slow_share = \"60%\", probes = 3 }",
        "breaker = { open = \"1s\", open_max = \"30s\" }",
    ] {
        let written = format!("cache = {{ url = \"redis://cache\", ttl = \"5s\", {default} }}");
        let loaded = loaded(&[CATALOG, &route("a", CACHE), &route("b", &written)].concat());
        assert_eq!(loaded.caches.len(), 1, "{default}");
    }
}

/// A first pause of 1 s and a wait of 20 ms are what a cache has by default.
#[test]
fn the_breaker_of_a_cache_is_checked_as_any_other() {
    let with = |keys: &str| {
        let cache = format!("cache = {{ url = \"redis://cache\", ttl = \"5s\", {keys} }}");
        CATALOG.to_owned() + &route("a", &cache)
    };
    let sees = |keys: &str| !found(&with(keys)).contains(&Code::SlowNeverSeen);
    refused(&with("breaker = { open_max = \"999ms\" }"), Code::OpenMaxTooShort);
    loaded(&with("breaker = { open_max = \"1s\" }"));
    refused(&with("breaker = { open = \"2s\", open_max = \"1999ms\" }"), Code::OpenMaxTooShort);
    loaded(&with("breaker = { open = \"2s\", open_max = \"2s\" }"));
    assert!(sees("breaker = { slow = \"19999us\" }") && !sees("breaker = { slow = \"20ms\" }"));
    assert!(sees("timeout = \"50ms\", breaker = { slow = \"49ms\" }"));
    assert!(!sees("timeout = \"50ms\", breaker = { slow = \"50ms\" }"));
    assert!(sees("breaker = {}"), "the default is nothing to be told of");
}

/// Half of 300 ms is too long for a cache, a nanosecond less is not.
#[test]
fn the_cache_leaves_time_for_the_read() {
    let with = |timeout: &str| {
        let cache = format!("cache = {{ url = \"redis://cache\", ttl = \"5s\", timeout = \"{timeout}\" }}");
        CATALOG.to_owned() + &route("a", &cache)
    };
    refused(&with("150ms"), Code::CacheTimeout);
    loaded(&with("149999us"));
}

#[test]
fn what_is_missing_or_of_another_class_is_refused() {
    refused(&(CATALOG.to_owned() + &route("a", "")), Code::MissingKey);
    refused(
        &(CATALOG.to_owned() + &route("a", "cache = { url = \"redis://cache\" }")),
        Code::MissingContract,
    );
    refused(
        &(CATALOG.to_owned() + &route("a", &format!("{CACHE}\nlocal_copy = {{}}"))),
        Code::MissingContract,
    );
    refused(&(CATALOG.to_owned() + &route("a", &format!("{CACHE}\nmax_age = \"60s\""))), Code::OtherClass);
    refused(
        &(CATALOG.to_owned() + &route("a", &format!("{CACHE}\nfill = {{ rate = \"90/m\" }}"))),
        Code::NotAvailable,
    );
    let write = route("a", CACHE).replace("GET", "POST");
    refused(&(CATALOG.to_owned() + &write), Code::WritesWithAlternative);
}

/// A lane and a status for copies mean something only where one may be kept; with one, the lane is noted as any other.
#[test]
fn rules_for_a_local_copy_need_one() {
    let with = |lines: &str| CATALOG.to_owned() + &route("a", &format!("{CACHE}\n{lines}"));
    for rule in
        ["fallback_in_flight = 5", "unavailable_status = \"cause\"", "unavailable_status = \"contract\""]
    {
        let codes = found(&with(rule));
        assert_eq!(codes, [Code::NeedsLocalCopy], "{rule}");
        let kept = with(&format!("{rule}\nlocal_copy = {{ max_age = \"30s\" }}"));
        assert_eq!(found(&kept).contains(&Code::SeparateLane), rule.starts_with("fallback"), "{rule}");
        loaded(&kept);
        assert_eq!(found(&with(&format!("{rule}\nlocal_copy = \"30s\""))), [Code::WrongType], "{rule}");
    }
    let both = with("fallback_in_flight = 5\nunavailable_status = \"cause\"");
    assert_eq!(found(&both), [Code::NeedsLocalCopy; 2]);
    loaded(&with(""));
}

#[test]
fn what_probably_is_not_meant_is_said() {
    let findings = |lines: &str| found(&(CATALOG.to_owned() + &route("a", &format!("{CACHE}\n{lines}"))));
    assert!(findings("").contains(&Code::NoLocalCopy));
    let young = findings("local_copy = { max_age = \"5s\" }");
    assert!(young.contains(&Code::LocalCopyTooYoung) && !young.contains(&Code::NoLocalCopy));
    assert!(!findings("local_copy = { max_age = \"5001ms\" }").contains(&Code::LocalCopyTooYoung));
    // 85 % of 64 connections are 54.4.
    assert!(findings("fill = { concurrency = 55 }").contains(&Code::FillAbove));
    assert!(!findings("fill = { concurrency = 54 }").contains(&Code::FillAbove));
    // An answer of the cache may be as old as a copy.
    let ttl = |ttl: &str| CACHE.replace("5s", ttl);
    assert!(found(&(CATALOG.to_owned() + &route("a", &ttl("86401s")))).contains(&Code::LongMaxAge));
    assert!(!found(&(CATALOG.to_owned() + &route("a", &ttl("24h")))).contains(&Code::LongMaxAge));
    assert!(findings("key = [\"header.Accept-Encoding\"]").contains(&Code::KeyHeaderRemoved));
    assert!(!findings("key = [\"header.accept\"]").contains(&Code::KeyHeaderRemoved));
    assert!(findings("fill = { deadline = \"299ms\" }").contains(&Code::FillTooShort));
    assert!(!findings("fill = { deadline = \"300ms\" }").contains(&Code::FillTooShort));
}

/// A dependency with these lines and a cached read of it, whose deadline is 300 ms and which lets 10 requests in.
fn behind(dependency: &str, lines: &str) -> String {
    format!("{CATALOG}{dependency}\n{}", route("a", &format!("{CACHE}\n{lines}")))
}

/// Of 40 places reads may take less than 34; a single one is everybody's. A rate has no shares.
#[test]
fn a_fill_budget_is_measured_by_the_share_of_reads() {
    let with = |resource: &str, fill: &str| {
        let fragment = behind("uses = [\"db\"]", &format!("fill = {{ {fill} }}"));
        found(&format!("[resource.db]\n{resource}\n{fragment}")).contains(&Code::FillAbove)
    };
    assert!(!with("concurrency = 40", "concurrency = 33") && with("concurrency = 40", "concurrency = 34"));
    assert!(!with("concurrency = 1", "concurrency = 1") && with("concurrency = 1", "concurrency = 2"));
    assert!(!with("rate = \"100/s\"", "rate = \"100/s\"") && with("rate = \"100/s\"", "rate = \"101/s\""));
}

/// Four places, each for 2 s: in 10 s five reads end in each, though ten requests of 300 ms are let in.
#[test]
fn a_breaker_waits_for_no_more_reads_than_a_fill_makes() {
    let reaches = |calls: u32, fill: &str| {
        let breaker = format!("breaker = {{ min_calls = {calls} }}");
        !found(&behind(&breaker, &format!("fill = {{ {fill} }}"))).contains(&Code::UnreachableMinimum)
    };
    assert!(reaches(20, "concurrency = 4") && !reaches(21, "concurrency = 4"));
    // A read of 500 ms: twenty in each.
    let short = "concurrency = 4, deadline = \"500ms\"";
    assert!(reaches(80, short) && !reaches(81, short));
    // By default 32 places for 2 s.
    assert!(reaches(160, "") && !reaches(161, ""));
}

/// A read has the time of the fill, 2 s by default, and not the request's 300 ms.
#[test]
fn phases_end_within_the_time_of_a_fill() {
    let codes = |phases: &str, lines: &str| found(&behind(phases, lines));
    let has = |phases: &str, lines: &str, code: Code| codes(phases, lines).contains(&code);
    let fill = "fill = { deadline = \"400ms\" }";
    assert!(!has("connect = \"1999ms\"", "", Code::PhaseTooLong));
    assert!(has("connect = \"2s\"", "", Code::PhaseTooLong));
    assert!(!has("queue = \"399ms\"", fill, Code::PhaseTooLong));
    assert!(has("queue = \"400ms\"", fill, Code::PhaseTooLong));
    // With the 25 ms before a second attempt.
    let phases = |queue: u32| format!("connect = \"200ms\"\nqueue = \"{queue}ms\"");
    let retried = format!("{fill}\nretry = {{}}");
    assert!(!has(&phases(174), &retried, Code::NoTimeToRetry));
    assert!(has(&phases(175), &retried, Code::NoTimeToRetry));
    assert!(!has(&phases(175), "retry = {}", Code::NoTimeToRetry));
}

/// The evidence says 20 calls at once. A fill of 20 is within it, whatever is let in.
#[test]
fn a_fill_is_held_against_what_was_verified() {
    let above = |in_flight: u32, fill: &str| {
        let alternative = "alternative = { dependency = \"replica\", verified = \"evidence/replica.toml\" }";
        let fragment = behind("", &format!("fill = {{ {fill} }}\n{alternative}"));
        let fragment = fragment.replace("in_flight = 10", &format!("in_flight = {in_flight}"));
        found(&format!("{REPLICA}{fragment}")).contains(&Code::AboveVerified)
    };
    assert!(!above(100, "concurrency = 20") && above(100, "concurrency = 21"));
    assert!(above(10, ""), "32 by default");
}
