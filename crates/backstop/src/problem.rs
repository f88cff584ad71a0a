//! Refusals as problem details (RFC 9457).

use backstop_engine::flow::Account;
use backstop_engine::status::Refusal;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

/// What every problem type's URI begins with; the documentation has a page that lists them.
pub const TYPE_PREFIX: &str = "urn:backstop:problem:";

/// The media type of problem details.
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A refusal as an answer. It is never to be kept by anybody.
pub fn response(refusal: &Refusal, account: &Account) -> Response<Bytes> {
    let body = body(refusal, account);
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = refusal.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.body_mut() = body;
    response
}

fn body(refusal: &Refusal, account: &Account) -> Bytes {
    // Every text is one of this program's own constants without a character that JSON would escape.
    let mut text = format!(
        r#"{{"type":"{TYPE_PREFIX}{}","title":"{}","status":{},"outcome":"{}","reason":"{}""#,
        refusal.problem.token(),
        refusal.problem.title(),
        refusal.status,
        account.outcome.token(),
        account.reason.token(),
    );
    if let Some(cause) = account.cause {
        text.push_str(r#","cause":""#);
        text.push_str(cause.token());
        text.push('"');
    }
    text.push_str("}\n");
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::failure::{Cause, Failure, FailureKind, Phase, Sent};
    use backstop_engine::outcome::{Outcome, Reason, Source};
    use backstop_engine::policy::Origin;
    use backstop_engine::snapshot::CopyRefusal;
    use backstop_engine::status::{Problem, refusal};

    /// RFC 9457 section 3: `status` is the real status, `type` an absolute URI, and extension names have three letters or
    /// more.
    #[test]
    fn a_refusal_is_problem_details() {
        let cause = Cause::Failed(Failure::new(FailureKind::Connect, Phase::Connect, Sent::No));
        let reason = Reason::Copy(CopyRefusal::TooOld);
        let account = Account {
            outcome: Outcome::Rejected,
            source: Source::None,
            reason,
            cause: Some(cause),
            age: None,
            rule: Origin::NONE,
        };
        let response = response(&refusal(reason, Some(cause), Default::default()), &account);
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["type"], "urn:backstop:problem:snapshot-too-old");
        assert_eq!(body["status"], 503);
        assert_eq!((&body["reason"], &body["cause"]), (&"age".into(), &"connect".into()));
    }

    #[test]
    fn no_text_needs_escaping() {
        for problem in Problem::ALL {
            let plain = |text: &str| {
                text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\')
            };
            assert!(plain(problem.title()) && plain(problem.token()), "{problem:?}");
        }
    }
}
