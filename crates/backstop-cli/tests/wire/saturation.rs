//! Limits: what is too much is refused at once, and the origin never hears of it.

use backstop_lab::client::Connection;
use backstop_lab::origin::{Answer, Gate, Matcher};

use crate::raw::{Wires, direct};
use crate::support::{BOUND, Metrics, Policy, expect, product, products, run};

/// Requests that wait at a gate of the origin.
pub async fn hold(wires: &Wires, gate: &Gate, paths: &[&str]) -> Vec<Connection> {
    let mut held = Vec::new();
    for path in paths {
        wires.origin.on(Matcher::path(path), Answer::json("{}").gate(gate));
        let mut connection = wires.connect().await;
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n").as_bytes()).await.unwrap();
        held.push(connection);
        gate.wait_for_waiting(held.len(), BOUND).await.unwrap();
    }
    held
}

/// One route, with two places.
pub(crate) async fn two_places() -> Wires {
    Wires::with(|origin| {
        Policy::empty().dependency("catalog", origin, "").route("two.direct", &direct("*", "in_flight = 2"))
    })
    .await
}

#[test]
fn the_third_of_two_is_refused_without_touching_the_origin() {
    run(async {
        let wires = two_places().await;
        let gate = Gate::new();
        let mut held = hold(&wires, &gate, &["/held/1", "/held/2"]).await;
        let before = wires.origin.stats();
        for _ in 0..5 {
            let refused = wires.gateway.get("/third", &[]).await;
            expect::refused(&refused, 503, "outcome=rejected, reason=capacity");
        }
        let after = wires.origin.stats();
        assert_eq!(
            (after.requests, after.connections_accepted),
            (before.requests, before.connections_accepted)
        );
        gate.open();
        for connection in &mut held {
            assert_eq!(connection.read_response().await.unwrap().status(), 200);
        }
        assert_eq!(wires.gateway.get("/third", &[]).await.status(), 200, "a place is free again");
        let metrics = wires.gateway.metrics().await;
        let refused = metrics.sum("backstop_in_flight_refused_total", &["scope=\"route\"", "name=\"two\""]);
        assert_eq!((refused, metrics.requests("rejected", "capacity")), (5.0, 5));
    });
}

/// A shop whose product route has two places, both held, and a copy of product 9.
async fn full_shop(more: &str) -> (Wires, Gate, Vec<Connection>) {
    let more = format!("in_flight = 2\ndeadline = \"2s\"\nlanguages =\n{more}");
    let lines = Policy::description(&more)
        .replace(", echo = { \"/lang\" = \"language\" }", "")
        .replace("\"language\", ", "");
    let wires = Wires::with(|origin| {
        Policy::empty().dependency("catalog", origin, "").route("description.public_read", &lines)
    })
    .await;
    wires.origin.default(products("saved"));
    expect::live(&wires.gateway.get("/p/9", &[]).await, 200, &product("9", "saved", "none"));
    let gate = Gate::new();
    let held = hold(&wires, &gate, &["/p/1", "/p/2"]).await;
    (wires, gate, held)
}

/// Answers from copies count in the same limit: at the limit there is no copy either.
#[test]
fn copies_count_in_the_same_limit() {
    run(async {
        let (wires, gate, _held) = full_shop("").await;
        let refused = wires.gateway.get("/p/9", &[]).await;
        expect::refused(&refused, 503, "outcome=rejected, reason=capacity");
        assert_eq!(wires.origin.count_of("GET", "/p/9"), 1);
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}

/// A lane of its own serves copies at the limit, and nothing else: the origin is not asked.
#[test]
fn the_lane_for_copies_serves_copies_alone() {
    run(async {
        let (wires, gate, _held) = full_shop("fallback_in_flight = 1").await;
        let copy = wires.gateway.get("/p/9", &[]).await;
        assert_eq!((copy.status(), copy.text()), (200, product("9", "saved", "none")));
        let mark = copy.mark().unwrap().expect("marked");
        assert_eq!((mark.outcome.as_str(), mark.reason.as_deref()), ("fallback", Some("capacity")));
        let missing = wires.gateway.get("/p/8", &[]).await;
        assert_eq!(missing.status(), 503);
        assert_eq!(missing.mark().unwrap().expect("marked").outcome, "rejected");
        assert_eq!(wires.origin.count(), 3, "one for the copy and the two that are held");
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}

/// The process's limit holds over all routes. By hand: of three requests reads may be two (less than 85 % of three is 2.55),
/// so the last place is for what may change something, and after that nothing is.
#[test]
fn the_process_has_a_limit_of_its_own() {
    run(async {
        let wires = Wires::with(|origin| {
            Policy::empty()
                .gateway("in_flight = 3")
                .dependency("catalog", origin, "")
                .route("one.direct", &direct("/one/{x}", "in_flight = 3").replace("\"/one", "\"* /one"))
                .route("rest.direct", &direct("*", "in_flight = 3"))
        })
        .await;
        let gate = Gate::new();
        let _held = hold(&wires, &gate, &["/one/1", "/two"]).await;
        for path in ["/one/2", "/three"] {
            let refused = wires.gateway.get(path, &[]).await;
            expect::refused(&refused, 503, "outcome=rejected, reason=capacity");
        }
        let refused = |metrics: &Metrics, reason: &str| {
            let labels = ["scope=\"process\"", &format!("reason=\"{reason}\"")];
            metrics.sum("backstop_in_flight_refused_total", &labels)
        };
        let metrics = wires.gateway.metrics().await;
        assert_eq!((refused(&metrics, "share"), refused(&metrics, "full")), (2.0, 0.0));
        assert_eq!(wires.origin.count(), 2);
        let post = "POST /three HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n";
        wires.origin.on(Matcher::path("/three"), Answer::json("{}").gate(&gate));
        let mut last = wires.connect().await;
        last.send(post.as_bytes()).await.unwrap();
        gate.wait_for_waiting(3, BOUND).await.unwrap();
        let refused_too = wires.gateway.request("POST", "/three", &[], b"").await;
        expect::refused(&refused_too, 503, "outcome=rejected, reason=capacity");
        let metrics = wires.gateway.metrics().await;
        assert_eq!((refused(&metrics, "share"), refused(&metrics, "full")), (2.0, 1.0));
        gate.open();
        expect::idle(&wires.gateway).await;
    });
}
