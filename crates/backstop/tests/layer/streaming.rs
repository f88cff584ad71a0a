//! Answers that are too large to be held back: passed on as they come, and cut visibly if they break.

use std::task::Poll;
use std::time::Duration;

use backstop::builder;
use backstop::engine::outcome::Outcome;
use backstop::engine::policy::{Direct, Policy, RouteClass};
use http::HeaderMap;

use crate::support::{
    DEADLINE, Gate, HOUR, MS, NS, PRODUCT, Piece, REFUSED, SECOND, Shop, answers, answers_in_pieces,
    description_with, get, request, says,
};

/// Holds back four bytes.
fn small() -> Policy {
    description_with(|read| read.buffer_bytes = 4)
}

fn streams(pieces: Vec<Piece>) -> Shop {
    let shop = Shop::open(small());
    shop.catalog.does(answers_in_pieces(200, &[], pieces));
    shop
}

#[test]
fn exactly_the_buffer_is_held_back_and_kept_and_one_byte_more_streams() {
    let shop = Shop::open(small());
    shop.warm(get(PRODUCT), says("1234"));
    shop.warm(get("/products/43"), says("12345"));
    shop.catalog.does(REFUSED);
    assert!(shop.line(get(PRODUCT)).starts_with("200 1234; outcome=fallback"));
    assert_eq!(shop.line(get("/products/43")), "503; outcome=rejected, reason=missing, cause=connect");
}

#[test]
fn a_large_answer_comes_whole_and_in_order_with_its_trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "1".parse().unwrap());
    let pieces =
        vec![Piece::Data("abc"), Piece::Data("de"), Piece::Data("f"), Piece::Trailers(trailers.clone())];
    let shop = streams(pieces);
    let reply = shop.ask(get(PRODUCT));
    assert_eq!((reply.line().as_str(), reply.trailers), ("200 abcdef", Some(trailers)));
    assert_eq!((shop.total(Outcome::Normal), shop.dependency().tally.answers()), (1, 1));
}

/// The catalog's work ends with its last byte, whenever the client lets go of the body.
#[test]
fn a_large_answer_gives_every_place_back_at_its_end() {
    let shop = streams(vec![Piece::Data("abcde"), Piece::Data("f")]);
    let (_, mut body) = shop.send(get(PRODUCT)).answered();
    assert_eq!(body.piece(), "abcde");
    assert_eq!(shop.in_flight(), [1, 1, 0, 1]);
    assert_eq!(body.piece(), "f");
    assert_eq!(shop.in_flight(), [1, 1, 0, 0]);
    assert!(matches!(body.poll(), Poll::Ready(None)));
    assert_eq!(shop.in_flight(), [0; 4]);
}

/// No clean short 200: the client must see that something is missing.
#[test]
fn a_large_answer_that_breaks_off_breaks_the_clients_too() {
    let shop = streams(vec![Piece::Data("abcde"), Piece::Breaks]);
    let (head, mut body) = shop.send(get(PRODUCT)).answered();
    assert_eq!((head.status.as_u16(), body.piece().as_str()), (200, "abcde"));
    assert!(!body.is_end_stream());
    assert_eq!(body.broken(), "incomplete");
    assert_eq!((shop.total(Outcome::Failed), shop.total(Outcome::Normal), shop.failures()), (1, 0, 1));
    drop(body);
    assert_eq!((shop.in_flight(), shop.total(Outcome::Abandoned)), ([0; 4], 0));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.ask(get(PRODUCT)).status, 503, "nothing was kept");
}

#[test]
fn a_large_answer_that_stalls_is_cut_at_the_deadline() {
    let shop = streams(vec![Piece::Data("abcde"), Piece::Hangs]);
    let (_, mut body) = shop.send(get(PRODUCT)).answered();
    assert_eq!(body.piece(), "abcde");
    assert!(body.is_pending());
    shop.later(DEADLINE - NS);
    assert!(body.is_pending());
    shop.later(NS);
    assert_eq!(body.broken(), "read_timeout");
    assert_eq!(shop.failures(), 1);
}

/// Pieces that come in time, one after the other, share one deadline.
#[test]
fn waiting_for_the_catalog_adds_up_over_all_pieces() {
    let gates = [Gate::default(), Gate::default(), Gate::default()];
    let mut pieces = vec![Piece::Data("abcde")];
    pieces.extend(gates.iter().flat_map(|gate| [Piece::OnceOpen(gate.clone()), Piece::Data(".")]));
    let shop = streams(pieces);
    let (_, mut body) = shop.send(get(PRODUCT)).answered();
    assert_eq!(body.piece(), "abcde");
    for gate in &gates[..2] {
        assert!(body.is_pending());
        shop.later(140 * MS);
        gate.open();
        assert_eq!(body.piece(), ".");
    }
    assert!(body.is_pending());
    shop.later(20 * MS - NS);
    assert!(body.is_pending());
    shop.later(NS);
    assert_eq!(body.broken(), "read_timeout");
}

/// What the dependency has ready does not grow late because the client is slow to take it.
#[test]
fn a_slow_client_uses_up_none_of_the_catalogs_time() {
    let gate = Gate::default();
    let pieces =
        vec![Piece::Data("abcde"), Piece::Data("f"), Piece::OnceOpen(gate.clone()), Piece::Data("g")];
    let shop = streams(pieces);
    let (_, mut body) = shop.send(get(PRODUCT)).answered();
    shop.later(HOUR);
    assert_eq!(body.piece(), "abcde");
    shop.later(HOUR);
    assert_eq!(body.piece(), "f");
    shop.later(HOUR);
    assert!(body.is_pending());
    shop.later(DEADLINE - NS);
    gate.open();
    shop.later(Duration::ZERO);
    assert_eq!(body.piece(), "g");
    assert_eq!(body.rest().0.unwrap(), "");
    assert_eq!((shop.total(Outcome::Normal), shop.failures()), (1, 0));
}

fn events(idle: Option<Duration>) -> Shop {
    let mut policy = builder::direct("events", SECOND).in_flight(4).policy();
    policy.routes[0].class = RouteClass::Direct(Direct { idle });
    Shop::open(policy)
}

/// Only the gap between two pieces is limited; the whole may go on without end.
#[test]
fn an_endless_answer_may_go_on_as_long_as_it_is_never_idle_for_too_long() {
    let idle = 5 * SECOND;
    let shop = events(Some(idle));
    let gates: Vec<Gate> = (0..1_000).map(|_| Gate::default()).collect();
    let pieces = gates.iter().flat_map(|gate| [Piece::OnceOpen(gate.clone()), Piece::Data("event")]);
    shop.catalog.does(answers_in_pieces(200, &[], pieces.chain([Piece::Hangs]).collect()));
    let (_, mut body) = shop.send(get("/events")).answered();
    for gate in &gates {
        assert!(body.is_pending());
        shop.later(idle - NS);
        assert!(body.is_pending());
        gate.open();
        assert_eq!(body.piece(), "event");
        shop.later(HOUR);
    }
    assert!(body.is_pending());
    shop.later(idle - NS);
    assert!(body.is_pending());
    shop.later(NS);
    assert_eq!(body.broken(), "read_timeout");
    drop(body);
    assert_eq!((shop.total(Outcome::Failed), shop.in_flight()), (1, [0; 4]));
}

/// Nothing is held back where there is no alternative, and nothing is looked into.
#[test]
fn a_direct_answer_streams_from_its_first_byte() {
    let shop = events(None);
    let gate = Gate::default();
    let fields = [("content-type", "application/json"), ("content-length", "600")];
    let pieces = vec![Piece::Data("{\"half"), Piece::OnceOpen(gate.clone())];
    shop.catalog.does(answers_in_pieces(200, &fields, pieces));
    let (head, mut body) = shop.send(get("/events")).answered();
    assert_eq!((head.status.as_u16(), head.headers["content-length"].to_str().unwrap()), (200, "600"));
    assert_eq!(body.piece(), "{\"half");
    assert!(body.is_pending());
    gate.open();
    assert_eq!(body.rest().0.unwrap(), "");
    assert_eq!(shop.total(Outcome::Normal), 1);
}

#[test]
fn a_direct_failure_passes_as_it_is_and_is_counted() {
    let shop = events(None);
    shop.catalog.does(answers(503, &[("retry-after", "7")], "theirs"));
    let reply = shop.ask(request("POST", "/events", &[]));
    assert_eq!(reply.line(), "503 theirs; outcome=failed, source=primary, reason=unavailable");
    assert_eq!(reply.field("retry-after"), Some("7"));
    assert_eq!((shop.failures(), shop.total(Outcome::Failed)), (1, 1));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get("/events")), "502; outcome=failed, reason=connect");
}
