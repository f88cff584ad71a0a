//! What a token says of its own signature, before anything of it is believed (RFC 7515 section 4.1).

use jsonwebtoken::{Algorithm, decode_header};

/// The header of a token that this issuer may have signed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Which key it names.
    pub(super) key_id: String,
    /// How it is signed, one of those that the policy allows.
    pub(super) algorithm: Algorithm,
}

impl Shown {
    /// `None` where no key could make it valid: so it is refused whatever keys there are.
    pub(super) fn read(token: &str, allowed: &[Algorithm]) -> Option<Self> {
        // `none` and whatever else is no algorithm of the library fails here.
        let header = decode_header(token).ok()?;
        let is_allowed = allowed.contains(&header.alg);
        // What must be understood and is not (RFC 7515 section 4.1.11); nothing of the kind is understood here.
        let is_understood = header.crit.is_none() && header.enc.is_none() && header.zip.is_none();
        // A token of another kind, such as a logout token, is not to be taken for one that lets somebody in (RFC 8725
        // section 3.11). `at+jwt` is RFC 9068 section 2.1.
        let is_token = header.typ.as_deref().is_none_or(|kind| {
            let kind = kind.to_ascii_lowercase();
            matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt")
        });
        // Claims that are a token in their turn (RFC 7519 section 5.2).
        let is_nested = header.cty.is_some();
        // Keys that the token brings along (`jwk`, `jku`, `x5u`, `x5c`) are never looked at: RFC 8725 section 3.10.
        let key_id = header.kid.filter(|key_id| !key_id.is_empty())?;
        (is_allowed && is_understood && is_token && !is_nested)
            .then_some(Self { key_id, algorithm: header.alg })
    }
}
