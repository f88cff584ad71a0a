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

use crate::json::{Found, NotAPointer, Places, is_one_value};
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
        let encoded = headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        if encoded {
            return Form::Whole { correct: true, certain: false };
        }
        let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(essence);
        let expected = self.media_type.as_deref();
        let fits = match (declared, expected) {
            (Some(declared), Some(expected)) => declared.eq_ignore_ascii_case(expected),
            (None, _) | (_, None) => true,
        };
        if !fits {
            return Form::Whole { correct: false, certain: delimited };
        }
        let looks = self.has + self.echo.len() > 0;
        let is_json = declared.or(expected).is_some_and(is_json);
        if is_json && !looks {
            return match is_one_value(body) {
                true => Form::Whole { correct: true, certain: true },
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
                // A request without that part asks for nothing in particular.
                (_, None) => true,
                (Found::Nothing | Found::Other, Some(_)) => false,
            })
    }
}

/// A media type without its parameters.
pub(crate) fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn is_json(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type == "application/json" || media_type == "text/json" || media_type.ends_with("+json")
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

    #[test]
    fn a_coded_body_is_passed_on_but_never_kept() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let rules = Rules::new(&product()).unwrap();
        let form = rules.examine(&headers, &Bytes::from_static(b"\x1f\x8b"), Framing::Delimited, |_| None);
        assert_eq!(form, UNCERTAIN);
    }
}
