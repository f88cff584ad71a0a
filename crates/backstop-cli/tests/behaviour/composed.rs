//! Answers that are put together from the answers of other routes: all of them, some of them, or none.

use std::time::Duration;

use backstop_lab::client::{self, Response};
use backstop_lab::origin::{Answer, Behaviour, Gate, Matcher, Request};

use crate::support::page::{
    LEFT_OUT, PARTS, Page, RECOMMENDED, normal, omitted, page_of, recommendations, reduced, whole,
};
use crate::support::shop::{HOST, SPANISH, down, right_answer};
use crate::support::{BOUND, Metrics, Outcomes, expect, product, products, run};

#[test]
fn all_parts_are_one_normal_answer() {
    run(async {
        let page = Page::open().await;
        let response = page.get("1").await;
        normal(&response, &whole("1", "es", Some(RECOMMENDED)));
        assert_eq!(response.header("vary"), Some("accept-language, x-tenant"));
        assert_eq!(response.header("cache-control"), Some("no-cache"), "no part says how long it is fresh");
        let explained =
            page.gateway.get("/pages/1", &[SPANISH[0], SPANISH[1], ("Backstop-Explain", "?1")]).await;
        assert_eq!(explained.header("backstop"), Some("outcome=normal, source=primary"));
        // Each part went its own route's way, and was counted there, once.
        let expected = Outcomes { normal: 6, ..Outcomes::default() };
        expect::outcomes(&page.gateway, expected).await;
        for route in ["page", "description", "recommendations"] {
            assert_eq!(page.counted(route, "normal", "none").await, 2, "{route}");
        }
        let completed = ["function=\"browse\"", "completion=\"completed\""];
        assert_eq!(page.gateway.metrics().await.sum("backstop_function_requests_total", &completed), 2.0);
        assert_eq!((page.catalog.count(), page.recommender.count()), (2, 2));
        let asked = &page.catalog.requests()[0];
        assert_eq!((asked.method.as_str(), asked.path()), ("GET", "/p/1"));
        for (field, value) in [("accept-language", "es"), ("x-tenant", "a"), ("accept-encoding", "identity")]
        {
            assert_eq!(asked.header(field), Some(value), "{field}");
        }
        assert_eq!(asked.header("host"), Some(HOST));
        expect::idle(&page.gateway).await;
    });
}

/// 80 ms is the part's own time, 300 ms the page's: the recommender is left out at the first of them.
#[test]
fn a_part_that_hangs_is_left_out_in_time_and_named() {
    run(async {
        let mut page = Page::open().await;
        page.recommender.on(Matcher::any(), Behaviour::hang());
        let asking = page.asking("/pages/1");
        page.recommender.wait_for(1, BOUND).await.unwrap();
        page.gateway.metrics_until(|metrics| metrics.outcome("normal") == 1).await;
        page.hand.advance(Duration::from_millis(77));
        assert!(!asking.is_finished(), "not before its time");
        page.hand.advance(Duration::from_millis(3));
        reduced(&asking.await.unwrap(), &whole("1", "es", None), &omitted("read_timeout"));
        assert_eq!(page.counted("page", "fallback", "read_timeout").await, 1);
        assert_eq!(page.counted("recommendations", "fallback", "read_timeout").await, 1);
        assert_eq!(page.counted("description", "normal", "none").await, 1);
        let browse = ["function=\"browse\"", "completion=\"reduced\""];
        assert_eq!(page.gateway.metrics().await.sum("backstop_function_requests_total", &browse), 1.0);
        // The call that nobody waits for occupies the recommender for the rest of its deadline, and no longer.
        page.hand.advance(Duration::from_millis(300));
        expect::idle(&page.gateway).await;
    });
}

/// A part that may take longer than the page waits has what is left of the page: 100 ms without the share of the reply.
#[test]
fn a_part_has_no_more_time_than_the_page() {
    run(async {
        let mut page = Page::with(|policy| {
            let slow = recommendations(LEFT_OUT).replace("\"80ms\"", "\"5s\"");
            let short = page_of(PARTS).replace("\"300ms\"", "\"100ms\"");
            policy.replace_route("recommendations.optional", &slow).replace_route("page.composed", &short)
        })
        .await;
        page.recommender.on(Matcher::any(), Behaviour::hang());
        let asking = page.asking("/pages/1");
        page.recommender.wait_for(1, BOUND).await.unwrap();
        page.gateway.metrics_until(|metrics| metrics.outcome("normal") == 1).await;
        page.hand.advance(Duration::from_millis(96));
        assert!(!asking.is_finished(), "not before its time");
        page.hand.advance(Duration::from_millis(3));
        reduced(&asking.await.unwrap(), &whole("1", "es", None), &omitted("read_timeout"));
    });
}

/// Its route has two places. The page does not wait for one, and the recommender is not asked.
#[test]
fn a_part_whose_route_is_full_is_left_out_at_once() {
    run(async {
        let page = Page::open().await;
        let gate = Gate::new();
        page.recommender.on(Matcher::any(), Behaviour::json("[]").gate(&gate));
        let held = [page.asking("/p/1/recommendations"), page.asking("/p/2/recommendations")];
        gate.wait_for_waiting(2, BOUND).await.unwrap();
        // The clock stands still: nothing that waits would end.
        reduced(&page.get("1").await, &whole("1", "es", None), &omitted("capacity"));
        assert_eq!(page.recommender.count(), 2);
        gate.open();
        for held in held {
            assert_eq!(held.await.unwrap().status(), 200);
        }
        normal(&page.get("1").await, &whole("1", "es", Some("[]")));
    });
}

/// What the recommendations' own route says for leaving them out stands in their place; they are named all the same.
#[test]
fn a_part_that_its_route_leaves_out_is_named_and_stands_there() {
    run(async {
        let empty = "otherwise = { omit = { status = 200, type = \"application/json\", body = \"[]\" } }";
        let page =
            Page::with(|policy| policy.replace_route("recommendations.optional", &recommendations(empty)))
                .await;
        page.recommender.on(Matcher::any(), Behaviour::reset());
        reduced(&page.get("1").await, &whole("1", "es", Some("[]")), &omitted("reset"));
    });
}

/// Everything that is not one JSON value with 2xx, by the faults of a real recommender. What is declared to be JSON and is
/// not exactly one value is `incomplete`, as on every route; what is whole and of no use in a page is `incorrect`.
#[test]
fn a_part_that_is_none_is_left_out() {
    run(async {
        let page = Page::open().await;
        let html = || Answer::new(200).header("Content-Type", "text/html").body("<html></html>");
        let faults: [(Behaviour, &str); 11] = [
            (html().into(), "incorrect"),
            (Answer::json(r#"["7","#).into(), "incomplete"),
            (Answer::json("").into(), "incomplete"),
            (Answer::json(r#"["7"] ["8"]"#).into(), "incomplete"),
            (Answer::json("[]").header("Content-Encoding", "gzip").into(), "incorrect"),
            (Answer::new(206).header("Content-Type", "application/json").body("1").into(), "incorrect"),
            (Behaviour::status(404), "incorrect"),
            (Behaviour::status(401), "incorrect"),
            (Behaviour::status(500), "server_error"),
            (Behaviour::status(503), "unavailable"),
            (Behaviour::truncated(600, 300), "incomplete"),
        ];
        for (fault, reason) in faults {
            page.recommender.on(Matcher::any(), fault);
            reduced(&page.get("1").await, &whole("1", "es", None), &omitted(reason));
        }
        expect::idle(&page.gateway).await;
    });
}

#[test]
fn a_required_part_that_fails_is_answered_from_its_copy_with_its_age() {
    run(async {
        let mut page = Page::open().await;
        normal(&page.get("1").await, &whole("1", "es", Some(RECOMMENDED)));
        down(&page.catalog).await;
        page.hand.advance(Duration::from_secs(30));
        let response = page.get("1").await;
        let mark = "outcome=fallback, source=snapshot, age=30, reason=connect";
        reduced(&response, &whole("1", "es", Some(RECOMMENDED)), mark);
        assert_eq!(response.header("age"), Some("30"));
        assert_eq!(response.header("proxy-status"), Some("edge; error=connection_refused"));
        // The copy is the route's: it was kept by the page and is served to whoever asks for the product itself.
        expect::copy(&page.gateway.get("/p/1", &SPANISH).await, &product("1", "first", "es"), 30, "connect");
        // Up to its age and not a nanosecond longer, and no copy of the page as a whole outlives it.
        page.hand.advance(Duration::from_secs(30) + Duration::from_nanos(1));
        expect::no_copy(&page.get("1").await, "age", "connect");
    });
}

/// By hand: a copy of 30 s waits for 2 s, and an answer that was 7 s old when it came is 9 s old.
#[test]
fn a_page_is_as_old_as_its_oldest_part_when_it_is_sent() {
    run(async {
        let mut page = Page::with(|policy| {
            let slow = recommendations(LEFT_OUT).replace("\"80ms\"", "\"4s\"");
            let patient = page_of(PARTS).replace("\"300ms\"", "\"5s\"");
            policy.replace_route("recommendations.optional", &slow).replace_route("page.composed", &patient)
        })
        .await;
        page.catalog.default(Behaviour::from_fn(|request| right_answer(request, "first").header("Age", "7")));
        let waits = async |page: &mut Page| {
            let gate = Gate::new();
            page.recommender.on(Matcher::any(), Behaviour::json(RECOMMENDED).gate(&gate));
            let described =
                |metrics: &Metrics| metrics.sum("backstop_requests_total", &["route=\"description\""]);
            let before = described(&page.gateway.metrics().await);
            let asking = page.asking("/pages/1");
            gate.wait_for_waiting(1, BOUND).await.unwrap();
            page.gateway.metrics_until(|metrics| described(metrics) > before).await;
            page.hand.advance(Duration::from_secs(2));
            gate.open();
            asking.await.unwrap()
        };
        let live = waits(&mut page).await;
        normal(&live, &whole("1", "es", Some(RECOMMENDED)));
        assert_eq!(live.header("age"), Some("9"));
        down(&page.catalog).await;
        // 7 s old when it came, at which the page waited 2 s for the rest; 21 s more make it 30 s.
        page.hand.advance(Duration::from_secs(21));
        let copy = waits(&mut page).await;
        let mark = "outcome=fallback, source=snapshot, age=32, reason=connect";
        reduced(&copy, &whole("1", "es", Some(RECOMMENDED)), mark);
        assert_eq!(copy.header("age"), Some("32"));
    });
}

/// Its refusal is the answer, whatever the other part says, and that one is not waited for.
#[test]
fn a_required_part_that_fails_without_a_copy_is_the_answer() {
    run(async {
        let mut page = Page::open().await;
        page.recommender.on(Matcher::any(), Behaviour::hang());
        down(&page.catalog).await;
        // The clock stands still: had it waited for the recommender, this would never end.
        let refused = page.get("1").await;
        expect::no_copy(&refused, "missing", "connect");
        assert_eq!(refused.json().unwrap()["type"], "urn:backstop:problem:snapshot-missing");
        assert_eq!(page.counted("page", "rejected", "missing").await, 1);
        assert_eq!(page.counted("description", "rejected", "missing").await, 1);
        page.hand.advance(Duration::from_millis(300));
        expect::idle(&page.gateway).await;
    });
}

/// What a required part says about the request passes; what is no part and no such answer cannot be put anywhere.
#[test]
fn a_required_part_that_is_none_passes_or_is_refused() {
    run(async {
        let page = Page::open().await;
        for status in [401, 403, 404, 410, 422] {
            page.catalog.on(Matcher::any(), Behaviour::status(status));
            expect::live(&page.get("1").await, status, &format!(r#"{{"status":{status}}}"#));
        }
        page.catalog.on(Matcher::any(), Behaviour::status(500));
        let mark = "outcome=failed, source=primary, reason=server_error";
        expect::passed(&page.get("1").await, 500, r#"{"status":500}"#, mark);
        let html = Answer::new(200).header("Content-Type", "text/html").body("<html></html>");
        page.catalog.on(Matcher::any(), html);
        expect::refused(&page.get("1").await, 502, "outcome=failed, reason=incorrect");
        page.catalog.on(Matcher::any(), Answer::json(r#"{"id":"1","te"#));
        expect::no_copy(&page.get("1").await, "missing", "incomplete");
        // Another schema is not unavailability: it passes in its place, and the page says `failed`.
        page.catalog.on(Matcher::any(), Answer::json(r#"{"id":"1"}"#));
        let other = page.get("1").await;
        let body = format!(r#"{{"product":{{"id":"1"}},"recommendations":{RECOMMENDED}}}"#);
        reduced(&other, &body, "outcome=failed, source=primary, reason=incorrect");
        page.catalog.on(Matcher::any(), products("first"));
        normal(&page.get("1").await, &whole("1", "es", Some(RECOMMENDED)));
    });
}

/// A required part on a route without an alternative: its time is over a moment before the page's own, and that is 504.
#[test]
fn a_required_part_that_hangs_without_an_alternative_ends_in_time() {
    run(async {
        let mut page = Page::with(|policy| {
            let direct = PARTS
                .replace("\"description\", path = \"/p/{product}\"", "\"rest\", path = \"/q/{product}\"");
            policy.replace_route("page.composed", &page_of(&direct))
        })
        .await;
        page.catalog.on(Matcher::any(), Behaviour::hang());
        let asking = page.asking("/pages/1");
        page.catalog.wait_for(1, BOUND).await.unwrap();
        page.hand.advance(Duration::from_millis(290));
        assert!(!asking.is_finished(), "not before its time");
        page.hand.advance(Duration::from_millis(8));
        let response = asking.await.unwrap();
        expect::refused(&response, 504, "outcome=failed, reason=read_timeout");
    });
}

/// Two tenants and two languages at once: every page is made of its own parts, live and from copies.
#[test]
fn tenants_and_languages_are_never_mixed() {
    run(async {
        let page = Page::open().await;
        let told = |request: &Request| {
            let of = |name: &str| request.header(name).unwrap_or("none").to_owned();
            (of("x-tenant"), of("accept-language"))
        };
        let answer = move |request: &Request| {
            let (tenant, language) = told(request);
            Answer::json(product("1", &tenant, &language))
        };
        page.catalog.default(Behaviour::from_fn(answer));
        page.recommender.default(Behaviour::from_fn(move |request| {
            let (tenant, language) = told(request);
            Answer::json(format!(r#"["{tenant}-{language}"]"#))
        }));
        let all: Vec<(&str, &str)> = ["a", "b"]
            .into_iter()
            .flat_map(|tenant| ["es", "en"].map(|language| (tenant, language)))
            .collect();
        let body = |tenant: &str, language: &str, recommended: bool| {
            let product = product("1", tenant, language);
            let recommended = if recommended {
                format!(r#","recommendations":["{tenant}-{language}"]"#)
            } else {
                String::new()
            };
            format!(r#"{{"product":{product}{recommended}}}"#)
        };
        let ask = |tenant: &'static str, language: &'static str| {
            let address = page.gateway.addr;
            let fields = [("Host", HOST), ("X-Tenant", tenant), ("Accept-Language", language)];
            tokio::spawn(async move { client::get(address, "/pages/1", &fields).await.unwrap() })
        };
        for round in 0..5 {
            let asked: Vec<_> = [("a", "es"), ("a", "en"), ("b", "es"), ("b", "en")]
                .map(|(tenant, language)| (tenant, language, ask(tenant, language)))
                .into_iter()
                .collect();
            for (tenant, language, response) in asked {
                let response = response.await.unwrap();
                // The recommender takes two at once and no more.
                let placed = response.header("backstop").is_none();
                assert_eq!(response.text(), body(tenant, language, placed), "{round}");
            }
        }
        down(&page.catalog).await;
        down(&page.recommender).await;
        for (tenant, language) in all {
            let fields = [("Host", HOST), ("X-Tenant", tenant), ("Accept-Language", language)];
            let copy = page.gateway.get("/pages/1", &fields).await;
            assert_eq!((copy.status(), copy.text()), (200, body(tenant, language, false)));
        }
        let other = [("Host", HOST), ("X-Tenant", "c"), ("Accept-Language", "es")];
        expect::no_copy(&page.gateway.get("/pages/1", &other).await, "missing", "connect");
    });
}

/// The parts are asked with GET: what HEAD tells is what GET would.
#[test]
fn head_is_answered_as_get_is_without_the_content() {
    run(async {
        let page = Page::open().await;
        let length = whole("1", "es", Some(RECOMMENDED)).len().to_string();
        let head = page.gateway.request("HEAD", "/pages/1", &SPANISH, b"").await;
        expect::live(&head, 200, "");
        assert_eq!(head.header("content-length"), Some(length.as_str()));
        assert_eq!(page.catalog.requests()[0].method, "GET");
        page.recommender.on(Matcher::any(), Behaviour::status(503));
        let reduced = page.gateway.request("HEAD", "/pages/1", &SPANISH, b"").await;
        assert_eq!((reduced.status(), reduced.text().as_str()), (200, ""));
        assert_eq!(reduced.header("backstop"), Some(omitted("unavailable").as_str()));
        page.catalog.on(Matcher::any(), Behaviour::status(404));
        let gone = page.gateway.request("HEAD", "/pages/1", &SPANISH, b"").await;
        expect::live(&gone, 404, "");
        assert_eq!(gone.header("content-length"), Some(r#"{"status":404}"#.len().to_string().as_str()));
    });
}

pub mod timing {
    //! By the real clock: two hundred clients at once, and a recommender that hangs.

    use tokio::time::Instant;

    use super::*;

    /// Two of them wait out the recommender's 80 ms, the others find its route full. All are answered well within the page's
    /// 300 ms, the product is live in each of them, and direct reads beside them are not held up.
    #[test]
    fn two_hundred_pages_are_answered_while_the_recommender_hangs() {
        run(async {
            let mut page = Page::open().await;
            page.hand.go_on();
            page.recommender.default(Behaviour::hang());
            let address = page.gateway.addr;
            let ask = |target: String| {
                tokio::spawn(async move {
                    let begun = Instant::now();
                    let response = client::get(address, &target, &SPANISH).await.unwrap();
                    (response, begun.elapsed())
                })
            };
            // Fewer connections than clients: what finds none is answered from the product's copy.
            normal_or_copy(&page.gateway.get("/p/1", &SPANISH).await);
            let pages: Vec<_> = (0..200).map(|_| ask("/pages/1".to_owned())).collect();
            let reads: Vec<_> = (0..50).map(|_| ask("/p/1".to_owned())).collect();
            let mut took = Vec::new();
            for asked in pages {
                let (response, elapsed) = asked.await.unwrap();
                assert_eq!(response.text(), whole("1", "es", None), "{:?}", response.head);
                let mark = response.header("backstop").unwrap_or_default();
                assert!(mark.ends_with("omitted=(recommendations)"), "{mark}");
                took.push(elapsed);
            }
            for asked in reads {
                normal_or_copy(&asked.await.unwrap().0);
            }
            took.sort_unstable();
            let (median, slowest) = (took[100], took[199]);
            // Generous for a busy machine; waiting for the recommender in turn would take 200 x 40 ms.
            assert!(median < Duration::from_millis(250), "{median:?}");
            assert!(slowest < Duration::from_secs(2), "{slowest:?}");
            assert!(page.recommender.peak_in_flight() <= 2, "{}", page.recommender.peak_in_flight());
            expect::idle(&page.gateway).await;
            let metrics = page.gateway.metrics().await;
            assert_eq!(metrics.sum("backstop_requests_total", &["route=\"page\""]), 200.0);
            assert_eq!(metrics.sum("backstop_requests_total", &["route=\"recommendations\""]), 200.0);
        });
    }

    fn normal_or_copy(response: &Response) {
        assert_eq!((response.status(), response.text()), (200, product("1", "first", "es")));
    }
}
