//! Free text and media types.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// Any text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Box<str>);

impl Scalar for Text {
    const EXPECTED: &'static str = "a string";
    const NAME: &'static str = "string";

    fn parse(text: &str) -> Result<Self, Fault> {
        Ok(Text(text.into()))
    }
}

/// A media type without parameters, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediaType(pub(crate) Box<str>);

impl Scalar for MediaType {
    const EXPECTED: &'static str = "a media type such as \"application/json\"";
    const NAME: &'static str = "media type";
    const PATTERN: Option<&'static str> = Some("^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$");

    fn parse(text: &str) -> Result<Self, Fault> {
        if let Some((essence, _)) = text.split_once(';') {
            return Err(Fault::new(Code::MediaType, "a media type is written without parameters here")
                .part(essence.len()..text.len())
                .instead(essence.trim_end()));
        }
        let restricted = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
        };
        match text.split_once('/') {
            Some((kind, subtype)) if restricted(kind) && restricted(subtype) => {
                Ok(MediaType(text.to_ascii_lowercase().into()))
            }
            _ => {
                let fault = Fault::new(Code::MediaType, format!("`{text}` is not a media type"));
                Err(match text.to_ascii_lowercase().as_str() {
                    "json" => fault.instead("application/json"),
                    "html" => fault.instead("text/html"),
                    "text" | "txt" => fault.instead("text/plain"),
                    _ => fault.help("write a type and a subtype, such as `application/json`"),
                })
            }
        }
    }
}
