//! One spelling for what may be spelt in several ways (RFC 3986 sections 6.2.2 and 6.2.3).
//!
//! Copies are found and withdrawn, and routes are matched, by this spelling. Path and query are
//! forwarded as they came; the host is forwarded in this spelling.

use std::borrow::Cow;

/// A host in lower case, without the port if it is empty or that of http, and without the dots that end an absolute name.
pub fn host(authority: &str) -> String {
    host_of(None, authority)
}

/// As [`host`], without the port of this scheme (RFC 9110 sections 4.2.1 and 4.2.2); without any it is http.
pub(crate) fn host_of(scheme: Option<&str>, authority: &str) -> String {
    let of_scheme =
        if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) { "443" } else { "80" };
    let (name, port) = match authority.rsplit_once(':') {
        // A colon inside the brackets of an IPv6 address begins no port.
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (authority, ""),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let number = port.trim_start_matches('0');
    match (port.is_empty(), number) {
        (true, _) => name,
        (false, number) if number == of_scheme => name,
        (false, "") => format!("{name}:0"),
        (false, number) => format!("{name}:{number}"),
    }
}

/// A host in its one spelling, and apart from it the port, if it has one.
pub fn without_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// What a path means to whoever decodes all of it: the text behind every percent-encoding. Bytes that are no UTF-8 stay
/// encoded. Paths that mean one thing to most services, and two to some (`/a:b` and `/a%3Ab`, `/a/b` and `/a%2Fb`), come
/// out alike: enough to withdraw by, never enough to serve by.
pub fn meaning(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut text = String::with_capacity(path.len());
    for chunk in decoded(path).utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    Cow::Owned(text)
}

/// The bytes behind percent-encodings. What is none stays as it is.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|digits| first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
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
        for same in
            ["shop", "SHOP", "shop:80", "shop:", "shop.", "shop.:80", "shop..", "shop:080", "shop.:00080"]
        {
            assert_eq!(host(same), "shop", "{same}");
        }
        for (other, spelt) in [
            ("shop:8080", "shop:8080"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("[::1]:81", "[::1]:81"),
            ("shop:08080", "shop:8080"),
            ("shop:0", "shop:0"),
            ("shop:00", "shop:0"),
            ("", ""),
        ] {
            assert_eq!(host(other), spelt);
        }
    }

    /// RFC 9110 section 4.2.2: the port of https is 443.
    #[test]
    fn the_port_of_another_scheme_stays() {
        for (scheme, authority, spelt) in [
            (Some("https"), "Shop:443", "shop"),
            (Some("HTTPS"), "shop:0443", "shop"),
            (Some("https"), "shop:80", "shop:80"),
            (Some("http"), "shop:443", "shop:443"),
            (Some("http"), "shop:80", "shop"),
            (None, "shop:443", "shop:443"),
        ] {
            assert_eq!(host_of(scheme, authority), spelt, "{scheme:?} {authority}");
        }
    }

    #[test]
    fn paths_that_mean_one_thing_to_most_are_one_place_to_withdraw() {
        let table = [
            ("/p/a:b", "/p/a:b"),
            ("/p/a%3Ab", "/p/a:b"),
            ("/p/a%3ab", "/p/a:b"),
            ("/caf\u{e9}", "/caf\u{e9}"),
            ("/caf%C3%A9", "/caf\u{e9}"),
            ("/a%2Fb", "/a/b"),
            ("/%FF%41", "/%FFA"),
            ("/a%", "/a%"),
            ("/a%2", "/a%2"),
            ("/%2541", "/%41"),
        ];
        for (path, meant) in table {
            assert_eq!(meaning(path), meant, "{path}");
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
