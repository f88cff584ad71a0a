//! Fields of one connection, which go no further (RFC 9110 section 7.6.1).

use http::header::{
    CONNECTION, HeaderName, PROXY_AUTHORIZATION, SET_COOKIE, TE, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue};

use crate::edits::is_about_the_answer;

const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    // For the next proxy alone (section 11.7.2), and the origin is none.
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// Fields whose loss would change what a message means. A `Connection` that names one is an error of its sender: if
/// `Authorization` were dropped at its word, a guarded request would become an anonymous one.
const END_TO_END: [&str; 12] = [
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "forwarded",
    "host",
    "idempotency-key",
    "vary",
    "via",
];

/// Whether `Connection` names a field that must reach the other end.
pub(crate) fn nominates_end_to_end(headers: &HeaderMap) -> bool {
    options(headers).any(|option| {
        END_TO_END.iter().any(|name| option.eq_ignore_ascii_case(name.as_bytes()))
            || option.get(..12).is_some_and(|start| start.eq_ignore_ascii_case(b"x-forwarded-"))
    })
}

/// Whether `Connection` of an answer names a field that says what the answer is or what may be done with it.
pub(crate) fn nominates_part_of_the_answer(headers: &HeaderMap) -> bool {
    options(headers)
        .filter_map(|option| HeaderName::from_bytes(option).ok())
        .any(|name| name == SET_COOKIE || name == WWW_AUTHENTICATE || is_about_the_answer(name.as_str()))
}

/// Drops what belongs to the connection: the fields of the standard, and those that `Connection` names, which are what comes
/// back.
pub(crate) fn strip(headers: &mut HeaderMap) -> Vec<HeaderName> {
    let named: Vec<HeaderName> =
        options(headers).filter_map(|option| HeaderName::from_bytes(option).ok()).collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    named
}

/// Whether a field belongs to the connection, whoever sends it.
pub(crate) fn is_of_the_connection(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

fn options(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(CONNECTION)
        .iter()
        .map(HeaderValue::as_bytes)
        .flat_map(|line| line.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|option| !option.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_connection_names_goes_no_further() {
        let mut message = headers(&[
            ("connection", "close, X-Secret"),
            ("connection", "x-other"),
            ("x-secret", "1"),
            ("x-other", "2"),
            ("x-kept", "3"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("transfer-encoding", "chunked"),
        ]);
        strip(&mut message);
        let names: Vec<_> = message.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-kept"]);
    }

    #[test]
    fn end_to_end_fields_cannot_be_named() {
        for named in ["host", "Authorization", "close, cookie", "x-forwarded-for", "CONTENT-LENGTH"] {
            assert!(nominates_end_to_end(&headers(&[("connection", named)])), "{named}");
        }
        for allowed in ["close", "keep-alive, te", "x-secret", ""] {
            assert!(!nominates_end_to_end(&headers(&[("connection", allowed)])), "{allowed}");
        }
    }

    #[test]
    fn an_answer_cannot_drop_what_says_whether_it_may_be_kept() {
        for named in [
            "cache-control",
            "close, Set-Cookie",
            "VARY",
            "expires",
            "x-a, cdn-cache-control",
            "backstop",
            "content-type",
            "www-authenticate",
        ] {
            assert!(nominates_part_of_the_answer(&headers(&[("connection", named)])), "{named}");
        }
        for allowed in ["close", "keep-alive", "x-mine, te", "x-cache", ""] {
            assert!(!nominates_part_of_the_answer(&headers(&[("connection", allowed)])), "{allowed}");
        }
    }
}
