//! Keyed digests of what is compared and never stored.
//!
//! HMAC-SHA-256 (RFC 2104, FIPS 180-4) over a label and parts, each with its length before it, so that no two lists of parts
//! make the same text. The label keeps digests of different things apart: one is never another's.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret of one ledger. It has to outlive every operation in it: under another one, a client's key is a new key.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret with these bytes, which were drawn at random.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of these parts under this label.
    pub fn digest<'a>(&self, label: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        // A key of the block's size or less is taken as it is, so this length is always right.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        for part in std::iter::once(label.as_bytes()).chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Nothing of it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Bytes as digits in lower-case hexadecimal.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _a_string_takes_everything = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(label: &str, parts: &[&str]) -> [u8; 32] {
        Secret::from_bytes([7; 32]).digest(label, parts.iter().map(|part| part.as_bytes()))
    }

    /// Calculated with Python's `hmac` over the same bytes:
    /// `hmac.new(bytes([7])*32, (1).to_bytes(8,'big')+b'k'+(1).to_bytes(8,'big')+b'x', 'sha256')`.
    #[test]
    fn a_digest_is_that_of_rfc_2104() {
        let expected = "c9fbe72bfab8ac9d1e609bf1c90f0a164d4ed62399c19ba9852ff0fab1435a74";
        assert_eq!(hexadecimal(&digest("k", &["x"])), expected);
    }

    #[test]
    fn where_one_part_ends_and_the_next_begins_makes_a_difference() {
        let all = [
            digest("k", &["ab", "c"]),
            digest("k", &["a", "bc"]),
            digest("k", &["abc"]),
            digest("k", &["abc", ""]),
            digest("ka", &["b", "c"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other != one), "{at}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::from_bytes([0x41; 32])), "Secret");
    }
}
