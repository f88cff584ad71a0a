//! A copy as the answer to a new request: its own preconditions are judged against the copy (RFC 9111 section 4.3.2).

use backstop_store::StoredCopy;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, response};

use crate::lists::{Quoted, members};

/// What a 304 repeats of the answer that it stands for (RFC 9110 section 15.4.5).
const IN_NOT_MODIFIED: [HeaderName; 7] =
    [CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, LAST_MODIFIED, VARY];

/// The copy's head and content for a GET or HEAD request.
pub(crate) fn answer(copy: &StoredCopy, request: &Parts) -> (response::Parts, Bytes) {
    let (mut head, ()) = Response::new(()).into_parts();
    if copy.status == 200 && client_has_it(&copy.headers, &request.headers) {
        head.status = StatusCode::NOT_MODIFIED;
        for name in &IN_NOT_MODIFIED {
            for value in copy.headers.get_all(name) {
                head.headers.append(name, value.clone());
            }
        }
        return (head, Bytes::new());
    }
    head.status = StatusCode::from_u16(copy.status).unwrap_or(StatusCode::OK);
    head.headers = copy.headers.clone();
    let content = if request.method == http::Method::HEAD { Bytes::new() } else { copy.body.clone() };
    (head, content)
}

/// `If-None-Match` by weak comparison; `If-Modified-Since` only without it (RFC 9110 sections 13.1.2, 13.1.3, 13.2.2).
fn client_has_it(copy: &HeaderMap, request: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let tag = copy.get(ETAG).map(|tag| opaque(tag.as_bytes()));
        return request.get_all(IF_NONE_MATCH).iter().any(|line| {
            let line = line.as_bytes().trim_ascii();
            line == b"*" || members(line, b',', Quoted::Tag).any(|known| Some(opaque(known)) == tag)
        });
    }
    let date = |headers: &HeaderMap, name| {
        headers
            .get(name)
            .and_then(|value: &http::HeaderValue| value.to_str().ok())
            .and_then(|text| httpdate::parse_http_date(text).ok())
    };
    match (date(request, IF_MODIFIED_SINCE), date(copy, LAST_MODIFIED)) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::snapshot::{CopyFacts, ObservedAt, OriginLimit};
    use backstop_engine::time::Now;
    use http::header::CONTENT_LENGTH;
    use std::time::Duration;

    fn replay(method: &str, headers: &[(&str, &str)]) -> (response::Parts, Bytes) {
        let mut stored = HeaderMap::new();
        stored.insert(ETAG, "\"e,1\"".parse().unwrap());
        stored.insert(LAST_MODIFIED, "Mon, 30 Nov 2026 00:00:00 GMT".parse().unwrap());
        stored.insert(CONTENT_LENGTH, "5".parse().unwrap());
        let facts = CopyFacts {
            observed_at: ObservedAt::new(Now::default(), Duration::ZERO),
            origin_limit: OriginLimit::Unlimited,
        };
        let copy = StoredCopy {
            facts,
            vary: vec![],
            status: 200,
            headers: stored,
            body: Bytes::from_static(b"hello"),
        };
        let mut request = http::Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(&copy, &request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn head_has_the_length_and_no_content() {
        let (head, content) = replay("HEAD", &[]);
        assert_eq!(
            (head.status, head.headers[CONTENT_LENGTH].as_bytes(), content.len()),
            (StatusCode::OK, &b"5"[..], 0)
        );
        assert_eq!(replay("GET", &[]).1.len(), 5);
    }

    #[test]
    fn a_client_that_has_it_gets_304() {
        let not_modified =
            |headers: &[(&str, &str)]| replay("GET", headers).0.status == StatusCode::NOT_MODIFIED;
        assert!(not_modified(&[("if-none-match", "\"x\", W/\"e,1\"")]));
        assert!(not_modified(&[("if-none-match", "*")]));
        assert!(!not_modified(&[("if-none-match", "\"x\"")]));
        assert!(not_modified(&[("if-modified-since", "Mon, 30 Nov 2026 00:00:00 GMT")]));
        assert!(!not_modified(&[("if-modified-since", "Sun, 29 Nov 2026 23:59:59 GMT")]));
        // If-None-Match wins where both are sent.
        let both = [("if-none-match", "\"x\""), ("if-modified-since", "Mon, 30 Nov 2026 00:00:00 GMT")];
        assert!(!not_modified(&both));
        let (head, content) = replay("GET", &[("if-none-match", "*")]);
        assert!(content.is_empty() && !head.headers.contains_key(CONTENT_LENGTH));
    }
}
