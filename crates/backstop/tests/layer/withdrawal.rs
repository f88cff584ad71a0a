//! A copy of what has changed, or may have, is gone; and nothing that was read before brings it back.

use backstop::engine::failure::FailureKind;
use backstop::engine::policy::RouteId;
use backstop::{BackstopLayer, builder};
use backstop_store::Withdrawal;
use tower::{Layer, Service};

use crate::support::{
    ATTEMPT_END, Content, Does, Gate, MS, PRODUCT, Pending, REFUSED, SECOND, Shop, answers, classify,
    description, get, once_open, request, says,
};

const MISSING: &str = "503; outcome=rejected, reason=missing, cause=connect";

fn with_a_copy() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.warm(get("/products/42?full"), says("v1"));
    shop.warm(get("/products/43"), says("other"));
    shop
}

fn is_gone(shop: &Shop) -> bool {
    shop.catalog.does(REFUSED);
    let other = shop.line(get("/products/43"));
    assert!(other.starts_with("200 other; "), "what the write did not touch stays: {other}");
    let lines = [shop.line(get(PRODUCT)), shop.line(get("/products/42?full"))];
    let gone = lines[0] == MISSING;
    assert_eq!(lines.map(|line| line == MISSING), [gone; 2], "every copy below the path, or none");
    gone
}

/// RFC 9111 section 4.4, and further: what a server error left behind is unknown.
#[test]
fn a_write_that_succeeded_or_may_have_withdraws_the_copies_of_its_path() {
    for method in ["PUT", "DELETE", "POST", "PATCH", "BREW"] {
        for (status, gone) in [
            (200, true),
            (201, true),
            (204, true),
            (303, true),
            (500, true),
            (503, true),
            (400, false),
            (403, false),
            (404, false),
            (409, false),
            (422, false),
        ] {
            let shop = with_a_copy();
            shop.catalog.does(answers(status, &[], ""));
            assert_eq!(shop.ask(request(method, PRODUCT, &[])).status, status);
            assert_eq!(is_gone(&shop), gone, "{method} {status}");
        }
    }
    for method in ["OPTIONS", "TRACE"] {
        let shop = with_a_copy();
        shop.catalog.does(answers(200, &[], ""));
        shop.ask(request(method, PRODUCT, &[]));
        assert!(!is_gone(&shop), "{method} changes nothing");
    }
}

#[test]
fn a_write_of_unknown_outcome_withdraws_them_too() {
    for kind in [Some(FailureKind::Reset), Some(FailureKind::ReadTimeout), None] {
        let shop = with_a_copy();
        shop.catalog.does(Does::Fails(kind));
        let mut write = shop.send(request("PUT", PRODUCT, &[]));
        assert!(!write.is_pending());
        drop(write);
        assert!(is_gone(&shop), "{kind:?}");
    }
    let shop = with_a_copy();
    shop.catalog.does(Does::Hangs);
    let mut write = shop.send(request("PUT", PRODUCT, &[]));
    assert!(write.is_pending());
    shop.later(ATTEMPT_END + 10 * MS);
    assert_eq!(write.reply().line(), "504; outcome=failed, reason=read_timeout");
    assert!(is_gone(&shop));
}

/// No connection, no write: what failed so changed nothing, and what is read next is kept.
#[test]
fn a_write_that_found_no_connection_withdraws_nothing_and_hinders_no_read() {
    for kind in [FailureKind::Dns, FailureKind::Connect, FailureKind::ConnectTimeout, FailureKind::Tls] {
        let shop = with_a_copy();
        shop.catalog.does(Does::Fails(Some(kind)));
        let line = shop.line(request("PUT", PRODUCT, &[]));
        assert!(line.contains("outcome=failed"), "{kind:?}: {line}");
        assert!(!is_gone(&shop), "{kind:?}");
        shop.later(SECOND);
        shop.warm(get(PRODUCT), says("v2"));
        shop.catalog.does(REFUSED);
        assert!(shop.line(get(PRODUCT)).starts_with("200 v2; "), "{kind:?}");
    }
    for kind in [FailureKind::Write, FailureKind::Incomplete, FailureKind::Protocol] {
        let shop = with_a_copy();
        shop.catalog.does(Does::Fails(Some(kind)));
        shop.ask(request("PUT", PRODUCT, &[]));
        assert!(is_gone(&shop), "{kind:?} may have been sent");
    }
}

/// Leaving does not undo a write that is under way.
#[test]
fn a_caller_who_leaves_in_the_middle_of_a_write_withdraws_them() {
    let shop = with_a_copy();
    shop.catalog.does(Does::Hangs);
    let mut write = shop.send(request("DELETE", PRODUCT, &[]));
    assert!(write.is_pending());
    drop(write);
    assert!(is_gone(&shop));
}

#[test]
fn a_write_that_was_never_sent_withdraws_nothing() {
    let shop = with_a_copy();
    let calls = shop.catalog.calls();
    drop(shop.send(request("PUT", PRODUCT, &[])));
    shop.backstop.engine().drain();
    assert_eq!(shop.line(request("PUT", PRODUCT, &[])), "503; outcome=rejected, reason=draining");
    assert_eq!(shop.catalog.calls(), calls);
    // The draining engine answers nothing, so the copies themselves are looked at.
    assert_eq!(shop.backstop.copies().health().entries, 3);
}

/// The changes of one route withdraw the copies of another, under the same limits and copies.
#[test]
fn a_write_on_another_route_withdraws_what_it_is_told_to() {
    let mut policy = description().policy();
    policy.routes.extend(builder::direct("prices", SECOND).in_flight(4).policy().routes);
    let shop = Shop::open(policy);
    shop.warm(get(PRODUCT), says("v1"));
    let withdraws = Box::new(|_: &http::request::Parts| vec![Withdrawal::Route("description".into())]);
    let route = shop.backstop.route_by_id(RouteId(1), withdraws, "").unwrap();
    let mut prices = BackstopLayer::new(route, classify).layer(shop.catalog.clone());
    shop.catalog.does(answers(204, &[], ""));
    let write = request("PUT", "/prices/42", &[]).map(|()| Content::default());
    assert_eq!(Pending::new(prices.call(write)).reply().line(), "204");
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), MISSING);
}

/// A read that began earlier saw an earlier state, however late it answers
/// (<https://github.com/strapi-community/plugin-rest-cache/issues/132>).
#[test]
fn a_slow_older_read_never_overwrites_a_newer_one() {
    let shop = Shop::open(description().policy());
    let slow = Gate::default();
    shop.catalog.does(once_open(&slow, says("v1")));
    let mut older = shop.send(get(PRODUCT));
    assert!(older.is_pending());
    shop.later(40 * MS);
    shop.warm(get(PRODUCT), says("v2"));
    shop.later(100 * MS);
    slow.open();
    assert_eq!(older.reply().line(), "200 v1", "its own client may have it");
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), "200 v2; outcome=fallback, source=snapshot, age=0, reason=connect");
}

#[test]
fn a_read_that_began_before_a_withdrawal_is_not_kept() {
    let withdrawals: [(&str, Does); 4] = [
        ("PUT", answers(204, &[], "")),
        ("DELETE", answers(200, &[], "")),
        ("PUT", Does::Fails(Some(FailureKind::Reset))),
        ("GET", answers(404, &[], "")),
    ];
    for (method, does) in withdrawals {
        let shop = Shop::open(description().policy());
        let slow = Gate::default();
        shop.catalog.does(once_open(&slow, says("v1")));
        let mut before = shop.send(get(PRODUCT));
        assert!(before.is_pending());
        shop.later(MS);
        shop.catalog.does(does);
        shop.ask(request(method, PRODUCT, &[]));
        slow.open();
        assert_eq!(before.reply().line(), "200 v1");
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(get(PRODUCT)), MISSING, "{method}");
        // Whatever begins after it is kept again; after one of unknown end, once it must have come to its end.
        shop.later(MS * 10_000);
        shop.warm(get(PRODUCT), says("v2"));
        shop.catalog.does(REFUSED);
        assert!(shop.line(get(PRODUCT)).starts_with("200 v2; "), "{method}");
    }
}

/// A 304 to a read that began before the write says nothing about what is there now.
#[test]
fn a_confirmation_that_was_asked_for_before_a_write_renews_nothing() {
    let tag = [("etag", "\"e1\"")];
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), answers(200, &tag, "v1"));
    let slow = Gate::default();
    shop.catalog.does(once_open(&slow, answers(304, &tag, "")));
    let mut confirming = shop.send(request("GET", PRODUCT, &[("if-none-match", "\"e1\"")]));
    assert!(confirming.is_pending());
    shop.later(MS);
    shop.catalog.does(answers(204, &[], ""));
    shop.ask(request("PUT", PRODUCT, &[]));
    slow.open();
    assert_eq!(confirming.reply().status, 304);
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), MISSING);
}
