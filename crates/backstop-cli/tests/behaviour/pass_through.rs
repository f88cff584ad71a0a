//! Answers about the request itself reach the client as they are. A copy never stands in for them, and they never become
//! one.

use backstop_lab::origin::{Answer, Behaviour, Matcher};

use crate::support::{Outcomes, Policy, Shop, expect, product, run};

/// What an origin says about the request: status, media type, body and a field that must come through.
fn about_the_request(status: u16) -> (Answer, String) {
    let body = format!(r#"{{"error":{status}}}"#);
    let answer = Answer::new(status)
        .header("Content-Type", "application/json")
        .header("WWW-Authenticate", "Bearer realm=\"shop\"")
        .header("X-Trace", "abc")
        .body(body.clone());
    (answer, body)
}

/// A copy of every product exists. None of these statuses is unavailability, so none of them is answered with it; and no
/// dependency failure is counted, nor is anything asked twice.
#[test]
fn answers_about_the_request_are_never_replaced_by_a_copy() {
    run(async {
        let shop = Shop::open().await;
        let statuses = [400, 401, 402, 403, 404, 405, 409, 410, 412, 415, 422, 429, 451];
        for status in statuses {
            shop.get(&status.to_string()).await;
            let (answer, body) = about_the_request(status);
            shop.origin.on(Matcher::get(&format!("/p/{status}")), answer);
            let passed = shop.get(&status.to_string()).await;
            expect::live(&passed, status, &body);
            assert_eq!(passed.header("www-authenticate"), Some("Bearer realm=\"shop\""), "{status}");
            assert_eq!(passed.header("x-trace"), Some("abc"));
            assert_eq!(shop.origin.count_of("GET", &format!("/p/{status}")), 2);
        }
        let expected = Outcomes { normal: 2 * statuses.len() as u64, ..Outcomes::default() };
        expect::outcomes(&shop.gateway, expected).await;
        assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
    });
}

/// 409, 422 and the like say nothing about the resource: the earlier copy stays. 404 and 410 say that it is gone, and an
/// anonymous 401 or 403 that it is not public any more: the copy goes.
#[test]
fn what_a_later_outage_finds() {
    run(async {
        let mut shop = Shop::open().await;
        let table = [(400, true), (409, true), (422, true), (429, true)];
        let withdrawing = [(401, false), (403, false), (404, false), (410, false)];
        let all = || table.into_iter().chain(withdrawing);
        for (status, _) in all() {
            shop.get(&status.to_string()).await;
            let matcher = Matcher::get(&format!("/p/{status}"));
            shop.origin.script(matcher, [Behaviour::from(about_the_request(status).0)]);
            assert_eq!(shop.get(&status.to_string()).await.status(), status);
        }
        shop.is_unavailable();
        shop.pass(1.0);
        for (status, stays) in all() {
            let answer = shop.get(&status.to_string()).await;
            if stays {
                expect::copy(&answer, &product(&status.to_string(), "first", "es"), 1, "unavailable");
            } else {
                expect::no_copy(&answer, "missing", "unavailable");
            }
        }
    });
}

/// A 401 or 403 to somebody's own credential concerns that caller alone.
#[test]
fn a_refused_credential_withdraws_nothing() {
    run(async {
        let shop = Shop::open().await;
        for (id, status, credential) in
            [("1", 401, ("Authorization", "Bearer x")), ("2", 403, ("Cookie", "session=x"))]
        {
            shop.get(id).await;
            let target = format!("/p/{id}");
            shop.origin.script(Matcher::get(&target), [Behaviour::from(about_the_request(status).0)]);
            let fields = [("Accept-Language", "es"), ("X-Tenant", "a"), credential];
            assert_eq!(shop.gateway.get(&target, &fields).await.status(), status);
        }
        shop.is_unavailable();
        for id in ["1", "2"] {
            expect::copy(&shop.get(id).await, &product(id, "first", "es"), 0, "unavailable");
        }
    });
}

/// Whole answers with 200 that are not what the route is for. They pass unchanged and are counted as failed; the copy is
/// not served in their place, because a schema error is not unavailability, and it is not replaced by them.
#[test]
fn incorrect_answers_pass_and_never_become_the_copy() {
    run(async {
        let mut shop = Shop::open().await;
        let saved = product("1", "first", "es");
        shop.get("1").await;
        let incorrect = [
            ("text/html; charset=utf-8", "<!doctype html><title>Please sign in</title>".to_owned()),
            ("application/json", r#"{"unexpected":[1,2,3]}"#.to_owned()),
            ("application/json", product("1", "first", "en")),
            ("application/json", r#"{"id":"1","text":"no language"}"#.to_owned()),
            ("text/plain", saved.clone()),
        ];
        for (media_type, body) in &incorrect {
            shop.origin
                .on(Matcher::any(), Answer::new(200).header("Content-Type", media_type).body(body.clone()));
            let passed = shop.get("1").await;
            expect::passed(&passed, 200, body, "outcome=failed, source=primary, reason=incorrect");
            assert_eq!(passed.header("content-type"), Some(*media_type));
        }
        let failed = incorrect.len() as u64;
        expect::outcomes(&shop.gateway, Outcomes { normal: 1, failed, ..Outcomes::default() }).await;
        assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
        shop.is_unavailable();
        shop.pass(60.0);
        expect::copy(&shop.get("1").await, &saved, 60, "unavailable");
        assert_eq!(shop.origin.count(), 2 + failed);
    });
}

/// `incorrect = "fallback"` treats the same answers as a failure of the dependency.
#[test]
fn incorrect_as_a_failure_is_answered_with_the_copy() {
    run(async {
        let mut shop = Shop::with(|origin| {
            Policy::shop(origin)
                .replace_route("description.public_read", &Policy::description("incorrect = \"fallback\""))
        })
        .await;
        let saved = product("1", "first", "es");
        shop.get("1").await;
        shop.pass(1.0);
        for wrong in
            [Behaviour::html_200(), Behaviour::wrong_json(), Behaviour::json(&product("1", "x", "en"))]
        {
            shop.origin.on(Matcher::any(), wrong);
            expect::copy(&shop.get("1").await, &saved, 1, "declared");
            expect::no_copy(&shop.get("2").await, "missing", "declared");
        }
        assert_eq!(shop.gateway.metrics().await.failures("declared"), 6);
    });
}

/// 500 is not in the closed list of failures: it passes through, unless the route declares it.
#[test]
fn a_500_passes_unless_it_is_declared() {
    run(async {
        let shop = Shop::open().await;
        shop.get("1").await;
        shop.origin.on(Matcher::any(), Behaviour::status(500));
        let mark = "outcome=failed, source=primary, reason=server_error";
        expect::passed(&shop.get("1").await, 500, r#"{"status":500}"#, mark);

        let shop = Shop::with(|origin| {
            Policy::shop(origin)
                .replace_route("description.public_read", &Policy::description("declared = [500, 429]"))
        })
        .await;
        shop.get("1").await;
        for status in [500, 429] {
            shop.origin.on(Matcher::any(), Behaviour::status(status));
            expect::copy(&shop.get("1").await, &product("1", "first", "es"), 0, "declared");
            expect::no_copy(&shop.get("2").await, "missing", "declared");
        }
    });
}
