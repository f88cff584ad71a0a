//! One spelling for what may be spelt in several ways (RFC 3986 sections 6.2.2 and 6.2.3).
//!
//! Copies are found and withdrawn, and routes are matched, by this spelling. What is forwarded is never changed.

use std::borrow::Cow;

/// A host in lower case, without the port if it is empty or that of http, and without the dot that ends an absolute name.
pub fn host(authority: &str) -> String {
    let (name, port) = match authority.rsplit_once(':') {
        // A colon inside the brackets of an IPv6 address begins no port.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (authority, ""),
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if port.is_empty() || port == "80" { name } else { format!("{name}:{port}") }
}

/// A path or query whose percent-encodings are in upper case, and none of which hides an unreserved character.
pub fn escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut spelt = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        spelt.push_str(before);
        rest = after;
        let byte = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some((digits, byte)) =
            byte.and_then(|digits| Some((digits, u8::from_str_radix(digits, 16).ok()?)))
        else {
            spelt.push('%');
            continue;
        };
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            spelt.push(char::from(byte));
        } else {
            spelt.push('%');
            spelt.push_str(&digits.to_ascii_uppercase());
        }
        rest = after.get(2..).unwrap_or_default();
    }
    spelt.push_str(rest);
    Cow::Owned(spelt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_the_same_are_spelt_alike() {
        for same in ["shop", "SHOP", "shop:80", "shop:", "shop.", "shop.:80"] {
            assert_eq!(host(same), "shop", "{same}");
        }
        for (other, spelt) in [
            ("shop:8080", "shop:8080"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("[::1]:81", "[::1]:81"),
            ("", ""),
        ] {
            assert_eq!(host(other), spelt);
        }
    }

    /// The examples of RFC 3986 section 6.2.2, and what is no encoding at all.
    #[test]
    fn encodings_that_mean_the_same_are_spelt_alike() {
        let table = [
            ("/p/1", "/p/1"),
            ("/%70/%31", "/p/1"),
            ("/%c3%a9", "/%C3%A9"),
            ("/%7Esmith/%2f%3F", "/~smith/%2F%3F"),
            ("/a%", "/a%"),
            ("/a%2", "/a%2"),
            ("/a%zz%31", "/a%zz1"),
            ("/a%%31", "/a%1"),
            ("/%\u{e9}", "/%\u{e9}"),
            ("/%2531", "/%2531"),
        ];
        for (text, spelt) in table {
            assert_eq!(escapes(text), spelt, "{text}");
        }
    }
}
