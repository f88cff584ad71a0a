//! What a copy lies under.
//!
//! `prefix:1:`, then host with path, query, route and partition, each preceded by its length, so that no two keys give
//! the same bytes; where there is no query, `-` stands in its place. The number is the version of all that: another one
//! finds nothing that was written by this one.
//!
//! The fields that an answer's `Vary` names are not part of it, because they are known only after the answer. Under a key
//! lies one variant, the one that was stored last; whoever asks for another one misses, and stores his. That is never
//! wrong, and it is slow where variants alternate: a field that matters belongs into the route's `key`.

use std::io::Write;

use backstop_store::CopyKey;

const VERSION: &str = ":1:";

pub(super) fn encoded(prefix: &str, key: &CopyKey) -> Vec<u8> {
    let target = &key.target;
    let parts = [
        Some(target.host().as_bytes()),
        Some(target.path().as_bytes()),
        target.query().map(str::as_bytes),
        Some(key.route.as_bytes()),
        Some(&key.partition),
    ];
    let bytes: usize = parts.iter().flatten().map(|part| part.len() + 8).sum();
    let mut encoded = Vec::with_capacity(prefix.len() + VERSION.len() + bytes);
    encoded.extend_from_slice(prefix.as_bytes());
    encoded.extend_from_slice(VERSION.as_bytes());
    for part in parts {
        match part {
            Some(part) => {
                // Writing into memory does not fail.
                let _written = write!(encoded, "{}:", part.len());
                encoded.extend_from_slice(part);
            }
            None => encoded.push(b'-'),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use backstop_store::Target;

    use super::*;

    fn key(host: &str, path: &str, query: Option<&str>, route: &str, partition: &[u8]) -> Vec<u8> {
        let target = Target::new(host, path, query);
        encoded("backstop", &CopyKey { target, route: route.into(), partition: partition.into() })
    }

    #[test]
    fn a_key_has_one_form() {
        let encoded = key("shop.example:80", "/products/42", Some("a=1"), "reviews", b"\x02es");
        assert_eq!(encoded, b"backstop:1:15:shop.example:8012:/products/423:a=17:reviews3:\x02es");
        assert_eq!(key("h", "/", None, "r", b""), b"backstop:1:1:h1:/-1:r0:");
    }

    #[test]
    fn no_two_keys_have_the_same_form() {
        let keys = [
            key("h", "/p", None, "r", b""),
            key("h", "/p", Some(""), "r", b""),
            key("h", "/p", Some("q"), "r", b""),
            key("h", "/p", None, "rx", b""),
            key("h", "/p", None, "r", b"x"),
            key("h/", "p", None, "r", b""),
            key("h", "/p-", None, "r", b""),
            key("h", "/p1:r", None, "r", b""),
        ];
        for (one, first) in keys.iter().enumerate() {
            for second in keys.iter().skip(one + 1) {
                assert_ne!(first, second);
            }
        }
    }
}
