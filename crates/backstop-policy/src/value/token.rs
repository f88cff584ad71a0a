//! Whose tokens are believed, and how they are signed.

use crate::code::Code;
use crate::read::{Fault, Scalar};
use crate::settings::TokenAlgorithm;
use crate::suggest;

/// A string that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonEmptyText(pub(crate) Box<str>);

impl Scalar for NonEmptyText {
    const EXPECTED: &'static str = "a string";
    const NAME: &'static str = "string";
    const PATTERN: Option<&'static str> = Some("^.");

    fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::new(Code::Empty, "the text is empty")
                .help("write what stands in the token, exactly: an empty text would be in any of them"));
        }
        Ok(NonEmptyText(text.into()))
    }
}

/// The name of a way to sign, as `alg` has it (RFC 7518 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlgorithmName(pub(crate) TokenAlgorithm);

impl Scalar for AlgorithmName {
    const EXPECTED: &'static str = "an algorithm such as \"RS256\"";
    const NAME: &'static str = "algorithm";
    const PATTERN: Option<&'static str> = Some("^((RS|PS)(256|384|512)|ES(256|384)|EdDSA)$");

    fn parse(text: &str) -> Result<Self, Fault> {
        let known = TokenAlgorithm::ALL.into_iter().find(|algorithm| algorithm.token() == text);
        if let Some(algorithm) = known {
            return Ok(Self(algorithm));
        }
        let message = match text.to_ascii_lowercase().as_str() {
            "none" => "`none` is no signature: everybody could write such a token".to_owned(),
            "hs256" | "hs384" | "hs512" => {
                format!("whoever can verify `{text}` can sign with it: the key is a shared secret")
            }
            _ => format!("`{text}` is not an algorithm that is verified here"),
        };
        let names = TokenAlgorithm::ALL.map(TokenAlgorithm::token);
        let fault = Fault::new(Code::Algorithm, message);
        Err(match suggest::closest(text, names).filter(|_| !text.to_ascii_lowercase().starts_with("hs")) {
            Some(close) => fault.instead(close),
            None => fault.help(format!("allowed: {}", suggest::listed(names))),
        })
    }
}
