//! Part of an answer is no answer: it is never passed on as whole and never kept.

use backstop::engine::outcome::Outcome;
use backstop::upstream::Framing;
use http::Response;

use crate::support::{
    Does, PRODUCT, Piece, REFUSED, SECOND, Shop, answers, answers_in_pieces, description, get, request,
    says_json,
};

const V1: &str = r#"{"version":1}"#;

fn with_a_copy() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says_json(V1));
    shop.later(SECOND);
    shop
}

fn copy(reason: &str) -> String {
    format!("200 {V1}; outcome=fallback, source=snapshot, age=1, reason={reason}")
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// Each of these once became the good copy somewhere (<https://github.com/caddyserver/cache-handler/issues/73>).
fn parts_of_answers() -> Vec<(&'static str, Does)> {
    vec![
        ("empty JSON", says_json("")),
        ("white space", says_json("  \n")),
        ("half JSON", says_json(r#"{"version":"#)),
        ("JSON twice", says_json("{}{}")),
        ("a connection that breaks", answers_in_pieces(200, &[JSON], vec![Piece::Data("{}"), Piece::Breaks])),
        ("one that breaks at once", answers_in_pieces(200, &[], vec![Piece::Breaks])),
        ("text that breaks", answers_in_pieces(200, &[], vec![Piece::Data("half"), Piece::Breaks])),
        ("fewer bytes than announced", answers(200, &[("content-length", "600")], "half")),
        ("more bytes than announced", answers(200, &[("content-length", "3")], "half")),
        ("a range that nobody asked for", answers(206, &[JSON, ("content-range", "bytes 0-4/13")], "{\"ver")),
    ]
}

#[test]
fn part_of_an_answer_becomes_the_copy_and_never_a_copy() {
    for (what, does) in parts_of_answers() {
        let shop = with_a_copy();
        shop.catalog.does(does);
        assert_eq!(shop.line(get(PRODUCT)), copy("incomplete"), "{what}");
        assert_eq!((shop.failures(), shop.total(Outcome::Fallback)), (1, 1), "{what}");
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(get(PRODUCT)), copy("connect"), "{what}");
    }
}

#[test]
fn part_of_an_answer_without_a_copy_is_refused_and_still_never_kept() {
    for (what, does) in parts_of_answers() {
        let shop = Shop::open(description().policy());
        shop.catalog.does(does);
        let refused = "503; outcome=rejected, reason=missing, cause=incomplete";
        assert_eq!(shop.line(get(PRODUCT)), refused, "{what}");
        shop.catalog.does(REFUSED);
        let refused = "503; outcome=rejected, reason=missing, cause=connect";
        assert_eq!(shop.line(get(PRODUCT)), refused, "{what}");
    }
}

/// A client that asks for a range gets it; it is nobody's failure, and it is not the whole answer.
#[test]
fn a_range_that_was_asked_for_passes_and_is_not_kept() {
    let shop = with_a_copy();
    shop.catalog.does(answers(206, &[JSON, ("content-range", "bytes 0-4/13")], "{\"ver"));
    assert_eq!(shop.line(request("GET", PRODUCT, &[("range", "bytes=0-4")])), "206 {\"ver");
    assert_eq!((shop.failures(), shop.total(Outcome::Normal)), (0, 2));
    shop.catalog.does(REFUSED);
    // The whole answer is a lawful answer to a request for a range (RFC 9110 section 14.2).
    assert_eq!(shop.line(request("GET", PRODUCT, &[("range", "bytes=0-4")])), copy("connect"));
}

#[test]
fn a_coded_answer_passes_and_is_not_kept() {
    let shop = with_a_copy();
    shop.catalog.does(answers(200, &[JSON, ("content-encoding", "br")], "coded"));
    assert_eq!(shop.line(request("GET", PRODUCT, &[("accept-encoding", "br")])), "200 coded");
    assert_eq!(shop.catalog.last_asked_with("accept-encoding").as_deref(), Some("identity"));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), copy("connect"));
}

/// RFC 9112 section 6.3: where the end of the connection is the end of the body, a missing byte goes unnoticed.
#[test]
fn a_body_that_ends_with_its_connection_is_kept_only_if_its_form_proves_it_whole() {
    let until_close = |media_type: &str, body: &'static str| {
        let answer = Response::builder()
            .header("content-type", media_type)
            .extension(Framing::UntilClose)
            .body(vec![Piece::Data(body)]);
        Does::Answers(answer.unwrap())
    };
    let afterwards = |does: Does| {
        let shop = Shop::open(description().policy());
        shop.warm(get(PRODUCT), does);
        shop.catalog.does(REFUSED);
        shop.line(get(PRODUCT))
    };
    let missing = "503; outcome=rejected, reason=missing, cause=connect";
    assert_eq!(afterwards(until_close("text/plain", "perhaps all")), missing);
    let whole = "200 {}; outcome=fallback, source=snapshot, age=0, reason=connect";
    assert_eq!(afterwards(until_close("application/json", "{}")), whole);
}

/// Nothing says that an empty text is meant, so it passes but is not kept.
#[test]
fn an_empty_answer_without_a_declared_form_passes_and_is_not_kept() {
    for status in [200, 204] {
        let shop = with_a_copy();
        shop.catalog.does(answers(status, &[], ""));
        assert_eq!(shop.line(get(PRODUCT)), status.to_string());
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(get(PRODUCT)), copy("connect"));
    }
}
