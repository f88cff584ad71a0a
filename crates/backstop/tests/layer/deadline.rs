//! One deadline, whatever hangs, and nothing that starts after its share.
//!
//! A total that starts anew with each part is no total (<https://github.com/openai/openai-python/issues/3828>).

use backstop::engine::outcome::Outcome;

use crate::support::{
    ATTEMPT_END, DIRECT_ATTEMPT_END, Does, Gate, MS, NS, PRODUCT, Pending, Piece, REFUSED, SECOND, Shop,
    answers_in_pieces, description, get, once_open, request, says,
};

const COPY: &str = "200 v1; outcome=fallback, source=snapshot, age=1, reason=read_timeout";
const MISSING: &str = "503; outcome=rejected, reason=missing, cause=read_timeout";

fn with_a_copy() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.later(SECOND);
    shop
}

/// Pending one nanosecond before the given moment, decided at it.
fn ends_exactly_at(shop: &Shop, mut pending: Pending, after: std::time::Duration) -> String {
    assert!(pending.is_pending());
    shop.later(after - NS);
    assert!(pending.is_pending(), "one nanosecond early");
    shop.later(NS);
    assert!(pending.is_woken(), "the clock wakes it");
    pending.reply().line()
}

#[test]
fn a_head_that_never_comes_ends_in_time() {
    let shop = with_a_copy();
    shop.catalog.does(Does::Hangs);
    assert_eq!(ends_exactly_at(&shop, shop.send(get(PRODUCT)), ATTEMPT_END), COPY);
    assert_eq!(ends_exactly_at(&shop, shop.send(get("/products/43")), ATTEMPT_END), MISSING);
    assert_eq!((shop.in_flight(), shop.failures()), ([0; 4], 2));
}

#[test]
fn a_body_that_never_ends_ends_in_time() {
    let shop = with_a_copy();
    shop.catalog.does(answers_in_pieces(200, &[], vec![Piece::Data("begin"), Piece::Hangs]));
    assert_eq!(ends_exactly_at(&shop, shop.send(get(PRODUCT)), ATTEMPT_END), COPY);
    assert_eq!(ends_exactly_at(&shop, shop.send(get("/products/43")), ATTEMPT_END), MISSING);
    assert_eq!(shop.in_flight(), [0; 4]);
}

/// A byte every 100 ms moves no deadline.
#[test]
fn a_body_that_drips_ends_in_time() {
    let shop = with_a_copy();
    let gates: Vec<Gate> = (0..4).map(|_| Gate::default()).collect();
    let pieces = gates.iter().flat_map(|gate| [Piece::Data("."), Piece::OnceOpen(gate.clone())]).collect();
    shop.catalog.does(answers_in_pieces(200, &[], pieces));
    let mut dripping = shop.send(get(PRODUCT));
    for gate in &gates[..2] {
        assert!(dripping.is_pending());
        shop.later(100 * MS);
        gate.open();
    }
    assert_eq!(ends_exactly_at(&shop, dripping, ATTEMPT_END - 200 * MS), COPY);
}

/// The time in which the inner service is not ready is part of the deadline, and it is never called late.
#[test]
fn an_inner_service_that_is_never_ready_ends_in_time_and_is_not_called() {
    let shop = with_a_copy();
    let ready = Gate::default();
    shop.catalog.is_ready_once_open(&ready);
    let line = ends_exactly_at(&shop, shop.send(get(PRODUCT)), ATTEMPT_END);
    assert_eq!(line, "200 v1; outcome=fallback, source=snapshot, age=1, reason=connect_timeout");
    ready.open();
    assert_eq!(shop.catalog.calls(), 1, "only the read that made the copy");
    assert_eq!(shop.in_flight(), [0; 4]);
}

/// A timer that looks at the work first and the clock second would start it.
#[test]
fn an_inner_service_that_is_ready_too_late_is_not_called() {
    for late in [ATTEMPT_END, ATTEMPT_END + NS, 10 * SECOND] {
        let shop = with_a_copy();
        let ready = Gate::default();
        shop.catalog.is_ready_once_open(&ready);
        let mut waiting = shop.send(get(PRODUCT));
        assert!(waiting.is_pending());
        shop.later(late);
        ready.open();
        assert_eq!(waiting.reply().status, 200, "the copy");
        assert_eq!(shop.catalog.calls(), 1, "after {late:?}");
    }
}

#[test]
fn an_inner_service_that_is_ready_in_time_is_called() {
    let shop = with_a_copy();
    shop.catalog.does(says("v2"));
    let ready = Gate::default();
    shop.catalog.is_ready_once_open(&ready);
    let mut waiting = shop.send(get(PRODUCT));
    assert!(waiting.is_pending());
    shop.later(ATTEMPT_END - NS);
    ready.open();
    assert_eq!(waiting.reply().line(), "200 v2");
}

#[test]
fn an_answer_shortly_before_the_end_is_a_normal_one() {
    let shop = with_a_copy();
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v2")));
    let mut late = shop.send(get(PRODUCT));
    assert!(late.is_pending());
    shop.later(290 * MS);
    gate.open();
    assert_eq!(late.reply().line(), "200 v2");
}

/// What comes after the decision reaches nobody and is not kept.
#[test]
fn an_answer_after_the_end_changes_nothing() {
    let shop = with_a_copy();
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("late")));
    let asked = shop.send(get(PRODUCT));
    assert_eq!(ends_exactly_at(&shop, asked, ATTEMPT_END), COPY);
    gate.open();
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), "200 v1; outcome=fallback, source=snapshot, age=1, reason=connect");
}

/// Without an alternative only the reply's share is kept, and a timeout is 504.
#[test]
fn a_direct_call_ends_in_time() {
    let shop =
        Shop::open(backstop::builder::direct("orders", crate::support::DEADLINE).in_flight(4).policy());
    shop.catalog.does(Does::Hangs);
    let line = ends_exactly_at(&shop, shop.send(request("POST", "/orders", &[])), DIRECT_ATTEMPT_END);
    assert_eq!(line, "504; outcome=failed, reason=read_timeout");
    assert_eq!((shop.total(Outcome::Failed), shop.in_flight()), (1, [0; 4]));
}
