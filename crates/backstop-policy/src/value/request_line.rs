//! What a drill asks: `"GET /products/{key}"`.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A method and a target in origin form; `{key}` in it stands for a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestLine {
    pub(crate) method: Box<str>,
    pub(crate) target: Box<str>,
}

impl Scalar for RequestLine {
    const EXPECTED: &'static str = "a method and a path such as \"GET /products/42\"";
    const NAME: &'static str = "method and path";
    const PATTERN: Option<&'static str> = Some("^[A-Z][A-Z-]* /[^ ]*$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let Some((method, target)) = text.split_once(' ') else {
            let fault = Fault::new(Code::Match, format!("`{text}` has no method"));
            return Err(match text.starts_with('/') {
                true => fault.instead(format!("GET {text}")),
                false => fault.help("write a method, a blank and a path: `GET /products/42`"),
            });
        };
        let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        if !is_method || matches!(method, "CONNECT" | "TRACE") {
            return Err(Fault::new(Code::Match, format!("`{method}` is not a method that is forwarded"))
                .part(0..method.len())
                .help("write it in capitals, such as `GET`"));
        }
        let part = method.len() + 1..text.len();
        if !target.starts_with('/') || target.bytes().any(|b| !b.is_ascii_graphic() || b == b'#') {
            return Err(Fault::new(Code::Match, format!("`{target}` is not a path"))
                .part(part)
                .help("it begins with `/` and has visible ASCII characters only, others percent-encoded"));
        }
        if target.replace("{key}", "").contains(['{', '}']) {
            return Err(Fault::new(Code::Match, "only `{key}` is filled in")
                .part(part)
                .help("write a real path, such as `/products/42`, or `/products/{key}` with `keys = 20`"));
        }
        Ok(Self { method: method.into(), target: target.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_method_and_a_path() {
        let read = |text| RequestLine::parse(text).map(|line| (line.method, line.target));
        assert_eq!(read("GET /a/{key}?b=1").ok(), Some(("GET".into(), "/a/{key}?b=1".into())));
        for wrong in ["/a", "GET", "get /a", "GET a", "GET /{id}", "GET /a b", "TRACE /a", "GET /a#b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(RequestLine::parse("/a").unwrap_err().instead.as_deref(), Some("GET /a"));
    }
}
