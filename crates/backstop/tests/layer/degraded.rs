//! An answer of a gateway behind that is itself an alternative: no normal one, no new copy, no younger than it is.

use std::time::Duration;

use backstop::engine::outcome::Outcome;

use crate::support::{Does, PRODUCT, REFUSED, SECOND, Shop, answers, description, get, request, says};

const MISSING: &str = "503; outcome=rejected, reason=missing, cause=connect";

fn of_a_gateway_behind(age: &'static str) -> Does {
    let field = "outcome=fallback, source=snapshot, age=5, reason=connect";
    answers(200, &[("backstop", field), ("age", age)], "old")
}

#[test]
fn an_alternative_from_behind_is_passed_with_its_own_words_and_not_kept() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(of_a_gateway_behind("5"));
    for explain in [&[][..], &[("backstop-explain", "?1")]] {
        let reply = shop.ask(request("GET", PRODUCT, explain));
        let line = "200 old; outcome=fallback, source=snapshot, age=5, reason=connect";
        assert_eq!((reply.line().as_str(), reply.field("age")), (line, Some("5")));
    }
    assert_eq!((shop.total(Outcome::Normal), shop.total(Outcome::Fallback)), (0, 2));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), MISSING);
}

/// The older of `Age` and the field's own age counts, against this route's own limit of 60 s; and as it is rounded down, 60 s may
/// be more.
#[test]
fn an_alternative_from_behind_that_is_too_old_here_is_refused() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(of_a_gateway_behind("59"));
    assert_eq!(shop.ask(get(PRODUCT)).status, 200);
    shop.catalog.does(of_a_gateway_behind("60"));
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=missing, cause=unavailable");
    let only_the_field = [("backstop", "outcome=fallback, source=snapshot, age=60, reason=connect")];
    shop.catalog.does(answers(200, &only_the_field, "old"));
    assert_eq!(shop.ask(get(PRODUCT)).status, 503);
}

/// In several lines the field is still one (RFC 9651 section 4.2).
#[test]
fn the_mark_is_seen_wherever_in_the_field_it_stands() {
    let shop = Shop::open(description().policy());
    shop.catalog.does(answers(200, &[("backstop", "age=60"), ("backstop", "outcome=fallback")], "old"));
    assert_eq!(shop.ask(get(PRODUCT)).status, 503);
}

#[test]
fn a_copy_of_ones_own_stands_in_for_one_from_behind_that_is_too_old() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.later(10 * SECOND);
    shop.catalog.does(of_a_gateway_behind("70"));
    let line = "200 v1; outcome=fallback, source=snapshot, age=10, reason=unavailable";
    assert_eq!(shop.line(get(PRODUCT)), line);
}

/// Two gateways in a row, both with a limit of 60 s: nothing is served beyond it, counted from the one true read.
#[test]
fn a_copy_does_not_grow_young_on_its_way_through_two_gateways() {
    let outer = Shop::open(description().policy());
    let inner = Shop::open(description().policy());
    inner.warm(get(PRODUCT), says("v1"));
    inner.catalog.does(REFUSED);
    outer.warm(get(PRODUCT), says("v1"));
    for half_seconds in 1..=240_u64 {
        outer.later(Duration::from_millis(500));
        inner.later(Duration::from_millis(500));
        // What the inner gateway answers is what the outer one's catalog says.
        let behind = inner.ask(get(PRODUCT));
        let fields: Vec<(&str, &str)> = ["backstop", "age", "content-type"]
            .into_iter()
            .filter_map(|name| Some((name, behind.field(name)?)))
            .collect();
        let body: &'static str = if behind.status == 200 { "v1" } else { "" };
        outer.catalog.does(answers(behind.status, &fields, body));
        let reply = outer.ask(get(PRODUCT));
        let true_age = half_seconds / 2;
        if half_seconds <= 120 {
            let told: u64 = reply.field("age").unwrap().parse().unwrap();
            assert_eq!((reply.status, told), (200, true_age));
        } else {
            assert_eq!(reply.status, 503, "{half_seconds} half seconds");
        }
    }
    assert_eq!(outer.total(Outcome::Normal), 1);
}

/// A 5xx of a gateway behind is a failure here, and its own refusal does not become this one's words.
#[test]
fn a_refusal_from_behind_leads_to_the_copy() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.catalog.does(answers(503, &[("backstop", "outcome=rejected, reason=capacity")], ""));
    let line = "200 v1; outcome=fallback, source=snapshot, age=0, reason=unavailable";
    assert_eq!(shop.line(get(PRODUCT)), line);
}
