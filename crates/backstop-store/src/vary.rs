//! Variants of one key, told apart by the request fields that the answer's `Vary` names (RFC 9111 section 4.1).
//!
//! Two requests select the same variant if every named field is equal in both after normalisation: the lines of a
//! field are joined with a comma, and white space around a line and around its commas is dropped, except inside a
//! quoted string. A field that is absent matches only an absent one; an empty value is not absent. `Vary: *` matches
//! no request at all, so such an answer has no variant and cannot be a copy.
//!
//! Field values are compared as bytes: whether a field's order or case matters is its own business, and a needless
//! mismatch costs a copy where a false match would serve the wrong one.

use http::HeaderMap;
use http::header::{HeaderName, VARY};

/// One request field by which a copy was selected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VaryField {
    /// The field's name, in lower case.
    pub name: HeaderName,
    /// Its normalised value, or `None` where the request had no such field.
    pub value: Option<Box<[u8]>>,
}

impl VaryField {
    /// The field `name` as `request` carries it.
    pub fn of(name: HeaderName, request: &HeaderMap) -> Self {
        let value = request.contains_key(&name).then(|| normalised(request, &name).collect());
        Self { name, value }
    }

    /// The fields that an answer's `Vary` names, as the request carries them; sorted by name, each once. `None` if
    /// the answer varies on everything (`*`) or names something that is not a field.
    pub fn select(answer: &HeaderMap, request: &HeaderMap) -> Option<Vec<Self>> {
        let mut fields: Vec<Self> = Vec::new();
        for line in answer.get_all(VARY) {
            for name in line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if name.is_empty() {
                    continue;
                }
                let name = (name != b"*").then(|| HeaderName::from_bytes(name).ok())??;
                if let Err(place) = fields.binary_search_by(|field| field.name.as_str().cmp(name.as_str())) {
                    fields.insert(place, Self::of(name, request));
                }
            }
        }
        Some(fields)
    }

    /// Whether `request` carries this field with the same value; a field named `*` never matches. Allocates nothing.
    pub fn matches(&self, request: &HeaderMap) -> bool {
        match &self.value {
            _ if self.name == "*" => false,
            None => !request.contains_key(&self.name),
            Some(value) => {
                request.contains_key(&self.name) && normalised(request, &self.name).eq(value.iter().copied())
            }
        }
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.as_str().len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Whether every field of a variant matches.
pub(crate) fn all_match(fields: &[VaryField], request: &HeaderMap) -> bool {
    fields.iter().all(|field| field.matches(request))
}

/// The lines of a field, joined and without optional white space.
fn normalised<'a>(request: &'a HeaderMap, name: &'a HeaderName) -> impl Iterator<Item = u8> + 'a {
    request.get_all(name).iter().enumerate().flat_map(|(number, line)| {
        let comma = (number > 0).then_some(b',');
        comma.into_iter().chain(Squeezed::new(line.as_bytes().trim_ascii()))
    })
}

/// One line without the white space around its commas.
struct Squeezed<'a> {
    rest: &'a [u8],
    quoted: bool,
    escaped: bool,
    after_comma: bool,
}

impl<'a> Squeezed<'a> {
    fn new(line: &'a [u8]) -> Self {
        Self { rest: line, quoted: false, escaped: false, after_comma: false }
    }
}

impl Iterator for Squeezed<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if !self.quoted {
            let trimmed = self.rest.trim_ascii_start();
            if self.after_comma || trimmed.first() == Some(&b',') {
                self.rest = trimmed;
            }
        }
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.after_comma = *byte == b',' && !self.quoted;
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.quoted => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            _ => {}
        }
        Some(*byte)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};

    use super::*;

    fn request(lines: &[&str]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for line in lines {
            map.append(ACCEPT_LANGUAGE, HeaderValue::from_str(line).unwrap());
        }
        map
    }

    fn field(lines: &[&str]) -> VaryField {
        VaryField::of(ACCEPT_LANGUAGE, &request(lines))
    }

    #[test]
    fn white_space_and_lines_do_not_tell_requests_apart() {
        let stored = field(&["es, en;q=0.8 , *"]);
        assert_eq!(stored.value.as_deref(), Some(&b"es,en;q=0.8,*"[..]));
        assert!(stored.matches(&request(&[" es", "en;q=0.8,*"])));
        assert!(!stored.matches(&request(&["es"])));
        assert!(!stored.matches(&request(&["es,en;q=0.8,*,de"])));
    }

    #[test]
    fn a_quoted_string_keeps_its_white_space() {
        assert_eq!(field(&[r#" "a , \" , b" , c d "#]).value.as_deref(), Some(&br#""a , \" , b",c d"#[..]));
    }

    #[test]
    fn absent_matches_only_absent() {
        assert!(field(&[]).matches(&request(&[])));
        assert!(!field(&[]).matches(&request(&[""])));
        assert!(!field(&[""]).matches(&request(&[])));
        assert!(field(&[""]).matches(&request(&["  "])));
    }

    #[test]
    fn a_star_has_no_variant_and_names_are_listed_once() {
        let mut answer = HeaderMap::new();
        answer.append(VARY, HeaderValue::from_static("Accept-Language, , accept-encoding"));
        answer.append(VARY, HeaderValue::from_static("ACCEPT-LANGUAGE"));
        let fields = VaryField::select(&answer, &request(&["es"])).unwrap();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0], VaryField { name: ACCEPT_ENCODING, value: None });
        assert_eq!(fields[1].value.as_deref(), Some(&b"es"[..]));
        answer.append(VARY, HeaderValue::from_static("*"));
        assert_eq!(VaryField::select(&answer, &HeaderMap::new()), None);
    }
}
