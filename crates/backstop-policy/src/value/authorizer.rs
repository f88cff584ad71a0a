//! Where an authorizer is asked, what its yes looks like, and whom it names.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::value::{Address, ProbePath, Url, header};

/// Scheme, host, port and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorizerUrl {
    pub(crate) address: Address,
    pub(crate) path: Box<str>,
}

impl Scalar for AuthorizerUrl {
    const EXPECTED: &'static str = "a URL such as \"http://127.0.0.1:9003/check\"";
    const NAME: &'static str = "`http://` URL with a path";
    const PATTERN: Option<&'static str> = Some("^http://[^/?#@]+(/[^#]*)?$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let start = "http://".len();
        let path_at = text.get(start..).and_then(|rest| rest.find(['/', '?', '#'])).map(|at| at + start);
        let (site, path) = path_at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, "/"));
        let Url(address) = Url::parse(site)?;
        let ProbePath(path) = ProbePath::parse(path).map_err(|fault| {
            let from = site.len();
            Fault::new(Code::Url, fault.message)
                .part(from..text.len())
                .help("write a path such as `/check`, percent-encoded")
        })?;
        Ok(Self { address, path })
    }
}

/// The field that makes a yes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// In lower case.
    pub(crate) name: Box<str>,
    /// Exactly this; any value that is not empty if `None`.
    pub(crate) value: Option<Box<str>>,
}

/// Fields that any answer has: none of them is anybody's word.
const EVERYDAY: [&str; 12] = [
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "server",
    "set-cookie",
    "vary",
    "via",
];

impl Scalar for Sign {
    const EXPECTED: &'static str = "a field such as \"x-allowed: yes\" or \"x-user\"";
    const NAME: &'static str = "`NAME: VALUE` or `NAME`";

    fn parse(text: &str) -> Result<Self, Fault> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let name = header::name(name)?;
        if EVERYDAY.contains(&name.as_ref()) {
            let message = format!("`{name}` comes with answers of any kind, so it is no explicit yes");
            return Err(Fault::new(Code::Sign, message)
                .help("name a field that only the authorizer's own code sends, such as `x-allowed: yes`"));
        }
        if value == Some("") {
            return Err(Fault::new(Code::Sign, format!("`{name}:` has no value"))
                .help("write the value, or the name alone for any value"));
        }
        let value = value.map(header::HeaderText::parse).transpose()?.map(|value| value.0);
        Ok(Self { name, value })
    }
}

/// A field that is told to somebody: not one of the connection, of the framing, or of what a gateway says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TellingHeader(pub(crate) Box<str>);

impl Scalar for TellingHeader {
    const EXPECTED: &'static str = "a header name such as \"x-roles\"";
    const NAME: &'static str = "header name";

    fn parse(text: &str) -> Result<Self, Fault> {
        let header::EditableHeader(name) = header::EditableHeader::parse(text)?;
        let is_forwarding = *name == *"forwarded" || name.starts_with("x-forwarded-");
        if header::is_telling(&name) || header::is_of_content(&name) || is_forwarding {
            return Err(Fault::new(
                Code::ReservedHeader,
                format!("`{name}` is written by the gateway itself"),
            )
            .help("name a field that tells who asks, such as `x-roles`"));
        }
        Ok(Self(name))
    }
}

/// `header.NAME`: the field of an authorizer's answer that names the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrincipalField(pub(crate) Box<str>);

impl Scalar for PrincipalField {
    const EXPECTED: &'static str = "a field of the authorizer's answer, such as \"header.x-user\"";
    const NAME: &'static str = "`header.NAME`";
    const PATTERN: Option<&'static str> = Some("^header\\..+$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let Some(name) = text.strip_prefix("header.") else {
            let fault =
                Fault::new(Code::Header, format!("`{text}` does not say where the principal comes from"));
            return Err(match TellingHeader::parse(text) {
                Ok(TellingHeader(name)) => fault.instead(format!("header.{name}")),
                Err(_) => fault.help("write `header.NAME`"),
            });
        };
        let TellingHeader(name) = TellingHeader::parse(name)?;
        // What a client can send as a credential is not what was verified of it.
        if matches!(&*name, "authorization" | "cookie" | "set-cookie" | "proxy-authorization") {
            return Err(Fault::new(
                Code::ReservedHeader,
                format!("`{name}` is a credential, not a principal"),
            )
            .help("name the field in which the authorizer tells whom it verified, such as `header.x-user`"));
        }
        Ok(Self(name))
    }
}
