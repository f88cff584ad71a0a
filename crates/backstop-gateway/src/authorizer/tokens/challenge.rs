//! Our own no to a request without a token that is one: 401 with a challenge (RFC 6750 section 3).

use backstop::authorize::Verdict;
use backstop::problem;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

/// What a caller is asked for.
#[derive(Debug)]
pub(super) struct Challenge {
    missing: HeaderValue,
    invalid: HeaderValue,
}

impl Challenge {
    /// The realm is the authorizer's name: a challenge has a parameter at least, and a realm is always allowed.
    pub(super) fn new(realm: &str) -> Option<Self> {
        let quotable = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !realm.bytes().all(quotable) {
            return None;
        }
        let text = |more: &str| HeaderValue::try_from(format!("Bearer realm=\"{realm}\"{more}")).ok();
        Some(Self { missing: text("")?, invalid: text(", error=\"invalid_token\"")? })
    }

    /// No token was shown. The challenge names no error then (RFC 6750 section 3.1).
    pub(super) fn missing(&self) -> Verdict {
        Verdict::Denied(answer(&self.missing))
    }

    /// What was shown is no token that lets anybody in. Why is nobody's business but the issuer's: a stranger would learn
    /// how far a forged one came.
    pub(super) fn invalid(&self) -> Verdict {
        Verdict::Denied(answer(&self.invalid))
    }
}

fn answer(challenge: &HeaderValue) -> Response<Bytes> {
    let text = format!(
        "{{\"type\":\"{}token\",\"title\":\"A token that is valid here is needed\",\"status\":401}}\n",
        problem::TYPE_PREFIX,
    );
    let mut answer = Response::new(Bytes::from(text));
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = answer.headers_mut();
    headers.insert(WWW_AUTHENTICATE, challenge.clone());
    headers.insert(CONTENT_TYPE, problem::MEDIA_TYPE);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
