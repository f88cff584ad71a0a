//! What distinguishes copies: `path.NAME`, `query.NAME`, `header.NAME`, `language`, `principal`.

use backstop_engine::policy::KeyPart;

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::suggest;
use crate::value::header;

/// A part of a copy's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPartText(pub(crate) KeyPart);

impl Scalar for KeyPartText {
    const EXPECTED: &'static str = "a key part such as \"path.product\", \"query.page\", \"header.x-tenant\", \"language\" or \"principal\"";
    const NAME: &'static str = "key part";
    const PATTERN: Option<&'static str> = Some("^(language|principal|(path|query|header)\\..+)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::KeyPart, message);
        if text == "language" {
            return Ok(KeyPartText(KeyPart::Language));
        }
        if text == "principal" {
            return Ok(KeyPartText(KeyPart::Principal));
        }
        match text.split_once('.') {
            Some((_, "")) => Err(invalid(format!("`{text}` names nothing after the dot"))),
            Some(("path", name)) => Ok(KeyPartText(KeyPart::Path(name.into()))),
            Some(("query", name)) => Ok(KeyPartText(KeyPart::Query(name.into()))),
            Some(("header", name)) => header_part(name).map(KeyPartText),
            _ => {
                let fault = invalid(format!("`{text}` is not a key part"));
                let (kind, rest) = text.split_once('.').unwrap_or((text, ""));
                Err(match suggest::closest(kind, ["path", "query", "header", "language", "principal"]) {
                    Some(whole @ ("language" | "principal")) => fault.instead(whole),
                    Some(close) if !rest.is_empty() => fault.instead(format!("{close}.{rest}")),
                    _ => fault
                        .help("write `path.NAME`, `query.NAME`, `header.NAME`, `language` or `principal`"),
                })
            }
        }
    }
}

fn header_part(name: &str) -> Result<KeyPart, Fault> {
    let part = "header.".len().."header.".len() + name.len();
    let invalid = |message: String| Fault::new(Code::KeyPart, message).part(part.clone());
    let name = header::name(name).map_err(|fault| invalid(fault.message))?;
    match name.as_ref() {
        "authorization" => {
            Err(invalid("answers to requests with `Authorization` are never stored".to_owned())
                .help("leave it out: such requests neither fill nor use a copy"))
        }
        "cookie" => Err(invalid("a Cookie cannot tell copies apart".to_owned()).help(
            "requests with a Cookie use no copy unless the route removes it and says `ignore_cookie = true`",
        )),
        "host" => Err(invalid("the host is part of every key".to_owned()).help("leave it out")),
        _ => Ok(KeyPart::Header(name)),
    }
}
