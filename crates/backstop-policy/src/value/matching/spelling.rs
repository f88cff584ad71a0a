//! The one spelling of a literal segment, by which requests are matched (RFC 3986 sections 6.2.2 and 3.3).
//!
//! A request's path is compared after its percent-encodings of unreserved characters are decoded and all others are in
//! upper case, so a literal in any other spelling would match nothing. A character that may not stand in a path is always
//! percent-encoded there.

use crate::code::Code;
use crate::read::Fault;

/// The segment in its one spelling; `None` if a `%` begins no encoding.
pub(super) fn canonical(segment: &str) -> Option<String> {
    let mut spelt = String::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
            let decoded = high << 4 | low;
            if is_unreserved(decoded) { spelt.push(char::from(decoded)) } else { escape(decoded, &mut spelt) }
        } else if is_unreserved(byte) || b"!$&'()+,;=:@".contains(&byte) {
            spelt.push(char::from(byte));
        } else {
            escape(byte, &mut spelt);
        }
    }
    Some(spelt)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn escape(byte: u8, spelt: &mut String) {
    spelt.push('%');
    for digit in [byte >> 4, byte & 0xf] {
        spelt.extend(char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()));
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// The fault of a segment that is spelt otherwise; `path` is the whole path as it should be.
pub(super) fn fault(segment: &str, path: &str) -> Fault {
    let segment = segment.escape_debug();
    Fault::new(Code::Match, format!("no request matches `{segment}`: paths are compared in one spelling"))
        .help(format!("write it as `{path}`"))
        .instead(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a request's path is compared in, written by hand from RFC 3986 section 6.2.2.
    #[test]
    fn escapes_are_decoded_or_in_upper_case_and_what_cannot_arrive_is_escaped() {
        for (written, spelt) in [
            ("", ""),
            ("a", "a"),
            ("%61%2D%2e%5F%7e", "a-._~"),
            ("caf%c3%a9", "caf%C3%A9"),
            ("caf\u{e9}", "caf%C3%A9"),
            ("a%2fb", "a%2Fb"),
            ("a%2Fb;v=1:2@x!$&'()+,", "a%2Fb;v=1:2@x!$&'()+,"),
            ("a b\u{0}\u{7f}", "a%20b%00%7F"),
            ("[\"<>\\^`|]", "%5B%22%3C%3E%5C%5E%60%7C%5D"),
            ("%2561", "%2561"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(spelt), "{written}");
        }
        for broken in ["%", "%a", "%zz", "a%4", "%%61", "%+1", "%\u{e9}"] {
            assert_eq!(canonical(broken), None, "{broken}");
        }
    }
}
