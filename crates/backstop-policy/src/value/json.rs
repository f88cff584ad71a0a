//! JSON Pointers and JSON content.

use serde::Deserialize as _;
use serde::de::IgnoredAny;

use crate::code::Code;
use crate::read::{Fault, MapKey, Scalar};

/// A JSON Pointer (RFC 6901).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pointer(pub(crate) Box<str>);

impl Scalar for Pointer {
    const EXPECTED: &'static str = "a JSON Pointer such as \"/id\"";
    const NAME: &'static str = "JSON Pointer";
    const PATTERN: Option<&'static str> = Some("^(/([^~/]|~[01])*)*$");

    fn parse(text: &str) -> Result<Self, Fault> {
        if !text.is_empty() && !text.starts_with('/') {
            let path = text.strip_prefix("$.").or(text.strip_prefix('$')).unwrap_or(text);
            return Err(Fault::new(Code::Pointer, format!("`{text}` does not begin with `/`"))
                .help("a JSON Pointer (RFC 6901) names each step after a slash")
                .instead(format!("/{}", path.replace('.', "/"))));
        }
        let bad_escape =
            text.match_indices('~').find(|(at, _)| !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
        match bad_escape {
            Some((at, _)) => {
                Err(Fault::new(Code::Pointer, "`~` is written `~0` in a JSON Pointer (and `/` is `~1`)")
                    .part(at..at + 1))
            }
            None => Ok(Pointer(text.into())),
        }
    }
}

impl MapKey for Pointer {
    const PLACEHOLDER: &'static str = "POINTER";
}

/// Whether content of this media type is JSON: `application/json` or a `+json` suffix.
pub(crate) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Whether the content is exactly one JSON value.
///
/// # Errors
/// What hinders it, with line and column in the content.
pub(crate) fn one_json_value(content: &[u8]) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(content);
    IgnoredAny::deserialize(&mut reader)?;
    reader.end()
}
