//! HEAD and conditional requests: a copy fits the request that it answers, and only the origin's word renews it.

use crate::support::{
    Does, MAX_AGE, NS, PRODUCT, REFUSED, SECOND, Shop, answers, description, description_with, get, request,
};

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

type Fields<'a> = &'a [(&'a str, &'a str)];

/// The reason of the answer some time after a read and a 304 that confirmed it a second later.
fn reason_after_304(first: Fields<'_>, confirmed: Fields<'_>, overridden: bool, later: u32) -> String {
    let shop = Shop::open(description_with(|read| read.override_origin = overridden));
    let tag = [("etag", "\"e1\"")];
    shop.warm(get(PRODUCT), answers(200, &[&tag, first].concat(), "hello"));
    shop.later(SECOND);
    shop.catalog.does(answers(304, &[&tag, confirmed].concat(), ""));
    assert_eq!(shop.ask(request("GET", PRODUCT, &[("if-none-match", "\"e1\"")])).status, 304);
    shop.later(later * SECOND);
    shop.catalog.does(REFUSED);
    let reply = shop.ask(get(PRODUCT));
    let field = reply.field("backstop").unwrap().to_owned();
    let member = |name: &str| field.split(", ").find_map(|member| member.strip_prefix(name)).unwrap_or("-");
    format!("{} {} {}", reply.status, member("age="), member("reason="))
}

/// RFC 9111 sections 3.2 and 4.3.4: a 304 need not say again what holds, and what it says replaces what was said.
#[test]
fn a_304_lifts_nothing_that_the_origin_forbade_and_did_not_take_back() {
    let strict = ("cache-control", "max-age=30, must-revalidate");
    let date = |second: &'static str| ("date", second);
    let (first, second) = (date("Mon, 30 Nov 2026 00:00:00 GMT"), date("Mon, 30 Nov 2026 00:00:01 GMT"));
    let expires = ("expires", "Mon, 30 Nov 2026 00:00:31 GMT");
    let must = ("cache-control", "must-revalidate");
    let targeted = ("backstop-cache-control", "max-age=30, must-revalidate");
    let cases: [(Fields<'_>, Fields<'_>, u32, &str); 14] = [
        (&[strict], &[], 29, "200 29 connect"),
        (&[strict], &[], 45, "503 - forbidden"),
        (&[strict], &[("x-other", "1")], 30, "503 - forbidden"),
        (&[strict], &[("cache-control", "max-age=50, must-revalidate")], 45, "200 45 connect"),
        (&[strict], &[("cache-control", "public")], 45, "200 45 connect"),
        (&[("cache-control", "no-cache")], &[], 1, "503 - forbidden"),
        (&[("cache-control", "public")], &[("cache-control", "no-cache")], 1, "503 - forbidden"),
        // The moment of `Expires` stays where it is: 30 s after the 304.
        (&[first, expires, must], &[second], 29, "200 29 connect"),
        (&[first, expires, must], &[second], 30, "503 - forbidden"),
        (&[first, expires, must], &[], 30, "503 - forbidden"),
        // What is said to Backstop alone holds as long, and a 304 repeats `Cache-Control` only.
        (&[targeted, must], &[must], 29, "200 29 connect"),
        (&[targeted, must], &[("cache-control", "private")], 29, "200 29 connect"),
        (&[targeted], &[("cache-control", "public")], 30, "503 - forbidden"),
        // What may not be kept any more is not (section 4.3.4: the fields of the 304 are the copy's from then on).
        (&[], &[("cache-control", "private")], 45, "503 - missing"),
    ];
    for (first, confirmed, later, expected) in cases {
        let reason = reason_after_304(first, confirmed, false, later);
        assert_eq!(reason, expected, "{first:?} {confirmed:?} {later}");
    }
    assert_eq!(reason_after_304(&[strict], &[], true, 45), "200 45 connect", "overridden in writing");
    assert_eq!(reason_after_304(&[], &[("set-cookie", "a=b")], true, 45), "200 46 connect", "somebody's own");
}

/// RFC 9111 section 4.1: what a 304 names in `Vary` tells from then on whom the copy is for.
#[test]
fn a_304_that_varies_by_more_keeps_the_copy_for_whom_it_was_sent() {
    let es = ("accept-language", "es");
    let seen_after = |vary: &str| {
        let shop = with_a_copy();
        shop.catalog.does(answers(304, &[("etag", "\"e1\""), ("vary", vary)], ""));
        assert_eq!(shop.ask(request("GET", PRODUCT, &[("if-none-match", "\"e1\""), es])).status, 304);
        shop.catalog.does(REFUSED);
        [&[es][..], &[("accept-language", "en")], &[]]
            .map(|fields| shop.ask(request("GET", PRODUCT, fields)).status)
    };
    assert_eq!(seen_after("Accept-Language"), [200, 503, 503]);
    assert_eq!(seen_after("X-Other"), [200, 200, 200]);
    assert_eq!(seen_after("*"), [503, 503, 503]);
}

/// RFC 9110 section 13.2.2: the date was not looked at where a tag was asked for.
#[test]
fn a_304_to_several_tags_confirms_nothing_by_the_date_beside_them() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), answers(200, &[E1[0], MODIFIED], "hello"));
    shop.later(30 * SECOND);
    shop.catalog.does(answers(304, &[], ""));
    let asked = [("if-none-match", "\"e2\", \"e3\""), ("if-modified-since", MODIFIED.1)];
    assert_eq!(shop.ask(request("GET", PRODUCT, &asked)).status, 304);
    assert_eq!(age_afterwards(&shop), "30");
}
