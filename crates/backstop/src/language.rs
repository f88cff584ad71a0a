//! `Accept-Language` negotiated to one of a route's languages (RFC 4647 section 3.4, "lookup"; RFC 9110 12.5.4).
//!
//! The ranges are tried from the most wanted down; each is shortened from its end until a language of the route
//! matches. A range with `q=0` excludes what it matches. `*` stands for the languages that no other range names, and
//! takes the first of them: lookup alone would skip it wherever a range follows, but then `es;q=0.1, *` would get the one
//! language that is hardly wanted. Among equal weights a named one goes first, as in lookup. Without the field, or where
//! nothing matches, there is no negotiated language: the request is then forwarded as it is, never answered from a copy and
//! never kept.

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// More ranges than any browser sends; a longer list is not negotiated.
const MAX_RANGES: usize = 64;

/// The language to ask for, out of `offered`, or `None` where the client accepts none of them or says nothing.
pub fn negotiate<'a>(offered: &'a [Box<str>], headers: &HeaderMap) -> Option<&'a str> {
    let mut ranges: Vec<Range<'_>> = Vec::new();
    for line in headers.get_all(ACCEPT_LANGUAGE) {
        for item in line.to_str().ok()?.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            if ranges.len() == MAX_RANGES {
                return None;
            }
            ranges.push(Range::parse(item)?);
        }
    }
    let excluded = |language: &str| ranges.iter().any(|range| range.weight == 0 && range.matches(language));
    // Stable: among equal weights the client's order decides.
    let mut wanted: Vec<&Range<'_>> = ranges.iter().filter(|range| range.weight > 0).collect();
    wanted.sort_by_key(|range| (std::cmp::Reverse(range.weight), range.is_any()));
    let is_named = |language: &str| ranges.iter().any(|range| !range.is_any() && range.leads_to(language));
    wanted.into_iter().find_map(|range| {
        if range.is_any() {
            return offered
                .iter()
                .map(AsRef::as_ref)
                .find(|language| !excluded(language) && !is_named(language));
        }
        range.tags().find_map(|tag| {
            let found = offered.iter().find(|language| language.eq_ignore_ascii_case(tag));
            found.filter(|language| !excluded(language)).map(AsRef::as_ref)
        })
    })
}

struct Range<'a> {
    tag: &'a str,
    /// Thousandths.
    weight: u16,
}

impl<'a> Range<'a> {
    fn parse(item: &'a str) -> Option<Self> {
        let (tag, parameters) = item.split_once(';').unwrap_or((item, ""));
        let tag = tag.trim();
        let valid = tag == "*" || tag.split('-').all(is_subtag);
        let weight = match parameters.trim() {
            "" => 1000,
            parameter => weight(parameter.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim())?,
        };
        valid.then_some(Self { tag, weight })
    }

    fn is_any(&self) -> bool {
        self.tag == "*"
    }

    /// What is looked up, from the whole range down.
    fn tags(&self) -> impl Iterator<Item = &'a str> {
        std::iter::successors(Some(self.tag), |tag| shortened(tag))
    }

    /// Whether looking it up can end at this language.
    fn leads_to(&self, language: &str) -> bool {
        self.tags().any(|tag| tag.eq_ignore_ascii_case(language))
    }

    /// Whether a language lies inside this range (RFC 4647 section 3.3.1, basic filtering).
    fn matches(&self, language: &str) -> bool {
        let Some(start) = language.get(..self.tag.len()) else { return false };
        let rest = language.get(self.tag.len()..).unwrap_or_default();
        start.eq_ignore_ascii_case(self.tag) && (rest.is_empty() || rest.starts_with('-'))
    }
}

fn is_subtag(subtag: &str) -> bool {
    (1..=8).contains(&subtag.len()) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        || subtag == "*"
}

/// `0` to `1` with at most three digits after the point (RFC 9110 section 12.4.2), in thousandths.
fn weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let fraction = fraction.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match (whole, fraction) {
        ("0", fraction) => Some(fraction),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// One subtag less; a single letter that would then stand at the end goes with it (RFC 4647 section 3.4).
fn shortened(tag: &str) -> Option<&str> {
    let (head, _) = tag.rsplit_once('-')?;
    match head.rsplit_once('-') {
        Some((shorter, last)) if last.len() == 1 => Some(shorter),
        _ => Some(head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn negotiated(offered: &[&str], accept: &[&str]) -> Option<String> {
        let offered: Vec<Box<str>> = offered.iter().map(|&language| language.into()).collect();
        let mut headers = HeaderMap::new();
        for line in accept {
            headers.append(ACCEPT_LANGUAGE, HeaderValue::from_str(line).unwrap());
        }
        negotiate(&offered, &headers).map(str::to_owned)
    }

    #[test]
    fn the_most_wanted_language_on_offer_is_taken() {
        let offered = ["es", "en"];
        let table: [(&[&str], Option<&str>); 24] = [
            (&["es"], Some("es")),
            (&["ES-mx"], Some("es")),
            (&["en;q=0.5, es;q=0.8"], Some("es")),
            (&["en;q=0.8", "es;q=0.5"], Some("en")),
            (&["de, en;q=0.1"], Some("en")),
            (&["de"], None),
            (&[], None),
            (&[""], None),
            (&["*"], Some("es")),
            (&["es;q=0, *"], Some("en")),
            (&["es;q=0.1, *"], Some("en")),
            (&["es-MX;q=0.1, *"], Some("en")),
            (&["es;q=0.1, *;q=0.1"], Some("es")),
            (&["*, en"], Some("en")),
            (&["*, en;q=0.5"], Some("es")),
            (&["en;q=0.2, *;q=0.9, es;q=0.1"], Some("en")),
            (&["*;q=0"], None),
            (&["es;q=0"], None),
            (&["zh-Hant-x-private, en"], Some("en")),
            (&["en-GB-x-es"], Some("en")),
            (&["es;q=2"], None),
            (&["es;q=0.1234"], None),
            (&["esperantoo"], None),
            (&["e s"], None),
        ];
        for (accept, expected) in table {
            assert_eq!(negotiated(&offered, accept).as_deref(), expected, "{accept:?}");
        }
    }

    #[test]
    fn a_longer_offer_is_not_taken_for_a_shorter_range() {
        assert_eq!(negotiated(&["pt-BR"], &["pt"]), None);
        assert_eq!(negotiated(&["pt-BR", "pt"], &["pt-BR"]).as_deref(), Some("pt-BR"));
        assert_eq!(negotiated(&["pt"], &["pt-BR, pt-BR;q=0"]).as_deref(), Some("pt"));
    }

    #[test]
    fn an_endless_list_is_not_negotiated() {
        let many = vec!["es"; MAX_RANGES + 1].join(",");
        assert_eq!(negotiated(&["es"], &[&many]), None);
    }
}
