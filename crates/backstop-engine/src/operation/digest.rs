//! Digests of what is compared and never stored.
//!
//! All three are keyed (HMAC-SHA-256, RFC 2104 and FIPS 180-4, is meant) and made elsewhere, so that whoever reads a ledger
//! cannot try out keys, callers or contents.

use std::fmt;

macro_rules! digest {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The digest with these bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        /// The first four bytes: enough to tell two apart in a log.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))?;
                self.0.iter().take(4).try_fold((), |(), byte| write!(f, " {byte:02x}"))
            }
        }
    };
}

digest! {
    /// Of the route and of who calls, as it was verified. Never of a raw token: a refreshed one must not make the same
    /// caller another.
    Scope
}

digest! {
    /// Of the key that the client chose for its operation.
    ClientKey
}

digest! {
    /// Of what is asked: method, path, query, media type and content.
    Fingerprint
}
