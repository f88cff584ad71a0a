//! What a client must have got.

use backstop_lab::client::Response;

use super::Gateway;
use super::metrics::Outcomes;

/// The origin's own answer, unmarked.
#[track_caller]
pub fn live(response: &Response, status: u16, body: &str) {
    assert_eq!((response.status(), response.text().as_str()), (status, body), "{:?}", response.head);
    assert!(response.is_complete());
    for field in ["backstop", "cache-status", "proxy-status"] {
        assert_eq!(response.header(field), None, "{field}");
    }
}

/// The origin's own answer, with what the `Backstop` field says about it.
#[track_caller]
pub fn passed(response: &Response, status: u16, body: &str, mark: &str) {
    assert_eq!((response.status(), response.text().as_str()), (status, body), "{:?}", response.head);
    assert!(response.is_complete());
    assert_eq!(response.header("backstop"), Some(mark));
    assert_eq!(response.header("cache-status"), None);
    assert_eq!(response.header("age"), None);
}

/// A copy of this age in whole seconds, served because the dependency failed for `reason`.
#[track_caller]
pub fn copy(response: &Response, body: &str, age: u64, reason: &str) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    marked_as_copy(response, age, reason);
    assert_eq!(response.header("content-length"), Some(body.len().to_string().as_str()));
}

/// A copy of this age in whole seconds, served without asking the dependency.
#[track_caller]
pub fn copy_unasked(response: &Response, body: &str, age: u64, reason: &str) {
    assert_eq!((response.status(), response.text().as_str()), (200, body), "{:?}", response.head);
    assert!(response.is_complete());
    let mark = format!("outcome=fallback, source=snapshot, age={age}, reason={reason}");
    assert_eq!(response.header("backstop"), Some(mark.as_str()), "{:?}", response.head);
    assert_eq!(response.header("age"), Some(age.to_string().as_str()));
    let status = response.header("cache-status").unwrap_or_default();
    assert!(status.starts_with("edge; hit; "), "the request did not go forward: {status}");
}

/// As [`copy`], whatever the method and the body.
#[track_caller]
pub fn marked_as_copy(response: &Response, age: u64, reason: &str) {
    assert!(response.is_complete());
    let mark = format!("outcome=fallback, source=snapshot, age={age}, reason={reason}");
    assert_eq!(response.header("backstop"), Some(mark.as_str()), "{:?}", response.head);
    assert_eq!(response.header("age"), Some(age.to_string().as_str()));
    let status = response.header("cache-status").unwrap_or_default();
    assert!(status.starts_with("edge; fwd=stale"), "the request did go forward: {status}");
    assert!(status.ends_with(&format!("; detail={reason}")), "{status}");
    assert!(response.header("proxy-status").unwrap_or_default().starts_with("edge; error="));
}

/// Backstop's own 503: there is no copy that may be served. `cause` is what the dependency did.
#[track_caller]
pub fn no_copy(response: &Response, reason: &str, cause: &str) {
    refused(response, 503, &format!("outcome=rejected, reason={reason}, cause={cause}"));
}

/// Backstop's own answer, a problem document (RFC 9457) that nobody may keep.
#[track_caller]
pub fn refused(response: &Response, status: u16, mark: &str) {
    assert_eq!(response.status(), status, "{:?} {}", response.head, response.text());
    assert!(response.is_complete());
    assert_eq!(response.header("backstop"), Some(mark));
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.json().expect("a problem document")["status"], status);
    assert!(response.header("proxy-status").unwrap_or_default().starts_with("edge; error="));
    assert_eq!(response.header("age"), None);
    assert_eq!(response.header("cache-status"), None);
    assert_eq!(response.header("retry-after"), None, "no moment is known");
}

/// All requests so far, by what they came to. Counted when the last byte is through, so this waits for it.
pub async fn outcomes(gateway: &Gateway, expected: Outcomes) {
    let told = gateway.metrics_or_last(|metrics| metrics.outcomes() == expected).await;
    assert_eq!(told.outcomes(), expected, "{:#?}", gateway.log());
}

/// Nothing is in flight any more, anywhere.
pub async fn idle(gateway: &Gateway) {
    let told = gateway.metrics_or_last(|metrics| metrics.in_flight() == 0).await;
    assert_eq!(told.in_flight(), 0, "places are held: {told:#?}");
}
