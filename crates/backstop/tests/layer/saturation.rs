//! What is full refuses at once, and copies count in the same limit.

use backstop::engine::outcome::Outcome;

use crate::support::{Gate, MS, NS, PRODUCT, REFUSED, Shop, description, get, once_open, request, says};

const FULL: &str = "503; outcome=rejected, reason=capacity";

#[test]
fn the_third_of_two_is_refused_and_the_catalog_not_called() {
    let shop = Shop::open(description_of_two().policy());
    shop.warm(get(PRODUCT), says("v1"));
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let (mut first, mut second) = (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
    assert!(first.is_pending() && second.is_pending());
    assert_eq!(shop.in_flight(), [2, 2, 0, 2]);

    // There is a copy, and it is not used: serving it would be work beyond the limit.
    assert_eq!(shop.line(get(PRODUCT)), FULL);
    assert_eq!(shop.catalog.calls(), 3, "one to warm up and two under way");

    gate.open();
    assert_eq!((first.reply().line(), second.reply().line()), ("200 v2".into(), "200 v2".into()));
    assert_eq!(shop.line(get(PRODUCT)), "200 v2");
    assert_eq!((shop.in_flight(), shop.total(Outcome::Rejected)), ([0; 4], 1));
}

fn description_of_two() -> backstop::builder::Builder {
    backstop::builder::public_read("description", crate::support::DEADLINE)
        .in_flight(2)
        .max_age(crate::support::MAX_AGE)
}

/// A place is held until the client has its last byte, whatever the answer is made of.
#[test]
fn copies_and_answers_count_until_their_last_byte() {
    let shop = Shop::open(description_of_two().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.catalog.does(REFUSED);
    let (_, copy) = shop.send(get(PRODUCT)).answered();
    shop.catalog.does(says("v2"));
    let (_, answer) = shop.send(get("/products/43")).answered();
    assert_eq!(shop.in_flight(), [2, 2, 0, 0], "the catalog's own work has ended");
    assert_eq!(shop.line(get(PRODUCT)), FULL);
    assert_eq!((copy.rest().0.unwrap(), answer.rest().0.unwrap()), ("v1".into(), "v2".into()));
    assert_eq!(shop.in_flight(), [0; 4]);
}

/// A separate, limited lane in which copies are served beyond the limit.
#[test]
fn the_lane_serves_copies_up_to_its_own_limit() {
    let shop = Shop::open(description_of_two().fallback_in_flight(1).policy());
    shop.warm(get(PRODUCT), says("v1"));
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let (mut first, mut second) = (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
    assert!(first.is_pending() && second.is_pending());

    let (head, in_the_lane) = shop.send(get(PRODUCT)).answered();
    assert_eq!(head.headers["backstop"], "outcome=fallback, source=snapshot, age=0, reason=capacity");
    assert_eq!(head.headers["cache-status"], "backstop; hit; ttl=0; detail=capacity");
    assert_eq!(shop.in_flight(), [3, 2, 1, 2]);
    assert_eq!(shop.line(get(PRODUCT)), FULL, "the lane is full");
    drop(in_the_lane);
    assert_eq!(shop.line(get("/products/43")), FULL, "no copy, no lane");
    assert_eq!(shop.line(request("PUT", PRODUCT, &[])), FULL, "a write has no alternative");
    gate.open();
    assert_eq!((first.reply().status, second.reply().status), (200, 200));
    assert_eq!((shop.in_flight(), shop.catalog.calls()), ([0; 4], 3));
}

/// The catalog is busy, the route is not: that is no failure of the catalog.
#[test]
fn a_full_dependency_leads_to_the_copy_and_is_blamed_for_nothing() {
    let shop = Shop::open(description().connections(1).policy());
    shop.warm(get(PRODUCT), says("v1"));
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let mut busy = shop.send(get(PRODUCT));
    assert!(busy.is_pending());
    let reply = shop.ask(get(PRODUCT));
    let copy = "200 v1; outcome=fallback, source=snapshot, age=0, reason=dependency_full";
    assert_eq!(reply.line(), copy);
    assert_eq!(reply.field("cache-status"), Some("backstop; hit; ttl=0; detail=dependency_full"));
    let missing = "503; outcome=rejected, reason=missing, cause=dependency_full";
    assert_eq!(shop.line(get("/products/43")), missing);
    gate.open();
    assert_eq!(busy.reply().line(), "200 v2");
    assert_eq!((shop.failures(), shop.catalog.calls()), (0, 2));
}

#[test]
fn a_place_that_comes_back_wakes_the_one_who_waits_for_it() {
    let shop = Shop::open(description().connections(1).queue(100 * MS).policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    let (mut first, mut second, mut third) =
        (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
    assert!(first.is_pending() && second.is_pending() && third.is_pending());
    assert_eq!(shop.catalog.calls(), 1);
    gate.open();
    assert_eq!(first.reply().line(), "200 v1");
    assert!(second.is_woken() && !third.is_woken(), "in turn");
    assert_eq!(second.reply().line(), "200 v1");
    assert!(third.is_woken());
    assert_eq!(third.reply().line(), "200 v1");
    assert_eq!(shop.in_flight(), [0; 4]);
}

#[test]
fn whoever_leaves_the_queue_hands_the_place_on() {
    let shop = Shop::open(description().connections(1).queue(100 * MS).policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    let (mut first, mut leaving, mut staying) =
        (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
    assert!(first.is_pending() && leaving.is_pending() && staying.is_pending());
    gate.open();
    assert_eq!(first.reply().line(), "200 v1");
    assert!(leaving.is_woken());
    drop(leaving);
    assert!(staying.is_woken());
    assert_eq!(staying.reply().line(), "200 v1");
}

#[test]
fn the_queue_ends_at_its_own_time_and_the_catalog_is_not_called() {
    let shop = Shop::open(description().connections(1).queue(100 * MS).policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    let (mut first, mut waiting) = (shop.send(get(PRODUCT)), shop.send(get(PRODUCT)));
    assert!(first.is_pending() && waiting.is_pending());
    shop.later(100 * MS - NS);
    assert!(waiting.is_pending());
    shop.later(NS);
    assert_eq!(waiting.reply().line(), "503; outcome=rejected, reason=missing, cause=pool_timeout");
    assert_eq!((shop.catalog.calls(), shop.failures()), (1, 0));
    gate.open();
    assert_eq!(first.reply().status, 200);
}

#[test]
fn a_process_that_is_stopping_refuses_what_is_new_and_finishes_what_is_under_way() {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let mut under_way = shop.send(get(PRODUCT));
    assert!(under_way.is_pending());
    shop.backstop.engine().drain();
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=draining");
    gate.open();
    assert_eq!(under_way.reply().line(), "200 v2");
}
