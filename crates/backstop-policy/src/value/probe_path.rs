//! What a synthetic probe asks for: a path, maybe with a query, as it is sent.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A path, maybe with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbePath(pub(crate) Box<str>);

impl Scalar for ProbePath {
    const EXPECTED: &'static str = "a path such as \"/healthz\"";
    const NAME: &'static str = "path, maybe with a query";
    const PATTERN: Option<&'static str> = Some("^/[!\"$-~]*$");

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
        match text.char_indices().find(|(_, c)| !c.is_ascii_graphic() || *c == '#') {
            Some((at, c)) => Err(invalid(format!("`{}` may not stand in a path", c.escape_default()))
                .part(at..at + c.len_utf8())
                .help("percent-encode it, such as `%20` for a blank")),
            None => Ok(ProbePath(text.into())),
        }
    }
}
