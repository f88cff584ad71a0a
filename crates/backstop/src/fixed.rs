//! The stand-in of an optional part, ready to send.

use backstop_engine::policy::{FixedAnswer, Optional};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::language::negotiate;
use crate::protected::SetupError;

/// What stands in, in general and in certain languages.
pub(crate) struct Fixed {
    general: Ready,
    languages: Vec<Box<str>>,
    by_language: Vec<(Box<str>, HeaderValue, Ready)>,
}

/// One answer.
pub(crate) struct Ready {
    pub(crate) status: StatusCode,
    pub(crate) media_type: HeaderValue,
    pub(crate) body: Bytes,
}

impl Fixed {
    /// # Errors
    /// An answer that is none that HTTP knows.
    pub(crate) fn of(rules: &Optional, route: &str) -> Result<Self, SetupError> {
        let mut by_language = Vec::with_capacity(rules.by_language.len());
        for (language, answer) in &rules.by_language {
            // A language tag is letters, digits and hyphens.
            if let Ok(tag) = HeaderValue::from_str(language) {
                by_language.push((language.clone(), tag, Ready::of(answer, route)?));
            }
        }
        let general = Ready::of(rules.otherwise.answer(), route)?;
        Ok(Self { general, languages: rules.languages.clone(), by_language })
    }

    /// The answer for a request with these fields, and its language unless it is the general one.
    pub(crate) fn for_request(&self, headers: &HeaderMap) -> (&Ready, Option<&HeaderValue>) {
        let language = if self.varies() { negotiate(&self.languages, headers) } else { None };
        let found = language.and_then(|language| {
            self.by_language.iter().find(|(known, ..)| known.eq_ignore_ascii_case(language))
        });
        found.map_or((&self.general, None), |(_, language, answer)| (answer, Some(language)))
    }

    /// Whether it depends on `Accept-Language`.
    pub(crate) fn varies(&self) -> bool {
        !self.by_language.is_empty()
    }
}

impl Ready {
    fn of(answer: &FixedAnswer, route: &str) -> Result<Self, SetupError> {
        let status = StatusCode::from_u16(answer.status).ok();
        let status = status.filter(|status| (200..600).contains(&status.as_u16()));
        // These have no content, whatever their fields say (RFC 9110 section 15).
        let status =
            status.filter(|status| answer.body.is_empty() || !matches!(status.as_u16(), 204 | 205 | 304));
        let media_type = HeaderValue::from_str(&answer.media_type).ok();
        let (Some(status), Some(media_type)) = (status, media_type) else {
            let FixedAnswer { status, media_type, .. } = answer.clone();
            return Err(SetupError::Fixed { route: route.into(), status, media_type });
        };
        Ok(Self { status, media_type, body: Bytes::copy_from_slice(&answer.body) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_engine::policy::Otherwise;
    use http::header::ACCEPT_LANGUAGE;

    fn answer(body: &str) -> FixedAnswer {
        FixedAnswer { status: 200, media_type: "application/json".into(), body: body.as_bytes().into() }
    }

    fn told(fixed: &Fixed, accept: Option<&'static str>) -> (Bytes, Option<String>) {
        let accept = accept.map(|accept| (ACCEPT_LANGUAGE, HeaderValue::from_static(accept)));
        let (answer, language) = fixed.for_request(&accept.into_iter().collect());
        (answer.body.clone(), language.map(|language| language.to_str().unwrap().to_owned()))
    }

    /// RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5: none of them has content.
    #[test]
    fn an_answer_that_can_have_no_content_is_not_prepared_with_any() {
        let fixed = |status, body: &str| {
            let answer = FixedAnswer { status, ..answer(body) };
            Fixed::of(&Optional::new(Otherwise::Prepared(answer)), "x")
        };
        for status in [204, 205, 304] {
            assert!(
                matches!(fixed(status, "{}"), Err(SetupError::Fixed { status: told, .. }) if told == status)
            );
            assert!(fixed(status, "").is_ok(), "{status}");
        }
        for status in [200, 203, 206, 404, 503] {
            assert!(fixed(status, "{}").is_ok(), "{status}");
        }
    }

    /// RFC 4647 section 3.4: `es-MX` looks up `es`. A language without an answer of its own gets the general one.
    #[test]
    fn the_negotiated_language_has_its_own_answer_and_every_other_the_general_one() {
        let rules = Optional {
            otherwise: Otherwise::Prepared(answer("general")),
            languages: ["es", "en", "fr"].map(Into::into).to_vec(),
            by_language: vec![("es".into(), answer("spanish")), ("EN".into(), answer("english"))],
        };
        let fixed = Fixed::of(&rules, "x").unwrap();
        let table = [
            (Some("es"), "spanish", Some("es")),
            (Some("es-MX, en;q=0.9"), "spanish", Some("es")),
            (Some("es;q=0.1, en"), "english", Some("EN")),
            (Some("fr, en;q=0.5"), "general", None),
            (Some("de"), "general", None),
            (Some("*"), "spanish", Some("es")),
            (Some("es;q=0, *"), "english", Some("EN")),
            (Some("e s"), "general", None),
            (None, "general", None),
        ];
        for (accept, body, language) in table {
            let expected = (Bytes::from_static(body.as_bytes()), language.map(str::to_owned));
            assert_eq!(told(&fixed, accept), expected, "{accept:?}");
        }
        let one = Fixed::of(&Optional::new(Otherwise::Omit(answer("[]"))), "x").unwrap();
        assert!(!one.varies());
        assert_eq!(told(&one, Some("es")), (Bytes::from_static(b"[]"), None));
    }
}
