//! Answers about the request are no failures. A public report: every status from 400 up counted as one, so a few bad
//! requests shut a service off for everybody, <https://github.com/lagom/lagom/issues/964>.

use backstop_lab::origin::{Answer, Matcher};

use crate::support::{Outcomes, Policy, Shop, expect, product, run};

const ERRORS: [(&str, u16); 4] = [("1", 404), ("2", 401), ("3", 403), ("4", 422)];

/// From now on four products, each of which has a copy, are answered by a client error each.
async fn answers_with_errors(shop: &Shop) {
    for (id, status) in ERRORS {
        shop.get(id).await;
        let answer = Answer::new(status)
            .header("Content-Type", "application/problem+json")
            .header("WWW-Authenticate", "Bearer realm=\"r\", error=\"invalid_token\"")
            .body(format!(r#"{{"status":{status}}}"#));
        shop.origin.on(Matcher::get(&format!("/p/{id}")), answer);
    }
}

/// Asks for each of the four twenty times, and once for another product, which is answered as ever.
async fn each_reaches_its_client(shop: &Shop) {
    for _ in 0..20 {
        for (id, status) in ERRORS {
            let answer = shop.get(id).await;
            expect::live(&answer, status, &format!(r#"{{"status":{status}}}"#));
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, Some("Bearer realm=\"r\", error=\"invalid_token\""));
        }
    }
    expect::live(&shop.get("5").await, 200, &product("5", "first", "es"));
    for (id, _) in ERRORS {
        assert_eq!(shop.origin.count_of("GET", &format!("/p/{id}")), 21, "every request once");
    }
    expect::outcomes(&shop.gateway, Outcomes { normal: 85, ..Outcomes::default() }).await;
    assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
}

/// Eighty bad requests, each answered by the origin itself, once; then a good one, at once.
#[test]
fn eighty_client_errors_shut_nothing_off() {
    run(async {
        let shop = Shop::open().await;
        answers_with_errors(&shop).await;
        each_reaches_its_client(&shop).await;
        assert!(shop.gateway.log().iter().all(|line| !line.contains("answered other than normally")));
    });
}

/// The same with a breaker that three failures of four calls would open, and with retries: none is asked twice, nothing
/// opens.
#[test]
fn client_errors_open_no_breaker_and_are_not_asked_again() {
    run(async {
        let shop = Shop::with(|origin| {
            Policy::empty()
                .dependency("catalog", origin, "breaker = { min_calls = 4, failures = \"75%\" }")
                .route("description.public_read", &Policy::description("retry = { attempts = 2 }"))
        })
        .await;
        answers_with_errors(&shop).await;
        each_reaches_its_client(&shop).await;
        let metrics = shop.gateway.metrics().await;
        assert_eq!(metrics.sum("backstop_breaker_phase", &["phase=\"closed\""]), 1.0);
        assert_eq!(metrics.sum("backstop_breaker_events_total", &["event=\"trip\""]), 0.0);
    });
}
