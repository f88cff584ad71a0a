//! What of an answer is kept.
//!
//! Every field is, known or not (RFC 9111 section 3.1), but for those that belong to one connection, one client or one
//! moment: hop-by-hop fields, `Proxy-*`, `Set-Cookie`, `Age` (it is computed anew), and the marks that gateways made.
//! An answer without `Date` gets one, as whoever receives it must add (RFC 9110 section 6.6.1).

use std::time::{Duration, UNIX_EPOCH};

use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Wall;
use backstop_store::{StoredCopy, VaryField};
use bytes::Bytes;
use http::header::{
    AGE, CONNECTION, CONTENT_LENGTH, DATE, ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, response};

use crate::fields::{BACKSTOP, CACHE_STATUS, PROXY_STATUS};

const NOT_KEPT: [HeaderName; 15] = [
    AGE,
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    BACKSTOP,
    CACHE_STATUS,
    PROXY_STATUS,
];

/// The copy that an answer becomes, or `None` if it varies by everything. `request` is what was sent for it.
pub(crate) fn copy(
    head: &response::Parts,
    body: Bytes,
    facts: CopyFacts,
    request: &HeaderMap,
    received: Wall,
) -> Option<StoredCopy> {
    let vary = VaryField::select(&head.headers, request)?;
    let mut headers = fields(&head.headers);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    if !headers.contains_key(DATE)
        && let Ok(since_epoch) = u64::try_from(received.as_unix_ns())
        && let Ok(date) =
            HeaderValue::from_str(&httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_nanos(since_epoch)))
    {
        headers.insert(DATE, date);
    }
    Some(StoredCopy {
        facts,
        vary,
        status: head.status.as_u16(),
        headers: own(&headers),
        body: own_body(body),
    })
}

/// Bodies below this are copied into memory of exactly their size.
const COPIED_BELOW_BYTES: usize = 64 * 1024;

/// What arrives lies in the connection's read buffer, and a slice of it would keep the whole buffer alive for as long as
/// the copy is kept. A large body fills its buffer and stays where it is.
fn own_body(body: Bytes) -> Bytes {
    if body.len() < COPIED_BELOW_BYTES { Bytes::copy_from_slice(&body) } else { body }
}

/// Fields in memory of their own, for the same reason.
fn own(headers: &HeaderMap) -> HeaderMap {
    let mut owned = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).unwrap_or_else(|_| name.clone());
        let mut copy = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
        copy.set_sensitive(value.is_sensitive());
        owned.append(name, copy);
    }
    owned
}

/// The fields that are kept.
pub(crate) fn fields(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    // What `Connection` names belongs to that connection as much as the field itself (RFC 9110 section 7.6.1).
    for line in headers.get_all(CONNECTION) {
        for name in line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if let Ok(name) = HeaderName::from_bytes(name) {
                kept.remove(name);
            }
        }
    }
    for name in &NOT_KEPT {
        kept.remove(name);
    }
    kept
}

/// What a 304 confirms: its own validators, or without any what the request asked with (RFC 9111 section 4.3.4).
pub(crate) fn validators(answer: &HeaderMap, request: &HeaderMap) -> HeaderMap {
    let mut validators = HeaderMap::new();
    for name in [ETAG, LAST_MODIFIED] {
        if let Some(value) = answer.get(&name) {
            validators.insert(name, value.clone());
        }
    }
    if validators.is_empty() {
        for (asked, name) in [(IF_NONE_MATCH, ETAG), (IF_MODIFIED_SINCE, LAST_MODIFIED)] {
            // Of several, nobody knows which one it was.
            let mut lines = request.get_all(asked).iter();
            if let (Some(value), None) = (lines.next(), lines.next())
                && is_one(value.as_bytes())
            {
                validators.insert(name, value.clone());
            }
        }
    }
    validators
}

/// Whether a conditional field names exactly one entity tag or date.
fn is_one(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let tag = value.strip_prefix(b"W/").unwrap_or(value);
    match tag.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) {
        Some(inside) => !inside.contains(&b'"'),
        // A date holds a comma of its own; a list of tags, a star or an unquoted tag does not begin with a letter's day.
        None => value.first().is_some_and(u8::is_ascii_alphabetic) && !value.contains(&b'"'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::snapshot::{ObservedAt, OriginLimit};
    use backstop_engine::time::Now;

    #[test]
    fn fields_of_one_moment_are_not_kept_and_all_others_are() {
        let head = http::Response::builder()
            .header("age", "5")
            .header("set-cookie", "a=b")
            .header("x-anything", "1")
            .header("etag", "\"e1\"")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let facts = CopyFacts {
            observed_at: ObservedAt::new(Now::default(), Duration::ZERO),
            origin_limit: OriginLimit::Unlimited,
        };
        // 2026-11-30T00:00:00Z is 1 795 996 800 s after the epoch.
        let received = Wall::from_unix_ns(1_795_996_800_000_000_000);
        let copy = copy(&head, Bytes::from_static(b"hello"), facts, &HeaderMap::new(), received).unwrap();
        let mut names: Vec<_> = copy.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "date", "etag", "x-anything"]);
        assert_eq!(copy.headers[DATE], "Mon, 30 Nov 2026 00:00:00 GMT");
        assert_eq!(copy.headers[CONTENT_LENGTH], "5");
    }

    /// A slice of a read buffer keeps the whole buffer: what is kept has memory of its own.
    #[test]
    fn a_small_copy_does_not_keep_the_buffer_that_it_came_in() {
        let buffer = Bytes::from(vec![b'x'; 8192]);
        let slice = buffer.slice(100..200);
        let kept = own_body(slice.clone());
        assert_eq!(kept, slice);
        assert!(!buffer.as_ptr_range().contains(&kept.as_ptr()));
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_maybe_shared(slice).unwrap());
        let owned = own(&headers);
        assert_eq!(owned, headers);
        assert!(!buffer.as_ptr_range().contains(&owned["x-a"].as_bytes().as_ptr()));
    }

    #[test]
    fn only_one_tag_or_one_date_tells_what_a_304_confirms() {
        for one in ["\"a\"", "W/\"a\"", " \"a,b\" ", "Mon, 30 Nov 2026 00:00:00 GMT"] {
            assert!(is_one(one.as_bytes()), "{one}");
        }
        for other in ["\"a\", \"b\"", "*", "", "\"a\",\"b\"", "W/\"a\", \"b\""] {
            assert!(!is_one(other.as_bytes()), "{other}");
        }
    }
}
