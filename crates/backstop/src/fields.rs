//! The fields that tell what an answer is.
//!
//! - `Backstop`: a Dictionary of tokens and integers (RFC 9651), on every degraded or refused answer, and on a normal one
//!   only if the request asks with `Backstop-Explain: ?1`.
//! - `Age` on a copy (RFC 9111 section 5.1): whole seconds, rounded down. The decision itself is made in nanoseconds.
//! - `Cache-Status` on a copy (RFC 9211). After a failed attempt the request did go forward, so it is never called a hit.
//! - `Proxy-Status` (RFC 9209), from the gateway only: an origin server must not send it, and the library is part of one.

use std::fmt::Write;
use std::time::Duration;

use backstop_engine::failure::Cause;
use backstop_engine::flow::Account;
use backstop_engine::outcome::{Outcome, Source};
use backstop_engine::status::Refusal;
use http::header::{AGE, HeaderName};
use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::lists::{Quoted, members};

/// The field that tells outcome, source, age and reason.
pub const BACKSTOP: HeaderName = HeaderName::from_static("backstop");
/// The request field that asks for [`BACKSTOP`] on a normal answer.
pub const BACKSTOP_EXPLAIN: HeaderName = HeaderName::from_static("backstop-explain");
/// How often a request has been tried, on every attempt but the first: whoever gets more than 1 does not try again.
pub const BACKSTOP_ATTEMPT: HeaderName = HeaderName::from_static("backstop-attempt");
/// Says that an answer is the one that an earlier request with the same key had.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// RFC 7240.
const PREFER: HeaderName = HeaderName::from_static("prefer");
/// RFC 9211.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// RFC 9209.
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Who speaks: the name in `Cache-Status` and `Proxy-Status`, and whether the latter is sent.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// A name without internal meaning, a token of RFC 9110.
    pub name: Box<str>,
    /// Whether it is a gateway.
    pub is_gateway: bool,
}

/// The greatest Integer of a Structured Field.
const MOST: u64 = 999_999_999_999_999;

/// The `Backstop` field for an answer.
pub fn backstop(account: &Account) -> HeaderValue {
    let mut text = String::with_capacity(96);
    text.push_str("outcome=");
    text.push_str(account.outcome.token());
    if account.source != Source::None {
        text.push_str(", source=");
        text.push_str(account.source.token());
    }
    // An age that nobody knows is not told, and no number may have more than fifteen digits (RFC 9651 section 3.3.1).
    if let Some(age) = account.age.filter(|age| *age < Duration::MAX) {
        let _infallible = write!(text, ", age={}", age.as_secs().min(MOST));
    }
    let reason = account.reason.token();
    if account.outcome != Outcome::Normal {
        text.push_str(", reason=");
        text.push_str(reason);
    }
    if let Some(cause) = account.cause.map(Cause::token).filter(|cause| *cause != reason) {
        text.push_str(", cause=");
        text.push_str(cause);
    }
    value(text)
}

/// The `Backstop` field of a composed answer, which names the routes of the parts that are omitted in an Inner List of
/// tokens. Names of routes are tokens.
pub(crate) fn backstop_of_whole(account: &Account, omitted: &[&str]) -> HeaderValue {
    let field = backstop(account);
    match (omitted, field.to_str()) {
        ([], _) | (_, Err(_)) => field,
        (names, Ok(text)) => value(format!("{text}, omitted=({})", names.join(" "))),
    }
}

/// Describes an answer from a copy.
pub fn describe_copy(
    headers: &mut HeaderMap,
    account: &Account,
    age: Duration,
    lifetime: Option<Duration>,
    speaker: &Speaker,
) {
    headers.insert(AGE, HeaderValue::from(age.as_secs()));
    let left = lifetime.map_or(0, |lifetime| lifetime.as_secs().min(1 << 31)) as i64
        - age.as_secs().min(1 << 31) as i64;
    let mut status = String::with_capacity(64);
    status.push_str(&speaker.name);
    match account.cause {
        Some(Cause::Failed(failure)) => {
            status.push_str("; fwd=stale");
            if let Some(code) = failure.kind.status() {
                let _infallible = write!(status, "; fwd-status={code}");
            }
        }
        // Not forwarded at all.
        Some(Cause::NotAsked(_)) | None => status.push_str("; hit"),
    }
    let _infallible = write!(status, "; ttl={left}; detail={}", account.reason.token());
    headers.append(CACHE_STATUS, value(status));
}

/// Describes an answer from a shared cache, or from a read that many share.
pub fn describe_shared(
    headers: &mut HeaderMap,
    age: Duration,
    lifetime: Option<Duration>,
    from: SharedFrom,
    speaker: &Speaker,
) {
    headers.insert(AGE, HeaderValue::from(age.as_secs()));
    let mut status = String::with_capacity(64);
    status.push_str(&speaker.name);
    status.push_str(match from {
        SharedFrom::Cache => "; hit",
        SharedFrom::OwnRead => "; fwd=miss",
        SharedFrom::AnothersRead => "; fwd=miss; collapsed",
    });
    if let Some(lifetime) = lifetime {
        let left = lifetime.as_secs().min(1 << 31) as i64 - age.as_secs().min(1 << 31) as i64;
        let _infallible = write!(status, "; ttl={left}");
    }
    headers.append(CACHE_STATUS, value(status));
}

/// Where an answer comes from that others may get too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFrom {
    /// A shared cache.
    Cache,
    /// The dependency, which this request had read.
    OwnRead,
    /// The dependency, which another request had read (`collapsed`, RFC 9211 section 2.6).
    AnothersRead,
}

/// Tells what went wrong with the next hop, where the speaker is a gateway.
pub fn describe_failure(headers: &mut HeaderMap, refusal: &Refusal, speaker: &Speaker) {
    if !speaker.is_gateway {
        return;
    }
    let mut status = format!("{}; error={}", speaker.name, refusal.proxy_error);
    if let Some(code) = refusal.received_status {
        let _infallible = write!(status, "; received-status={code}");
    }
    headers.append(PROXY_STATUS, value(status));
}

/// Whether the request asks for the `Backstop` field on a normal answer.
pub fn asks_to_explain(headers: &HeaderMap) -> bool {
    headers.get(BACKSTOP_EXPLAIN).is_some_and(|value| value == "?1")
}

/// Whether the client prefers to hear of what takes longer later (`Prefer: respond-async`, RFC 7240 section 4.1).
pub(crate) fn prefers_async(headers: &HeaderMap) -> bool {
    headers.get_all(PREFER).into_iter().any(|value| {
        members(value.as_bytes(), b',', Quoted::String).any(|preference| {
            // It has no value (RFC 7240 section 4.1), and with one it says something else.
            let name = preference.split(|byte| *byte == b';').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(b"respond-async")
        })
    })
}

const ALMOST_A_SECOND: Duration = Duration::from_nanos(999_999_999);

/// Whether an answer says of itself that it was made for an earlier request: its `Age` is not 0 (RFC 9111 section 5.1: a cache that
/// gives what it has must say so), or it is another gateway's alternative.
pub fn is_earlier(headers: &HeaderMap) -> bool {
    let is_none = |age: &HeaderValue| age.as_bytes().iter().all(|digit| *digit == b'0') && !age.is_empty();
    degraded(headers).is_some() || headers.get_all(AGE).iter().any(|age| !is_none(age))
}

/// If an answer says that a gateway behind this one gave an alternative or none at all: how old that may be at most.
///
/// Ages are told in whole seconds, rounded down, so the answer may be up to one second older than it says. A field that
/// cannot be understood says that something was done to the answer, and its age is not known: older than anything.
pub fn degraded(headers: &HeaderMap) -> Option<Duration> {
    let Ok(dictionary) = Parser::new(&joined(headers, &BACKSTOP)?).parse::<Dictionary>() else {
        return Some(Duration::MAX);
    };
    let item = |name: &str| match dictionary.get(name) {
        Some(ListEntry::Item(item)) => Some(&item.bare_item),
        _ => None,
    };
    match item("outcome") {
        Some(BareItem::Token(outcome)) if outcome.as_str() == Outcome::Normal.token() => return None,
        Some(BareItem::Token(outcome))
            if Outcome::ALL.iter().any(|known| known.token() == outcome.as_str()) => {}
        _ => return Some(Duration::MAX),
    }
    let said = match (dictionary.get("age"), item("age")) {
        (None, _) => None,
        (Some(_), Some(BareItem::Integer(seconds))) => Some(u64::try_from(i64::from(*seconds)).ok()),
        (Some(_), _) => Some(None),
    };
    // Whatever says an age says it in a way that can be understood, or it is older than anything.
    let ages: Option<Vec<u64>> = ages(headers).chain(said).collect();
    let oldest = ages.map(|ages| ages.into_iter().max());
    let needs_none = match item("source") {
        None => true,
        Some(BareItem::Token(source)) => AGELESS.iter().any(|known| known.token() == source.as_str()),
        Some(_) => false,
    };
    Some(match oldest {
        Some(Some(seconds)) => Duration::from_secs(seconds).saturating_add(ALMOST_A_SECOND),
        Some(None) if needs_none => Duration::ZERO,
        Some(None) | None => Duration::MAX,
    })
}

/// What is no copy of an earlier answer needs no age: a part left out or prepared beforehand, and what another dependency says.
const AGELESS: [Source; 5] =
    [Source::Omitted, Source::Prepared, Source::Alternative, Source::Primary, Source::None];

/// Every member of every `Age` line, in whole seconds; `None` for one that is none.
fn ages(headers: &HeaderMap) -> impl Iterator<Item = Option<u64>> {
    headers.get_all(AGE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(|member| {
        let digits = member.trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        // What is too long for a number is older than anything too.
        is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
    })
}

/// The lines of a Structured Field as one (RFC 9651 section 4.2), or `None` if there is none.
pub(crate) fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let mut lines = headers.get_all(name).iter();
    let mut text = lines.next()?.as_bytes().to_vec();
    for line in lines {
        text.extend_from_slice(b", ");
        text.extend_from_slice(line.as_bytes());
    }
    Some(text)
}

fn value(text: String) -> HeaderValue {
    // Names are tokens and everything else is written here, so the text is always a field value.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_an_age_was_made_for_an_earlier_request() {
        for (field, expected) in [
            (None, false),
            (Some(("age", "0")), false),
            (Some(("age", "1")), true),
            (Some(("age", "3600")), true),
            (Some(("age", "")), true),
            (Some(("age", "-1")), true),
            (Some(("backstop", "outcome=fallback, source=snapshot, age=0")), true),
            (Some(("backstop", "outcome=normal, source=primary")), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = field {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(is_earlier(&headers), expected, "{field:?}");
        }
    }
    use backstop_engine::failure::{Failure, FailureKind, NotAsked, Phase, Sent};
    use backstop_engine::outcome::{Reason, Scope};
    use backstop_engine::policy::Origin;
    use backstop_engine::snapshot::CopyRefusal;

    fn account(
        outcome: Outcome,
        source: Source,
        reason: Reason,
        cause: Option<Cause>,
        age: Option<u64>,
    ) -> Account {
        Account { outcome, source, reason, cause, age: age.map(Duration::from_millis), rule: Origin::NONE }
    }

    fn failed(kind: FailureKind) -> Cause {
        Cause::Failed(Failure::new(kind, Phase::Head, Sent::Maybe))
    }

    #[test]
    fn the_field_tells_outcome_source_age_and_reason() {
        let cause = failed(FailureKind::ConnectTimeout);
        let copy =
            account(Outcome::Fallback, Source::Snapshot, Reason::Cause(cause), Some(cause), Some(30_999));
        assert_eq!(backstop(&copy), "outcome=fallback, source=snapshot, age=30, reason=connect_timeout");
        let reason = Reason::Copy(CopyRefusal::TooOld);
        let refused =
            account(Outcome::Rejected, Source::None, reason, Some(failed(FailureKind::Connect)), None);
        assert_eq!(backstop(&refused), "outcome=rejected, reason=age, cause=connect");
        let full = account(Outcome::Rejected, Source::None, Reason::Capacity(Scope::Route), None, None);
        assert_eq!(backstop(&full), "outcome=rejected, reason=capacity");
        let normal = account(Outcome::Normal, Source::Primary, Reason::None, None, None);
        assert_eq!(backstop(&normal), "outcome=normal, source=primary");
    }

    #[test]
    fn omitted_parts_are_named_in_an_inner_list() {
        let cause = failed(FailureKind::ReadTimeout);
        let told = account(Outcome::Fallback, Source::Omitted, Reason::Cause(cause), Some(cause), None);
        let field = backstop_of_whole(&told, &["recommendations", "reviews.v2"]);
        assert_eq!(
            field,
            "outcome=fallback, source=omitted, reason=read_timeout, omitted=(recommendations reviews.v2)"
        );
        let read: Dictionary = Parser::new(field.as_bytes()).parse().unwrap();
        let Some(ListEntry::InnerList(list)) = read.get("omitted") else { panic!("{read:?}") };
        let names: Vec<_> = list.items.iter().filter_map(|item| item.bare_item.as_token()).collect();
        assert_eq!(
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
            ["recommendations", "reviews.v2"]
        );
        assert_eq!(backstop_of_whole(&told, &[]), backstop(&told));
        let mut headers = HeaderMap::new();
        headers.insert(BACKSTOP, field);
        assert_eq!(degraded(&headers), Some(Duration::ZERO), "a gateway in front understands it");
    }

    /// RFC 9211 section 2: `hit` and `fwd` exclude each other; after a failed attempt it is `fwd`.
    #[test]
    fn a_copy_after_an_attempt_is_no_hit() {
        let speaker = Speaker { name: "edge".into(), is_gateway: true };
        let status = |cause, lifetime: Option<u64>| {
            let account =
                account(Outcome::Fallback, Source::Snapshot, Reason::Cause(cause), Some(cause), Some(30_000));
            let mut headers = HeaderMap::new();
            let lifetime = lifetime.map(Duration::from_secs);
            describe_copy(&mut headers, &account, Duration::from_millis(30_999), lifetime, &speaker);
            assert_eq!(headers[AGE], "30");
            headers[CACHE_STATUS].to_str().unwrap().to_owned()
        };
        let unavailable = failed(FailureKind::Unavailable { status: 503 });
        assert_eq!(
            status(unavailable, Some(10)),
            "edge; fwd=stale; fwd-status=503; ttl=-20; detail=unavailable"
        );
        assert_eq!(status(failed(FailureKind::Reset), None), "edge; fwd=stale; ttl=-30; detail=reset");
        let full = Cause::NotAsked(NotAsked::DependencyFull);
        assert_eq!(status(full, Some(60)), "edge; hit; ttl=30; detail=dependency_full");
    }

    /// RFC 9209 section 1: an origin server must not send it.
    #[test]
    fn only_a_gateway_speaks_of_its_next_hop() {
        let cause = failed(FailureKind::Unavailable { status: 503 });
        let refusal = backstop_engine::status::refusal(Reason::Cause(cause), Some(cause), Default::default());
        let mut headers = HeaderMap::new();
        describe_failure(&mut headers, &refusal, &Speaker { name: "edge".into(), is_gateway: false });
        assert!(headers.is_empty());
        describe_failure(&mut headers, &refusal, &Speaker { name: "edge".into(), is_gateway: true });
        assert_eq!(headers[PROXY_STATUS], "edge; error=destination_unavailable; received-status=503");
    }

    #[test]
    fn another_gateways_alternative_is_known_with_its_age() {
        let with = |field: &'static str, age: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(BACKSTOP, HeaderValue::from_static(field));
            if let Some(age) = age {
                headers.insert(AGE, HeaderValue::from_static(age));
            }
            degraded(&headers)
        };
        let seconds = |seconds| Some(Duration::new(seconds, 999_999_999));
        assert_eq!(with("outcome=fallback, source=snapshot, age=30, reason=reset", None), seconds(30));
        assert_eq!(with("outcome=fallback, age=3", Some("31")), seconds(31));
        assert_eq!(with("outcome=fallback, source=omitted", None), Some(Duration::ZERO));
        assert_eq!(with("outcome=failed, reason=incorrect", None), Some(Duration::ZERO));
        assert_eq!(with("outcome=normal, source=primary", Some("5")), None);
        assert_eq!(degraded(&HeaderMap::new()), None);
    }

    /// RFC 9651 section 3.3.1: an Integer has at most fifteen digits. An age that nobody knows is not told at all.
    #[test]
    fn an_age_is_a_number_of_at_most_fifteen_digits() {
        let account = |age| Account {
            outcome: Outcome::Fallback,
            source: Source::Alternative,
            reason: Reason::UpstreamDegraded,
            cause: None,
            age: Some(age),
            rule: backstop_engine::policy::Origin::NONE,
        };
        for (age, expected) in [
            (Duration::from_secs(7), "outcome=fallback, source=alternative, age=7, reason=upstream_degraded"),
            (
                Duration::from_secs(1_000_000_000_000_000),
                "outcome=fallback, source=alternative, age=999999999999999, reason=upstream_degraded",
            ),
            (Duration::MAX, "outcome=fallback, source=alternative, reason=upstream_degraded"),
        ] {
            assert_eq!(backstop(&account(age)).to_str().unwrap(), expected);
        }
    }

    /// What cannot be understood was not said by the origin, and how old it is nobody knows.
    #[test]
    fn a_mark_that_cannot_be_read_is_older_than_anything() {
        let unreadable = [
            "",
            "=,",
            "\"",
            "outcome=\"fallback\"",
            "outcome=better",
            "source=snapshot",
            "outcome=fallback, age=",
            "outcome=fallback, age=9.5",
            "outcome=fallback, age=\"9\"",
            "outcome=fallback, age=-1",
            "outcome=fallback, age=(9)",
            "outcome=fallback, age",
            "outcome=fallback, source=snapshot",
            "outcome=fallback;age=9, source=cache",
            "outcome=fallback, source=elsewhere",
        ];
        for field in unreadable {
            let mut headers = HeaderMap::new();
            headers.insert(BACKSTOP, HeaderValue::from_static(field));
            assert_eq!(degraded(&headers), Some(Duration::MAX), "{field}");
        }
        for age in ["9.7", "", "x", "9, x", "99999999999999999999"] {
            let mut headers = HeaderMap::new();
            headers.insert(BACKSTOP, HeaderValue::from_static("outcome=fallback, age=1"));
            headers.insert(AGE, HeaderValue::from_static(age));
            assert_eq!(degraded(&headers), Some(Duration::MAX), "{age}");
        }
        let mut two_ages = HeaderMap::new();
        two_ages.insert(BACKSTOP, HeaderValue::from_static("outcome=fallback, source=snapshot"));
        two_ages.append(AGE, HeaderValue::from_static("0"));
        two_ages.append(AGE, HeaderValue::from_static("3, 9"));
        assert_eq!(degraded(&two_ages), Some(Duration::new(9, 999_999_999)));
        let mut two_lines = HeaderMap::new();
        two_lines.append(BACKSTOP, HeaderValue::from_static("outcome=fallback, source=snapshot, age=59"));
        two_lines.append(BACKSTOP, HeaderValue::from_static("\""));
        assert_eq!(degraded(&two_lines), Some(Duration::MAX));
    }
}
