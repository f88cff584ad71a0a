//! What is an answer, however unwelcome, goes to the client unchanged, whatever copy there is.

use backstop::engine::failure::FailureKind;
use backstop::engine::outcome::Outcome;
use backstop::engine::policy::{Correct, Incorrect, KeyPart};

use crate::support::{
    Does, Fault, PRODUCT, REFUSED, SECOND, Shop, answers, description, description_with, get, request, says,
    says_json,
};

const MISSING: &str = "503; outcome=rejected, reason=missing, cause=connect";
const COPY: &str = "200 v1; outcome=fallback, source=snapshot, age=1, reason=connect";

fn with_a_copy() -> Shop {
    let shop = Shop::open(description().policy());
    shop.warm(get(PRODUCT), says("v1"));
    shop.later(SECOND);
    shop
}

/// A status from 400 up is no unavailability (<https://github.com/lagom/lagom/issues/964>).
#[test]
fn an_answer_about_the_request_is_never_replaced_and_blames_nobody() {
    for status in [400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 415, 422, 423, 425, 429, 451, 499] {
        let shop = with_a_copy();
        shop.catalog.does(answers(status, &[("www-authenticate", "Basic realm=\"x\"")], "its own words"));
        for _ in 0..20 {
            let reply = shop.ask(get(PRODUCT));
            assert_eq!(reply.line(), format!("{status} its own words"));
            assert_eq!(reply.field("www-authenticate"), Some("Basic realm=\"x\""));
            assert_eq!(reply.field("age"), None);
        }
        assert_eq!(shop.catalog.calls(), 21, "{status}: one call each");
        assert_eq!((shop.failures(), shop.total(Outcome::Normal)), (0, 21), "{status}");
    }
}

/// Gone is gone; a refusal of an anonymous caller concerns everybody. Anything else says nothing about the copy.
#[test]
fn an_answer_that_the_resource_is_gone_withdraws_the_copy() {
    for (status, afterwards) in [
        (404, MISSING),
        (410, MISSING),
        (401, MISSING),
        (403, MISSING),
        (400, COPY),
        (409, COPY),
        (422, COPY),
        (429, COPY),
    ] {
        let shop = with_a_copy();
        shop.catalog.does(answers(status, &[], ""));
        shop.ask(get(PRODUCT));
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(get(PRODUCT)), afterwards, "{status}");
    }
}

/// Whoever is refused with a credential is refused for himself.
#[test]
fn a_refusal_of_one_caller_keeps_the_copy_of_all_others() {
    for credential in [("authorization", "Bearer x"), ("cookie", "session=x")] {
        for status in [401, 403] {
            let shop = with_a_copy();
            shop.catalog.does(answers(status, &[], ""));
            assert_eq!(shop.line(request("GET", PRODUCT, &[credential])), status.to_string());
            shop.catalog.does(REFUSED);
            assert_eq!(shop.line(get(PRODUCT)), COPY, "{status} {credential:?}");
        }
    }
}

fn in_json() -> Correct {
    Correct {
        media_type: Some("application/json".into()),
        has: vec!["/id".into()],
        echo: vec![("/lang".into(), KeyPart::Language)],
    }
}

const GOOD: &str = r#"{"id":"42","lang":"es"}"#;

fn spanish() -> http::Request<()> {
    request("GET", PRODUCT, &[("accept-language", "es")])
}

fn with_rules(incorrect: Incorrect) -> Shop {
    let shop = Shop::open(description_with(|read| {
        read.languages = vec!["es".into(), "en".into()];
        read.key = vec![KeyPart::Language];
        read.correct = in_json();
        read.incorrect = incorrect;
    }));
    shop.warm(spanish(), says_json(GOOD));
    shop.later(SECOND);
    shop
}

fn incorrect_answers() -> [(&'static str, Does); 4] {
    let html = answers(200, &[("content-type", "text/html")], "<h1>Maintenance</h1>");
    [
        ("<h1>Maintenance</h1>", html),
        (r#"{"error":"x"}"#, says_json(r#"{"error":"x"}"#)),
        (r#"{"id":"42","lang":"de"}"#, says_json(r#"{"id":"42","lang":"de"}"#)),
        (r#"{"id":"42"}"#, says_json(r#"{"id":"42"}"#)),
    ]
}

/// A schema error is not unavailability: it is shown, counted as failed, and never kept.
#[test]
fn a_whole_answer_of_another_form_passes_and_the_copy_stays() {
    for (body, does) in incorrect_answers() {
        let shop = with_rules(Incorrect::Propagate);
        shop.catalog.does(does);
        let expected = format!("200 {body}; outcome=failed, source=primary, reason=incorrect");
        assert_eq!(shop.line(spanish()), expected);
        assert_eq!((shop.total(Outcome::Failed), shop.failures()), (1, 0));
        shop.catalog.does(REFUSED);
        let copy = format!("200 {GOOD}; outcome=fallback, source=snapshot, age=1, reason=connect");
        assert_eq!(shop.line(spanish()), copy);
    }
}

#[test]
fn a_route_may_treat_another_form_as_a_failure() {
    for (_, does) in incorrect_answers() {
        let shop = with_rules(Incorrect::Fallback);
        shop.catalog.does(does);
        let copy = format!("200 {GOOD}; outcome=fallback, source=snapshot, age=1, reason=declared");
        assert_eq!(shop.line(spanish()), copy);
    }
}

#[test]
fn a_server_error_that_nobody_declared_passes_as_failed_and_keeps_the_copy() {
    for status in [500, 501, 505, 507, 511, 599] {
        let shop = with_a_copy();
        shop.catalog.does(answers(status, &[], "oops"));
        let passed = format!("{status} oops; outcome=failed, source=primary, reason=server_error");
        assert_eq!(shop.line(get(PRODUCT)), passed);
        shop.catalog.does(REFUSED);
        assert_eq!(shop.line(get(PRODUCT)), COPY);
    }
}

#[test]
fn unavailability_and_what_the_route_declares_lead_to_the_copy() {
    let shop = Shop::open(description().declared(&[500, 429, 404]).policy());
    shop.warm(get(PRODUCT), says("v1"));
    for (status, reason) in [
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "unavailable"),
        (500, "declared"),
        (429, "declared"),
    ] {
        shop.catalog.does(answers(status, &[("retry-after", "7")], "its own words"));
        let reply = shop.ask(get(PRODUCT));
        let copy = format!("200 v1; outcome=fallback, source=snapshot, age=0, reason={reason}");
        assert_eq!((reply.line(), reply.field("retry-after")), (copy, None), "{status}");
    }
    shop.catalog.does(answers(404, &[], ""));
    assert_eq!(shop.line(get(PRODUCT)), "404", "an answer about the request cannot be declared a failure");
}

/// Every kind of failure leads to the copy under its own name.
#[test]
fn every_failure_in_the_closed_list_leads_to_the_copy() {
    for (kind, reason) in [
        (FailureKind::Dns, "dns"),
        (FailureKind::Connect, "connect"),
        (FailureKind::ConnectTimeout, "connect_timeout"),
        (FailureKind::Tls, "tls"),
        (FailureKind::Write, "write"),
        (FailureKind::Reset, "reset"),
        (FailureKind::ReadTimeout, "read_timeout"),
        (FailureKind::Incomplete, "incomplete"),
        (FailureKind::Protocol, "protocol"),
    ] {
        let shop = with_a_copy();
        shop.catalog.does(Does::Fails(Some(kind)));
        let copy = format!("200 v1; outcome=fallback, source=snapshot, age=1, reason={reason}");
        assert_eq!(shop.line(get(PRODUCT)), copy);
        assert_eq!(shop.failures(), 1);
    }
}

#[test]
fn an_error_that_nobody_classifies_reaches_the_caller_as_it_is() {
    let shop = with_a_copy();
    shop.catalog.does(Does::Fails(None));
    assert_eq!(shop.send(get(PRODUCT)).error(), Fault(None));
    assert_eq!((shop.in_flight(), shop.failures(), shop.total(Outcome::Failed)), ([0; 4], 0, 1));
    shop.catalog.does(REFUSED);
    assert_eq!(shop.line(get(PRODUCT)), COPY);
}
