//! The parts of HTTP/1.1 syntax that the origin and the client share.

mod chunked;
mod fields;

pub(crate) use chunked::Chunked;
pub use fields::{Field, Fields};

/// Where the first `\r\n\r\n` in `bytes` ends: the length of the head, blank line included.
pub(crate) fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|start| start + 4)
}

/// Whether `bytes` hold a line feed without a carriage return before it, or a carriage return that a byte other
/// than a line feed follows. A carriage return at the very end is undecided and passes.
pub(crate) fn has_bare_line_end(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().any(|(at, &byte)| match byte {
        b'\n' => at == 0 || bytes[at - 1] != b'\r',
        b'\r' => bytes.get(at + 1).is_some_and(|&next| next != b'\n'),
        _ => false,
    })
}

/// A `Content-Length` value under the strict rule: digits only, no sign, no list, no overflow.
pub(crate) fn content_length(value: &str) -> Option<u64> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{content_length, has_bare_line_end, head_length};

    #[test]
    fn a_head_ends_after_its_blank_line() {
        assert_eq!(head_length(b"HTTP/1.1 200 OK\r\n\r\nbody"), Some(19));
        assert_eq!(head_length(b"HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn bare_line_ends_are_seen() {
        assert!(has_bare_line_end(b"a\nb"));
        assert!(has_bare_line_end(b"a\rb"));
        assert!(!has_bare_line_end(b"a\r\nb\r"));
    }

    #[test]
    fn a_length_is_digits_only() {
        assert_eq!(content_length("12"), Some(12));
        for wrong in ["", "+1", "1, 1", " 1", "0x1", "99999999999999999999"] {
            assert_eq!(content_length(wrong), None, "{wrong:?}");
        }
    }
}
