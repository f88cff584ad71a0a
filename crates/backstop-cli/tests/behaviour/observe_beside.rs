//! What is only observed beside what is carried out: neither gives the other anything that it should not have.

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Origin};

use crate::support::gateway::folder;
use crate::support::shop::{HOST, SPANISH, durable, right_answer};
use crate::support::{BOUND, Gateway, Metrics, Policy, Shop, expect, product, products, run};

/// Writes that are only observed, beside reads that enforce. Of two writes at once the shadow refuses one.
async fn writes_are_observed() -> Shop {
    Shop::with(|origin| {
        let write = "match = \"PUT /w/{id}\"\ndependency = \"catalog\"\ndeadline = \"1s\"\nin_flight = 1\n\
            mode = \"observe\"\nwithdraws = [\"description\"]";
        Policy::shop(origin).route("put.direct", write)
    })
    .await
}

/// The read's answer while its dependency is down: 200 from its copy, or 503.
async fn has_copy(shop: &Shop, id: &str) -> bool {
    shop.origin.on(Matcher::any().method("GET"), Answer::new(503));
    let status = shop.get(id).await.status();
    shop.origin
        .on(Matcher::any().method("GET"), Behaviour::from_fn(|request| right_answer(request, "first")));
    status == 200
}

#[test]
fn a_write_that_is_only_observed_withdraws_what_others_would_serve() {
    run(async {
        let mut shop = writes_are_observed().await;
        for (status, keeps) in [(204, false), (302, false), (202, false), (500, false), (404, true)] {
            // A write of unknown end has nothing kept for ten seconds.
            assert!(shop.get("1").await.status() == 200 && has_copy(&shop, "1").await, "before {status}");
            shop.origin.on(Matcher::any().method("PUT"), Answer::new(status));
            let gate = Gate::new();
            shop.origin.on(Matcher::path("/w/9"), Behaviour::from(Answer::new(204)).gate(&gate));
            let address = shop.gateway.addr;
            let held =
                tokio::spawn(async move { client::request(address, "PUT", "/w/9", &SPANISH, b"").await });
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            // Its shadow finds the route full, and so decides nothing about it.
            assert_eq!(shop.gateway.request("PUT", "/w/1", &SPANISH, b"{}").await.status(), status);
            assert_eq!(has_copy(&shop, "1").await, keeps, "after {status}");
            gate.open();
            assert_eq!(held.await.unwrap().unwrap().status(), 204);
            shop.origin.on(Matcher::path("/w/9"), Answer::new(404));
            shop.pass(11.0);
        }
        let refused = shop.gateway.metrics().await.requests("rejected", "capacity");
        assert_eq!(refused, 5, "by the shadow alone");
    });
}

/// The shadow has given up at the deadline; the write succeeds later.
#[test]
fn a_late_success_of_an_observed_write_withdraws_too() {
    run(async {
        let mut shop = writes_are_observed().await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any().method("PUT"), Behaviour::from(Answer::new(204)).gate(&gate));
        let address = shop.gateway.addr;
        let held =
            tokio::spawn(async move { client::request(address, "PUT", "/w/1", &SPANISH, b"{}").await });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.pass(1.5);
        shop.gateway.metrics_until(|metrics| metrics.requests("failed", "read_timeout") == 1).await;
        shop.pass(11.0);
        assert!(shop.get("1").await.status() == 200 && has_copy(&shop, "1").await, "kept meanwhile");
        gate.open();
        assert_eq!(held.await.unwrap().unwrap().status(), 204);
        assert!(!has_copy(&shop, "1").await, "from before the write");
    });
}

/// What was forwarded as its client asked is no answer to what a route that enforces would have asked: `fr, es;q=0.5` is not `es`.
#[test]
fn what_was_kept_while_observing_is_never_served() {
    run(async {
        let origin = Origin::start().await.unwrap();
        let works = Behaviour::from_fn(|request| {
            let text = request.header("accept-language").unwrap_or_default().to_owned();
            Answer::json(product("1", &format!("for {text}"), "es"))
        });
        let policy = |mode: &str| {
            Policy::shop(origin.addr())
                .store("snapshots = { memory = \"16 MiB\", disk = \"8 MiB\" }")
                .replace_route("description.public_read", &Policy::description(mode))
        };
        let fields = [("Accept-Language", "fr, es;q=0.5"), ("X-Tenant", "a")];
        // By hand: an enforcing route asks for `es`, keeps that and serves it; an observing one keeps nothing for it.
        for (mode, serves) in [("", true), ("mode = \"observe\"", false)] {
            origin.on(Matcher::any(), works.clone());
            let place = {
                let mut gateway = Gateway::start_in(&folder(), &policy(mode));
                HOST.clone_into(&mut gateway.host);
                gateway.hand().say("sync on");
                assert_eq!(gateway.get("/p/1", &fields).await.status(), 200);
                durable(&gateway, 1).await;
                gateway.stop()
            };
            origin.on(Matcher::any(), Answer::new(503));
            let mut gateway = Gateway::start_in(&place, &policy(""));
            HOST.clone_into(&mut gateway.host);
            gateway.hand().say("sync on");
            let answer = gateway.get("/p/1", &SPANISH).await;
            assert_eq!(answer.status() == 200, serves, "{mode}: {}", answer.text());
        }
    });
}

/// The route would have given up after 50 ms; its client waits, as behind any proxy.
#[test]
fn a_slow_connect_ends_the_decision_and_not_the_request() {
    run(async {
        let mut shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "connect = \"50ms\"")
                .route("description.public_read", &Policy::description("mode = \"observe\""))
        })
        .await;
        shop.origin.fill_backlog().await.unwrap();
        let address = shop.gateway.addr;
        let asked = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await });
        let connecting = |metrics: &Metrics| {
            metrics.sum("backstop_upstream_connections", &["dependency=\"catalog\"", "state=\"open\""]) == 1.0
        };
        shop.gateway.metrics_until(connecting).await;
        shop.pass(0.051);
        shop.gateway.metrics_until(|metrics| metrics.failures("connect_timeout") == 1).await;
        shop.origin.accept_again().await.unwrap();
        // Linux tries again a second after the first attempt.
        let answer = asked.await.unwrap().unwrap();
        assert_eq!((answer.status(), answer.text()), (200, product("1", "first", "es")));
    });
}

/// Its shadow waits for a place while three megabytes go by: they are not kept for it.
#[test]
fn what_a_waiting_shadow_cannot_take_is_not_kept_for_it() {
    run(async {
        let shop = Shop::with(|origin| {
            Policy::empty().dependency("catalog", origin, "connections = 1\nqueue = \"8s\"").route(
                "description.public_read",
                &Policy::description("mode = \"observe\"\ndeadline = \"9s\""),
            )
        })
        .await;
        let gate = Gate::new();
        shop.origin.on(Matcher::path("/p/1"), products("first").gate(&gate));
        shop.origin.on(Matcher::path("/p/2"), products(&"x".repeat(3_000_000)));
        let address = shop.gateway.addr;
        let held = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        assert_eq!(shop.get("2").await.status(), 200);
        let lost = ["outcome=\"abandoned\"", "really=\"answered\""];
        shop.gateway
            .metrics_until(|metrics| metrics.sum("backstop_observed_requests_total", &lost) == 1.0)
            .await;
        gate.open();
        assert_eq!(held.await.unwrap().unwrap().status(), 200);
        expect::idle(&shop.gateway).await;
    });
}
