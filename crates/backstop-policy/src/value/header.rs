//! Header names and values, and which of them a policy may change.

use crate::code::Code;
use crate::read::{Fault, MapKey, Scalar};

/// A header name that may be set or removed, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EditableHeader(pub(crate) Box<str>);

/// A header value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderText(pub(crate) Box<str>);

/// A header value, or where a secret one is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretText {
    Plain(HeaderText),
    /// A variable of the environment.
    Environment(Box<str>),
    /// A file, relative to the policy file.
    File(Box<str>),
}

/// Fields of the connection or of the message's framing (RFC 9110 section 7.6.1, RFC 9112).
const FRAMING: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields by which an answer tells its date, its source and its limits: the policy never makes an answer look newer.
const TELLING: [&str; 9] = [
    "age",
    "backstop",
    "cache-control",
    "cache-status",
    "date",
    "expires",
    "proxy-status",
    "surrogate-control",
    "via",
];

/// Targeted cache control (RFC 9213 section 2.2), this product's own included.
const TARGETED: &str = "-cache-control";

/// Fields that say what the content is (RFC 9110 sections 8.3, 8.4 and 14.4).
const CONTENT: [&str; 3] = ["content-encoding", "content-range", "content-type"];

/// Whether this field tells an answer's date, source or limits.
pub(crate) fn is_telling(name: &str) -> bool {
    TELLING.contains(&name) || name.ends_with(TARGETED)
}

/// Whether this field says what the content is, which is passed on as it came.
pub(crate) fn is_of_content(name: &str) -> bool {
    CONTENT.contains(&name)
}

/// Reads a field name: a token, given back in lower case.
pub(crate) fn name(text: &str) -> Result<Box<str>, Fault> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !text.is_empty() && text.bytes().all(token) {
        return Ok(text.to_ascii_lowercase().into());
    }
    Err(Fault::new(Code::Header, format!("`{}` is not a header name", text.escape_debug()))
        .help("a header name is letters, digits and `-`"))
}

impl Scalar for EditableHeader {
    const EXPECTED: &'static str = "a header name such as \"x-tenant\"";
    const NAME: &'static str = "header name";

    fn parse(text: &str) -> Result<Self, Fault> {
        let name = name(text)?;
        if !FRAMING.contains(&name.as_ref()) {
            return Ok(EditableHeader(name));
        }
        let fault = Fault::new(Code::ReservedHeader, format!("`{text}` is not the policy's to change"));
        Err(match name.as_ref() {
            "host" => fault.help("set `host` in the dependency's table instead"),
            _ => fault.help("it belongs to the connection or to the message's framing"),
        })
    }
}

impl MapKey for EditableHeader {
    const PLACEHOLDER: &'static str = "HEADER";
}

impl Scalar for HeaderText {
    const EXPECTED: &'static str = "a header value";
    const NAME: &'static str = "string";

    fn parse(text: &str) -> Result<Self, Fault> {
        if text != text.trim_matches([' ', '\t']) {
            return Err(Fault::new(Code::Header, "a header value neither begins nor ends with a blank")
                .instead(text.trim_matches([' ', '\t'])));
        }
        match text.char_indices().find(|(_, c)| !matches!(c, '\t' | ' '..='~')) {
            Some((at, c)) => Err(Fault::new(
                Code::Header,
                format!("`{}` may not stand in a header value", c.escape_default()),
            )
            .part(at..at + c.len_utf8())
            .help("use visible ASCII characters, blanks and tabs")),
            None => Ok(HeaderText(text.into())),
        }
    }
}

impl Scalar for SecretText {
    const EXPECTED: &'static str = "a header value, or \"env:NAME\" or \"file:PATH\"";
    const NAME: &'static str = "string, `env:NAME` or `file:PATH`";

    fn parse(text: &str) -> Result<Self, Fault> {
        let (place, name) = match text.split_once(':') {
            Some((place @ ("env" | "file"), name)) => (place, name),
            _ => return HeaderText::parse(text).map(Self::Plain),
        };
        let nameless = |what: &str| {
            Fault::new(Code::Secret, format!("`{text}` names no {what}"))
                .help(format!("write `{place}:` and its name, without blanks"))
        };
        // POSIX leaves every other character to the shell (IEEE 1003.1 section 8.1).
        let is_variable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match place {
            "env" if name.is_empty() || !name.bytes().all(is_variable) => {
                Err(nameless("variable of the environment"))
            }
            "env" => Ok(Self::Environment(name.into())),
            _ if name.trim() != name || name.is_empty() => Err(nameless("file")),
            _ => Ok(Self::File(name.into())),
        }
    }
}
