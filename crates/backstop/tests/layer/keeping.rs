//! What HTTP and the origin allow to keep, and for how long it may then stand in (RFC 9111, RFC 9213, RFC 5861).

use backstop::engine::policy::Policy;
use backstop::request::Personal;

use crate::support::{
    MAX_AGE, NS, PRODUCT, REFUSED, SECOND, Shop, answers, description, description_with, request,
};

const MISSING: &str = "missing";
const FORBIDDEN: &str = "forbidden";
const TOO_OLD: &str = "age";
const SERVED: &str = "connect";

/// The reason of the answer that is given `age` after a read that was asked for and answered with these fields.
fn reason_after(
    policy: Policy,
    asked: &[(&str, &str)],
    answered: &[(&str, &str)],
    age: std::time::Duration,
) -> String {
    let shop = Shop::open(policy);
    shop.warm(request("GET", PRODUCT, asked), answers(200, answered, "v1"));
    shop.later(age);
    shop.catalog.does(REFUSED);
    let reply = shop.ask(request("GET", PRODUCT, &[]));
    let field = reply.field("backstop").unwrap();
    let reason = field.split(", ").find_map(|member| member.strip_prefix("reason=")).unwrap();
    assert_eq!(reply.status, if reason == SERVED { 200 } else { 503 });
    reason.to_owned()
}

fn overriding() -> Policy {
    description_with(|read| read.override_origin = true)
}

#[test]
fn what_is_somebodys_own_is_never_kept_whatever_the_operator_says() {
    let of_the_answer: [&[(&str, &str)]; 5] = [
        &[("set-cookie", "session=x")],
        &[("cache-control", "private")],
        &[("cache-control", "max-age=60, Private=\"x-user\"")],
        &[("backstop-cache-control", "private, max-age=60"), ("cache-control", "public")],
        &[("vary", "*")],
    ];
    for answered in of_the_answer {
        for policy in [description().policy(), overriding()] {
            assert_eq!(reason_after(policy, &[], answered, SECOND), MISSING, "{answered:?}");
        }
    }
    for asked in [("authorization", "Bearer x"), ("cookie", "session=x")] {
        for policy in [description().policy(), overriding()] {
            assert_eq!(reason_after(policy, &[asked], &[], SECOND), MISSING, "{asked:?}");
        }
    }
}

/// Nor is anybody's own request answered from what is everybody's.
#[test]
fn a_request_with_a_credential_is_not_answered_from_a_copy() {
    let shop = Shop::open(description().policy());
    shop.warm(request("GET", PRODUCT, &[]), answers(200, &[], "v1"));
    shop.catalog.does(REFUSED);
    for credential in [("authorization", "Bearer x"), ("cookie", "session=x")] {
        let line = shop.line(request("GET", PRODUCT, &[credential]));
        assert_eq!(line, "503; outcome=rejected, reason=missing, cause=connect");
    }
}

/// Nor where the credential was taken away before, and only the mark is left.
#[test]
fn a_request_that_is_marked_as_personal_is_neither_kept_nor_answered_from_a_copy() {
    let personal = || {
        let mut request = request("GET", PRODUCT, &[]);
        request.extensions_mut().insert(Personal);
        request
    };
    let missing = "503; outcome=rejected, reason=missing, cause=connect";
    let shop = Shop::open(description().policy());
    shop.warm(personal(), answers(200, &[], "own"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(request("GET", PRODUCT, &[])), missing);
    shop.warm(request("GET", PRODUCT, &[]), answers(200, &[], "v1"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(personal()), missing);
}

#[test]
fn a_request_that_forbids_storing_may_be_answered_but_is_not_kept() {
    let no_store = [("cache-control", "max-age=0, No-Store")];
    assert_eq!(reason_after(description().policy(), &no_store, &[], SECOND), MISSING);
    let shop = Shop::open(description().policy());
    shop.warm(request("GET", PRODUCT, &[]), answers(200, &[], "v1"));
    shop.warm(request("GET", PRODUCT, &no_store), answers(200, &[], "v2"));
    shop.catalog.does(REFUSED);
    let line = shop.line(request("GET", PRODUCT, &no_store));
    assert_eq!(line, "200 v1; outcome=fallback, source=snapshot, age=0, reason=connect");
}

/// RFC 9111 section 4.2.4 forbids an old copy, not a fresh one; freshness ends when the age reaches the lifetime.
#[test]
fn what_the_origin_forbids_is_not_served_unless_the_operator_overrides_it_in_writing() {
    let ten = 10 * SECOND;
    for (directives, age, expected) in [
        ("max-age=10", MAX_AGE, SERVED),
        ("no-store", SECOND, MISSING),
        ("no-cache", NS, FORBIDDEN),
        ("max-age=10, must-revalidate", ten - NS, SERVED),
        ("max-age=10, must-revalidate", ten, FORBIDDEN),
        ("max-age=10, proxy-revalidate", ten, FORBIDDEN),
        ("must-revalidate", NS, FORBIDDEN),
        ("max-age=60, s-maxage=10", ten - NS, SERVED),
        ("max-age=60, s-maxage=10", ten, FORBIDDEN),
        ("s-maxage=10, stale-if-error=40", ten, FORBIDDEN),
        ("max-age=10, stale-if-error=20", 30 * SECOND, SERVED),
        ("max-age=10, stale-if-error=20", 30 * SECOND + NS, FORBIDDEN),
        ("max-age=1000, must-revalidate", MAX_AGE + NS, TOO_OLD),
        ("max-age=1000, stale-if-error=1000", MAX_AGE + NS, TOO_OLD),
    ] {
        let fields = [("cache-control", directives)];
        assert_eq!(reason_after(description().policy(), &[], &fields, age), expected, "{directives} {age:?}");
        let overridden = if age > MAX_AGE { TOO_OLD } else { SERVED };
        assert_eq!(reason_after(overriding(), &[], &fields, age), overridden, "{directives}, overridden");
    }
}

/// What the answer had aged before it came counts towards its freshness.
#[test]
fn a_received_age_shortens_what_is_left_of_freshness() {
    let fields = [("cache-control", "max-age=30, must-revalidate"), ("age", "20")];
    assert_eq!(reason_after(description().policy(), &[], &fields, 10 * SECOND - NS), SERVED);
    assert_eq!(reason_after(description().policy(), &[], &fields, 10 * SECOND), FORBIDDEN);
}

/// The origin can allow this cache what it forbids to all others, and the other way round.
#[test]
fn the_targeted_field_speaks_to_backstop_alone() {
    for (targeted, general, age, expected) in [
        ("max-age=10", "no-cache", MAX_AGE, SERVED),
        ("max-age=10", "must-revalidate", MAX_AGE, SERVED),
        ("no-cache", "max-age=60", SECOND, FORBIDDEN),
        ("no-store", "max-age=60", SECOND, MISSING),
        ("max-age=10, must-revalidate", "public", 10 * SECOND, FORBIDDEN),
        ("max-age=10, stale-if-error=5", "public", 15 * SECOND + NS, FORBIDDEN),
        // What does not parse, or is empty, is as if it were not there.
        ("MAX-AGE=10", "no-cache", SECOND, FORBIDDEN),
        ("", "no-cache", SECOND, FORBIDDEN),
        ("\"", "max-age=60", SECOND, SERVED),
    ] {
        let fields = [("cache-control", general), ("backstop-cache-control", targeted)];
        let reason = reason_after(description().policy(), &[], &fields, age);
        assert_eq!(reason, expected, "{targeted:?} before {general:?}");
    }
}

/// RFC 9111 section 3.1: everything is kept but what belongs to one connection or one moment.
#[test]
fn the_copy_has_the_fields_of_the_answer_but_those_of_its_connection() {
    let shop = Shop::open(description().policy());
    let fields = [
        ("content-type", "text/plain"),
        ("etag", "\"e1\""),
        ("x-anything", "1"),
        ("age", "3"),
        ("connection", "keep-alive, X-Hop"),
        ("x-hop", "2"),
        ("keep-alive", "timeout=5"),
        ("proxy-authenticate", "Basic"),
        ("cache-status", "inner; hit"),
    ];
    shop.warm(request("GET", PRODUCT, &[]), answers(200, &fields, "v1"));
    shop.catalog.does(REFUSED);
    let reply = shop.ask(request("GET", PRODUCT, &[]));
    let mut names: Vec<_> = reply.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let expected =
        ["age", "backstop", "cache-status", "content-length", "content-type", "date", "etag", "x-anything"];
    assert_eq!(names, expected);
    assert_eq!(reply.field("date"), Some("Mon, 30 Nov 2026 00:00:00 GMT"), "when it was received");
    assert_eq!(reply.field("age"), Some("3"));
}

/// Content of a request's own is part of the question, and no field need announce it: neither is the answer kept, nor is a
/// copy one.
#[test]
fn an_answer_to_content_that_no_field_announces_is_nobody_elses() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(answers(200, &[], "about mine"));
    assert_eq!(shop.send_with(request("GET", PRODUCT, &[]), "mine").reply().line(), "200 about mine");
    shop.catalog.does(REFUSED);
    let missing = "503; outcome=rejected, reason=missing, cause=connect";
    assert_eq!(shop.line(request("GET", PRODUCT, &[])), missing);
    shop.warm(request("GET", PRODUCT, &[]), answers(200, &[], "v1"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.send_with(request("GET", PRODUCT, &[]), "mine").reply().line(), missing);
    assert!(shop.line(request("GET", PRODUCT, &[])).starts_with("200 v1; "));
}

/// RFC 9213 section 2.1: a parameter or a value where none belongs does not take a word back.
#[test]
fn a_targeted_word_that_forbids_does_so_with_any_value() {
    for (targeted, expected) in [
        ("private=\"x-user\", max-age=60", MISSING),
        ("private=(\"x-user\" \"x-cart\"), max-age=60", MISSING),
        ("private;why=cart", MISSING),
        ("no-store=1", MISSING),
        ("no-cache=\"x-price\"", FORBIDDEN),
        ("no-cache=(x-price)", FORBIDDEN),
        ("max-age=1, must-revalidate=yes", FORBIDDEN),
        ("max-age=1, proxy-revalidate=()", FORBIDDEN),
        ("private=?0, no-store=?0, no-cache=?0, max-age=1", SERVED),
    ] {
        let fields = [("cache-control", "public"), ("backstop-cache-control", targeted)];
        assert_eq!(reason_after(description().policy(), &[], &fields, SECOND), expected, "{targeted}");
    }
}
