//! Origins of pages (RFC 6454 section 6.2), as a browser writes them.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// Scheme, host and port, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin(pub(crate) Box<str>);

impl Scalar for WebOrigin {
    const EXPECTED: &'static str = "an origin such as \"https://shop.example\", or \"*\"";
    const NAME: &'static str = "origin of pages";
    const PATTERN: Option<&'static str> = Some("^([*]|https?://[^/?#@]+)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::WebOrigin, message);
        if text == "*" {
            return Ok(Self(text.into()));
        }
        let Some((scheme, rest)) =
            text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        else {
            let fault = invalid(format!("`{text}` does not begin with `https://` or `http://`"));
            return Err(if text.contains("://") { fault } else { fault.instead(format!("https://{text}")) });
        };
        if let Some(at) = rest.find(['/', '?', '#', '@']) {
            let site = rest.get(..at).unwrap_or_default();
            return Err(invalid("an origin is scheme, host and port alone".to_owned())
                .instead(format!("{scheme}://{site}")));
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
        if rest.is_empty() || !rest.bytes().all(is_host) {
            return Err(invalid(format!("`{rest}` is not a host")).help("write a name, maybe with a port"));
        }
        // Browsers write it in lower case and leave out the scheme's own port.
        let lower = text.to_ascii_lowercase();
        let own_port = if scheme == "https" { ":443" } else { ":80" };
        match lower.strip_suffix(own_port) {
            Some(without) => Err(invalid(format!("browsers leave out `{own_port}`")).instead(without)),
            None => Ok(Self(lower.into())),
        }
    }
}
