//! What a synthetic probe asks for: a path, maybe with a query, as it is sent.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A longer path is no probe.
const LONGEST_BYTES: usize = 1024;

/// A path, maybe with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbePath(pub(crate) Box<str>);

impl Scalar for ProbePath {
    const EXPECTED: &'static str = "a path such as \"/healthz\"";
    const NAME: &'static str = "path, maybe with a query";
    const PATTERN: Option<&'static str> = Some(
        "^/([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*([?]([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$",
    );

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::new(Code::ProbePath, message);
        if !text.starts_with('/') {
            let fault = invalid(format!("`{}` does not begin with `/`", text.escape_debug()));
            let path =
                text.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
            return Err(match path {
                Some(path) => {
                    fault.help("the dependency's `url` says where; write the path alone").instead(path)
                }
                None => fault.help("write a path such as `/healthz`; it is asked with GET"),
            });
        }
        if text.len() > LONGEST_BYTES {
            return Err(invalid(format!("a path to probe has at most {LONGEST_BYTES} bytes"))
                .help("ask for something short: it is sent again and again"));
        }
        match text.char_indices().find(|&(at, c)| !may_stand(text, at, c)) {
            Some((at, '%')) => Err(invalid("`%` is not followed by two hexadecimal digits".to_owned())
                .part(at..at + 1)
                .help("the sign itself is written `%25`")),
            Some((at, c)) => Err(invalid(format!("`{}` may not stand in a path", c.escape_default()))
                .part(at..at + c.len_utf8())
                .help("percent-encode it, such as `%20` for a blank")),
            None => Ok(ProbePath(text.into())),
        }
    }
}

/// Whether this character may stand there: `pchar` and `/` (RFC 3986 section 3.3), the `?` before the query, and in the
/// query (section 3.4) any further one.
pub(super) fn may_stand(text: &str, at: usize, c: char) -> bool {
    match c {
        '%' => {
            let digits = text.as_bytes().get(at + 1..at + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        }
        _ => c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?".contains(c),
    }
}
