//! What a composed answer tells of itself, from what its parts tell.
//!
//! - `Cache-Control`: `no-store` if any part is degraded or left out, or says `private`, `no-store` or `Set-Cookie`. Else
//!   `no-cache` if any part must be asked about again (`no-cache`, `must-revalidate`, `proxy-revalidate`) or does not say how
//!   long it is fresh; else `max-age` with the shortest of their lifetimes.
//!   With `private` where an authorizer was asked about the whole or any part.
//! - `Age`: the greatest of theirs, each with the time for which it waited for the others. So what is left of the whole's
//!   lifetime is never more than what is left of any part's.
//! - `Vary`: everything that any of them varies by, what its route negotiates, and what is in its key.
//!
//! No other field of a part goes on: not its validators, which are about another representation, and not `Set-Cookie`.

use std::fmt::Write as _;
use std::time::Duration;

use backstop_engine::composed::Composed;
use backstop_engine::engine::Engine;
use backstop_engine::policy::{KeyPart, Route, RouteClass};
use http::header::{AGE, CACHE_CONTROL, SET_COOKIE, VARY};
use http::{HeaderMap, HeaderValue};

use crate::storable::{Freshness, received_age};

/// A part that stands in a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'p> {
    /// Its fields, as they came.
    pub(super) headers: &'p HeaderMap,
    /// How long ago that was.
    pub(super) waited: Duration,
}

/// Writes the fields of a whole. `parts` are those that stand in it.
pub(super) fn merge<'p>(
    headers: &mut HeaderMap,
    is_normal: bool,
    varies_by: &[Box<str>],
    parts: impl Iterator<Item = Standing<'p>> + Clone,
) {
    let told = parts.clone().map(|part| part.headers);
    headers.insert(CACHE_CONTROL, cache_control(is_normal, told.clone()));
    let age = parts.map(|part| received_age(part.headers).saturating_add(part.waited)).max();
    let age = age.unwrap_or_default().as_secs();
    if age > 0 || told.clone().any(|part| part.contains_key(AGE)) {
        headers.insert(AGE, HeaderValue::from(age));
    }
    vary(headers, varies_by, told);
}

fn cache_control<'p>(is_normal: bool, parts: impl Iterator<Item = &'p HeaderMap>) -> HeaderValue {
    if !is_normal {
        return HeaderValue::from_static("no-store");
    }
    let mut lifetime: Option<Duration> = Some(Duration::MAX);
    for part in parts {
        match Freshness::of(part) {
            _ if part.contains_key(SET_COOKIE) => return HeaderValue::from_static("no-store"),
            Freshness::NotShared => return HeaderValue::from_static("no-store"),
            Freshness::AskAgain => lifetime = None,
            Freshness::For(fresh) => lifetime = lifetime.map(|lifetime| lifetime.min(fresh)),
        }
    }
    let max_age = lifetime.map(|lifetime| format!("max-age={}", lifetime.as_secs()));
    max_age.and_then(|text| HeaderValue::try_from(text).ok()).unwrap_or(HeaderValue::from_static("no-cache"))
}

/// Adds to `Vary` what parts and their routes vary by.
pub(super) fn vary<'p>(
    headers: &mut HeaderMap,
    varies_by: &[Box<str>],
    parts: impl Iterator<Item = &'p HeaderMap>,
) {
    let mut names: Vec<String> = varies_by.iter().map(|name| name.to_string()).collect();
    for line in parts.flat_map(|part| part.get_all(VARY)) {
        // What is no text names nothing that could be compared: it may mean everything.
        let line = line.to_str().unwrap_or("*");
        names.extend(line.split(',').map(|name| name.trim().to_ascii_lowercase()));
    }
    names.retain(|name| !name.is_empty());
    let text = if names.iter().any(|name| name == "*") {
        "*".to_owned()
    } else {
        let mut text = String::new();
        for (index, name) in names.iter().enumerate() {
            if !names.iter().take(index).any(|earlier| earlier == name) {
                let separator = if text.is_empty() { "" } else { ", " };
                let _infallible = write!(text, "{separator}{name}");
            }
        }
        text
    };
    if !text.is_empty()
        && let Ok(value) = HeaderValue::try_from(text)
    {
        headers.insert(VARY, value);
    }
}

/// Whether somebody was asked whether its caller may have it, or any part of it: then it may be theirs alone, whatever the
/// dependencies say of how long it is fresh.
pub(crate) fn is_private(route: &Route, rules: &Composed, engine: &Engine) -> bool {
    let mut parts = rules.parts.iter().map(|part| &engine.route(part.route).rules);
    route.authorizer.is_some() || parts.any(|part| part.authorizer.is_some())
}

/// Lets no cache keep an answer that others use too.
pub(super) fn keep_private(headers: &mut HeaderMap) {
    let said = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or("no-cache");
    if said != "no-store"
        && let Ok(value) = HeaderValue::try_from(format!("private, {said}"))
    {
        headers.insert(CACHE_CONTROL, value);
    }
}

/// The request fields by which the routes of the parts choose an answer, in lower case.
pub(crate) fn varies_by(rules: &Composed, engine: &Engine) -> Vec<Box<str>> {
    let mut names: Vec<Box<str>> = Vec::new();
    for part in &rules.parts {
        let class = &engine.route(part.route).rules.class;
        let (languages, key): (&[Box<str>], &[KeyPart]) = match (class, class.read()) {
            (_, Some(read)) => (&read.languages, &read.key),
            (RouteClass::Optional(optional), None) => (&optional.languages, &[]),
            _ => (&[], &[]),
        };
        if !languages.is_empty() {
            names.push("accept-language".into());
        }
        names.extend(key.iter().filter_map(|part| match part {
            KeyPart::Header(name) => Some(name.clone()),
            KeyPart::Path(_) | KeyPart::Language | KeyPart::Principal | KeyPart::Query(_) => None,
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn part(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn merged(is_normal: bool, parts: &[HeaderMap]) -> HeaderMap {
        let waited = |headers| Standing { headers, waited: Duration::ZERO };
        let mut headers = HeaderMap::new();
        merge(&mut headers, is_normal, &[], parts.iter().map(waited));
        headers
    }

    /// Each value by hand from the rules above; `Expires` less `Date` is 30 s.
    #[test]
    fn no_part_is_kept_longer_than_it_says() {
        let says = |text: &'static str| part(&[("cache-control", text)]);
        let dated =
            part(&[("date", "Mon, 30 Nov 2026 10:00:00 GMT"), ("expires", "Mon, 30 Nov 2026 10:00:30 GMT")]);
        let table: [(Vec<HeaderMap>, &str); 14] = [
            (vec![says("max-age=60"), says("public, max-age=10")], "max-age=10"),
            (vec![says("max-age=60"), says("max-age=60, s-maxage=5")], "max-age=5"),
            (vec![says("max-age=5, s-maxage=60")], "max-age=5"),
            (vec![says("max-age=60"), dated], "max-age=30"),
            (vec![says("max-age=60"), part(&[])], "no-cache"),
            (vec![part(&[])], "no-cache"),
            (vec![says("max-age=60"), says("no-cache")], "no-cache"),
            (vec![says("max-age=60, must-revalidate")], "no-cache"),
            (vec![says("max-age=60, proxy-revalidate")], "no-cache"),
            (vec![says("max-age=60"), says("Private, max-age=9")], "no-store"),
            (vec![says("no-cache"), says("no-store")], "no-store"),
            (vec![says("max-age=60"), says("max-age=x")], "max-age=0"),
            (vec![part(&[("cache-control", "max-age=60"), ("set-cookie", "a=b")])], "no-store"),
            (vec![says("max-age=60, private=\"x")], "no-store"),
        ];
        for (parts, expected) in table {
            assert_eq!(merged(true, &parts)[CACHE_CONTROL], expected, "{parts:?}");
            assert_eq!(merged(false, &parts)[CACHE_CONTROL], "no-store");
        }
    }

    #[test]
    fn the_oldest_part_gives_the_age() {
        let aged = |age: &'static str| part(&[("age", age)]);
        assert_eq!(merged(true, &[aged("3"), aged("30"), part(&[])])[AGE], "30");
        assert_eq!(merged(true, &[part(&[])]).get(AGE), None);
    }

    #[test]
    fn what_is_one_callers_no_cache_keeps_for_others() {
        for (said, expected) in [
            ("max-age=60", "private, max-age=60"),
            ("no-cache", "private, no-cache"),
            ("no-store", "no-store"),
        ] {
            let mut headers = part(&[("cache-control", said)]);
            keep_private(&mut headers);
            assert_eq!(headers[CACHE_CONTROL], expected);
        }
    }

    /// By hand: 3 s and 28.5 s of waiting are older than 30 s, and 31 s where seconds are whole.
    #[test]
    fn a_part_grows_older_while_it_waits_for_the_others() {
        let age = |parts: &[(Option<&'static str>, u64)]| {
            let fields =
                |age: Option<&'static str>| age.map_or_else(HeaderMap::new, |age| part(&[("age", age)]));
            let parts: Vec<_> = parts.iter().map(|(age, waited_ms)| (fields(*age), *waited_ms)).collect();
            let waited =
                parts.iter().map(|(headers, ms)| Standing { headers, waited: Duration::from_millis(*ms) });
            let mut headers = HeaderMap::new();
            merge(&mut headers, true, &[], waited);
            headers.get(AGE).map(|age| age.to_str().unwrap().to_owned())
        };
        assert_eq!(age(&[(Some("3"), 28_500), (Some("30"), 0)]).as_deref(), Some("31"));
        assert_eq!(age(&[(Some("30"), 999), (None, 0)]).as_deref(), Some("30"));
        assert_eq!(age(&[(None, 1_000)]).as_deref(), Some("1"));
        assert_eq!(age(&[(None, 999)]), None);
    }

    #[test]
    fn it_varies_by_what_any_part_varies_by() {
        let varies = |text: &'static str| part(&[("vary", text)]);
        let parts = [varies("Accept-Language, X-Tenant"), varies("x-tenant,, Origin")];
        let mut headers = HeaderMap::new();
        vary(&mut headers, &["x-tenant".into()], parts.iter());
        assert_eq!(headers[VARY], "x-tenant, accept-language, origin");
        assert_eq!(merged(true, &[varies("Origin"), varies("*")])[VARY], "*");
        assert_eq!(merged(true, &[part(&[])]).get(VARY), None);
    }
}
