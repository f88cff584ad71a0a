//! A part that may be missing: a prepared answer, or none, in time and never kept by anybody.

use backstop::clock::Clock;
use backstop::engine::failure::FailureKind;
use backstop::engine::policy::{FixedAnswer, Optional, Otherwise, Policy, RouteClass};
use backstop::engine::time::Now;
use backstop::{Backstop, builder};

use crate::support::{
    Does, Gate, MS, NS, Piece, REFUSED, Shop, answers, answers_in_pieces, get, once_open, request,
};

const PATH: &str = "/products/42/recommendations";

fn general() -> FixedAnswer {
    FixedAnswer { status: 200, media_type: "application/json".into(), body: (*b"[1,2]").into() }
}

fn prepared() -> Policy {
    builder::optional("recommendations", 80 * MS, general()).in_flight(2).policy()
}

fn omitted(status: u16) -> Policy {
    let mut policy = prepared();
    let answer = FixedAnswer { status, media_type: "application/json".into(), body: Box::default() };
    policy.routes[0].class = RouteClass::Optional(Optional::new(Otherwise::Omit(answer)));
    policy
}

/// No `Age` and no `Cache-Status`: it is no stored answer. `no-store`, because a cache might keep a 200.
#[test]
fn a_failure_becomes_the_prepared_answer() {
    let shop = Shop::open(prepared());
    for (does, reason) in [
        (REFUSED, "connect"),
        (answers(503, &[("retry-after", "7")], ""), "unavailable"),
        (answers_in_pieces(200, &[], vec![Piece::Data("half"), Piece::Breaks]), "incomplete"),
        (Does::Fails(Some(FailureKind::Tls)), "tls"),
    ] {
        shop.catalog.does(does);
        let reply = shop.ask(get(PATH));
        assert_eq!(reply.line(), format!("200 [1,2]; outcome=fallback, source=prepared, reason={reason}"));
        let fields =
            ["content-type", "content-length", "cache-control", "age", "cache-status", "retry-after"];
        let values = [Some("application/json"), Some("5"), Some("no-store"), None, None, None];
        assert_eq!(fields.map(|name| reply.field(name)), values);
    }
    shop.catalog.does(REFUSED);
    let head = shop.ask(request("HEAD", PATH, &[]));
    assert_eq!((head.text(), head.field("content-length")), ("", Some("5")));
}

/// RFC 9110 section 8.6: 204 has no length.
#[test]
fn a_part_can_be_left_out() {
    for (status, length) in [(200, Some("0")), (204, None)] {
        let shop = Shop::open(omitted(status));
        shop.catalog.does(REFUSED);
        let reply = shop.ask(get(PATH));
        let line = format!("{status}; outcome=fallback, source=omitted, reason=connect");
        assert_eq!((reply.line(), reply.field("content-length")), (line, length));
    }
}

/// Of 80 ms, 1 ms each is kept for the reply and for the alternative.
#[test]
fn a_slow_part_is_replaced_in_time() {
    let shop = Shop::open(prepared());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, answers(200, &[], "late")));
    let mut slow = shop.send(get(PATH));
    assert!(slow.is_pending());
    shop.later(78 * MS - NS);
    assert!(slow.is_pending());
    shop.later(NS);
    assert_eq!(slow.reply().line(), "200 [1,2]; outcome=fallback, source=prepared, reason=read_timeout");
}

#[test]
fn an_answer_that_is_none_of_a_failure_is_not_replaced() {
    let shop = Shop::open(prepared());
    for status in [200, 401, 404, 422, 500] {
        shop.catalog.does(answers(status, &[], "theirs"));
        assert_eq!(shop.ask(get(PATH)).text(), "theirs", "{status}");
    }
    shop.catalog.does(REFUSED);
    let write = shop.line(request("POST", PATH, &[]));
    assert_eq!(write, "502; outcome=failed, reason=connect", "a write has no alternative");
}

/// A part that is not whole is replaced, as a read's is; what cannot be looked into is taken for what it says.
#[test]
fn part_of_an_answer_is_replaced_and_never_passed_on_as_whole() {
    let json = ("content-type", "application/json");
    for (what, does) in [
        ("half JSON", answers(200, &[json], "[1,2")),
        ("JSON twice", answers(200, &[json], "[1][2]")),
        ("no JSON at all", answers(200, &[json], "")),
        ("another kind of JSON", answers(200, &[("content-type", "application/problem+json")], "{")),
        ("fewer bytes than announced", answers(200, &[("content-length", "600")], "half")),
        ("more bytes than announced", answers(200, &[("content-length", "3")], "whole")),
    ] {
        let shop = Shop::open(prepared());
        shop.catalog.does(does);
        let line = "200 [1,2]; outcome=fallback, source=prepared, reason=incomplete";
        assert_eq!(shop.line(get(PATH)), line, "{what}");
        assert_eq!(shop.failures(), 1, "{what}");
    }
    for (what, does) in [
        ("JSON", answers(200, &[json], "[3]")),
        ("text", answers(200, &[("content-type", "text/plain")], "[3")),
        ("coded JSON", answers(200, &[json, ("content-encoding", "gzip")], "[3")),
        ("a kind without a name", answers(200, &[], "[3")),
        ("nothing", answers(204, &[], "")),
    ] {
        let shop = Shop::open(prepared());
        shop.catalog.does(does);
        let reply = shop.ask(get(PATH));
        assert_eq!((reply.field("backstop"), shop.failures()), (None, 0), "{what}");
    }
    let shop = Shop::open(prepared());
    shop.catalog.does(answers(206, &[json, ("content-range", "bytes 0-1/5")], "[1"));
    assert_eq!(shop.line(request("GET", PATH, &[("range", "bytes=0-1")])), "206 [1", "as it was asked for");
}

/// A prepared answer is sent as it is written, or the route is not set up.
#[test]
fn a_prepared_answer_that_http_does_not_know_is_refused_at_setup() {
    let refused = |status: u16, media_type: &str| {
        let mut policy = prepared();
        let answer = FixedAnswer { status, media_type: media_type.into(), body: Box::default() };
        policy.routes[0].class = RouteClass::Optional(Optional::new(Otherwise::Omit(answer)));
        let backstop = Backstop::in_memory(policy, Clock::manual(Now::default()).0, 1 << 20).unwrap();
        backstop.route("recommendations").err().map(|error| error.to_string())
    };
    for status in [0, 99, 100, 103, 199, 600, 999, 1000] {
        let said = refused(status, "text/plain").unwrap();
        assert!(said.starts_with("route `recommendations`: a prepared answer needs a status"), "{said}");
    }
    assert!(refused(200, "text/plain\r\n").is_some());
    for status in [200, 204, 404, 503, 599] {
        assert_eq!(refused(status, "text/plain"), None, "{status}");
    }
}
