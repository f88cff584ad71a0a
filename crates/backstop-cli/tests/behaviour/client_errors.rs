//! Answers about the request are no failures. A public report: every status from 400 up counted as one, so a few bad
//! requests shut a service off for everybody, <https://github.com/lagom/lagom/issues/964>.

use backstop_lab::origin::{Answer, Matcher};

use crate::support::{Outcomes, Shop, expect, product, run};

/// Eighty bad requests, each answered by the origin itself, once; then a good one, at once.
#[test]
fn eighty_client_errors_shut_nothing_off() {
    run(async {
        let shop = Shop::open().await;
        let errors = [("1", 404), ("2", 401), ("3", 403), ("4", 422)];
        for (id, status) in errors {
            shop.get(id).await;
            let answer = Answer::new(status)
                .header("Content-Type", "application/problem+json")
                .header("WWW-Authenticate", "Bearer realm=\"r\", error=\"invalid_token\"")
                .body(format!(r#"{{"status":{status}}}"#));
            shop.origin.on(Matcher::get(&format!("/p/{id}")), answer);
        }
        for _ in 0..20 {
            for (id, status) in errors {
                let answer = shop.get(id).await;
                expect::live(&answer, status, &format!(r#"{{"status":{status}}}"#));
                let challenge = answer.header("www-authenticate");
                assert_eq!(challenge, Some("Bearer realm=\"r\", error=\"invalid_token\""));
            }
        }
        expect::live(&shop.get("5").await, 200, &product("5", "first", "es"));
        for (id, _) in errors {
            assert_eq!(shop.origin.count_of("GET", &format!("/p/{id}")), 21, "every request once");
        }
        expect::outcomes(&shop.gateway, Outcomes { normal: 85, ..Outcomes::default() }).await;
        assert_eq!(shop.gateway.metrics().await.dependency_failures(), 0);
        assert!(shop.gateway.log().iter().all(|line| !line.contains("answered other than normally")));
    });
}
