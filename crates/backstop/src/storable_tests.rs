use super::*;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn cache_control(value: &str) -> Storable {
    storable(&headers(&[("cache-control", value)]), false)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_is_somebodys_own_is_never_kept() {
    for own in ["private", "Private", "max-age=60, private", "private=\"x-user, set-cookie\"", "private=x"] {
        assert!(!cache_control(own).keep, "{own}");
        assert!(!storable(&headers(&[("cache-control", own)]), true).keep, "{own}, overridden");
    }
    assert!(!storable(&headers(&[("set-cookie", "a=b")]), true).keep);
    assert!(storable(&headers(&[]), false).keep);
}

/// RFC 9111 section 4.2.4 and RFC 5861 section 4.
#[test]
fn the_origin_limits_old_copies() {
    let fresh_for = |seconds| OriginLimit::WhileFresh(seconds * SECOND);
    let table = [
        ("max-age=30", OriginLimit::Unlimited),
        ("public", OriginLimit::Unlimited),
        ("no-cache", OriginLimit::Never),
        ("no-cache=\"x\"", OriginLimit::Never),
        ("max-age=30, must-revalidate", fresh_for(30)),
        ("max-age=30, Proxy-Revalidate", fresh_for(30)),
        ("must-revalidate", fresh_for(0)),
        ("max-age=30, s-maxage=10", fresh_for(10)),
        ("s-maxage=10, stale-if-error=100", fresh_for(10)),
        ("max-age=30, stale-if-error=20", OriginLimit::UpTo(50 * SECOND)),
        ("max-age=30, max-age=5, stale-if-error=20", OriginLimit::UpTo(25 * SECOND)),
        ("max-age=x, stale-if-error=20", OriginLimit::UpTo(20 * SECOND)),
        ("s-maxage=\"10\"", fresh_for(10)),
        ("s-maxage=-1", fresh_for(0)),
        ("foo=\", no-cache\"", OriginLimit::Unlimited),
        ("s-maxage=99999999999999999999999", fresh_for(1 << 31)),
    ];
    for (value, limit) in table {
        assert_eq!(cache_control(value).limit, limit, "{value}");
        assert!(cache_control(value).keep, "{value}");
    }
}

#[test]
fn no_store_is_kept_only_when_the_operator_overrides_it() {
    let no_store = headers(&[("cache-control", "no-store")]);
    assert!(!storable(&no_store, false).keep);
    assert!(storable(&no_store, true).keep);
    assert_eq!(storable(&no_store, true).limit, OriginLimit::Never);
}

/// RFC 9213 section 2.1 and 2.2: it replaces Cache-Control and Expires; unparsable, it is as if absent.
#[test]
fn the_targeted_field_replaces_the_general_one() {
    let with = |targeted: &str| {
        storable(&headers(&[("cache-control", "no-cache"), ("backstop-cache-control", targeted)]), false)
    };
    assert_eq!(with("max-age=10").limit, OriginLimit::Unlimited);
    assert_eq!(with("max-age=10").lifetime, Some(10 * SECOND));
    assert_eq!(with("max-age=10, stale-if-error=5").limit, OriginLimit::UpTo(15 * SECOND));
    assert!(!with("no-store").keep);
    assert!(!with("private").keep);
    for as_if_absent in ["", "MAX-AGE=10", "max-age=", "\"x\""] {
        assert_eq!(with(as_if_absent).limit, OriginLimit::Never, "{as_if_absent:?}");
    }
    assert_eq!(with("max-age=1.5").lifetime, None, "a decimal is not consumed");
}

#[test]
fn expires_counts_where_nothing_else_does() {
    let date = ("date", "Mon, 30 Nov 2026 00:00:00 GMT");
    let later = ("expires", "Mon, 30 Nov 2026 00:00:10 GMT");
    let must = ("cache-control", "must-revalidate");
    let limit = |lines: &[(&'static str, &str)]| storable(&headers(lines), false).limit;
    assert_eq!(limit(&[date, later, must]), OriginLimit::WhileFresh(10 * SECOND));
    assert_eq!(limit(&[date, ("expires", "0"), must]), OriginLimit::WhileFresh(Duration::ZERO));
    assert_eq!(limit(&[later, must]), OriginLimit::WhileFresh(Duration::ZERO));
}

/// RFC 9111 section 5.1.
#[test]
fn received_age_is_the_first_member_or_nothing() {
    let age = |value: &str| received_age(&headers(&[("age", value)]));
    for (value, seconds) in
        [("50", 50), ("50, 7", 50), (" 50 ", 50), ("-1", 0), ("1.5", 0), ("", 0), ("x, 50", 0)]
    {
        assert_eq!(age(value), Duration::from_secs(seconds), "{value:?}");
    }
    assert_eq!(received_age(&HeaderMap::new()), Duration::ZERO);
    assert_eq!(age("99999999999999999999"), Duration::from_secs(1 << 31));
}

/// RFC 9111 section 4.2.1 wants caution with what is not understood: each word that forbids does.
#[test]
fn a_line_that_cannot_be_understood_forbids_with_every_word() {
    for line in [
        "private; max-age=5",
        "public private",
        "a=\"b, private",
        "max-age=5 no-store",
        "x=(private)",
        "=private",
    ] {
        assert!(!storable(&headers(&[("cache-control", line)]), false).keep, "{line}");
    }
    for line in ["max-age=5; no-cache", "must-revalidate; max-age=0", "a b proxy-revalidate"] {
        assert_ne!(
            storable(&headers(&[("cache-control", line)]), false).limit,
            OriginLimit::Unlimited,
            "{line}"
        );
    }
    // Which number is meant, nobody knows.
    for line in ["max-age=60; s-maxage=5", "S-MaxAge = 5 max-age=60", "s-maxage=5, a b", "s-maxage; a"] {
        assert_eq!(cache_control(line).limit, OriginLimit::WhileFresh(Duration::ZERO), "{line}");
    }
    for line in ["max-age=60; stale-if-error=5", "a b; stale-if-error"] {
        assert_eq!(cache_control(line).limit, OriginLimit::UpTo(Duration::ZERO), "{line}");
    }
    assert_eq!(cache_control("max-age=60, stale-if-error=5, a b").limit, OriginLimit::UpTo(60 * SECOND));
    for (line, lifetime) in [("max-age=60; a", 0), ("a=\"b, max-age=60", 0), ("max-age=60, a b", 60)] {
        assert_eq!(cache_control(line).lifetime, Some(lifetime * SECOND), "{line}");
    }
    // A whole quoted string is understood, whatever it holds.
    for line in ["a=\"s-maxage\"", "a=\"b\\\", s-maxage=5\"", "a b; s-maxaged"] {
        assert_eq!(cache_control(line).limit, OriginLimit::Unlimited, "{line}");
    }
    for line in ["community=\"private\"", "max-age=5, x=privately", "no-stored; max-age=5", "public, "] {
        assert!(storable(&headers(&[("cache-control", line)]), false).keep, "{line}");
    }
}
