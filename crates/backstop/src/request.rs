//! What the engine and the store need to know of a request: its facts and its key.

use std::borrow::Cow;

use backstop_engine::flow::{CopyUse, Method, RequestFacts};
use backstop_engine::policy::{KeyPart, PublicRead};
use backstop_engine::time::Mono;
use backstop_store::{CopyKey, Target};
use http::header::{
    ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, COOKIE, HOST,
    TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::authorize::Principal;
use crate::canonical;
use crate::fields::BACKSTOP_ATTEMPT;
use crate::language::negotiate;

/// The values of a path template's parameters, as an extension of the request. Whoever matches routes sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathParameters(pub Vec<(Box<str>, Box<str>)>);

impl PathParameters {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.as_ref())
    }
}

/// Marks a request as somebody's own although no field says so any more, as an extension. Whoever removes a credential
/// before the request comes here sets it, unless the operator says in writing that the credential does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Personal;

/// Says that the client's own credentials were looked at before the request came here, as an extension: what
/// [`Personal`] does not mark is not somebody's own, whatever fields the operator has set since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examined;

/// Says that somebody wants to know what the request comes to even where all is normal, as an extension: its answer's extensions
/// then hold its [`Account`](backstop_engine::flow::Account) in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed;

/// Further bytes that tell copies apart, as an extension: what the dependency sees and no other part of the key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlsoKey(pub Vec<u8>);

/// Marks a request as a part of a composed answer, as an extension: when it is waited for no longer. Such a request takes no
/// place at the process, because the one that it is a part of holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// The moment.
    pub until: Mono,
}

/// What a method promises (RFC 9110 section 9.2.1); an unknown method promises nothing.
pub fn method(method: &http::Method) -> Method {
    match *method {
        http::Method::GET => Method::Get,
        http::Method::HEAD => Method::Head,
        http::Method::OPTIONS | http::Method::TRACE => Method::OtherSafe,
        _ => Method::Unsafe,
    }
}

/// What a request addresses, by what its path means (see [`canonical`]): a write withdraws the copies of its target however
/// either of them was written. Copies are told apart by the exact spelling besides, in their partition.
///
/// The port is left out of it, for a client chooses it: the copies of a host that a write changes lie under every port by which
/// anybody has asked for it.
pub fn target(parts: &Parts) -> Target {
    target_at(canonical::without_port(&host(parts)).0, parts)
}

fn target_at(name: &str, parts: &Parts) -> Target {
    let query = parts.uri.query().map(canonical::escapes);
    Target::new(name, &canonical::meaning(parts.uri.path()), query.as_deref())
}

/// The host that a request addresses, with its port, in its one spelling.
fn host(parts: &Parts) -> String {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let named = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    canonical::host_of(parts.uri.scheme_str(), authority.or_else(named).unwrap_or_default())
}

/// The facts of a request on a route without copies.
pub fn facts(parts: &Parts) -> RequestFacts {
    let credential = has_credential(parts);
    RequestFacts { method: method(&parts.method), copies: CopyUse::Never, credential, ..RequestFacts::GET }
}

/// Whether the request is somebody's own.
fn has_credential(parts: &Parts) -> bool {
    let headers = &parts.headers;
    let shows = || headers.contains_key(AUTHORIZATION) || headers.contains_key(COOKIE);
    let examined = parts.extensions.get::<Examined>().is_some();
    parts.extensions.get::<Personal>().is_some() || (!examined && shows())
}

/// A request on a route that keeps its reads, made ready to be sent on.
#[derive(Clone, Debug)]
pub struct Read {
    /// Its facts.
    pub facts: RequestFacts,
    /// What its copy is found by.
    pub key: CopyKey,
    /// The negotiated language.
    pub language: Option<Box<str>>,
}

impl Read {
    /// Reads the request and changes what the rules change: `Accept-Language` becomes the negotiated language, and
    /// `Accept-Encoding` becomes `identity`, because a coded body cannot be looked into; `Host` gets its one spelling.
    ///
    /// `fingerprint` tells copies of these rules from those of other rules under the same name.
    pub fn prepare(rules: &PublicRead, route: &str, fingerprint: &[u8], parts: &mut Parts) -> Self {
        let language = ask_for_language(&rules.languages, parts);
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // Whoever is asked and chooses by the host, byte for byte, is asked for the host that is in the key.
        let spelt = |host: &str| canonical::host_of(parts.uri.scheme_str(), host);
        if let Some(host) = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(spelt)
            && let Ok(host) = HeaderValue::from_str(&host)
        {
            parts.headers.insert(HOST, host);
        }
        let credential = has_credential(parts);
        let no_language = !rules.languages.is_empty() && language.is_none();
        // An answer to content of a request's own is nobody else's (RFC 9110 section 9.3.1 gives it no meaning).
        let copies = if credential || no_language || announces_content(&parts.headers) {
            CopyUse::Never
        } else if says_no_store(&parts.headers) {
            CopyUse::ServeOnly
        } else {
            CopyUse::Full
        };
        let facts = RequestFacts { method: method(&parts.method), copies, credential, ..RequestFacts::GET };
        let key = Self::key(rules, route, fingerprint, parts, language.as_deref());
        Self { facts, key, language }
    }

    /// What the copies of a request are found by, as its parts stand now.
    pub(crate) fn key(
        rules: &PublicRead,
        route: &str,
        fingerprint: &[u8],
        parts: &Parts,
        language: Option<&str>,
    ) -> CopyKey {
        let mut partition = fingerprint.to_vec();
        let spelt = canonical::escapes(parts.uri.path());
        let is_plain = canonical::meaning(&spelt) == spelt;
        encode(&mut partition, (!is_plain).then(|| spelt.as_bytes()));
        // An answer in one language is none in another, whether or not the key says so.
        if !rules.languages.is_empty() && !rules.key.contains(&KeyPart::Language) {
            encode(&mut partition, language.map(str::as_bytes));
        }
        let host = host(parts);
        let (name, port) = canonical::without_port(&host);
        // The same host and path under another scheme is another origin (RFC 9110 section 4.3.1). No port looks like one.
        let scheme = parts.uri.scheme_str().filter(|scheme| !scheme.eq_ignore_ascii_case("http"));
        let of_scheme =
            scheme.map(|scheme| format!("{}:{}", scheme.to_ascii_lowercase(), port.unwrap_or_default()));
        encode(&mut partition, of_scheme.as_deref().or(port).map(str::as_bytes));
        for part in &rules.key {
            // A field may come in several lines, and whoever is asked may read any of them: each tells copies apart.
            if let KeyPart::Header(name) = part {
                parts
                    .headers
                    .get_all(&**name)
                    .iter()
                    .for_each(|line| encode(&mut partition, Some(line.as_bytes())));
                encode(&mut partition, None);
            } else {
                encode(&mut partition, part_value(part, parts, language));
            }
        }
        if let Some(AlsoKey(more)) = parts.extensions.get() {
            encode(&mut partition, Some(more));
        }
        let target = target_at(name, parts);
        CopyKey { target, route: route.into(), partition: partition.into() }
    }
}

/// Negotiates the language. Whoever is asked is asked for that one; where none is negotiated, as the client asked.
pub(crate) fn ask_for_language(languages: &[Box<str>], parts: &mut Parts) -> Option<Box<str>> {
    let language = negotiate(languages, &parts.headers)?;
    if let Ok(value) = HeaderValue::from_str(language) {
        parts.headers.insert(ACCEPT_LANGUAGE, value);
    }
    Some(language.into())
}

/// The request's value of a key part, or `None` where it has none.
pub fn part_value<'r>(part: &KeyPart, parts: &'r Parts, language: Option<&'r str>) -> Option<&'r [u8]> {
    match part {
        KeyPart::Language => language.map(str::as_bytes),
        KeyPart::Principal => parts.extensions.get().map(|Principal(principal)| &**principal),
        KeyPart::Path(name) => parts.extensions.get::<PathParameters>()?.get(name).map(str::as_bytes),
        // Of several lines the first.
        KeyPart::Header(name) => parts.headers.get(name.as_ref()).map(HeaderValue::as_bytes),
        KeyPart::Query(name) => {
            let pairs = parts.uri.query()?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            pairs.filter(|(known, _)| *known == &**name).map(|(_, value)| value.as_bytes()).next()
        }
    }
}

/// As [`part_value`], but what the value means: percent-encodings of paths and queries are decoded, and so is the `+` of a
/// form's query. What is no text shows replacement characters, which no answer echoes.
pub fn part_text<'r>(part: &KeyPart, parts: &'r Parts, language: Option<&'r str>) -> Option<Cow<'r, str>> {
    let value = String::from_utf8_lossy(part_value(part, parts, language)?);
    let meant = match part {
        KeyPart::Language | KeyPart::Principal | KeyPart::Header(_) => return Some(value),
        KeyPart::Path(_) => canonical::decoded(&value),
        KeyPart::Query(_) => canonical::decoded(&value.replace('+', " ")),
    };
    Some(Cow::Owned(String::from_utf8_lossy(&meant).into_owned()))
}

/// Length and bytes of each part, so that no two lists of parts give the same bytes; absent is not empty.
fn encode(partition: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => partition.push(0),
        Some(value) => {
            partition.push(1);
            partition.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            partition.extend_from_slice(value);
        }
    }
}

pub(crate) fn announces_content(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// How often whoever calls has tried the request. What is no number counts as the first time; of several, and of one that is
/// too large to be read, the greatest.
pub(crate) fn inbound_attempt(headers: &HeaderMap) -> u32 {
    let number = |told: &HeaderValue| {
        let told = told.to_str().ok()?.trim();
        let is_number = !told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| told.parse().unwrap_or(u32::MAX))
    };
    headers.get_all(BACKSTOP_ATTEMPT).iter().filter_map(number).max().unwrap_or(1).max(1)
}

fn says_no_store(headers: &HeaderMap) -> bool {
    headers.get_all(CACHE_CONTROL).iter().any(|line| {
        line.as_bytes()
            .split(|byte| *byte == b',')
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"no-store"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::policy::{AfterRestart, Correct, Incorrect, StatusSet};
    use std::time::Duration;

    fn rules(languages: &[&str], key: Vec<KeyPart>) -> PublicRead {
        PublicRead {
            max_age: Duration::from_secs(60),
            after_restart: AfterRestart::Verify,
            gone: StatusSet::of(&[404, 410]),
            incorrect: Incorrect::Propagate,
            override_origin: false,
            buffer_bytes: 1 << 20,
            languages: languages.iter().map(|&language| language.into()).collect(),
            key,
            correct: Correct::default(),
        }
    }

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn read(rules: &PublicRead, headers: &[(&str, &str)]) -> Read {
        Read::prepare(rules, "description", b"f", &mut parts("/products/42?x=1", headers))
    }

    #[test]
    fn another_language_tenant_host_or_query_is_another_key() {
        let rules = rules(&["es", "en"], vec![KeyPart::Language, KeyPart::Header("x-tenant".into())]);
        let base = [("host", "Shop.example"), ("accept-language", "es"), ("x-tenant", "a")];
        let key = read(&rules, &base).key;
        assert_eq!(key.target.host(), "shop.example");
        let other_port =
            read(&rules, &[("host", "shop.example:81"), ("accept-language", "es"), ("x-tenant", "a")]).key;
        assert_eq!(other_port.target, key.target, "one place to withdraw");
        assert_ne!(other_port, key, "and two copies");
        let differing: [&[(&str, &str)]; 4] = [
            &[("host", "shop.example"), ("accept-language", "en"), ("x-tenant", "a")],
            &[("host", "shop.example"), ("accept-language", "es"), ("x-tenant", "b")],
            &[("host", "shop.example"), ("accept-language", "es")],
            &[("host", "other.example"), ("accept-language", "es"), ("x-tenant", "a")],
        ];
        for headers in differing {
            assert_ne!(read(&rules, headers).key, key, "{headers:?}");
        }
        let other_query =
            Read::prepare(&rules, "description", b"f", &mut parts("/products/42?x=2", &base)).key;
        assert_ne!(other_query, key);
        assert_eq!(
            read(&rules, &[("host", "shop.example"), ("accept-language", "es-MX"), ("x-tenant", "a")]).key,
            key
        );
    }

    /// Two spellings that a service may tell apart are two copies at one place, and other rules make other copies.
    #[test]
    fn spellings_and_rules_are_told_apart_below_one_target() {
        let rules = rules(&[], vec![]);
        let key = |path: &str, fingerprint: &[u8]| {
            Read::prepare(&rules, "r", fingerprint, &mut parts(path, &[("host", "h")])).key
        };
        let (plain, coded) = (key("/p/a:b", b"1"), key("/p/a%3Ab", b"1"));
        assert_eq!(plain.target, coded.target);
        assert_ne!(plain, coded);
        assert_eq!(coded, key("/%70/a%3ab", b"1"));
        assert_ne!(plain, key("/p/a:b", b"2"));
    }

    /// RFC 9110 section 4.2: http and https are two origins, and each has a port of its own that need not be named.
    #[test]
    fn schemes_tell_copies_apart_below_one_target() {
        let rules = rules(&[], vec![]);
        let key = |uri: &str| Read::prepare(&rules, "r", b"f", &mut parts(uri, &[])).key;
        let (http, https) = (key("http://shop/p"), key("https://shop/p"));
        assert_eq!(http.target, https.target, "one place to withdraw");
        assert_ne!(http, https);
        assert_eq!(http, Read::prepare(&rules, "r", b"f", &mut parts("/p", &[("host", "shop")])).key);
        assert_eq!(https, key("HTTPS://Shop:443/p"));
        assert_eq!(http, key("http://shop:80/p"));
        for (other, same_host) in [("https://shop:80/p", &https), ("http://shop:443/p", &http)] {
            assert_ne!(&key(other), same_host, "{other}");
            assert_eq!(key(other).target, same_host.target, "{other}");
        }
        let mut asked = parts("https://shop:80/p", &[("host", "Shop:80")]);
        Read::prepare(&rules, "r", b"f", &mut asked);
        assert_eq!(asked.headers[HOST], "shop:80", "asked of the host that was meant");
    }

    #[test]
    fn languages_tell_copies_apart_although_the_key_does_not_name_them() {
        for key in [vec![], vec![KeyPart::Header("x-tenant".into())], vec![KeyPart::Language]] {
            let rules = rules(&["es", "en"], key);
            let key = |language: &str| read(&rules, &[("accept-language", language)]).key;
            assert_ne!(key("es"), key("en"));
            assert_eq!(key("es"), key("es-MX, en;q=0.5"));
        }
    }

    /// `a` + `bc` and `ab` + `c` are two keys; absent and empty too.
    #[test]
    fn key_parts_never_run_into_each_other() {
        let rules = rules(&[], vec![KeyPart::Header("x-a".into()), KeyPart::Header("x-b".into())]);
        let partition = |headers: &[(&str, &str)]| read(&rules, headers).key.partition;
        assert_ne!(partition(&[("x-a", "a"), ("x-b", "bc")]), partition(&[("x-a", "ab"), ("x-b", "c")]));
        assert_ne!(partition(&[("x-a", ""), ("x-b", "c")]), partition(&[("x-b", "c")]));
    }

    #[test]
    fn what_is_somebodys_own_has_no_copy() {
        let without = rules(&[], vec![]);
        let copies = |headers: &[(&str, &str)]| read(&without, headers).facts.copies;
        assert_eq!(copies(&[]), CopyUse::Full);
        assert_eq!(copies(&[("authorization", "Bearer x")]), CopyUse::Never);
        assert_eq!(copies(&[("cookie", "a=b")]), CopyUse::Never);
        assert_eq!(copies(&[("cache-control", "max-age=0, No-Store")]), CopyUse::ServeOnly);
        let speaking = rules(&["es"], vec![]);
        assert_eq!(read(&speaking, &[("accept-language", "de")]).facts.copies, CopyUse::Never);
        assert_eq!(read(&speaking, &[]).facts.copies, CopyUse::Never);
    }

    #[test]
    fn the_negotiated_language_is_asked_for_and_nothing_coded() {
        let mut sent = parts("/p", &[("accept-language", "es-MX, en;q=0.5"), ("accept-encoding", "gzip")]);
        Read::prepare(&rules(&["es"], vec![]), "r", b"", &mut sent);
        assert_eq!(sent.headers[ACCEPT_LANGUAGE], "es");
        assert_eq!(sent.headers[ACCEPT_ENCODING], "identity");
        let mut spelt = parts("/p", &[("host", "SHOP.example.:80")]);
        Read::prepare(&rules(&[], vec![]), "r", b"", &mut spelt);
        assert_eq!(spelt.headers[HOST], "shop.example");
        let mut unmatched = parts("/p", &[("accept-language", "de")]);
        Read::prepare(&rules(&["es"], vec![]), "r", b"", &mut unmatched);
        assert_eq!(unmatched.headers[ACCEPT_LANGUAGE], "de");
    }

    /// Whatever says that somebody has tried already is believed: a second owner of retries multiplies them.
    #[test]
    fn of_several_attempts_the_greatest_counts() {
        let told = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(BACKSTOP_ATTEMPT, HeaderValue::from_str(line).unwrap());
            }
            inbound_attempt(&headers)
        };
        for (lines, expected) in [
            (&[][..], 1),
            (&["1"], 1),
            (&["0"], 1),
            (&["x"], 1),
            (&["-2"], 1),
            (&[" 2 "], 2),
            (&["1", "3"], 3),
            (&["99999999999999999999999"], u32::MAX),
        ] {
            assert_eq!(told(lines), expected, "{lines:?}");
        }
    }
}
