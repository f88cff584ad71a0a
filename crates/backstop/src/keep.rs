//! What of an answer is kept.
//!
//! Every field is, known or not (RFC 9111 section 3.1), but for those that belong to one connection, one client or one
//! moment: hop-by-hop fields, `Proxy-*`, `Set-Cookie`, `Age` (it is computed anew), and the marks that gateways made.
//! An answer without `Date` gets one, as whoever receives it must add (RFC 9110 section 6.6.1).

use std::time::{Duration, UNIX_EPOCH};

use backstop_engine::snapshot::CopyFacts;
use backstop_engine::time::Wall;
use backstop_store::{StoredCopy, VaryField, owned_fields};
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

/// The copy that an answer becomes, or `None` if it varies by everything. `request` is what was sent for it; `fills` whether
/// a large body fills its buffer.
pub(crate) fn copy(
    head: &response::Parts,
    body: &Bytes,
    fills: bool,
    facts: CopyFacts,
    request: &HeaderMap,
    received: Wall,
) -> Option<StoredCopy> {
    let vary = VaryField::select(&head.headers, request)?;
    let mut headers = dated(fields(&head.headers), received);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Some(StoredCopy {
        facts,
        vary,
        status: head.status.as_u16(),
        headers: owned_fields(&headers),
        body: own_body(body, fills),
    })
}

/// The fields with which a 304 renews a copy; `None` if it is somebody's own.
pub(crate) fn renewing(answer: &HeaderMap, received: Wall) -> Option<HeaderMap> {
    (!answer.contains_key(SET_COOKIE)).then(|| dated(fields(answer), received))
}

/// An answer without `Date` was made when it was received.
fn dated(mut headers: HeaderMap, received: Wall) -> HeaderMap {
    if !headers.contains_key(DATE)
        && let Ok(since_epoch) = u64::try_from(received.as_unix_ns())
        && let Ok(date) =
            HeaderValue::from_str(&httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_nanos(since_epoch)))
    {
        headers.insert(DATE, date);
    }
    headers
}

/// Bodies below this are copied into memory of exactly their size.
const COPIED_BELOW_BYTES: usize = 64 * 1024;

/// What arrives lies in the connection's read buffer, and a slice of it would keep the whole buffer alive for as long as
/// the copy is kept, which counts as no more than the slice. Where a large body fills its buffer it stays where it is.
fn own_body(body: &Bytes, fills: bool) -> Bytes {
    if fills && body.len() >= COPIED_BELOW_BYTES { body.clone() } else { Bytes::copy_from_slice(body) }
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
///
/// Where the request named entity tags, no date was compared (RFC 9110 section 13.2.2). Then a tag alone can say which
/// content is meant: a date does not tell one from another of the same second.
pub(crate) fn validators(answer: &HeaderMap, request: &HeaderMap) -> HeaderMap {
    let mut validators = HeaderMap::new();
    let asked_by_tag = request.contains_key(IF_NONE_MATCH);
    let has_tag = answer.contains_key(ETAG);
    for name in [ETAG, LAST_MODIFIED] {
        if (has_tag || !asked_by_tag)
            && let Some(value) = answer.get(&name)
        {
            validators.insert(name, value.clone());
        }
    }
    if validators.is_empty() {
        let (asked, name) =
            if asked_by_tag { (IF_NONE_MATCH, ETAG) } else { (IF_MODIFIED_SINCE, LAST_MODIFIED) };
        // Of several, nobody knows which one it was.
        let mut lines = request.get_all(asked).iter();
        if let (Some(value), None) = (lines.next(), lines.next())
            && is_one(value.as_bytes())
        {
            validators.insert(name, value.clone());
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
        let copy =
            copy(&head, &Bytes::from_static(b"hello"), true, facts, &HeaderMap::new(), received).unwrap();
        let mut names: Vec<_> = copy.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "date", "etag", "x-anything"]);
        assert_eq!(copy.headers[DATE], "Mon, 30 Nov 2026 00:00:00 GMT");
        assert_eq!(copy.headers[CONTENT_LENGTH], "5");
    }

    /// A slice of a read buffer keeps the whole buffer: what is kept has memory of its own.
    #[test]
    fn a_copy_does_not_keep_a_buffer_that_it_does_not_fill() {
        let buffer = Bytes::from(vec![b'x'; 1 << 20]);
        for (bytes, fills, stays) in [
            (100, true, false),
            (100, false, false),
            (COPIED_BELOW_BYTES - 1, true, false),
            (COPIED_BELOW_BYTES, true, true),
            (COPIED_BELOW_BYTES, false, false),
        ] {
            let slice = buffer.slice(100..100 + bytes);
            let kept = own_body(&slice, fills);
            assert_eq!(kept, slice);
            assert_eq!(buffer.as_ptr_range().contains(&kept.as_ptr()), stays, "{bytes} {fills}");
        }
    }

    /// RFC 9110 section 13.2.2: where entity tags were asked for, a date was not looked at, whatever the answer names.
    #[test]
    fn a_date_confirms_only_what_was_not_asked_for_by_its_tag() {
        let headers = |lines: &[(HeaderName, &'static str)]| -> HeaderMap {
            lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
        };
        let day = "Mon, 30 Nov 2026 00:00:00 GMT";
        let (two_tags, one_tag) = ((IF_NONE_MATCH, "\"a\", \"b\""), (IF_NONE_MATCH, "\"a\""));
        let since = (IF_MODIFIED_SINCE, day);
        let (tag, modified) = ((ETAG, "\"a\""), (LAST_MODIFIED, day));
        for (answer, asked, confirmed) in [
            (
                vec![tag.clone(), modified.clone()],
                vec![two_tags.clone()],
                vec![tag.clone(), modified.clone()],
            ),
            (vec![], vec![one_tag.clone(), since.clone()], vec![tag.clone()]),
            (vec![], vec![two_tags.clone(), since.clone()], vec![]),
            (vec![modified.clone()], vec![one_tag.clone()], vec![tag.clone()]),
            (vec![modified.clone()], vec![two_tags.clone(), since.clone()], vec![]),
            (vec![], vec![since.clone()], vec![modified.clone()]),
            (vec![modified.clone()], vec![since.clone()], vec![modified.clone()]),
            (vec![], vec![], vec![]),
        ] {
            assert_eq!(
                validators(&headers(&answer), &headers(&asked)),
                headers(&confirmed),
                "{answer:?} {asked:?}"
            );
        }
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
