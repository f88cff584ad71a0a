//! The fields and problem details that a client sees, byte for byte.

use backstop::engine::failure::FailureKind;
use backstop::engine::flow::Account;
use backstop::engine::outcome::Outcome;
use backstop::engine::policy::UnavailableStatus;

use crate::support::{
    Does, Gate, MAX_AGE, NS, PRODUCT, REFUSED, Reply, SECOND, Shop, answers, description, get, once_open,
    request, says,
};

fn sorted(reply: &Reply) -> Vec<String> {
    let mut lines: Vec<String> =
        reply.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort_unstable();
    lines
}

/// RFC 9111 section 5.1, RFC 9211 section 2: after a failed attempt a stale copy is `fwd=stale`, never a hit.
#[test]
fn a_copy_tells_its_age_its_source_and_why_it_is_served() {
    let shop = Shop::open(description().policy());
    let fields = [
        ("cache-control", "max-age=10"),
        ("content-type", "text/plain"),
        ("date", "Mon, 30 Nov 2026 00:00:00 GMT"),
    ];
    shop.warm(get(PRODUCT), answers(200, &fields, "v1"));
    shop.later(30 * SECOND);
    shop.catalog.does(answers(503, &[("x-theirs", "1")], "theirs"));
    let expected = [
        "age: 30",
        "backstop: outcome=fallback, source=snapshot, age=30, reason=unavailable",
        "cache-control: max-age=10",
        "cache-status: backstop; fwd=stale; fwd-status=503; ttl=-20; detail=unavailable",
        "content-length: 2",
        "content-type: text/plain",
        "date: Mon, 30 Nov 2026 00:00:00 GMT",
    ];
    assert_eq!(sorted(&shop.ask(get(PRODUCT))), expected);
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    assert_eq!(reply.field("cache-status"), Some("backstop; fwd=stale; ttl=-20; detail=connect"));
}

/// RFC 9457; no `Retry-After`, because nobody knows the moment.
#[test]
fn a_refusal_is_problem_details_that_nobody_keeps() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    let body = concat!(
        r#"{"type":"urn:backstop:problem:snapshot-missing","#,
        r#""title":"The service behind failed and there is no earlier answer","status":503,"#,
        r#""outcome":"rejected","reason":"missing","cause":"connect"}"#,
        "\n"
    );
    assert_eq!((reply.status, reply.text()), (503, body));
    let expected = [
        "backstop: outcome=rejected, reason=missing, cause=connect".to_owned(),
        "cache-control: no-store".to_owned(),
        format!("content-length: {}", body.len()),
        "content-type: application/problem+json".to_owned(),
    ];
    assert_eq!(sorted(&reply), expected);
}

#[test]
fn every_refusal_has_its_own_problem_type() {
    let problem = |reply: &Reply| {
        let rest = reply.text().split("urn:backstop:problem:").nth(1).unwrap().to_owned();
        format!("{} {}", reply.status, rest.split('"').next().unwrap())
    };
    let shop = Shop::open(description().connections(1).policy());
    shop.warm(get(PRODUCT), answers(200, &[("cache-control", "no-cache")], "v1"));
    shop.catalog.does(REFUSED);
    assert_eq!(problem(&shop.ask(get("/products/43"))), "503 snapshot-missing");
    assert_eq!(problem(&shop.ask(get(PRODUCT))), "503 snapshot-prohibited-by-origin");
    shop.later(MAX_AGE + NS);
    assert_eq!(problem(&shop.ask(get(PRODUCT))), "503 snapshot-too-old");
    assert_eq!(problem(&shop.ask(request("PUT", PRODUCT, &[]))), "502 upstream-failed");
    shop.catalog.does(Does::Fails(Some(FailureKind::ReadTimeout)));
    assert_eq!(problem(&shop.ask(request("PUT", PRODUCT, &[]))), "504 upstream-timeout");
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let mut busy = shop.send(get(PRODUCT));
    assert!(busy.is_pending());
    assert_eq!(problem(&shop.ask(request("PUT", PRODUCT, &[]))), "503 capacity");
    shop.backstop.engine().drain();
    assert_eq!(problem(&shop.ask(get(PRODUCT))), "503 draining");
}

/// A route may ask for the cause's own status instead of 503.
#[test]
fn a_missing_copy_can_carry_the_status_of_the_cause() {
    let mut policy = description().policy();
    policy.routes[0].unavailable_status = UnavailableStatus::Cause;
    let shop = Shop::open(policy);
    for (does, status) in [
        (REFUSED, 502),
        (Does::Fails(Some(FailureKind::ReadTimeout)), 504),
        (answers(502, &[], ""), 502),
        (answers(503, &[], ""), 503),
        (answers(504, &[], ""), 504),
    ] {
        shop.catalog.does(does);
        assert_eq!(shop.ask(get(PRODUCT)).status, status);
    }
}

#[test]
fn a_normal_answer_explains_itself_only_when_asked() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(answers(200, &[("backstop", "outcome=normal, source=cache")], "v1"));
    assert_eq!(shop.line(get(PRODUCT)), "200 v1", "a field that only this layer writes");
    let asked = |value: &str| shop.line(request("GET", PRODUCT, &[("backstop-explain", value)]));
    assert_eq!(asked("?1"), "200 v1; outcome=normal, source=primary");
    assert_eq!((asked("?0"), asked("1")), ("200 v1".to_owned(), "200 v1".to_owned()));
}

/// RFC 9209 section 2: an origin server must not send it, and the layer is part of one.
#[test]
fn the_layer_never_sends_proxy_status() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), answers(200, &[("proxy-status", "theirs; error=dns_error")], "v1"));
    for does in [REFUSED, answers(503, &[], ""), Does::Fails(Some(FailureKind::Tls))] {
        shop.catalog.does(does);
        for path in [PRODUCT, "/products/43"] {
            for method in ["GET", "HEAD", "POST"] {
                let reply = shop.ask(request(method, path, &[]));
                assert_eq!(reply.field("proxy-status"), None, "{method} {path}");
            }
            // The writes have withdrawn it.
            shop.warm(get(PRODUCT), says("v1"));
            shop.catalog.does(REFUSED);
        }
    }
}

/// Whoever logs finds in the extensions what the client reads in the field.
#[test]
fn what_is_not_normal_leaves_its_account_in_the_extensions() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(says("v1"));
    let (head, body) = shop.send(get(PRODUCT)).answered();
    assert!(head.extensions.get::<Account>().is_none());
    drop(body.rest());
    shop.later(30 * SECOND + 999 * NS);
    shop.catalog.does(REFUSED);
    let (head, _) = shop.send(get(PRODUCT)).answered();
    let account = head.extensions.get::<Account>().unwrap();
    assert_eq!((account.outcome, account.age), (Outcome::Fallback, Some(30 * SECOND + 999 * NS)));
}
