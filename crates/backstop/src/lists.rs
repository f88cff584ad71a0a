//! Lists within a field's value. A separator between quotes separates nothing.

/// What stands between quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// A quoted string, in which a backslash makes the next byte one like any other (RFC 9110 section 5.6.4).
    String,
    /// An entity tag, in which a backslash is one like any other itself (section 8.8.3).
    Tag,
}

/// The members of a list, without the spaces around them; empty ones too.
pub(crate) fn members(list: &[u8], separator: u8, quoted: Quoted) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    list.split(move |byte| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        is_escaped = is_quoted && quoted == Quoted::String && *byte == b'\\';
        is_quoted ^= *byte == b'"';
        *byte == separator && !is_quoted
    })
    .map(<[u8]>::trim_ascii)
}

/// As [`members`] of text with quoted strings.
pub(crate) fn text_members(list: &str, separator: u8) -> impl Iterator<Item = &str> {
    // Cut at bytes of ASCII alone, text stays text.
    members(list.as_bytes(), separator, Quoted::String)
        .map(|member| std::str::from_utf8(member).unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_separates_nothing() {
        let table: [(&str, &[&str]); 7] = [
            ("a, b ,c", &["a", "b", "c"]),
            ("a=\"b, c\", d", &["a=\"b, c\"", "d"]),
            ("a=\"b\\\", c\", d", &["a=\"b\\\", c\"", "d"]),
            ("a=\"\\\\\", b", &["a=\"\\\\\"", "b"]),
            ("a\\\", b", &["a\\\", b"]),
            ("\u{e9}, \"\u{e9},\"", &["\u{e9}", "\"\u{e9},\""]),
            ("", &[""]),
        ];
        for (list, expected) in table {
            assert_eq!(text_members(list, b',').collect::<Vec<_>>(), expected, "{list}");
        }
        let tags: Vec<_> = members(b"\"a\\\", W/\"b,\"", b',', Quoted::Tag).collect();
        assert_eq!(tags, [&b"\"a\\\""[..], b"W/\"b,\""]);
    }
}
