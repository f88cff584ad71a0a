//! Whether a complete answer is of the form that it declares, and keeps the route's `correct` rules.
//!
//! - A body that is declared to be JSON must be exactly one JSON value; anything else, nothing included, is *broken*: the
//!   failure `incomplete`. It is declared by the answer's own media type, or by the route where the answer names none.
//! - A whole answer of another media type, or without what the rules ask for, is *incorrect*: whole, but not what the
//!   route is for.
//! - A body in a content coding cannot be looked into. It is taken for what it says and never kept.

use std::borrow::Cow;

use backstop_engine::policy::{Correct, KeyPart};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::json::{Found, NotAPointer, Places, is_one_value, shows_its_end};
use crate::upstream::Framing;

/// A route's `correct` rules, ready for use.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    media_type: Option<Box<str>>,
    places: Places,
    has: usize,
    echo: Vec<KeyPart>,
}

/// What a complete body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Not what it declares to be.
    Broken,
    /// Whole.
    Whole {
        /// Whether it keeps the rules.
        correct: bool,
        /// Whether its completeness is beyond doubt.
        certain: bool,
    },
}

impl Rules {
    /// Prepares a route's rules.
    ///
    /// # Errors
    /// If a place is no JSON Pointer.
    pub fn new(correct: &Correct) -> Result<Self, NotAPointer> {
        let mut places = Places::default();
        for pointer in &correct.has {
            places.add(pointer)?;
        }
        let mut echo = Vec::with_capacity(correct.echo.len());
        for (pointer, part) in &correct.echo {
            places.add(pointer)?;
            echo.push(part.clone());
        }
        Ok(Self { media_type: correct.media_type.clone(), places, has: correct.has.len(), echo })
    }

    /// Looks at a complete answer. `part` gives the request's value of a key part.
    pub fn examine<'r>(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        framing: Framing,
        part: impl Fn(&KeyPart) -> Option<Cow<'r, str>>,
    ) -> Form {
        let delimited = framing == Framing::Delimited;
        let expected = self.media_type.as_deref().map(str::as_bytes);
        // The type first, of every line and byte for byte: it can be read of any answer.
        let types = || headers.get_all(CONTENT_TYPE).iter().map(|value| essence(value.as_bytes()));
        if expected.is_some_and(|expected| types().any(|declared| !declared.eq_ignore_ascii_case(expected))) {
            return Form::Whole { correct: false, certain: delimited };
        }
        if is_coded(headers) {
            return Form::Whole { correct: true, certain: false };
        }
        let declared = types().next();
        let looks = self.has + self.echo.len() > 0;
        let is_json = declared.or(expected).is_some_and(is_json);
        if is_json && !looks {
            return match is_one_value(body) {
                true => Form::Whole { correct: true, certain: delimited || shows_its_end(body) },
                false => Form::Broken,
            };
        }
        if looks {
            return match self.places.look(body) {
                Some(found) => Form::Whole { correct: self.holds(&found, part), certain: true },
                None if is_json => Form::Broken,
                None => Form::Whole { correct: false, certain: delimited },
            };
        }
        // Nothing says that an empty body is meant.
        Form::Whole { correct: true, certain: delimited && !body.is_empty() }
    }

    fn holds<'r>(&self, found: &[Found], part: impl Fn(&KeyPart) -> Option<Cow<'r, str>>) -> bool {
        let (has, echo) = found.split_at(self.has.min(found.len()));
        has.iter().all(|found| *found != Found::Nothing)
            && echo.iter().zip(&self.echo).all(|(found, key)| match (found, part(key)) {
                (Found::Text(text), Some(value)) => *text == value,
                // Whose answer it is can never be left open.
                (_, None) if *key == KeyPart::Principal => false,
                // A request without that part asks for nothing in particular.
                (_, None) => true,
                (Found::Nothing | Found::Other, Some(_)) => false,
            })
    }
}

/// A media type without its parameters.
pub(crate) fn essence(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

pub(crate) fn is_json(media_type: &[u8]) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type == b"application/json" || media_type == b"text/json" || media_type.ends_with(b"+json")
}

/// Whether a body is in any coding but none (RFC 9110 sections 8.4 and 12.5.3): what cannot be understood may be one.
pub(crate) fn is_coded(headers: &HeaderMap) -> bool {
    let mut codings =
        headers.get_all(CONTENT_ENCODING).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const WHOLE: Form = Form::Whole { correct: true, certain: true };
    const UNCERTAIN: Form = Form::Whole { correct: true, certain: false };
    const INCORRECT: Form = Form::Whole { correct: false, certain: true };

    fn examine(rules: &Correct, media_type: Option<&str>, body: &str, framing: Framing) -> Form {
        let mut headers = HeaderMap::new();
        if let Some(media_type) = media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(media_type).unwrap());
        }
        let language = |part: &KeyPart| (*part == KeyPart::Language).then_some("es".into());
        Rules::new(rules).unwrap().examine(
            &headers,
            &Bytes::copy_from_slice(body.as_bytes()),
            framing,
            language,
        )
    }

    fn product() -> Correct {
        Correct {
            media_type: Some("application/json".into()),
            has: vec!["/id".into(), "/text".into()],
            echo: vec![("/lang".into(), KeyPart::Language)],
        }
    }

    #[test]
    fn declared_json_must_be_one_json_value() {
        let json = Some("application/json; charset=utf-8");
        let good = r#"{"id":"42","text":"x","lang":"es"}"#;
        for framing in [Framing::Delimited, Framing::UntilClose] {
            assert_eq!(examine(&product(), json, good, framing), WHOLE);
            assert_eq!(examine(&product(), None, good, framing), WHOLE, "declared by the route");
            for broken in ["", "{\"id\":\"42\",\"te", "{} {}"] {
                assert_eq!(examine(&product(), json, broken, framing), Form::Broken, "{broken}");
                assert_eq!(examine(&product(), None, broken, framing), Form::Broken, "{broken}");
                assert_eq!(examine(&Correct::default(), json, broken, framing), Form::Broken, "{broken}");
                let problem = Some("application/problem+json");
                assert_eq!(examine(&Correct::default(), problem, broken, framing), Form::Broken, "{broken}");
            }
        }
    }

    /// `12345` that is cut after three digits is a number too; of everything else a part is no value (RFC 8259 section 2).
    #[test]
    fn a_number_does_not_show_where_it_ends() {
        let json = Some("application/json");
        for number in ["123", "-1.5e3", " 7\n"] {
            assert_eq!(examine(&Correct::default(), json, number, Framing::Delimited), WHOLE, "{number}");
            assert_eq!(
                examine(&Correct::default(), json, number, Framing::UntilClose),
                UNCERTAIN,
                "{number}"
            );
        }
        for other in ["[123]", "{\"a\":1}", "\"1\"", "true", "null"] {
            assert_eq!(examine(&Correct::default(), json, other, Framing::UntilClose), WHOLE, "{other}");
        }
    }

    #[test]
    fn whole_but_something_else_is_incorrect() {
        let json = Some("application/json");
        for other in [
            r#"{"id":"42","lang":"es"}"#,
            r#"{"id":"42","text":"x"}"#,
            r#"{"id":"42","text":"x","lang":"de"}"#,
            r#"{"id":"42","text":"x","lang":7}"#,
            r#"["id","text"]"#,
        ] {
            assert_eq!(examine(&product(), json, other, Framing::Delimited), INCORRECT, "{other}");
        }
        assert_eq!(examine(&product(), Some("text/html"), "<html></html>", Framing::Delimited), INCORRECT);
        assert_eq!(examine(&product(), Some("text/html"), "", Framing::Delimited), INCORRECT);
    }

    #[test]
    fn without_rules_only_the_framing_vouches() {
        let text = Some("text/plain");
        let none = Correct::default();
        assert_eq!(examine(&none, text, "hello", Framing::Delimited), WHOLE);
        assert_eq!(examine(&none, text, "hello", Framing::UntilClose), UNCERTAIN);
        assert_eq!(examine(&none, text, "", Framing::Delimited), UNCERTAIN);
    }

    fn examine_fields(fields: &[(http::HeaderName, &'static [u8])]) -> Form {
        let lines =
            fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_bytes(value).unwrap()));
        let mut headers = HeaderMap::new();
        lines.for_each(|(name, value)| _ = headers.append(name, value));
        let rules = Rules::new(&product()).unwrap();
        rules.examine(&headers, &Bytes::from_static(b"\x1f\x8b"), Framing::Delimited, |_| None)
    }

    #[test]
    fn a_coded_body_is_passed_on_but_never_kept() {
        for coding in [&b"gzip"[..], b"GZIP", b"identity, gzip", b"", b"\xff"] {
            assert_eq!(examine_fields(&[(CONTENT_ENCODING, coding)]), UNCERTAIN, "{coding:?}");
        }
        let two = [(CONTENT_ENCODING, &b"identity"[..]), (CONTENT_ENCODING, b"br")];
        assert_eq!(examine_fields(&two), UNCERTAIN);
        assert_eq!(examine_fields(&[(CONTENT_ENCODING, b"Identity")]), Form::Broken, "no coding at all");
    }

    /// The type can be read of any answer, coded or not, and whatever its bytes are.
    #[test]
    fn another_type_is_incorrect_in_any_coding_and_any_bytes() {
        let coded = (CONTENT_ENCODING, &b"gzip"[..]);
        for other in [&b"text/html"[..], b"text/html; charset=utf-8", b"application/json\xff", b"\xe9", b""] {
            assert_eq!(examine_fields(&[(CONTENT_TYPE, other)]), INCORRECT, "{other:?}");
            assert_eq!(
                examine_fields(&[(CONTENT_TYPE, other), coded.clone()]),
                INCORRECT,
                "{other:?}, coded"
            );
        }
        let json = (CONTENT_TYPE, &b"Application/JSON; charset=utf-8"[..]);
        assert_eq!(examine_fields(&[json.clone(), coded]), UNCERTAIN);
        assert_eq!(examine_fields(&[json, (CONTENT_TYPE, b"text/html")]), INCORRECT, "said twice");
    }
}
