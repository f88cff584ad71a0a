//! HEAD and conditional requests: a copy fits the request that it answers, and only the origin's word renews it.

use crate::support::{Does, MAX_AGE, NS, PRODUCT, REFUSED, SECOND, Shop, answers, description, get, request};

const E1: [(&str, &str); 3] =
    [("etag", "\"e1\""), ("content-length", "5"), ("date", "Mon, 30 Nov 2026 00:00:00 GMT")];
const MODIFIED: (&str, &str) = ("last-modified", "Sun, 29 Nov 2026 00:00:00 GMT");

fn first() -> Does {
    answers(200, &E1, "hello")
}

fn with_a_copy() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), first());
    shop.later(SECOND);
    shop
}

const COPY: &str = "200 hello; outcome=fallback, source=snapshot, age=1, reason=connect";

/// Some caches answer with length 0 (<https://github.com/varnishcache/varnish-cache/issues/4245>).
#[test]
fn a_copy_answers_head_with_the_length_that_get_would_have() {
    let shop = with_a_copy();
    shop.catalog.does(REFUSED);
    let reply = shop.ask(request("HEAD", PRODUCT, &[]));
    assert_eq!((reply.status, reply.text(), reply.field("content-length")), (200, "", Some("5")));
    assert_eq!((reply.field("etag"), reply.field("age")), (Some("\"e1\""), Some("1")));
    assert_eq!(shop.line(get(PRODUCT)), COPY);
}

#[test]
fn an_answer_to_head_is_no_copy() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(answers(200, &E1, ""));
    assert_eq!(shop.line(request("HEAD", PRODUCT, &[])), "200");
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=missing, cause=connect");
}

/// Five old bytes are never labelled as the new six.
#[test]
fn an_answer_to_head_changes_no_copy() {
    let shop = with_a_copy();
    shop.catalog.does(answers(200, &[("etag", "\"e2\""), ("content-length", "6")], ""));
    shop.ask(request("HEAD", PRODUCT, &[]));
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    assert_eq!((reply.line().as_str(), reply.field("etag")), (COPY, Some("\"e1\"")));
    assert_eq!(reply.field("content-length"), Some("5"));
}

#[test]
fn a_refusal_of_head_has_no_content() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(REFUSED);
    let reply = shop.ask(request("HEAD", PRODUCT, &[]));
    assert_eq!((reply.status, reply.text()), (503, ""));
    assert_eq!(reply.field("content-type"), Some("application/problem+json"));
}

/// RFC 9111 section 4.3.2; RFC 9110 sections 13.2.2 and 15.4.5.
#[test]
fn a_client_that_has_the_copy_is_told_so_during_the_outage() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), answers(200, &[E1[0], E1[2], MODIFIED, ("x-other", "1")], "hello"));
    shop.later(30 * SECOND);
    shop.catalog.does(REFUSED);
    let reply = |fields: &[(&str, &str)]| shop.ask(request("GET", PRODUCT, fields));
    for has_it in [
        ("if-none-match", "\"e1\""),
        ("if-none-match", "W/\"e1\""),
        ("if-none-match", "\"e0\", \"e1\""),
        ("if-none-match", "*"),
        ("if-modified-since", "Sun, 29 Nov 2026 00:00:00 GMT"),
    ] {
        let reply = reply(&[has_it]);
        let line = "304; outcome=fallback, source=snapshot, age=30, reason=connect";
        assert_eq!(reply.line(), line, "{has_it:?}");
        // The client's copy is not made younger than ours: the old date and the age come along.
        assert_eq!((reply.field("age"), reply.field("date")), (Some("30"), Some(E1[2].1)));
        assert_eq!((reply.field("etag"), reply.field("x-other")), (Some("\"e1\""), None));
    }
    for has_another in [
        vec![("if-none-match", "\"e2\"")],
        vec![("if-modified-since", "Sat, 28 Nov 2026 23:59:59 GMT")],
        vec![("if-none-match", "\"e2\""), ("if-modified-since", "Mon, 30 Nov 2026 00:00:00 GMT")],
    ] {
        assert_eq!(reply(&has_another).status, 200, "{has_another:?}");
    }
}

fn age_afterwards(shop: &Shop) -> String {
    shop.catalog.does(REFUSED);
    shop.ask(get(PRODUCT)).field("age").unwrap_or("none").to_owned()
}

/// The origin's word is a correct read; a 304 is no content.
#[test]
fn a_304_of_the_origin_renews_the_copy_that_it_speaks_of() {
    let asks = [("if-none-match", "\"e1\"")];
    let shop = with_a_copy();
    shop.later(29 * SECOND);
    shop.catalog.does(answers(304, &[("etag", "\"e1\""), ("x-new", "1")], ""));
    assert_eq!(shop.line(request("GET", PRODUCT, &asks)), "304");
    shop.later(MAX_AGE);
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    assert_eq!(reply.line(), "200 hello; outcome=fallback, source=snapshot, age=60, reason=connect");
    assert_eq!((reply.field("content-length"), reply.field("x-new")), (Some("5"), Some("1")));
    shop.later(NS);
    assert_eq!(shop.ask(get(PRODUCT)).status, 503);
}

#[test]
fn a_304_about_something_else_renews_nothing() {
    let age_after = |answer: &[(&str, &str)], asked: (&str, &str)| {
        let shop = with_a_copy();
        shop.later(29 * SECOND);
        shop.catalog.does(answers(304, answer, ""));
        assert_eq!(shop.ask(request("GET", PRODUCT, &[asked])).status, 304);
        age_afterwards(&shop)
    };
    assert_eq!(age_after(&[("etag", "\"e1\"")], ("if-none-match", "\"e1\"")), "0");
    assert_eq!(age_after(&[], ("if-none-match", "\"e1\"")), "0", "by what was asked");
    assert_eq!(
        age_after(&[("etag", "\"e2\"")], ("if-none-match", "\"e2\"")),
        "30",
        "the client has another one"
    );
    assert_eq!(age_after(&[], ("if-none-match", "\"e2\"")), "30");
    assert_eq!(age_after(&[], ("x-nothing", "asked")), "30", "nothing is named");
    let behind = [("etag", "\"e1\""), ("backstop", "outcome=fallback, source=snapshot, age=1")];
    assert_eq!(age_after(&behind, ("if-none-match", "\"e1\"")), "30", "an alternative confirms nothing");
    assert_eq!(age_after(&[("etag", "\"e1\""), ("age", "7")], ("if-none-match", "\"e1\"")), "7");
}

#[test]
fn a_304_is_never_stored_as_an_answer() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(answers(304, &[("etag", "\"e1\"")], ""));
    shop.ask(request("GET", PRODUCT, &[("if-none-match", "\"e1\"")]));
    assert_eq!(age_afterwards(&shop), "none");
}
