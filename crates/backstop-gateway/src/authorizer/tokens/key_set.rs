//! An issuer's public keys, a JWK Set (RFC 7517): each verifies what it is made for, and nothing else.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use serde_json::Value;

/// The keys that can verify a token here.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

struct Key {
    id: Box<str>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// Why a content is no set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoKeySet {
    /// It is not JSON, or has no list `keys`.
    #[error("it is no JWK Set")]
    NoSet,
    /// Which of two keys is meant nobody could say.
    #[error("two of its keys have the same `kid`")]
    SameName,
}

/// RSA keys as they are accepted (RFC 7518 section 3.3 asks for 2048 bits at least): bytes of the modulus.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

impl KeySet {
    /// Reads a set. Keys that cannot verify here are passed over (RFC 7517 section 5): of another kind or purpose, without a
    /// name, too short, or with their private part in it, which everybody knows then.
    pub(super) fn read(content: &[u8], allowed: &[Algorithm]) -> Result<Self, NoKeySet> {
        let written: Value = serde_json::from_slice(content).map_err(|_| NoKeySet::NoSet)?;
        let written = written.get("keys").and_then(Value::as_array).ok_or(NoKeySet::NoSet)?;
        let mut keys: Vec<Key> = Vec::new();
        for key in written.iter().filter_map(|key| Key::read(key, allowed)) {
            let is_same = |other: &Key| {
                other.id == key.id && other.algorithms.iter().any(|known| key.algorithms.contains(known))
            };
            if keys.iter().any(is_same) {
                return Err(NoKeySet::SameName);
            }
            keys.push(key);
        }
        Ok(Self(keys))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any key has this name.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|key| *key.id == *id)
    }

    /// The key of this name that is made for this algorithm (RFC 8725 section 3.1).
    pub(super) fn key(&self, id: &str, algorithm: Algorithm) -> Option<&DecodingKey> {
        let is_meant = |key: &&Key| *key.id == *id && key.algorithms.contains(&algorithm);
        self.0.iter().find(is_meant).map(|key| &key.key)
    }
}

impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl Key {
    fn read(written: &Value, allowed: &[Algorithm]) -> Option<Self> {
        if written.get("d").is_some() {
            return None;
        }
        let jwk: Jwk = serde_json::from_value(written.clone()).ok()?;
        let common = &jwk.common;
        let is_for_signatures =
            common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
        let verifies = common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        if !is_for_signatures || !verifies {
            return None;
        }
        let stated = match common.key_algorithm {
            Some(stated) => Some(Algorithm::try_from(stated).ok()?),
            None => None,
        };
        let is_usable = |algorithm: &&Algorithm| {
            allowed.contains(algorithm) && stated.is_none_or(|stated| stated == **algorithm)
        };
        let algorithms: Vec<Algorithm> = made_for(&jwk.algorithm).iter().filter(is_usable).copied().collect();
        let id = common.key_id.as_deref().filter(|id| !id.is_empty())?;
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        (!algorithms.is_empty() && is_whole(&key, &jwk.algorithm)).then(|| Self {
            id: id.into(),
            algorithms,
            key,
        })
    }
}

/// What a key of this kind can verify.
fn made_for(kind: &AlgorithmParameters) -> &'static [Algorithm] {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match kind {
        AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[ES256],
            EllipticCurve::P384 => &[ES384],
            _ => &[],
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[EdDSA],
        // A shared secret in public, or a kind that is not known.
        _ => &[],
    }
}

/// Whether it is as long as its kind says: else each of its tokens would be refused as forged.
fn is_whole(key: &DecodingKey, kind: &AlgorithmParameters) -> bool {
    match (key.kind(), kind) {
        (DecodingKeyKind::RsaModulusExponent { n, e }, AlgorithmParameters::RSA(_)) => {
            let first = n.iter().position(|byte| *byte != 0).unwrap_or(n.len());
            MODULUS_BYTES.contains(&(n.len() - first)) && (1..=8).contains(&e.len())
        }
        (DecodingKeyKind::SecretOrDer(point), AlgorithmParameters::EllipticCurve(key)) => {
            // 4, then both coordinates (SEC 1 section 2.3.3; RFC 7518 section 6.2.1.2).
            match key.curve {
                EllipticCurve::P256 => point.len() == 1 + 2 * 32,
                EllipticCurve::P384 => point.len() == 1 + 2 * 48,
                _ => false,
            }
        }
        // RFC 8032 section 5.1.5.
        (DecodingKeyKind::SecretOrDer(point), AlgorithmParameters::OctetKeyPair(_)) => point.len() == 32,
        _ => false,
    }
}

#[cfg(test)]
#[path = "key_set_tests.rs"]
mod tests;
