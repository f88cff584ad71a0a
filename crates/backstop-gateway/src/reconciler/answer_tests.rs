use std::time::Duration;

use backstop_engine::policy::effect::{AnswerRule, EchoSource, ListRules, Literal};
use backstop_engine::policy::{Origin, StatusSet};

use super::*;

const SECRET: Secret = Secret::from_bytes([7; 32]);

fn kind(status: &[u16], member: Option<(&str, &str)>) -> AnswerRule {
    let json = member.map(|(pointer, text)| (pointer.into(), vec![Literal::Text(text.into())]));
    AnswerRule { status: StatusSet::of(status), json: json.into_iter().collect(), origin: Origin::NONE }
}

fn rules() -> StatusQueryRules {
    StatusQueryRules {
        before_key: "/payments/".into(),
        after_key: "".into(),
        timeout: Duration::from_secs(2),
        interval: Duration::from_millis(200),
        concurrency: 4,
        list: None,
        echo: vec![("/id".into(), EchoSource::OperationId)],
        succeeded: vec![kind(&[200], Some(("/status", "paid")))],
        failed: vec![kind(&[200, 410], Some(("/status", "declined")))],
        pending: vec![kind(&[200, 202], Some(("/status", "processing")))],
        absent: vec![kind(&[404], Some(("/code", "no_such_payment")))],
    }
}

fn said_by(rules: &StatusQueryRules, status: u16, content: &str) -> Said {
    said(
        rules,
        status,
        content.as_bytes(),
        false,
        About { secret: &SECRET, upstream_id: b"k7", captured: Some(&[]) },
    )
}

/// By hand, from the contract above.
#[test]
fn an_answer_says_what_the_contract_names() {
    for (status, content, expected) in [
        (200, r#"{"id":"k7","status":"paid"}"#, Said::Succeeded),
        (200, r#"{"id":"k7","status":"declined"}"#, Said::Failed),
        (410, r#"{"id":"k7","status":"declined"}"#, Said::Failed),
        (202, r#"{"id":"k7","status":"processing"}"#, Said::Pending),
        (404, r#"{"code":"no_such_payment"}"#, Said::Absent),
        (200, r#"{"id":"k8","status":"paid"}"#, Said::Mismatch),
        (200, r#"{"status":"paid"}"#, Said::Mismatch),
        (200, r#"{"id":"k8","status":"declined"}"#, Said::Mismatch),
        (200, r#"{"id":"k8","status":"processing"}"#, Said::Mismatch),
        // It is there, whatever state the contract has forgotten.
        (200, r#"{"id":"k7","status":"refunded"}"#, Said::Unnamed),
        (200, r#"{"id":"k7","status":"paid","status":"declined"}"#, Said::Unnamed),
        (200, r#"{"id":"k8","status":"refunded"}"#, Said::Nothing(Why::Unmatched)),
        (404, r#"{"id":"k7"}"#, Said::Nothing(Why::Unmatched)),
    ] {
        assert_eq!(said_by(&rules(), status, content), expected, "{status} {content}");
    }
}

#[test]
fn everything_else_says_nothing() {
    for (status, content, why) in [
        (200, "", Why::Unmatched),
        (200, "<html>welcome</html>", Why::Unmatched),
        (200, r#"[{"id":"k7","status":"paid"},{"id":"k7","status":"paid"}]"#, Why::Unmatched),
        (404, "<html>no such page</html>", Why::Unmatched),
        (404, r#"{"code":"no_such_route"}"#, Why::Unmatched),
        (206, r#"{"id":"k7","status":"paid"}"#, Why::Unmatched),
        (301, "", Why::Redirect),
        (302, r#"{"id":"k7","status":"paid"}"#, Why::Redirect),
        (401, "", Why::Credentials),
        (403, r#"{"code":"no_such_payment"}"#, Why::Credentials),
        (429, "", Why::Unavailable),
        (500, r#"{"id":"k7","status":"paid"}"#, Why::Unavailable),
        (503, "", Why::Unavailable),
    ] {
        assert_eq!(said_by(&rules(), status, content), Said::Nothing(why), "{status} {content}");
    }
}

/// Whatever a contract names: a redirect, a lack of credentials and a failure are no evidence about an operation.
#[test]
fn no_contract_makes_evidence_of_a_failure() {
    let every = |status: &[u16]| vec![kind(status, None)];
    let statuses = [302, 401, 403, 500, 503];
    for status in statuses {
        for wrong in [
            StatusQueryRules { succeeded: every(&statuses), ..rules() },
            StatusQueryRules { failed: every(&statuses), ..rules() },
            StatusQueryRules { absent: every(&statuses), ..rules() },
        ] {
            let said = said_by(&wrong, status, r#"{"id":"k7"}"#);
            assert!(matches!(said, Said::Nothing(_)), "{status} {said:?}");
        }
    }
}

#[test]
fn an_answer_of_two_kinds_is_of_none() {
    let both = StatusQueryRules { failed: vec![kind(&[200], None)], ..rules() };
    assert_eq!(said_by(&both, 200, r#"{"id":"k7","status":"paid"}"#), Said::Unnamed);
    assert_eq!(said_by(&both, 200, r#"{"status":"paid"}"#), Said::Nothing(Why::Unmatched));
}

#[test]
fn every_outcome_has_a_word_of_its_own() {
    let kinds = (0..FailureKind::TOKENS.len() - 2).map(|index| Said::TOKENS[14 + index]);
    assert_eq!(kinds.collect::<Vec<_>>(), FailureKind::TOKENS[..9]);
    let mut words: Vec<_> = Said::TOKENS.to_vec();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Said::TOKENS.len());
    assert_eq!(Said::Nothing(Why::Failed(FailureKind::Reset)).token(), "reset");
    assert_eq!(Said::Nothing(Why::NotAsked).token(), "not_asked");
}

/// All that is said of an answer is said of the operation's own item.
#[test]
fn in_a_list_only_the_operations_own_item_says_anything() {
    let list = ListRules { items: "/data".into(), matching: vec!["/id".into()], more: None };
    let listed = StatusQueryRules { list: Some(list), ..rules() };
    let nothing = Said::Nothing(Why::Unmatched);
    for (status, content, expected) in [
        (200, r#"{"data":[{"id":"k7","status":"paid"}]}"#, Said::Succeeded),
        (200, r#"{"data":[{"id":"k8","status":"paid"},{"id":"k7","status":"declined"}]}"#, Said::Failed),
        (200, r#"{"data":[{"id":"k7","status":"processing"}]}"#, Said::Pending),
        (200, r#"{"data":[{"id":"k7","status":"odd"}]}"#, Said::Unnamed),
        (200, r#"{"data":[{"id":"k7","status":"paid"},{"id":"k7","status":"paid"}]}"#, Said::Several),
        (200, r#"{"data":[]}"#, Said::Absent),
        (404, r#"{"code":"no_such_payment"}"#, Said::Absent),
        (404, r#"{"data":[]}"#, nothing),
        (410, r#"{"data":[{"id":"k7","status":"declined"}]}"#, nothing),
        (200, r#"{"data":[{"id":"k8","status":"paid"}]}"#, nothing),
        (200, r#"{"id":"k7","status":"paid"}"#, nothing),
        (200, "<html>welcome</html>", nothing),
        (206, r#"{"data":[]}"#, nothing),
        (503, r#"{"data":[]}"#, Said::Nothing(Why::Unavailable)),
    ] {
        assert_eq!(said_by(&listed, status, content), expected, "{status} {content}");
    }
}

/// What was executed then was executed; what was not there then may be there now (RFC 9111 section 5.1).
#[test]
fn an_earlier_answer_says_nothing_of_what_is_not_there_now() {
    let about = About { secret: &SECRET, upstream_id: b"k7", captured: Some(&[]) };
    for (status, content, expected) in [
        (404, r#"{"code":"no_such_payment"}"#, Said::Nothing(Why::Old)),
        (200, r#"{"id":"k7","status":"paid"}"#, Said::Succeeded),
        (200, r#"{"id":"k7","status":"declined"}"#, Said::Failed),
    ] {
        assert_eq!(said(&rules(), status, content.as_bytes(), true, about), expected, "{status} {content}");
    }
}

/// A contract that names an absence with 200 does not make one of a list that is not empty, or not all of it.
#[test]
fn in_a_list_no_rule_of_absence_stands_for_its_items() {
    let list = ListRules { items: "/data".into(), matching: vec!["/id".into()], more: Some("/more".into()) };
    let none = vec![kind(&[200, 404], Some(("/status", "none")))];
    let listed = StatusQueryRules { list: Some(list), absent: none, ..rules() };
    for (status, content, expected) in [
        (200, r#"{"status":"none","data":[{"id":"k8"}],"more":false}"#, Said::Nothing(Why::Unmatched)),
        (200, r#"{"status":"none","data":[],"more":true}"#, Said::Nothing(Why::Unmatched)),
        (200, r#"{"status":"none","data":[],"more":false}"#, Said::Absent),
        (404, r#"{"status":"none"}"#, Said::Absent),
    ] {
        assert_eq!(said_by(&listed, status, content), expected, "{status} {content}");
    }
}
