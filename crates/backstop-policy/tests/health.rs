//! Resources, breakers, probes and recovery: each way to break a rule leads to the code that its page describes, and
//! each boundary is tried on both sides.

mod support;

use backstop_policy::Code;
use support::{READ, REPLICA, dependency, other_read, says};

#[test]
fn a_resource_has_a_limit_and_a_use() {
    let used = |lines: &str| format!("[resource.db]\n{lines}\n{}", dependency("uses = [\"db\"]"));
    for good in
        ["concurrency = 20", "rate = \"2000/s\"", "rate = \"120/m\"", "concurrency = 20\nrate = \"1/s\""]
    {
        says(&used(good), &[]);
    }
    says(&used(""), &[Code::AtLeastOne]);
    says(&used("concurrency = 0"), &[Code::Zero]);
    says(&used("concurrency = 19"), &[Code::ConnectionsAboveResource]);
    for bad in ["\"2000\"", "2000", "\"2000/h\"", "\"1.5/s\""] {
        says(&used(&format!("rate = {bad}")), &[Code::Rate]);
    }
    says(&used("rate = \"30/m\""), &[Code::NotAvailable]);
    says(&format!("[resource.db]\nconcurrency = 20\n{}", dependency("")), &[Code::UnusedResource]);
    says(
        &format!("[resource.db]\nconcurrency = 20\n{}", dependency("uses = \"dbs\"")),
        &[Code::UnknownReference],
    );
    says(&used("concurrency = 20").replace("[\"db\"]", "[\"db\", \"db\"]"), &[Code::Repeated]);
}

#[test]
fn breakers() {
    let breaker = |keys: &str| dependency(&format!("breaker = {{ {keys} }}"));
    says(&breaker(""), &[]);
    for (bad, code) in [
        ("failures = \"0%\"", Code::Zero),
        ("failures = \"101%\"", Code::OutOfRange),
        ("failures = 0.5", Code::Percent),
        ("slow_share = \"60\"", Code::Percent),
        ("min_calls = 0", Code::Zero),
        ("window = \"10\"", Code::Duration),
        ("open_max = \"4s\"", Code::OpenMaxTooShort),
        ("open = \"6s\", open_max = \"5s\"", Code::OpenMaxTooShort),
        ("probes = 17", Code::OutOfRange),
    ] {
        says(&breaker(bad), &[code]);
    }
    for good in
        ["open_max = \"5s\"", "open = \"40s\"", "probes = 16", "failures = \"0.1%\"", "slow_share = \"100%\""]
    {
        says(&breaker(good), &[]);
    }
    let few =
        |count: u32| breaker("probes = 5").replace("connections = 20", &format!("connections = {count}"));
    says(&few(5), &[]);
    says(&few(4), &[Code::ProbesAboveConnections]);
}

/// 300 ms leave 294 ms for a call: in 10 s, 35 of them end in each of ten places.
#[test]
fn a_minimum_that_hanging_calls_cannot_reach_is_told() {
    says(&dependency("breaker = { min_calls = 350 }"), &[]);
    says(&dependency("breaker = { min_calls = 351 }"), &[Code::UnreachableMinimum]);
    // Five connections instead: 175.
    let few = |lines: &str| dependency(lines).replace("connections = 20", "connections = 5");
    says(&few("breaker = { min_calls = 175 }"), &[]);
    says(&few("breaker = { min_calls = 176 }"), &[Code::UnreachableMinimum]);
    // A window that is shorter than one call: one end per place.
    says(&dependency("breaker = { window = \"100ms\", min_calls = 10 }"), &[]);
    says(&dependency("breaker = { window = \"100ms\", min_calls = 11 }"), &[Code::UnreachableMinimum]);
    // The first of two attempts has 60 % of the time, and 57 of those end in 10 s.
    let retried = |calls: u32| dependency(&format!("breaker = {{ min_calls = {calls} }}")) + "retry = {}\n";
    says(&retried(570), &[]);
    says(&retried(571), &[Code::UnreachableMinimum]);
}

#[test]
fn a_breaker_sees_what_is_slow_before_it_is_cut_off() {
    says(&dependency("breaker = { slow = \"293999us\" }"), &[]);
    says(&dependency("breaker = { slow = \"294ms\" }"), &[Code::SlowNeverSeen]);
    let other = other_read().replace("300ms", "600ms");
    says(&(dependency("breaker = { slow = \"293ms\" }") + &other), &[]);
    says(&(dependency("breaker = { slow = \"294ms\" }") + &other), &[Code::SlowOfRouteNotSeen]);
    says(&(dependency("breaker = { slow = \"588ms\" }") + &other), &[Code::SlowNeverSeen]);
    // 60 % of 294 ms for the first of two attempts.
    says(&(dependency("breaker = { slow = \"176ms\" }") + "retry = {}\n"), &[]);
    says(&(dependency("breaker = { slow = \"177ms\" }") + "retry = {}\n"), &[Code::SlowNeverSeen]);
}

/// Somebody who may stand in gets time too, so that the first call has 60 % of 294 ms; one that may not be asked changes
/// nothing. In 10 s 57 calls of 176.4 ms end in each of ten places, or 35 of 294 ms.
#[test]
fn the_time_of_a_call_counts_an_alternative_only_if_it_may_be_asked() {
    let with = |breaker: &str, evidence: &str| {
        dependency(&format!("breaker = {{ {breaker} }}\n{REPLICA}"))
            + &format!("alternative = {{ dependency = \"replica\"{evidence} }}\n")
    };
    let verified = ", verified = \"evidence/replica.toml\"";
    says(&with("slow = \"176ms\"", verified), &[]);
    says(&with("slow = \"177ms\"", verified), &[Code::SlowNeverSeen]);
    says(&with("min_calls = 570", verified), &[]);
    says(&with("min_calls = 571", verified), &[Code::UnreachableMinimum]);
    for (evidence, why) in [
        ("", Code::NoEvidence),
        (", verified = \"evidence/none.toml\"", Code::NoEvidence),
        (", verified = \"evidence/old.toml\"", Code::EvidenceNotValid),
        (", verified = \"evidence/reviews.toml\"", Code::EvidenceOfAnother),
    ] {
        says(&with("slow = \"293ms\"", evidence), &[why]);
        says(&with("slow = \"294ms\"", evidence), &[Code::SlowNeverSeen, why]);
        says(&with("min_calls = 350", evidence), &[why]);
        says(&with("min_calls = 351", evidence), &[Code::UnreachableMinimum, why]);
    }
}

#[test]
fn a_breaker_needs_something_safe_to_find_out_with() {
    let writes = |rule: &str, lines: &str| {
        format!(
            "[dependency.catalog]\nurl = \"http://x\"\nbreaker = {{}}\n{lines}\n[route.pay.direct]\nmatch = {rule:?}\n\
             dependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 10\n"
        )
    };
    says(&writes("POST /pay", ""), &[Code::ProbesNeverGo]);
    says(&writes("POST /pay", "probe = { path = \"/healthz\" }"), &[]);
    for reads in ["* /pay", "GET /pay", "HEAD /pay"] {
        says(&writes(reads, ""), &[]);
    }
    says(&(writes("POST /pay", "") + READ), &[]);
    says(&writes("POST /pay", "probe = \"/healthz\""), &[Code::WrongType]);
}

#[test]
fn probes() {
    let probe = |keys: &str| dependency(&format!("breaker = {{}}\nprobe = {{ {keys} }}"));
    says(&probe("path = \"/healthz?deep=1\", interval = \"1s\", expect = [200, 204]"), &[]);
    says(&probe(""), &[Code::MissingKey]);
    for good in ["/", "/a%20b", "/~a/b:c@d;e=1,2/(!$&'*+)", "/a?b=/?&c=%C3%B1", "//a"] {
        says(&probe(&format!("path = {good:?}")), &[]);
    }
    // What is no path by RFC 3986 section 3.3, and no query by section 3.4.
    let bad = ["healthz", "", "/a b", "/a#b", "/ñ", "http://x/healthz", "/%", "/a%2", "/a%2g", "/?a=%zz"];
    let never = ["/\"", "/<", "/>", "/\\", "/^", "/`", "/{a}", "/a|b", "/[a]", "/?a=[1]"];
    for bad in bad.into_iter().chain(never) {
        says(&probe(&format!("path = {bad:?}")), &[Code::ProbePath]);
    }
    let long = |bytes: usize| probe(&format!("path = \"/{}\"", "a".repeat(bytes - 1)));
    says(&long(1024), &[]);
    says(&long(1025), &[Code::ProbePath]);
    says(&probe("path = \"/\", expect = 99"), &[Code::Status]);
    says(&probe("path = \"/\", timeout = \"5001ms\""), &[Code::ProbesOverlap]);
    says(&probe("path = \"/\", interval = \"999ms\""), &[Code::ProbesOverlap]);
    says(&dependency("probe = { path = \"/\" }"), &[Code::ProbeWithoutBreaker]);
}

#[test]
fn recovery() {
    let recovery = |keys: &str| dependency(&format!("breaker = {{}}\nrecovery = {{ {keys} }}"));
    for good in [
        "",
        "start = \"100%\"",
        "up = 1.001, back = 0.999",
        "up = \"2x\"",
        "green = { errors = \"5%\" }",
        "green = { p95 = \"8x\" }, red = { p95 = 8 }",
    ] {
        says(&recovery(good), &[]);
    }
    for (bad, code) in [
        ("start = \"0%\"", Code::Zero),
        ("start = \"100.1%\"", Code::OutOfRange),
        ("up = 1", Code::StepDirection),
        ("back = 1.0", Code::StepDirection),
        ("up = 0", Code::Zero),
        ("up = \"1.5\"", Code::Factor),
        ("up = nan", Code::Factor),
        ("green = { errors = \"5.1%\" }", Code::BandOrder),
        ("red = { in_use = \"69%\" }", Code::BandOrder),
        ("green = { p95 = \"7.1x\" }", Code::BandOrder),
        ("green = { db_wait = \"30ms\" }, red = { db_wait = \"29ms\" }", Code::BandOrder),
        ("red = { backlog = \"999ms\" }", Code::BandOrder),
        ("green = { error = \"1%\" }", Code::UnknownKey),
        ("green = { errors = \"1\" }, red = { errors = \"0.5%\" }", Code::Percent),
    ] {
        says(&recovery(bad), &[code]);
    }
    says(&dependency("recovery = {}"), &[Code::RecoveryWithoutBreaker]);
    says(&dependency("breaker = true\nrecovery = {}"), &[Code::WrongType]);
}
