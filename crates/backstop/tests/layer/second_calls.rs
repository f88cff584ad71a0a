//! Calls that are made once more, calls that are not made, and calls that nobody waits for any more.

use backstop::engine::alternative::{ANY_POLICY, Verified};
use backstop::engine::failure::FailureKind;
use backstop::engine::health::BreakerRules;
use backstop::engine::policy::{AlternativeRules, Dependency, DependencyId, Origin, RouteId};
use backstop::engine::time::Wall;
use backstop::{BackstopLayer, builder};
use tower::{Layer, Service};

use crate::support::{
    Content, DEADLINE, Does, Fault, Gate, MS, PRODUCT, Pending, REFUSED, SECOND, Shop, classify, description,
    get, once_open, request, says,
};

/// The longest that is waited before a second call.
const BACKOFF: std::time::Duration = std::time::Duration::from_millis(25);

/// What a request comes to whose first call is refused and whose second one, if there is any, is answered.
fn after_a_refusal(shop: &Shop, mut pending: Pending) -> String {
    assert!(pending.is_pending(), "it waits a little first");
    shop.catalog.does(says("v1"));
    shop.later(BACKOFF);
    pending.reply().line()
}

#[test]
fn a_read_that_failed_for_a_moment_is_called_once_more() {
    let shop = Shop::open(description().retry().policy());
    shop.catalog.does(REFUSED);
    assert_eq!(after_a_refusal(&shop, shop.send(get(PRODUCT))), "200 v1");
    assert_eq!(
        (shop.catalog.calls(), shop.catalog.last_asked_with("backstop-attempt")),
        (2, Some("2".into()))
    );
    assert_eq!(shop.in_flight(), [0; 4]);
    assert_eq!((shop.dependency().retries.spent(), shop.dependency().retries.in_flight()), (1, 0));
}

/// A write, a read that its caller has tried already, one with content, one that timed out, one where the policy says
/// nothing, and one whose body cannot be made anew.
#[test]
fn nothing_else_is() {
    let missing = "503; outcome=rejected, reason=missing, cause=connect";
    let refused = "502; outcome=failed, reason=connect";
    for (sent, comes_to) in [
        (request("POST", PRODUCT, &[]), refused),
        (request("GET", PRODUCT, &[("backstop-attempt", "2")]), missing),
        (request("GET", PRODUCT, &[("content-length", "5")]), missing),
    ] {
        let shop = Shop::open(description().retry().policy());
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(sent), comes_to);
        assert_eq!(shop.catalog.calls(), 1);
    }
    let shop = Shop::open(description().retry().policy());
    shop.catalog.does(Does::Fails(Some(FailureKind::ReadTimeout)));
    assert_eq!(shop.line(get(PRODUCT)), missing.replace("cause=connect", "cause=read_timeout"));

    let shop = Shop::open(description().policy());
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), missing);

    let shop = Shop::open(description().retry().policy());
    shop.catalog.does(REFUSED);
    let route = shop.backstop.route_by_id(RouteId(0), Box::new(|_| Vec::new()), "").unwrap();
    let mut once = BackstopLayer::new(route, classify as fn(&Fault) -> Option<FailureKind>)
        .once()
        .layer(shop.catalog.clone());
    assert_eq!(Pending::new(once.call(get(PRODUCT).map(|()| Content::default()))).reply().line(), missing);
    assert_eq!(shop.catalog.calls(), 1);
}

/// By hand: three are paid in advance, and in an outage nothing pays for another one.
#[test]
fn three_are_paid_in_advance() {
    let shop = Shop::open(description().retry().policy());
    shop.catalog.does(REFUSED);
    for number in 1..=6_usize {
        let mut pending = shop.send(get(PRODUCT));
        if number <= 3 {
            assert!(pending.is_pending());
            shop.later(BACKOFF);
        }
        assert_eq!(pending.reply().line(), "503; outcome=rejected, reason=missing, cause=connect");
        assert_eq!(shop.catalog.calls(), number + number.min(3));
    }
}

/// Ten failures in a row open it, for 5 s spread by a fifth; then one probe after the other, three of them.
#[test]
fn a_breaker_leaves_the_service_alone() {
    let shop =
        Shop::open(builder::direct("stock", DEADLINE).in_flight(9).breaker(BreakerRules::default()).policy());
    shop.catalog.does(REFUSED);
    for _ in 0..10 {
        assert_eq!(shop.line(get(PRODUCT)), "502; outcome=failed, reason=connect");
    }
    shop.catalog.does(says("v1"));
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=breaker_open");
    assert_eq!(shop.catalog.calls(), 10);
    shop.later(6 * SECOND);
    assert_eq!(shop.line(get(PRODUCT)), "200 v1");
}

/// A resource bears two calls at once, of which reads may be one; the route lets nine in.
#[test]
fn a_resource_bears_so_much() {
    let shop =
        Shop::open(builder::direct("stock", DEADLINE).in_flight(9).resource("db", Some(2), None).policy());
    let gate = Gate::default();
    shop.catalog.does(once_open(&gate, says("v1")));
    let mut first = shop.send(get(PRODUCT));
    assert!(first.is_pending());
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=resource_full");
    gate.open();
    assert_eq!(first.reply().line(), "200 v1");
    assert_eq!(shop.line(get(PRODUCT)), "200 v1");
}

fn in_a_runtime(test: impl AsyncFnOnce()) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test());
}

/// Lets whatever can go on do so.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// The client left while the call was under way: it occupies its place, and its resource, until the service has answered.
#[test]
fn an_abandoned_call_keeps_its_places_until_it_ends() {
    in_a_runtime(async || {
        let shop = Shop::open(description().resource("db", Some(9), None).policy());
        let in_use = || shop.backstop.engine().resources()[0].in_use();
        let gate = Gate::default();
        shop.catalog.does(once_open(&gate, says("v1")));
        let mut left = shop.send(get(PRODUCT));
        assert!(left.is_pending());
        drop(left);
        settle().await;
        assert_eq!((shop.in_flight(), in_use()), ([0, 0, 0, 1], 1));
        gate.open();
        settle().await;
        assert_eq!((shop.in_flight(), in_use()), ([0; 4], 0));
    });
}

/// And no longer than the hold: by default the rest of the deadline, else what the policy says, from then on.
#[test]
fn an_abandoned_call_keeps_its_places_no_longer_than_the_hold() {
    in_a_runtime(async || {
        for (hold, holds) in [(None, 200 * MS), (Some(SECOND), SECOND)] {
            let policy = hold.map_or(description(), |hold| description().abandon_hold(hold)).policy();
            let shop = Shop::open(policy);
            shop.catalog.does(Does::Hangs);
            let mut left = shop.send(get(PRODUCT));
            assert!(left.is_pending());
            shop.later(100 * MS);
            drop(left);
            settle().await;
            shop.later(holds - MS);
            settle().await;
            assert_eq!(shop.in_flight(), [0, 0, 0, 1], "{hold:?}");
            shop.later(MS);
            settle().await;
            assert_eq!(shop.in_flight(), [0; 4], "{hold:?}");
        }
        let shop = Shop::open(description().abandon_hold(std::time::Duration::ZERO).policy());
        shop.catalog.does(Does::Hangs);
        let mut left = shop.send(get(PRODUCT));
        assert!(left.is_pending());
        drop(left);
        assert_eq!(shop.in_flight(), [0; 4], "no hold");
    });
}

/// The layer reaches one service: what a policy says of another dependency is never asked of that one under the other's
/// name, however well that other has been measured.
#[test]
fn another_dependency_is_never_asked_through_the_service_of_the_first() {
    let mut policy = description().policy();
    let replica = Dependency { name: "replica".into(), ..policy.dependencies[0].clone() };
    policy.dependencies.push(replica);
    let always = (Wall::from_unix_ns(0), Wall::from_unix_ns(i64::MAX));
    let verified = Verified {
        rate_per_second: 100,
        concurrency: 10,
        valid_from: always.0,
        valid_until: always.1,
        policy: ANY_POLICY,
    };
    let alternative =
        AlternativeRules { dependency: DependencyId(1), verified: Some(verified), origin: Origin::NONE };
    policy.routes[0].alternative = Some(alternative);
    let shop = Shop::open(policy);
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), "503; outcome=rejected, reason=missing, cause=connect");
    assert_eq!(shop.catalog.calls(), 1);
}
