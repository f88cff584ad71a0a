//! Whether HTTP lets an answer be kept, and for how long it may be used when the origin cannot be asked (RFC 9111).
//!
//! - Never kept, whatever the policy says: `private`, `Set-Cookie`, `Vary: *`, an answer with no content, and answers to
//!   requests with credentials (those never come here; see [`request`](crate::request)).
//! - `no-store` is not kept either, unless the operator overrides the origin in writing.
//! - `no-cache`, `must-revalidate`, `proxy-revalidate` and `s-maxage` forbid an *old* copy (section 4.2.4): it may be used
//!   only while fresh, and with `no-cache` not at all. `stale-if-error` (RFC 5861) bounds how old it may be.
//! - `Backstop-Cache-Control`, if present and well-formed, stands in for `Cache-Control` and `Expires` (RFC 9213): an
//!   origin can so allow Backstop what it forbids to everybody else.
//! - What cannot be understood counts as forbidden: unparsable or conflicting freshness is stale (section 4.2.1).

use std::time::Duration;

use backstop_engine::snapshot::OriginLimit;
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, ListEntry, Parser};

use crate::fields::joined;
use crate::lists::text_members;

/// The targeted field of RFC 9213.
pub const BACKSTOP_CACHE_CONTROL: HeaderName = HeaderName::from_static("backstop-cache-control");

/// What the origin says about keeping an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storable {
    /// Whether it may be kept at all.
    pub keep: bool,
    /// How long it may be used without asking.
    pub limit: OriginLimit,
    /// How long it is fresh, where the origin says so.
    pub lifetime: Option<Duration>,
}

/// Judges an answer's fields. `override_origin` is the operator's written consent.
pub fn storable(headers: &HeaderMap, override_origin: bool) -> Storable {
    let directives = targeted(headers).unwrap_or_else(|| Directives::of_cache_control(headers));
    let personal = directives.private || headers.contains_key(SET_COOKIE);
    let keep = !personal && (!directives.no_store || override_origin);
    let lifetime = match (directives.s_maxage.or(directives.max_age), directives.is_targeted) {
        (Some(seconds), _) => Some(seconds.unwrap_or(Duration::ZERO)),
        (None, true) => None,
        (None, false) => expires(headers),
    };
    let limit = if directives.no_cache || directives.no_store {
        OriginLimit::Never
    } else if directives.must_revalidate || directives.s_maxage.is_some() {
        OriginLimit::WhileFresh(lifetime.unwrap_or(Duration::ZERO))
    } else if let Some(stale) = directives.stale_if_error {
        OriginLimit::UpTo(lifetime.unwrap_or(Duration::ZERO).saturating_add(stale.unwrap_or(Duration::ZERO)))
    } else {
        OriginLimit::Unlimited
    };
    Storable { keep, limit, lifetime }
}

/// Whether the origin says of what was asked for that it must not be kept: `private`, or `no-store` where the operator does
/// not override it. A cookie alone says so of one answer, and nothing of what others get.
pub(crate) fn forbids_keeping(headers: &HeaderMap, override_origin: bool) -> bool {
    let directives = targeted(headers).unwrap_or_else(|| Directives::of_cache_control(headers));
    directives.private || (directives.no_store && !override_origin)
}

/// How long an answer may be used without asking at all, in good times: while it is fresh, where the origin says for how
/// long that is, and not at all where it wants to be asked (RFC 9111 sections 4.2 and 5.2.2). Where it says nothing, it
/// leaves it to whoever keeps it (section 4.2.2).
pub fn unasked(headers: &HeaderMap) -> OriginLimit {
    let said = storable(headers, false);
    match (said.limit, said.lifetime) {
        (OriginLimit::Never, _) => OriginLimit::Never,
        (_, Some(lifetime)) => OriginLimit::WhileFresh(lifetime),
        (OriginLimit::WhileFresh(lifetime), None) => OriginLimit::WhileFresh(lifetime),
        (OriginLimit::Unlimited | OriginLimit::UpTo(_), None) => OriginLimit::Unlimited,
    }
}

/// What an answer says to every cache about how long it is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// `private` or `no-store`.
    NotShared,
    /// To be asked about every time: it says so, or says nothing of how long.
    AskAgain,
    /// For this long.
    For(Duration),
}

impl Freshness {
    /// Reads it from an answer's fields. Of two lifetimes the shorter counts, whomever it is for.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let directives = Directives::of_cache_control(headers);
        if directives.private || directives.no_store {
            return Self::NotShared;
        }
        let said = [directives.max_age, directives.s_maxage].into_iter().flatten();
        let lifetime = said.map(Option::unwrap_or_default).min().or_else(|| expires(headers));
        match lifetime {
            Some(lifetime) if !directives.no_cache && !directives.must_revalidate => Self::For(lifetime),
            _ => Self::AskAgain,
        }
    }
}

/// How long an answer with these fields may be used without asking; `None` if it may not be kept.
pub(crate) fn limit_if_kept(headers: &HeaderMap) -> Option<OriginLimit> {
    let Storable { keep, limit, lifetime: _ } = storable(headers, false);
    keep.then_some(limit)
}

/// As [`limit_if_kept`], where the operator overrides the origin.
pub(crate) fn limit_if_overridden(headers: &HeaderMap) -> Option<OriginLimit> {
    let Storable { keep, limit, lifetime: _ } = storable(headers, true);
    keep.then_some(limit)
}

/// The age that an answer already has when it comes (RFC 9111 section 5.1): the first member, ignored unless it is a
/// non-negative integer.
pub fn received_age(headers: &HeaderMap) -> Duration {
    let first =
        headers.get(AGE).and_then(|value| value.to_str().ok()).and_then(|value| value.split(',').next());
    first.and_then(delta_seconds).unwrap_or(Duration::ZERO)
}

/// A directive's argument: `None` is absent, `Some(None)` present but not understood.
type Argument = Option<Option<Duration>>;

#[derive(Debug, Default)]
struct Directives {
    no_store: bool,
    no_cache: bool,
    private: bool,
    must_revalidate: bool,
    max_age: Argument,
    s_maxage: Argument,
    stale_if_error: Argument,
    is_targeted: bool,
}

impl Directives {
    fn of_cache_control(headers: &HeaderMap) -> Self {
        let mut directives = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            // Bytes beyond ASCII belong to no directive that is known here, but the line may hold others.
            let line = String::from_utf8_lossy(line.as_bytes());
            for directive in directives_of(&line) {
                let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
                directives.add(name.trim(), argument.trim().trim_matches('"'));
            }
            if !is_understood(&line) {
                // Whoever wrote it may have meant each of its words.
                for word in line.split(|character| !is_token_character(character)) {
                    directives.forbid(word);
                    directives.end(word);
                }
            }
        }
        directives
    }

    /// A word that may be more than it seems: what it forbids is forbidden, what it allows is not allowed.
    fn forbid(&mut self, word: &str) {
        if ["no-store", "no-cache", "private", "must-revalidate", "proxy-revalidate"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
        {
            self.add(word, "");
        }
    }

    /// A word that may limit how long an answer may be used, nobody knows to what: to nothing. A lifetime of its own that
    /// could be read stands, for it forbids nothing after its end.
    fn end(&mut self, word: &str) {
        match word.to_ascii_lowercase().as_str() {
            "s-maxage" => self.s_maxage = Some(None),
            "stale-if-error" => self.stale_if_error = Some(None),
            "max-age" => self.max_age = self.max_age.or(Some(None)),
            _ => {}
        }
    }

    fn add(&mut self, name: &str, argument: &str) {
        let seconds = |earlier: Argument| match earlier {
            None => Some(delta_seconds(argument)),
            // Said twice: the more restrictive counts (section 4.2.1).
            Some(earlier) => Some(earlier.zip(delta_seconds(argument)).map(|(one, other)| one.min(other))),
        };
        match name.to_ascii_lowercase().as_str() {
            "no-store" => self.no_store = true,
            // With field names it forbids only those; treated as forbidding all.
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "must-revalidate" | "proxy-revalidate" => self.must_revalidate = true,
            "max-age" => self.max_age = seconds(self.max_age),
            "s-maxage" => self.s_maxage = seconds(self.s_maxage),
            "stale-if-error" => self.stale_if_error = seconds(self.stale_if_error),
            _ => {}
        }
    }
}

/// The targeted field as a Structured Dictionary; `None` if it does not parse or is empty, and then it is as if absent.
fn targeted(headers: &HeaderMap) -> Option<Directives> {
    let text = joined(headers, &BACKSTOP_CACHE_CONTROL)?;
    let dictionary: sfv::Dictionary = Parser::new(&text).parse().ok()?;
    let mut directives = Directives { is_targeted: true, ..Directives::default() };
    for (name, entry) in &dictionary {
        let item = match entry {
            ListEntry::Item(item) => Some(&item.bare_item),
            ListEntry::InnerList(_) => None,
        };
        if item == Some(&BareItem::Boolean(false)) {
            continue;
        }
        // What forbids is said by whatever value: with the names of fields it forbids only those, and is treated as
        // forbidding all.
        directives.forbid(name.as_str());
        match item {
            Some(BareItem::Boolean(_)) => directives.add(name.as_str(), ""),
            Some(BareItem::Integer(number)) => directives.add(name.as_str(), &number.to_string()),
            // A directive of a type that it does not have is not consumed (RFC 9213 section 2.1).
            _ => {}
        }
    }
    (!dictionary.is_empty()).then_some(directives)
}

/// Whether a line is a list of directives: a token each, and maybe a token or a quoted string (RFC 9111 section 5.2).
fn is_understood(line: &str) -> bool {
    directives_of(line).all(|directive| {
        let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
        let (name, argument) = (name.trim(), argument.trim());
        let quoted = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let argument_is_fine = match quoted {
            Some(inside) => !has_a_quote(inside),
            None => argument.chars().all(is_token_character),
        };
        !name.is_empty() && name.chars().all(is_token_character) && argument_is_fine
    })
}

/// RFC 9110 section 5.6.2.
fn is_token_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

fn directives_of(line: &str) -> impl Iterator<Item = &str> {
    text_members(line, b',').filter(|directive| !directive.is_empty())
}

/// Whether a quoted string's inside holds a quote that ends it, or a backslash without anything after it.
fn has_a_quote(inside: &str) -> bool {
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        if character == '"' || (character == '\\' && characters.next().is_none()) {
            return true;
        }
    }
    false
}

/// Whole seconds, clamped to 2^31 as RFC 9111 section 1.2.2 allows.
fn delta_seconds(text: &str) -> Option<Duration> {
    const MAX_SECONDS: u64 = 1 << 31;
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(text.parse().unwrap_or(MAX_SECONDS).min(MAX_SECONDS)))
}

/// `Expires` less `Date` (section 4.2.1); an invalid `Expires` is a time in the past.
fn expires(headers: &HeaderMap) -> Option<Duration> {
    let date =
        |value: &HeaderValue| value.to_str().ok().and_then(|text| httpdate::parse_http_date(text).ok());
    let expires = headers.get(EXPIRES)?;
    let lifetime = date(expires)
        .zip(headers.get(DATE).and_then(date))
        .and_then(|(end, start)| end.duration_since(start).ok());
    Some(lifetime.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
#[path = "storable_tests.rs"]
mod tests;
