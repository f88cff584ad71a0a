//! `mode = "observe"`: the client and the dependency get what they would get from a plain proxy, whatever is decided; and what is
//! counted is what would have been.

use std::io::Write;
use std::time::Duration;

use backstop_lab::client::{self, Connection, Response};
use backstop_lab::origin::{Answer, Behaviour, CutAt, Gate, Matcher, Origin, Then};

use crate::support::shop::{GET_PRODUCT_1, SPANISH, right_answer};
use crate::support::{BOUND, Metrics, Policy, Shop, expect, product, products, run};

/// The shop whose gateway only observes. The route's lines replace its own.
async fn observing(route: &str) -> Shop {
    let mode = format!("mode = \"observe\"\n{route}");
    Shop::with(|origin| {
        Policy::shop(origin).replace_route("description.public_read", &Policy::description(&mode))
    })
    .await
}

/// As [`GET_PRODUCT_1`], with the end of the connection behind its answer.
const GET_AND_CLOSE: &[u8] =
    b"GET /p/1 HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: es\r\nX-Tenant: a\r\nConnection: close\r\n\r\n";

fn first() -> String {
    product("1", "first", "es")
}

/// Requests of the observed route that would have come to `outcome` and whose clients really got that.
fn seen(metrics: &Metrics, outcome: &str, really: &str) -> u64 {
    let labels = [
        "route=\"description\"".to_owned(),
        format!("outcome=\"{outcome}\""),
        format!("really=\"{really}\""),
    ];
    metrics.sum("backstop_observed_requests_total", &labels.each_ref().map(String::as_str)) as u64
}

/// Waits until so many would have come to that and really came to this. Both are counted once the exchange is over.
async fn counted(shop: &Shop, outcome: &str, really: &str, times: u64) {
    let told = shop.gateway.metrics_or_last(|metrics| seen(metrics, outcome, really) == times).await;
    let all = told.sum("backstop_observed_requests_total", &["route=\"description\""]);
    assert_eq!(
        seen(&told, outcome, really),
        times,
        "{outcome} {really}, of {all}: {:#?}",
        shop.gateway.log()
    );
}

/// A first request, after which there is a copy.
async fn is_kept(shop: &Shop) {
    passed(&shop.get("1").await, 200, &first());
    counted(shop, "normal", "answered", 1).await;
}

/// What the dependency answered, and no word of ours.
#[track_caller]
fn passed(response: &Response, status: u16, body: &str) {
    expect::live(response, status, body);
    assert_eq!(response.header("age"), None);
}

#[test]
fn what_a_limit_would_refuse_is_forwarded_all_the_same() {
    run(async {
        // Also beyond the dependency's connections.
        let shop = Shop::with(|origin| {
            let read = Policy::description("mode = \"observe\"\nin_flight = 2");
            Policy::empty()
                .dependency("catalog", origin, "connections = 4")
                .route("description.public_read", &read)
        })
        .await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("first").gate(&gate));
        let address = shop.gateway.addr;
        let asked = [0; 6].map(|_| tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await }));
        gate.wait_for_waiting(6, BOUND).await.expect("all six are at the origin at once");
        let metrics = shop.gateway.metrics().await;
        let places = |scope: &str| metrics.sum("backstop_in_flight", &[&format!("scope=\"{scope}\"")]);
        assert_eq!((places("route"), places("dependency")), (2.0, 2.0), "as on a route that enforces");
        gate.open();
        for asked in asked {
            passed(&asked.await.unwrap().unwrap(), 200, &first());
        }
        counted(&shop, "normal", "answered", 2).await;
        counted(&shop, "rejected", "answered", 4).await;
        assert_eq!(shop.gateway.metrics().await.requests("rejected", "capacity"), 4);
        assert_eq!(shop.origin.count(), 6);
        expect::idle(&shop.gateway).await;
    });
}

#[test]
fn a_failure_reaches_the_client_and_the_copy_is_only_counted() {
    run(async {
        let mut shop = observing("").await;
        is_kept(&shop).await;
        shop.pass(30.0);
        shop.origin.on(Matcher::any(), Answer::new(503).header("Retry-After", "7").body("closed for today"));
        let failed = shop.get("1").await;
        passed(&failed, 503, "closed for today");
        assert_eq!(failed.header("retry-after"), Some("7"));
        counted(&shop, "fallback", "server_error", 1).await;
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.requests("fallback", "unavailable"), 1);
        assert_eq!(metrics.sum("backstop_copy_age_seconds_sum", &["route=\"description\""]), 30.0);

        shop.goes_down().await;
        let nothing = shop.get("1").await;
        assert_eq!((nothing.status(), nothing.header("backstop")), (502, None), "{:?}", nothing.head);
        assert_eq!(nothing.header("proxy-status"), Some("edge; error=connection_refused"));
        counted(&shop, "fallback", "nothing", 1).await;
        shop.gateway.wait_for_log("would have been answered other than normally (observed only)").await;
    });
}

/// 60 s would be served, 60 s and 1 ns refused; the client hears of neither.
#[test]
fn ages_are_judged_as_on_a_route_that_enforces() {
    run(async {
        let mut shop = observing("").await;
        is_kept(&shop).await;
        shop.is_unavailable();
        shop.pass(60.0);
        assert_eq!(shop.get("1").await.status(), 503);
        counted(&shop, "fallback", "server_error", 1).await;
        shop.hand.advance(Duration::from_nanos(1));
        assert_eq!(shop.get("1").await.status(), 503);
        counted(&shop, "rejected", "server_error", 1).await;
        assert_eq!(shop.gateway.metrics().await.requests("rejected", "age"), 1);
    });
}

#[test]
fn the_deadline_ends_the_decision_and_not_the_request() {
    run(async {
        let mut shop = observing("").await;
        is_kept(&shop).await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("late").gate(&gate));
        let address = shop.gateway.addr;
        let waiting = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        shop.pass(0.3);
        // It would have been answered from its copy by now.
        let fallback = |metrics: &Metrics| metrics.requests("fallback", "read_timeout") == 1;
        assert!(fallback(&shop.gateway.metrics_or_last(fallback).await), "{:#?}", shop.gateway.log());
        shop.pass(20.0);
        gate.open();
        passed(&waiting.await.unwrap().unwrap(), 200, &product("1", "late", "es"));
        counted(&shop, "fallback", "answered", 1).await;
        assert_eq!(shop.origin.count(), 2);
        expect::idle(&shop.gateway).await;
    });
}

/// As any proxy: 60 s without a word, and then 504.
#[test]
fn a_dependency_that_never_answers_is_given_up_after_a_minute() {
    run(async {
        let mut shop = observing("").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), Behaviour::hang().gate(&gate));
        let address = shop.gateway.addr;
        let waiting = tokio::spawn(async move { client::get(address, "/p/1", &SPANISH).await });
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        gate.open();
        shop.pass(59.9);
        assert!(!waiting.is_finished());
        shop.pass(0.1);
        let response = waiting.await.unwrap().unwrap();
        assert_eq!((response.status(), response.header("backstop")), (504, None));
        counted(&shop, "rejected", "nothing", 1).await;
        expect::idle(&shop.gateway).await;
    });
}

#[test]
fn an_open_breaker_keeps_nobody_from_the_dependency() {
    run(async {
        let breaker =
            "breaker = { window = \"10s\", min_calls = 4, failures = \"50%\", open = \"5s\", probes = 1 }";
        let mut shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, breaker)
                .route("description.public_read", &Policy::description("mode = \"observe\""))
        })
        .await;
        is_kept(&shop).await;
        shop.is_unavailable();
        for _ in 0..10 {
            assert_eq!(shop.get("1").await.status(), 503);
        }
        counted(&shop, "fallback", "server_error", 10).await;
        assert_eq!(shop.origin.count(), 11, "each of them reached the origin");
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_breaker_phase", &["phase=\"open\""]), 1.0);
        assert!(metrics.requests("fallback", "breaker_open") >= 5, "and would not have");
        shop.origin.on(Matcher::any(), products("first"));
        shop.pass(30.0);
        // Whatever it decides to try: every request is forwarded.
        for _ in 0..10 {
            passed(&shop.get("1").await, 200, &first());
        }
        assert_eq!(shop.origin.count(), 21);
        let tried = |metrics: &Metrics| metrics.sum("backstop_breaker_phase", &["phase=\"open\""]) == 0.0;
        assert!(tried(&shop.gateway.metrics_or_last(tried).await), "its calls are the probes");
    });
}

/// A route that keeps copies asks for answers without a coding and in one language; one that is observed changes neither.
#[test]
fn the_dependency_is_asked_what_the_client_asked() {
    run(async {
        let shop = observing("").await;
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        coder.write_all(first().as_bytes()).unwrap();
        let coded = coder.finish().unwrap();
        let answer = Answer::json(coded.clone()).header("Content-Encoding", "gzip").header("ETag", "\"7\"");
        shop.origin.on(Matcher::any(), answer);
        let fields =
            [("Accept-Language", "es-MX, es;q=0.8"), ("Accept-Encoding", "gzip, br"), ("X-Tenant", "a")];
        let response = shop.gateway.get("/p/1", &fields).await;
        assert_eq!((response.status(), &response.body[..]), (200, &coded[..]));
        assert_eq!(response.header("content-encoding"), Some("gzip"));
        assert_eq!(response.header("etag"), Some("\"7\""));
        let received = &shop.origin.requests()[0];
        assert_eq!(received.header("accept-language"), Some("es-MX, es;q=0.8"));
        assert_eq!(received.header("accept-encoding"), Some("gzip, br"));
        counted(&shop, "normal", "answered", 1).await;
        // It was looked into all the same: there is a copy of it, for its language.
        shop.is_unavailable();
        assert_eq!(shop.gateway.get("/p/1", &SPANISH).await.status(), 503);
        counted(&shop, "fallback", "server_error", 1).await;
        let english = [("Accept-Language", "en"), ("X-Tenant", "a")];
        assert_eq!(shop.gateway.get("/p/1", &english).await.status(), 503);
        counted(&shop, "rejected", "server_error", 1).await;
    });
}

/// Half of a gzip stream, whole by its length. The route would have asked for an answer without a coding, and nobody knows what that
/// would have been: nothing is said of the dependency.
#[test]
fn a_coded_answer_that_cannot_be_undone_says_nothing_of_the_dependency() {
    run(async {
        let shop = observing("").await;
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        coder.write_all(first().as_bytes()).unwrap();
        let mut coded = coder.finish().unwrap();
        coded.truncate(coded.len() / 2);
        shop.origin.on(Matcher::any(), Answer::json(coded.clone()).header("Content-Encoding", "gzip"));
        let response = shop.get("1").await;
        assert_eq!((response.status(), &response.body[..]), (200, &coded[..]), "passed on as it is");
        counted(&shop, "abandoned", "answered", 1).await;
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_dependency_failures_total", &[]), 0.0);
        expect::idle(&shop.gateway).await;
    });
}

/// `Content-Encoding` on an answer that has no content (RFC 9110 sections 9.3.2 and 15.4.5) is about another one.
#[test]
fn a_coding_without_content_is_no_broken_answer() {
    run(async {
        let shop = observing("").await;
        shop.origin.on(
            Matcher::any(),
            Behaviour::from_fn(|request| match request.path() {
                "/p/304" => Answer::new(304).header("Content-Encoding", "gzip"),
                _ => Answer::json("{}").header("Content-Encoding", "gzip"),
            }),
        );
        let head = shop.gateway.request("HEAD", "/p/1", &SPANISH, b"").await;
        assert_eq!((head.status(), head.header("content-encoding")), (200, Some("gzip")));
        assert_eq!(shop.get("304").await.status(), 304);
        let all = |metrics: &Metrics| metrics.sum("backstop_observed_requests_total", &[]) == 2.0;
        let metrics = shop.gateway.metrics_until(all).await;
        assert_eq!(metrics.sum("backstop_dependency_failures_total", &[]), 0.0, "{metrics:#?}");
    });
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_its_client() {
    run(async {
        let shop = observing("").await;
        is_kept(&shop).await;
        let cut = Answer::json(first()).cut(CutAt::Body(10), Then::Close);
        shop.origin.on(Matcher::any(), cut);
        let response = shop.gateway.try_get("/p/1", &SPANISH).await;
        assert!(response.is_err() || !response.unwrap().is_complete(), "cut visibly");
        counted(&shop, "fallback", "cut", 1).await;
        expect::idle(&shop.gateway).await;
    });
}

#[test]
fn a_client_that_leaves_is_an_abandoned_request_and_ends_the_call() {
    run(async {
        let shop = observing("").await;
        let gate = Gate::new();
        shop.origin.on(Matcher::any(), products("never").gate(&gate));
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_PRODUCT_1).await.unwrap();
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        client.reset().unwrap();
        counted(&shop, "abandoned", "left", 1).await;
        expect::idle(&shop.gateway).await;
        shop.origin.wait_until(BOUND, |stats| stats.peers_closed == 1).await.expect("the call is ended");
        gate.open();
    });
}

/// 300 kB to a client that reads nothing for longer than the deadline: the route would have held it back in time, and so nothing
/// is late.
#[test]
fn a_slow_reader_is_no_slow_dependency() {
    run(async {
        let mut shop = observing("").await;
        let long = "x".repeat(300_000);
        shop.origin.on(Matcher::any(), products(&long));
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_AND_CLOSE).await.unwrap();
        let begun = client.read_at_least(1).await.unwrap();
        let normal = |metrics: &Metrics| {
            metrics.failures("read_timeout") == 0 && {
                let labels = ["dependency=\"catalog\"", "result=\"answered\""];
                metrics.sum("backstop_dependency_calls_total", &labels) == 1.0
            }
        };
        assert!(normal(&shop.gateway.metrics_or_last(normal).await), "the whole answer was read ahead");
        shop.pass(5.0);
        let rest = client.read_to_end().await;
        let all = [&begun[..], &rest.bytes[..]].concat();
        assert!(all.ends_with(product("1", &long, "es").as_bytes()), "all of it, {} bytes", all.len());
        counted(&shop, "normal", "answered", 1).await;
        assert_eq!(shop.gateway.metrics().await.failures("read_timeout"), 0);
    });
}

/// What is larger than the route holds back streams, there as here.
#[test]
fn a_large_answer_streams_to_its_end() {
    run(async {
        let shop = observing("buffer = \"4 KiB\"").await;
        let long = "x".repeat(3_000_000);
        shop.origin.on(Matcher::any(), products(&long));
        let mut client = Connection::open(shop.gateway.addr).await.unwrap();
        client.send(GET_AND_CLOSE).await.unwrap();
        let all = client.read_to_end().await.bytes;
        assert!(all.ends_with(product("1", &long, "es").as_bytes()), "all of it, {} bytes", all.len());
        counted(&shop, "normal", "answered", 1).await;
        expect::idle(&shop.gateway).await;
    });
}

#[test]
fn a_write_is_forwarded_once_with_its_content() {
    run(async {
        let shop = Shop::with(|origin| Policy::shop(origin).gateway("mode = \"observe\"")).await;
        is_kept(&shop).await;
        shop.origin.on(
            Matcher::any().method("PUT"),
            Behaviour::from_fn(|request| Answer::json(request.body.clone())),
        );
        let put = shop.gateway.request("PUT", "/p/1", &SPANISH, b"{\"text\":\"new\"}").await;
        passed(&put, 200, "{\"text\":\"new\"}");
        assert_eq!(shop.origin.count_of("PUT", "/p/1"), 1);
        // The copy is withdrawn by it, as it would be.
        shop.origin.on(Matcher::any(), Answer::new(503));
        assert_eq!(shop.get("1").await.status(), 503);
        counted(&shop, "rejected", "server_error", 1).await;
        assert_eq!(shop.gateway.metrics().await.requests("rejected", "missing"), 1);

        shop.origin.on(Matcher::any().method("PUT"), Behaviour::reset());
        let lost = shop.gateway.request("PUT", "/p/1", &SPANISH, b"{}").await;
        assert_eq!((lost.status(), lost.header("backstop")), (502, None));
        assert_eq!(shop.origin.count_of("PUT", "/p/1"), 2, "never sent again");
    });
}

/// Content that goes beyond the gateway's limit is refused in both modes: that is a limit on what is read, not a decision about it.
#[test]
fn content_beyond_its_limit_is_refused_all_the_same() {
    run(async {
        let shop = Shop::with(|origin| {
            Policy::shop(origin).gateway("mode = \"observe\"").gateway("limits = { body = \"1 KiB\" }")
        })
        .await;
        let refused = shop.gateway.request("PUT", "/p/1", &SPANISH, &[b'x'; 2048]).await;
        assert_eq!(refused.status(), 413);
        assert_eq!(shop.origin.count(), 0);
    });
}

#[test]
fn one_route_can_be_observed_beside_others_that_enforce() {
    run(async {
        let catalog = Origin::start().await.unwrap();
        catalog.default(Behaviour::from_fn(|request| right_answer(request, "first")));
        let mut shop = Shop::with(|_| {
            let other = Policy::description("match = \"GET /q/{id}\"");
            Policy::shop(catalog.addr())
                .replace_route("description.public_read", &Policy::description("mode = \"observe\""))
                .route("other.public_read", &other)
        })
        .await;
        assert_eq!(shop.gateway.get("/q/1", &SPANISH).await.status(), 200);
        is_kept(&shop).await;
        catalog.on(Matcher::any(), Answer::new(503));
        shop.pass(2.0);
        assert_eq!(shop.get("1").await.status(), 503);
        expect::copy(&shop.gateway.get("/q/1", &SPANISH).await, &first(), 2, "unavailable");
        let metrics = shop.gateway.metrics().await;
        let observed = |route: &str| metrics.sum("backstop_route_observed", &[&format!("route=\"{route}\"")]);
        assert_eq!((observed("description"), observed("other")), (1.0, 0.0));
        counted(&shop, "fallback", "server_error", 1).await;
    });
}

/// The operators' page says what would be, and that it is not.
#[test]
fn the_page_says_what_an_observed_route_would_do() {
    run(async {
        let mut shop = observing("").await;
        is_kept(&shop).await;
        shop.is_unavailable();
        for _ in 0..3 {
            assert_eq!(shop.get("1").await.status(), 503);
        }
        counted(&shop, "fallback", "server_error", 3).await;
        let admin = shop.gateway.admin;
        let said = async {
            loop {
                shop.hand.advance(Duration::from_secs(1));
                let status =
                    client::get(admin, "/status.json", &[]).await.expect("the model").json().unwrap();
                let sentence = status["sentence"].as_str().unwrap_or_default().to_owned();
                if sentence.contains(", only observed,") {
                    return status;
                }
                tokio::task::yield_now().await;
            }
        };
        // It takes up what was counted with its next look, once a second.
        let status = tokio::time::timeout(BOUND, said).await.expect("it is said");
        let routes = status["routes"].as_array().expect("routes");
        let mode = |name: &str| routes.iter().find(|route| route["name"] == name).map(|route| &route["mode"]);
        assert_eq!((mode("description"), mode("write")), (Some(&"observe".into()), Some(&"enforce".into())));
    });
}
