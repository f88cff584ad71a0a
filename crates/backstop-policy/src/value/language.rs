//! Language tags (BCP 47, RFC 5646): well-formed ones, such as `es`, `pt-BR` or `zh-Hant-TW`.

use crate::code::Code;
use crate::read::{Fault, Scalar};

/// A language tag, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Language(pub(crate) Box<str>);

impl Scalar for Language {
    const EXPECTED: &'static str = "a language tag such as \"es\" or \"pt-BR\"";
    const NAME: &'static str = "language tag";
    const PATTERN: Option<&'static str> = Some("^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$");

    fn parse(text: &str) -> Result<Self, Fault> {
        if is_well_formed(text) {
            return Ok(Language(text.into()));
        }
        let fault = Fault::new(Code::Language, format!("`{text}` is not a language tag (BCP 47)"));
        let hyphens = text.replace('_', "-");
        Err(if hyphens != text && is_well_formed(&hyphens) {
            fault.instead(hyphens)
        } else {
            fault.help("write a language and maybe a script or region: `es`, `pt-BR`, `zh-Hant`")
        })
    }
}

/// `language ["-" script] ["-" region] *("-" variant) *("-" extension) ["-x" private]`; no grandfathered tags.
fn is_well_formed(text: &str) -> bool {
    let letters = |part: &str| part.bytes().all(|b| b.is_ascii_alphabetic());
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = text.split('-').peekable();
    if !parts.next().is_some_and(|language| (2..=8).contains(&language.len()) && letters(language)) {
        return false;
    }
    let _extended = (0..3).map_while(|_| parts.next_if(|part| part.len() == 3 && letters(part))).count();
    let _script = parts.next_if(|part| part.len() == 4 && letters(part));
    let _region =
        parts.next_if(|part| (part.len() == 2 && letters(part)) || (part.len() == 3 && digits(part)));
    let is_variant = |part: &str| {
        (5..=8).contains(&part.len()) || (part.len() == 4 && part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut after_singleton = None;
    for part in parts {
        let alphanumeric = !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
        after_singleton = match after_singleton {
            _ if !alphanumeric || part.len() > 8 => return false,
            Some(count) if part.len() > 1 => Some(count + 1),
            Some(0) => return false,
            Some(_) | None if part.len() == 1 => Some(0),
            None if is_variant(part) => None,
            _ => return false,
        };
    }
    after_singleton != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_well_formed_tags() {
        for tag in
            ["es", "pt-BR", "zh-Hant-TW", "es-419", "sl-rozaj", "de-CH-1996", "en-u-ca-gregory", "zh-yue-HK"]
        {
            assert!(is_well_formed(tag), "{tag}");
        }
        for tag in
            ["", "e", "es_ES", "es-", "-es", "es-E", "español", "en-u", "x y", "123", "en-toolongsubtag"]
        {
            assert!(!is_well_formed(tag), "{tag}");
        }
    }
}
