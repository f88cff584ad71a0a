//! What the routes of a composed answer's parts are asked for, and what that may take.

use std::time::Duration;

use backstop_lab::client;
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Request};

use crate::support::page::{
    LEFT_OUT, PARTS, Page, RECOMMENDED, normal, omitted, page_of, recommendations, reduced, whole,
};
use crate::support::shop::SPANISH;
use crate::support::{BOUND, Policy, expect, products, run};

/// Nothing that a client writes adds a segment, a query or a dot segment to a part's path.
#[test]
fn a_parameter_stays_one_segment() {
    run(async {
        let page = Page::open().await;
        page.catalog.default(Behaviour::status(404));
        for (asked, sent) in [
            ("/pages/a%2Fb", "/p/a%2Fb"),
            ("/pages/a%2fb", "/p/a%2Fb"),
            ("/pages/a%3Fb%23c", "/p/a%3Fb%23c"),
            ("/pages/a;b=c", "/p/a;b=c"),
            ("/pages/%61", "/p/a"),
            ("/pages/1?admin=yes", "/p/1"),
            ("/pages/%252e%252e", "/p/%252e%252e"),
        ] {
            page.catalog.forget();
            assert_eq!(page.gateway.get(asked, &SPANISH).await.status(), 404, "{asked}");
            let received = page.catalog.requests();
            assert_eq!(received[0].target, sent, "{asked}");
        }
        page.catalog.forget();
        for asked in ["/pages/..", "/pages/%2e%2e", "/pages/..%2f..%2fadmin", "/pages/a%2F..%2Fb"] {
            let refused = page.gateway.get(asked, &SPANISH).await;
            assert_eq!(refused.status(), 400, "{asked}: {:?}", refused.head);
        }
        assert_eq!(page.catalog.count(), 0);
    });
}

/// A part's validators are about the part: a condition of the client never reaches it, and no validator comes back.
#[test]
fn what_is_of_the_whole_does_not_reach_a_part_nor_the_other_way_round() {
    run(async {
        let page = Page::open().await;
        let answer = |request: &Request| {
            crate::support::shop::right_answer(request, "first")
                .header("ETag", "\"1\"")
                .header("Last-Modified", "Mon, 30 Nov 2026 10:00:00 GMT")
                .header("Cache-Control", "max-age=60")
                .header("Age", "7")
                .header("Vary", "X-Device")
                .header("Link", "</style.css>; rel=preload")
        };
        page.catalog.default(Behaviour::from_fn(answer));
        page.recommender.default(Answer::json(RECOMMENDED).header("Cache-Control", "max-age=30"));
        let fields = [
            SPANISH[0],
            SPANISH[1],
            ("If-None-Match", "\"1\""),
            ("If-Modified-Since", "Mon, 30 Nov 2026 11:00:00 GMT"),
            ("Range", "bytes=0-3"),
        ];
        let response = page.gateway.get("/pages/1", &fields).await;
        normal(&response, &whole("1", "es", Some(RECOMMENDED)));
        for (field, value) in [
            ("cache-control", Some("max-age=30")),
            ("age", Some("7")),
            ("vary", Some("accept-language, x-tenant, x-device")),
            ("etag", None),
            ("last-modified", None),
            ("link", None),
        ] {
            assert_eq!(response.header(field), value, "{field}");
        }
        for field in ["if-none-match", "if-modified-since", "range"] {
            assert_eq!(page.catalog.requests()[0].header(field), None, "{field}");
        }
        // Somebody's own: the cookie stays here, and so does the answer.
        page.recommender.on(Matcher::any(), Answer::json(RECOMMENDED).header("Set-Cookie", "id=1"));
        let own = page.get("1").await;
        normal(&own, &whole("1", "es", Some(RECOMMENDED)));
        assert_eq!((own.header("set-cookie"), own.header("cache-control")), (None, Some("no-store")));
        page.recommender.on(Matcher::any(), Answer::json(RECOMMENDED).header("Cache-Control", "private"));
        assert_eq!(page.get("1").await.header("cache-control"), Some("no-store"));
    });
}

/// Content of a GET is not read and goes to no part; the connection ends with the answer.
#[test]
fn content_of_the_request_goes_to_no_part() {
    run(async {
        let page = Page::open().await;
        let response = page.gateway.request("GET", "/pages/1", &SPANISH, b"{}").await;
        normal(&response, &whole("1", "es", Some(RECOMMENDED)));
        assert_eq!(response.header("connection"), Some("close"));
        let asked = &page.catalog.requests()[0];
        assert_eq!((asked.header("content-length"), asked.header("transfer-encoding")), (None, None));
        // A page has no other methods: POST is another route's.
        assert_eq!(page.gateway.request("POST", "/pages/1", &SPANISH, b"{}").await.status(), 200);
        assert_eq!(page.catalog.count_of("POST", "/pages/1"), 1);
    });
}

/// A page holds one place at the process, however many parts it has; and its route's own limit refuses at once.
#[test]
fn parts_take_places_at_their_routes_only() {
    run(async {
        let page = Page::with(|policy| {
            let one = page_of(PARTS).replace("in_flight = 250", "in_flight = 1");
            policy
                .gateway("in_flight = 1")
                .replace_route("description.public_read", &Policy::description("in_flight = 1"))
                .replace_route(
                    "recommendations.optional",
                    &recommendations(LEFT_OUT).replace("in_flight = 2", "in_flight = 1"),
                )
                .replace_route("page.composed", &one)
        })
        .await;
        let gate = Gate::new();
        page.catalog.on(Matcher::any(), products("first").gate(&gate));
        let held = page.asking("/pages/1");
        gate.wait_for_waiting(1, BOUND).await.unwrap();
        page.recommender.wait_for(1, BOUND).await.unwrap();
        expect::refused(&page.get("2").await, 503, "outcome=rejected, reason=capacity");
        gate.open();
        normal(&held.await.unwrap(), &whole("1", "es", Some(RECOMMENDED)));
        assert_eq!((page.catalog.count(), page.recommender.count()), (1, 1));
        expect::idle(&page.gateway).await;
    });
}

/// A part is as large as its route's `buffer` allows, and all held-back answers as `buffer_memory` does.
#[test]
fn parts_are_bounded_in_bytes() {
    run(async {
        let with = |memory: &'static str| {
            Page::with(move |policy| {
                let description = Policy::description("in_flight = 250\nbuffer = \"40 KiB\"\ncorrect =");
                let memory = format!("buffer_memory = \"{memory}\"");
                policy.gateway(&memory).replace_route("description.public_read", &description)
            })
        };
        let large = |bytes: usize| Answer::json(format!("\"{}\"", "x".repeat(bytes - 2)));
        let page = with("64 KiB").await;
        page.catalog.default(large(20 << 10));
        assert_eq!(page.get("1").await.status(), 200);
        // Once for itself and once for the whole: twice 36 KiB are more than 64 KiB.
        page.catalog.default(large(36 << 10));
        expect::refused(&page.get("2").await, 503, "outcome=rejected, reason=capacity");
        page.catalog.default(products("first"));
        page.recommender.default(large(36 << 10));
        reduced(&page.get("3").await, &whole("3", "es", None), &omitted("capacity"));
        page.gateway.metrics_until(|metrics| metrics.sum("backstop_buffer_bytes", &[]) == 0.0).await;
        expect::idle(&page.gateway).await;
        // With room enough for all, larger than its own route's 40 KiB.
        let page = with("1 MiB").await;
        page.catalog.default(large(50 << 10));
        expect::refused(&page.get("1").await, 502, "outcome=failed, reason=incorrect");
    });
}

/// Clients that leave while parts are under way leave nothing behind.
#[test]
fn a_client_that_leaves_takes_its_parts_with_it() {
    run(async {
        let mut page = Page::open().await;
        page.recommender.on(Matcher::any(), Behaviour::hang());
        page.catalog.on(Matcher::any(), Behaviour::hang());
        let mut connection = client::Connection::open(page.gateway.addr).await.unwrap();
        connection.send(b"GET /pages/1 HTTP/1.1\r\nHost: shop.example\r\nX-Tenant: a\r\n\r\n").await.unwrap();
        page.recommender.wait_for(1, BOUND).await.unwrap();
        page.catalog.wait_for(1, BOUND).await.unwrap();
        connection.reset().unwrap();
        page.gateway.metrics_until(|metrics| metrics.outcome("abandoned") == 3).await;
        for route in ["page", "description", "recommendations"] {
            assert_eq!(page.counted(route, "abandoned", "client_left").await, 1, "{route}");
        }
        page.hand.advance(Duration::from_millis(300));
        expect::idle(&page.gateway).await;
        assert_eq!(page.gateway.metrics().await.dependency_failures(), 0, "nobody's failure");
    });
}

/// The operator's fields are set on a page; what it says of its content and its lifetime is its own.
#[test]
fn the_operator_changes_a_page_but_not_what_it_says_of_itself() {
    run(async {
        let edits = "response_headers = { set = { x-frame-options = \"DENY\", etag = '\"x\"' } }";
        let page =
            Page::with(|policy| policy.replace_route("page.composed", &(page_of(PARTS) + "\n" + edits)))
                .await;
        let live = page.get("1").await;
        normal(&live, &whole("1", "es", Some(RECOMMENDED)));
        page.recommender.on(Matcher::any(), Behaviour::status(503));
        let without = page.get("1").await;
        reduced(&without, &whole("1", "es", None), &omitted("unavailable"));
        for response in [live, without] {
            assert_eq!(response.header("x-frame-options"), Some("DENY"));
            assert_eq!(response.header("etag"), None);
        }
    });
}
