//! The key of a payment, from a field, a path, or what there is of a head.

/// The field that holds it.
pub(super) const FIELD: &str = "idempotency-key";

/// A key as it is compared: a string of RFC 9651 without its quotes and escapes, anything else as it is.
pub(super) fn plain(text: &str) -> String {
    let text = text.trim();
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(quoted) = quoted else { return text.to_owned() };
    let mut is_escaped = false;
    let mut plain = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        if character == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            plain.push(character);
            is_escaped = false;
        }
    }
    plain
}

/// A key that stands in a path, percent-encoded or not.
pub(super) fn from_path(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    plain(&String::from_utf8_lossy(&bytes))
}

/// Whether what came of a head is, or may still become, a request that changes nothing.
pub(super) fn is_safe(head: &[u8]) -> bool {
    [&b"GET "[..], b"HEAD ", b"OPTIONS "]
        .iter()
        .any(|method| head.starts_with(method) || method.starts_with(head))
}

/// The key in a head that broke off, if its whole line had come.
pub(super) fn from_cut_head(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let (whole, _cut) = text.rsplit_once('\n')?;
    let mut fields = whole.lines().skip(1).filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.trim().eq_ignore_ascii_case(FIELD))?;
    Some(plain(value))
}

#[cfg(test)]
mod tests {
    use super::{from_cut_head, from_path, is_safe, plain};

    /// RFC 9651 section 3.3.3: within quotes a backslash makes a quote and a backslash plain.
    #[test]
    fn quotes_do_not_count() {
        assert_eq!(plain("k-1"), "k-1");
        assert_eq!(plain(" \"k-1\" "), "k-1");
        assert_eq!(plain(r#""a\"b\\c""#), r#"a"b\c"#);
        assert_eq!(plain("\"half"), "\"half");
    }

    /// RFC 3986 section 2.1.
    #[test]
    fn a_path_may_be_encoded() {
        assert_eq!(from_path("k-1"), "k-1");
        assert_eq!(from_path("%22k%2F1%22"), "k/1");
        assert_eq!(from_path("100%"), "100%");
        assert_eq!(from_path("%zz"), "%zz");
    }

    #[test]
    fn a_cut_head_tells_its_key_once_the_line_is_whole() {
        let head = b"POST /payments HTTP/1.1\r\nHost: a\r\nIDEMPOTENCY-KEY: k-1\r\nConte";
        assert_eq!(from_cut_head(head).as_deref(), Some("k-1"));
        assert_eq!(from_cut_head(&head[..55]), None);
        assert!(!is_safe(head) && !is_safe(b"P"));
        assert!(is_safe(b"GET / HT") && is_safe(b"G"));
    }
}
