use std::time::Duration;

use super::*;

const SECRET: Secret = Secret::from_bytes([7; 32]);

fn rules(echo: &[(&str, EchoSource)]) -> StatusQueryRules {
    StatusQueryRules {
        before_key: "/payments/".into(),
        after_key: "".into(),
        timeout: Duration::from_secs(2),
        interval: Duration::from_millis(200),
        concurrency: 4,
        list: None,
        echo: echo.iter().map(|(pointer, source)| ((*pointer).into(), source.clone())).collect(),
        succeeded: Vec::new(),
        failed: Vec::new(),
        pending: Vec::new(),
        absent: Vec::new(),
    }
}

fn body(pointer: &str) -> EchoSource {
    EchoSource::Body(pointer.into())
}

/// Whether an answer repeats the amount of a request.
fn repeats(request: &str, answer: &str) -> bool {
    let rules = rules(&[("/charge/amount", body("/amount"))]);
    let kept = captured(&SECRET, &rules, Json::of(request.as_bytes()));
    matches(&SECRET, &rules, b"key", Some(&kept), Json::of(answer.as_bytes()))
}

/// Calculated with Python's `hmac` over the same bytes: `hmac.new(bytes([7])*32,
/// (4).to_bytes(8,'big')+b'echo'+(4).to_bytes(8,'big')+b'1299', 'sha256')`.
#[test]
fn of_a_request_a_keyed_digest_is_kept_under_the_pointer_into_the_answer() {
    let rules = rules(&[("/charge/amount", body("/amount")), ("/id", EchoSource::OperationId)]);
    let kept = captured(&SECRET, &rules, Json::of(br#"{"amount":1299}"#));
    let digest = "5745707f4b83b35a6518046fe770149ffeda0fff0dbc272398bd521953201f31";
    assert_eq!(kept, [("/charge/amount".into(), digest.into())]);
}

/// By hand.
#[test]
fn values_are_compared_as_they_were_written_and_strings_by_their_content() {
    for (request, answer, is_same) in [
        (r#"{"amount":1299}"#, r#"{"charge":{"amount":1299}}"#, true),
        (r#"{"amount": 1299 }"#, r#"{"charge":{ "amount" :1299}}"#, true),
        (r#"{"amount":1299}"#, r#"{"charge":{"amount":1300}}"#, false),
        (r#"{"amount":1}"#, r#"{"charge":{"amount":1.0}}"#, false),
        (r#"{"amount":9007199254740993}"#, r#"{"charge":{"amount":9007199254740992}}"#, false),
        (r#"{"amount":"12.99"}"#, r#"{"charge":{"amount":"12.\u0039\u0039"}}"#, true),
        (r#"{"amount":"12.99"}"#, r#"{"charge":{"amount":"12.98"}}"#, false),
        (r#"{"amount":true}"#, r#"{"charge":{"amount":false}}"#, false),
    ] {
        assert_eq!(repeats(request, answer), is_same, "{request} {answer}");
    }
}

#[test]
fn what_is_missing_on_one_side_is_not_equal() {
    assert!(!repeats(r#"{"amount":1299}"#, r#"{"charge":{}}"#));
    assert!(!repeats(r#"{"amount":1299}"#, r#"{"charge":{"amount":1299,"amount":1299}}"#), "said twice");
    assert!(!repeats(r#"{"amount":1299}"#, "<html>"));
    assert!(!repeats("{}", r#"{"charge":{"amount":1299}}"#));
    assert!(!repeats("no JSON", r#"{"charge":{"amount":1299}}"#));
    assert!(repeats("{}", r#"{"charge":{}}"#));
}

#[test]
fn an_answer_repeats_the_id_that_the_upstream_was_given() {
    let rules = rules(&[("/id", EchoSource::OperationId), ("/amount", body("/amount"))]);
    let is_about = |captured, answer: &str| {
        matches(&SECRET, &rules, "k-\u{e9}7".as_bytes(), captured, Json::of(answer.as_bytes()))
    };
    assert!(is_about(None, r#"{"id":"k-\u00e97","amount":1}"#), "nothing else is known");
    assert!(!is_about(Some(&[]), r#"{"id":"k-\u00e97","amount":1}"#));
    assert!(is_about(Some(&[]), r#"{"id":"k-\u00e97"}"#));
    assert!(!is_about(None, r#"{"id":"k-e7"}"#));
    assert!(!is_about(None, "{}"));
}

/// Both spellings of a key are one key, and a service may know it by either.
#[test]
fn a_quoted_key_is_repeated_with_its_quotes_or_without_them() {
    let rules = rules(&[("/id", EchoSource::OperationId)]);
    for (sent, answer, is_same) in [
        (r#""abc""#, r#"{"id":"abc"}"#, true),
        (r#""abc""#, r#"{"id":"\"abc\""}"#, true),
        (r#""a\"b""#, r#"{"id":"a\"b"}"#, true),
        (r#""abc""#, r#"{"id":"abd"}"#, false),
        (r#""abc""#, r#"{"id":"\"abc"}"#, false),
        (r#""abc""#, r#"{"id":""}"#, false),
        ("abc", r#"{"id":"abc"}"#, true),
        // A service that was told a bare key has no quotes to give.
        ("abc", r#"{"id":"\"abc\""}"#, false),
    ] {
        let answer = Json::of(answer.as_bytes()).unwrap();
        assert_eq!(matches(&SECRET, &rules, sent.as_bytes(), None, Some(answer)), is_same, "{sent}");
    }
}
