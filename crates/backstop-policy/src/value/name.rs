//! Names of routes, dependencies and functions: a letter, then letters, digits, `_`, `-` and `.`, at most
//! 64 characters, so that they fit into a structured field's token and a metric's label unescaped.

use crate::code::Code;
use crate::read::{Fault, MapKey, Scalar};

/// A name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Box<str>);

const LONGEST: usize = 64;

impl Scalar for Name {
    const EXPECTED: &'static str = "a name such as \"catalog\"";
    const NAME: &'static str = "name";
    const PATTERN: Option<&'static str> = Some("^[A-Za-z][A-Za-z0-9_.-]{0,63}$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |message: String| Err(Fault::new(Code::InvalidName, message));
        if text.len() > LONGEST {
            return invalid(format!("`{text}` is longer than {LONGEST} characters"));
        }
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return invalid(format!("the name `{text}` does not begin with a letter"));
        }
        match text.char_indices().find(|(_, c)| !(c.is_ascii_alphanumeric() || "_-.".contains(*c))) {
            Some((at, c)) => {
                Err(Fault::new(Code::InvalidName, format!("`{}` may not stand in a name", c.escape_debug()))
                    .part(at..at + c.len_utf8())
                    .help("a name is a letter, then letters, digits, `_`, `-` or `.`"))
            }
            None => Ok(Name(text.into())),
        }
    }
}

impl MapKey for Name {
    const PLACEHOLDER: &'static str = "NAME";
}
